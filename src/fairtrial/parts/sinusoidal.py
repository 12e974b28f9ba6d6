"""Sinusoidal: waves of many lengths added to the token's vector (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, dominates_embedding, parts
from fairtrial.recipe import Shape


@parts.add("sinusoidal")
class Sinusoidal(Part):
    sees_order = True

    def __init__(self, shape: Shape, *, scale: float = 1.0) -> None:
        """`scale`: of the waves. The paper's token vectors begin as large as the waves; beside small ones
        (`shape.start`) waves of 1 drown the tokens, and 0.02 keeps the paper's proportion."""
        super().__init__(shape)
        if not (math.isfinite(scale) and scale > 0):
            raise BadInput(f"sinusoidal: scale must be positive and finite, got {scale}", "scale = 0.02")
        self.scale = scale

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        added = self.scale * waves(positions.cpu(), x.shape[-1])
        return x + added.to(x.dtype).to(x.device)  # not every device has float64

    def notes(self) -> list[str]:
        if not dominates_embedding(self.shape, self.scale):
            return []
        return [f"waves of {self.scale:g} may dominate token vectors of 0.02; try sinusoidal:scale=0.02"]


def waves(positions: Tensor, width: int) -> Tensor:
    """[...] -> [... width]: sine at even places, cosine at odd ones; an odd width ends on a sine."""
    places = torch.arange(0, width, 2, dtype=torch.float64)
    angles = positions[..., None].double() * torch.exp(-math.log(10_000) * places / width)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :width]
