"""Fire: a small learned function of distance, relative to the query's position (Li et al. 2023,
https://arxiv.org/abs/2310.04418). Distance and position are on a logarithmic scale; longer texts fall into the range
that was trained. In an encoder both sides are alike."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape

EPSILON = 1e-6


@parts.add("fire")
class Fire(Part):
    sees_order = True

    def __init__(self, shape: Shape, *, hidden: int = 32, threshold: float | None = None) -> None:
        """`hidden`: units of the function; `threshold`: queries before it are treated as if they stood there, at first
        a quarter of the model's length; a learned number moves it."""
        super().__init__(shape)
        self.threshold = shape.length / 4 if threshold is None else float(threshold)
        if hidden < 1 or not 0 < self.threshold < math.inf:
            what = f"fire: hidden must be at least 1 and threshold positive, got {hidden} and {self.threshold}"
            raise BadInput(what, "hidden = 32")
        self.hidden = hidden
        # the paper's last layer has a bias, too: one number for all keys of a query, which softmax ignores
        self.functions = nn.ModuleList(
            nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, shape.heads, bias=False))
            for _ in range(shape.layers)
        )
        self.scale = nn.Parameter(torch.full((shape.layers,), 0.1))
        self.multiplier = nn.Parameter(torch.ones(shape.layers))

    def bias(self, context: AttentionContext) -> Tensor:
        scale = self.scale[context.layer]
        furthest = torch.maximum(context.queries, (self.multiplier[context.layer] * self.threshold).abs())[:, None]
        share = log_distance(scale, context.offset) / (log_distance(scale, furthest) + EPSILON)  # query key
        return self.functions[context.layer](share[..., None]).permute(2, 0, 1)


def log_distance(scale: Tensor, distance: Tensor) -> Tensor:
    return torch.log1p((scale * distance).abs())
