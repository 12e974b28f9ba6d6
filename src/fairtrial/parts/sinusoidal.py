"""Sinusoidal: waves of many lengths added to the token's vector (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairtrial.model.part import Part, parts


@parts.add("sinusoidal")
class Sinusoidal(Part):
    sees_order = True

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + waves(positions.cpu(), x.shape[-1]).to(x.dtype).to(x.device)  # not every device has float64


def waves(positions: Tensor, width: int) -> Tensor:
    """[...] -> [... width]: sine at even places, cosine at odd ones; an odd width ends on a sine."""
    places = torch.arange(0, width, 2, dtype=torch.float64)
    angles = positions[..., None].double() * torch.exp(-math.log(10_000) * places / width)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :width]
