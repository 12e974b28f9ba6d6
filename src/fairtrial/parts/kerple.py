"""Kerple: attention fades with the logarithm of distance, at a pace that each head learns (Chi et al. 2022,
https://arxiv.org/abs/2205.09921). The bias is -a log(1 + b distance), with a and b of each head in each layer. In an
encoder it fades equally to both sides."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("kerple")
class Kerple(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        first = torch.rand(2, shape.layers, shape.heads) * torch.tensor([2.0, 1.0])[:, None, None]
        self.logs = nn.Parameter(first.clamp(min=0.01).log())  # of a and b, which stay above zero

    def bias(self, context: AttentionContext) -> Tensor:
        a, b = self.logs[:, context.layer, :, None, None].exp()  # head 1 1
        return -a * torch.log1p(b * context.distance)
