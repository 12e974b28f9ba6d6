"""CoPE: positions are counted by content. A query's gate says how much each token counts, the position of a key is the
sum of the gates from it to the query, and a learned vector for each position, interpolated, is scored by the query
(Golovneva et al. 2024, https://arxiv.org/abs/2405.18719). In an encoder, keys ahead are counted likewise, by the same
vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("cope")
class CoPE(Part):
    sees_order = True

    def __init__(self, shape: Shape, *, furthest: int | None = None) -> None:
        """`furthest`: positions beyond it count as it; by default the model's length."""
        super().__init__(shape)
        self.furthest = shape.length if furthest is None else furthest
        if self.furthest < 1:
            raise BadInput(f"cope: furthest must be at least 1, got {furthest}", "furthest = 64")
        self.vectors = nn.Parameter(torch.zeros(shape.layers, shape.head_dim, self.furthest + 1))  # shared by heads

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        gates, back = scores.sigmoid(), context.offset >= 0
        position = (gates * back).flip(-1).cumsum(-1).flip(-1)  # from each key up to the query
        if not context.causal:
            position = torch.where(back, position, (gates * (context.offset <= 0)).cumsum(-1))
        position = position.clamp(max=self.furthest)
        by_position = q @ self.vectors[context.layer]  # batch head query position
        below = position.floor()
        share = position - below
        low, high = (by_position.gather(-1, at.long()) for at in (below, position.ceil()))
        return scores + high * share + low * (1 - share)
