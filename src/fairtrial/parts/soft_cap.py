"""Soft-cap: scores are kept between -cap and cap: cap * tanh(score / cap) (Gemma 2, 2024,
https://arxiv.org/abs/2408.00118)."""

from __future__ import annotations

import math

from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("soft-cap")
class SoftCap(Part):
    def __init__(self, shape: Shape, *, cap: float = 50.0) -> None:
        super().__init__(shape)
        if not 0 < cap < math.inf:
            raise BadInput(f"soft-cap: cap must be positive and finite, got {cap}", "cap = 50")
        self.cap = cap

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return self.cap * (scores / self.cap).tanh()
