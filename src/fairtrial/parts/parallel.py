"""Parallel: attention and the feed-forward layer of a block both read its input, instead of one after the other (GPT-J;
PaLM, Chowdhery et al. 2022, https://arxiv.org/abs/2204.02311). Each has its own norm, as in GPT-NeoX."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fairtrial.model.part import Branch, Part, parts


@parts.add("parallel")
class Parallel(Part):
    excludes: Mapping[str, str] = {"residual": "both define the residual connections of a block"}

    def arrange(self, x: Tensor, attention: Branch, feed_forward: Branch, layer: int) -> Tensor:
        return x + attention(x) + feed_forward(x)
