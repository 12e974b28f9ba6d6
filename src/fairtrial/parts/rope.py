"""Rope: queries and keys are rotated by their position, so that scores depend on distance (Su et al. 2021,
https://arxiv.org/abs/2104.09864). Half-split convention, as in GPT-NeoX and LLaMA."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("rope")
class Rope(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, base: float = 10_000.0) -> None:
        super().__init__(shape)
        if shape.head_dim % 2:
            raise BadInput(f"rope needs an even head_dim, got {shape.head_dim}", "change shape.width or shape.heads")
        if not 0 < base < math.inf:
            raise BadInput(f"rope: base must be positive and finite, got {base}", "base = 10000")
        self.base = base
        pairs = torch.arange(0, shape.head_dim, 2, dtype=torch.float64) / shape.head_dim
        self.paces = base**-pairs  # not a buffer: a network in float32 also rotates by angles of float64

    def angles(self, positions: Tensor) -> Tensor:
        """An angle for each position and pair. On the CPU: not every device has float64. [time] -> [time head_dim/2]"""
        return positions[:, None].cpu() * self.paces

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        if self not in context.memory:  # one for all layers
            context.memory[self] = self.tables(context.queries, q.shape[1], q.dtype)
        cosine, sine = context.memory[self]
        return Rotate.apply(q, k, cosine, sine)

    def tables(self, positions: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
        """Cosines, sines [2 time head head_dim], written out for all heads: long rows are quicker than broadcasts."""
        angles = self.angles(positions)
        cosine, sine = angles.cos(), angles.sin()
        halves = (cosine, cosine), (-sine, sine)
        tables = [torch.cat(pair * heads, -1).to(dtype).unflatten(-1, (heads, -1)) for pair in halves]
        return torch.stack(tables).to(positions.device)


class Rotate(torch.autograd.Function):
    """(a, b) -> (a cos - b sin, b cos + a sin), a and b the halves of a head. Its gradient, the rotation back, by hand
    takes half the passes of autograd's own."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(cosine, sine)
        return rotated(q, k, cosine, sine, 1)

    @staticmethod
    def backward(ctx: Any, q: Tensor, k: Tensor) -> tuple[Tensor | None, ...]:
        cosine, sine = ctx.saved_tensors
        return *rotated(q, k, cosine, sine, -1), None, None


def rotated(q: Tensor, k: Tensor, cosine: Tensor, sine: Tensor, sign: int) -> tuple[Tensor, Tensor]:
    """Queries and keys [batch head time head_dim] at once, in memory order: batch time head head_dim."""
    if q.shape[1] != k.shape[1]:  # heads share keys
        q, k = (rotated(x, x, cosine[:, : x.shape[1]], sine[:, : x.shape[1]], sign)[0] for x in (q, k))
        return q, k
    both = torch.stack((q.transpose(1, 2), k.transpose(1, 2)))
    across = both.roll(both.shape[-1] // 2, -1)
    q, k = both.mul_(cosine).addcmul_(across, sine, value=sign).transpose(2, 3).unbind()
    return q, k
