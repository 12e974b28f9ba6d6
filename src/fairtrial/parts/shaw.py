"""Shaw: a learned vector for each distance is added to the key, and another to the value (Shaw et al. 2018,
https://arxiv.org/abs/1803.02155). Distances beyond `furthest` share one. Heads share the vectors, layers have their
own."""

from __future__ import annotations

import math

from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("shaw")
class Shaw(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, furthest: int = 16) -> None:
        """`furthest`: distances beyond it count as it."""
        super().__init__(shape)
        if furthest < 1:
            raise BadInput(f"shaw: furthest must be at least 1, got {furthest}", "furthest = 16")
        self.furthest = furthest
        self.keys, self.values = (
            nn.ModuleList(nn.Embedding(2 * furthest + 1, shape.head_dim) for _ in range(shape.layers)) for _ in range(2)
        )

    def index(self, context: AttentionContext) -> Tensor:
        """The number of each distance [query key]"""
        return context.offset.clamp(-self.furthest, self.furthest) + self.furthest

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        by_distance = (
            q @ self.keys[context.layer].get_parameter("weight").t() / math.sqrt(q.shape[-1])
        )  # batch head query distance
        return scores + by_distance.gather(-1, self.index(context).expand_as(scores))

    def read(self, heads: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        table = self.values[context.layer].get_parameter("weight")
        by_distance = weights.new_zeros(*weights.shape[:-1], len(table))  # batch head query distance
        return heads + by_distance.scatter_add(-1, self.index(context).expand_as(weights), weights) @ table
