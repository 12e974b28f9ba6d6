"""What report r2's code does under the names of rotary positions and ALiBi, for the leak audit to catch.

The rotation takes its angle from the vector itself, so it knows no position. The slope of ALiBi is taken by the row of
the batch, so a sentence is read otherwise when its batch mates change."""

from __future__ import annotations

import torch
from torch import Tensor

from fairtrial.model import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("rope-by-content")
class RopeByContent(Part):
    sees_order = relative = True  # what the report says of it, and what the leak audit finds untrue

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        return turned(q), turned(k)


def turned(x: Tensor) -> Tensor:
    """x cos(x) + rotate(x) sin(x): the vector takes the place of the position. [batch head time head_dim]"""
    first, second = x.chunk(2, -1)
    return x * x.cos() + torch.cat((-second, first), -1) * x.sin()


@parts.add("alibi-by-row")
class AlibiByRow(Part):
    sees_order = relative = True

    def __init__(self, shape: Shape, *, rows: int = 16) -> None:
        """`rows`: in a batch, which the slopes are spread over as if they were heads."""
        super().__init__(shape)
        self.rows = rows

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        row = torch.arange(len(scores), device=scores.device) % self.rows
        slopes = 2.0 ** (-8 * (row + 1) / self.rows)
        return scores - slopes[:, None, None, None].to(scores.dtype) * context.distance
