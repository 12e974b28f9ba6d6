"""Talking-heads: each head's scores, and again its weights, are a learned mixture of all heads' (Shazeer et al. 2020,
https://arxiv.org/abs/2003.02436). Both mixtures start as the identity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("talking-heads")
class TalkingHeads(Part):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.before, self.after = (
            nn.Parameter(torch.eye(shape.heads).repeat(shape.layers, 1, 1)) for _ in range(2)
        )  # layer to from

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return mixed(scores, self.before[context.layer])

    def mix(self, weights: Tensor, context: AttentionContext) -> Tensor:
        return mixed(weights, self.after[context.layer])


def mixed(maps: Tensor, by: Tensor) -> Tensor:
    """[batch head query key], [to from] -> [batch head query key]"""
    return (by @ maps.flatten(2)).view_as(maps)
