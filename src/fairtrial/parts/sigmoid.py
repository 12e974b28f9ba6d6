"""Sigmoid: the weight of a key is the sigmoid of its score, whatever the other keys (Ramapuram et al. 2024,
https://arxiv.org/abs/2409.04431). Weights of a query need not sum to one; a bias of -log(length) makes them sum to
about one at the start."""

from __future__ import annotations

import math

from torch import Tensor

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("sigmoid")
class Sigmoid(Part):
    def __init__(self, shape: Shape, *, bias: float | None = None) -> None:
        """`bias`: added to every score; by default minus the logarithm of the model's length."""
        super().__init__(shape)
        self.bias_of_scores = -math.log(shape.length) if bias is None else bias
        if not math.isfinite(self.bias_of_scores):
            raise BadInput(f"sigmoid: bias must be finite, got {bias}", "bias = -3.5")

    def weigh(self, scores: Tensor, context: AttentionContext) -> Tensor:
        return (scores + self.bias_of_scores).sigmoid()
