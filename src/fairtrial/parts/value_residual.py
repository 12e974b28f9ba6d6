"""Value-residual: the values of the first layer are mixed into those of all later ones (ResFormer, Zhou et al. 2024,
https://arxiv.org/abs/2410.17897). By two learned numbers for each layer, which start at one half."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("value-residual")
class ValueResidual(Part):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        if shape.layers < 2:
            raise BadInput("value-residual needs at least 2 layers, got 1", "set shape.layers = 2")
        self.shares = nn.Parameter(torch.full((shape.layers - 1, 2), 0.5))

    def project(self, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor, Tensor]:
        if context.layer == 0:
            context.memory[self] = v
            return q, k, v
        first, own = self.shares[context.layer - 1]
        return q, k, first * context.memory[self] + own * v
