"""Learned: a vector for each position, learned and added to the token's (BERT, GPT-2)."""

from __future__ import annotations

from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, parts
from fairtrial.recipe import Shape


@parts.add("learned")
class Learned(Part):
    sees_order = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.table = nn.Embedding(shape.length, shape.width)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        if len(positions) and positions.max() >= self.shape.length:
            raise BadInput(f"learned positions end at {self.shape.length}, got position {int(positions.max())}")
        return x + self.table(positions)
