"""ReLU-squared: the feed-forward layer's activation is the square of ReLU (Primer, So et al. 2021,
https://arxiv.org/abs/2109.08668). It takes the place of `shape.activation`."""

from __future__ import annotations

from torch import Tensor

from fairtrial.model.part import FeedForward, Part, parts


@parts.add("relu-squared")
class SquaredReLU(Part):
    def feed_forward(self, x: Tensor, own: FeedForward, layer: int) -> Tensor:
        return own.down(own.up(x).relu().square())
