"""T5: a learned bias for each head and distance: exact for short distances, buckets for long ones (Raffel et al.
2019, https://arxiv.org/abs/1910.10683). One table for all layers, as in the paper."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, parts
from fairtrial.recipe import Shape


@parts.add("t5")
class T5Bias(Part):
    sees_order = True
    relative = True

    def __init__(self, shape: Shape, *, buckets: int = 32, furthest: int = 128) -> None:
        super().__init__(shape)
        if buckets < 4 or buckets % 4 or not furthest > buckets:
            what = f"t5: buckets must be a multiple of 4 and below furthest, got {buckets} and {furthest}"
            raise BadInput(what, "buckets = 32, furthest = 128")
        self.buckets, self.furthest = buckets, furthest
        self.table = nn.Embedding(buckets, shape.heads)

    def bias(self, context: AttentionContext) -> Tensor:
        return self.table(bucket(context.offset, context.causal, self.buckets, self.furthest)).permute(2, 0, 1)


def bucket(offset: Tensor, causal: bool, buckets: int, furthest: int) -> Tensor:
    """The bucket of each distance back. In an encoder half of them are for keys ahead."""
    first = torch.zeros_like(offset)
    if causal:
        distance = offset.clamp(min=0)
    else:
        buckets //= 2
        first = (offset < 0) * buckets
        distance = offset.abs()
    exact = buckets // 2
    far = torch.log(distance.clamp(min=1).float() / exact) / math.log(furthest / exact) * (buckets - exact)
    return first + torch.where(distance < exact, distance, (exact + far.long()).clamp(max=buckets - 1))
