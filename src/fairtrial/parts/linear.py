"""Linear: weights are products of features of queries and keys (Katharopoulos et al. 2020,
https://arxiv.org/abs/2006.16236). Features are elu + 1; a weight is divided by the sum of all."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor
from torch.nn.functional import elu

from fairtrial.model.part import Part, parts

NO_SCORES = "linear attention has products of features and no scores"


@parts.add("linear")
class Linear(Part):
    excludes: Mapping[str, str] = {
        "rotate": "features are computed after the rotation, so weights would not depend on distance",
        "score": NO_SCORES,
        "weigh": NO_SCORES,
    }

    def features(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return elu(q) + 1, elu(k) + 1
