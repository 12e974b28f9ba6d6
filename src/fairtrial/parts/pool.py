"""Pool: how an encoder's token vectors become one vector of the sentence, as a part each. At most one may be in a
recipe. Without any, it is the mean over real tokens (`pool-mean` makes it explicit)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fairtrial.model.part import Part, parts
from fairtrial.recipe import Shape


@parts.add("pool-mean")
class MeanPool(Part):
    """A sentence is the mean of its real tokens, as without any pool."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return (x * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)


@parts.add("pool-max")
class MaxPool(Part):
    """A sentence is the maximum over its real tokens, dimension by dimension."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        top = x.masked_fill(~real[..., None], -math.inf).amax(1)
        return top.masked_fill(~real.any(1, keepdim=True), 0.0)  # an empty sentence


@parts.add("pool-first")
class FirstPool(Part):
    """A sentence is its first token's vector of the last layer."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return x[:, 0]


@parts.add("pool-cls")
class ClsPool(FirstPool):
    """A learned vector before the sentence; its output of the last layer is the sentence (Devlin et al. 2018,
    https://arxiv.org/abs/1810.04805)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.cls = nn.Embedding(1, shape.width)

    def prefix(self) -> Tensor:
        return self.cls.weight


@parts.add("pool-attention")
class AttentionPool(Part):
    """One learned query looks at all tokens (Lin et al. 2017, https://arxiv.org/abs/1703.03130, with one hop)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.keys = nn.Linear(shape.width, shape.width)
        self.query = nn.Linear(shape.width, 1, bias=False)

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        scores = self.query(torch.tanh(self.keys(x)))[..., 0]  # batch time
        weights = scores.masked_fill(~real, torch.finfo(x.dtype).min).softmax(-1).masked_fill(~real, 0.0)
        return (weights[..., None] * x).sum(1)
