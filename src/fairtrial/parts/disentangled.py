"""Disentangled: separate scores of content to content, content to position, position to content (DeBERTa, He et al.
2020, https://arxiv.org/abs/2006.03654). Layers share the relative embeddings; each projects them."""

from __future__ import annotations

import math

from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("disentangled")
class Disentangled(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, furthest: int | None = None) -> None:
        """`furthest`: distances beyond it count as it; by default the model's length."""
        super().__init__(shape)
        self.furthest = shape.length if furthest is None else furthest
        if self.furthest < 1:
            raise BadInput(f"disentangled: furthest must be at least 1, got {furthest}", "furthest = 32")
        self.table = nn.Embedding(2 * self.furthest, shape.width)
        # DeBERTa's position keys have a bias too: one number for all keys of a query, which softmax ignores and no
        # gradient ever reaches
        self.keys = nn.ModuleList(nn.Linear(shape.width, shape.width, bias=False) for _ in range(shape.layers))
        self.queries = nn.ModuleList(nn.Linear(shape.width, shape.width) for _ in range(shape.layers))

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        index = (context.offset + self.furthest).clamp(0, 2 * self.furthest - 1)  # query key
        keys, queries = (
            layers[context.layer](self.table.weight).unflatten(-1, (self.shape.heads, -1)).transpose(0, 1)
            for layers in (self.keys, self.queries)
        )  # head distance head_dim
        to_position = q @ keys.transpose(-2, -1)  # batch head query distance
        to_content = k @ queries.transpose(-2, -1)  # batch head key distance
        at = index.expand(*scores.shape[:2], *index.shape)
        added = to_position.gather(-1, at) + to_content.gather(-1, at.transpose(-2, -1)).transpose(-2, -1)
        # the three kinds of scores share one scale, 1 / sqrt(3 each); `scores` have 1 / sqrt(each) already
        return (scores + added / math.sqrt(self.shape.head_dim)) / math.sqrt(3)
