"""Rope: queries and keys are turned by their position, so that scores depend on distance (Su et al. 2021,
https://arxiv.org/abs/2104.09864). Half-split convention, as in GPT-NeoX and LLaMA."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fairtrial.errors import BadInput
from fairtrial.model.part import Part, Site, parts
from fairtrial.recipe import Shape


@parts.add("rope")
class Rope(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, base: float = 10_000.0) -> None:
        super().__init__(shape)
        if shape.each % 2:
            raise BadInput(
                f"rope turns pairs, and a head of width {shape.each} is odd", "take an even width for each head"
            )
        if not 0 < base < math.inf:
            raise BadInput(f"rope: a base of {base} will not do", "base = 10000")
        self.base = base

    def angles(self, positions: Tensor) -> Tensor:
        """One angle for each position and pair. [time] -> [time each/2]"""
        pairs = torch.arange(0, self.shape.each, 2, dtype=torch.float64) / self.shape.each
        return positions[:, None].double() * self.base**-pairs

    def turn(self, q: Tensor, k: Tensor, site: Site) -> tuple[Tensor, Tensor]:
        angles = self.angles(site.queries)
        cosine = torch.cat((angles.cos(), angles.cos()), -1).to(q.dtype)  # time each
        sine = torch.cat((-angles.sin(), angles.sin()), -1).to(q.dtype)
        return Turn.apply(q, cosine, sine), Turn.apply(k, cosine, sine)


class Turn(torch.autograd.Function):
    """(a, b) -> (a cos - b sin, b cos + a sin), a and b the halves of a head. Its gradient is the turn back: by hand it
    takes half the passes of autograd's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return torch.addcmul(x * cosine, x.roll(x.shape[-1] // 2, -1), sine)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, received: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return torch.addcmul(received * cosine, received.roll(received.shape[-1] // 2, -1), -sine), None, None
