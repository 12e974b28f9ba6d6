"""Forgetting: each token forgets a share of all before it, by a learned gate for each head: the logarithms of the gates
between key and query are added to the score (Lin et al. 2025, https://arxiv.org/abs/2503.02130)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("forgetting")
class Forgetting(Part):
    sees_order = True
    decoder_only = "forgetting depends on earlier tokens only, and an encoder also sees later ones"

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.gates = nn.ModuleList(nn.Linear(shape.width, shape.heads) for _ in range(shape.layers))

    def attach(self, x: Tensor, context: AttentionContext) -> Tensor:
        return logsigmoid(self.gates[context.layer](x))

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        kept = context.attached[self].transpose(1, 2).cumsum(-1)  # batch head key
        return scores + kept[..., -len(context.queries) :, None] - kept[..., None, :]
