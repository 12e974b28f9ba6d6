"""Alibi: attention fades linearly with distance, at a different slope for each head (Press et al. 2021,
https://arxiv.org/abs/2108.12409). In an encoder it fades equally to both sides."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("alibi")
class Alibi(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, slope: float | None = None) -> None:
        """`slope`: one slope for all heads instead of the paper's."""
        super().__init__(shape)
        if slope is not None and not math.isfinite(slope):
            raise BadInput(f"alibi: slope must be finite, got {slope}", "slope = 1")
        steps = slopes(shape.heads) if slope is None else [float(slope)] * shape.heads
        self.register_buffer("steps", torch.tensor(steps), persistent=False)

    def bias(self, context: AttentionContext) -> Tensor:
        if self not in context.memory:  # one for all layers
            context.memory[self] = -self.get_buffer("steps")[:, None, None] * context.distance
        return context.memory[self]


def slopes(heads: int) -> list[float]:
    """2^(-8/n), 2^(-16/n), ... for n heads, n a power of two; else those of the next lower power of two, and then every
    other one of the next higher, as the authors' code does."""
    lower = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (number + 1) / lower) for number in range(lower)]
    return first + [2 ** (-4 * (2 * number + 1) / lower) for number in range(heads - lower)]
