"""Differential: two softmaxes for each head, of which the second is subtracted from the first (Ye et al. 2024,
https://arxiv.org/abs/2410.05258). The second counts as often as a learned number says, so that common noise cancels,
and each head's output is normed. The halves of a head are its even and its odd coordinates, so that the pairs that rope
rotates stay together."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fairtrial.errors import BadInput
from fairtrial.model.part import AttentionContext, Part, dominates_embedding, parts
from fairtrial.recipe import Shape

HALVES = "this part splits each head into two, with separate scores"


@parts.add("differential")
class Differential(Part):
    def __init__(self, shape: Shape, *, scale: float = 1.0) -> None:
        """`scale`: first gain of the heads' norm. A gain of 1, the paper's, drowns token vectors that begin small
        (`shape.start`); 0.1 does not."""
        super().__init__(shape)
        if not (math.isfinite(scale) and scale > 0):
            raise BadInput(f"differential: scale must be positive and finite, got {scale}", "scale = 0.1")
        self.scale = scale
        if shape.head_dim % 2:
            what = f"differential needs an even head_dim, got {shape.head_dim}"
            raise BadInput(what, "change shape.width or shape.heads")
        parted = f"halves of a head_dim of {shape.head_dim} part the pairs of coordinates; a multiple of 4 does not"
        self.excludes = dict.fromkeys(("score", "features", "weigh"), HALVES)
        self.excludes |= {"rotate": parted} if shape.head_dim % 4 else {}
        # two queries and two keys, whose products are the logarithms of the two terms of lambda
        self.vectors = nn.Parameter(0.1 * torch.randn(shape.layers, 2, 2, shape.head_dim // 2))
        self.norms = nn.ModuleList(nn.RMSNorm(shape.head_dim, eps=1e-5) for _ in range(shape.layers))
        for norm in self.norms:
            nn.init.constant_(norm.weight, scale)  # type: ignore[arg-type]

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        """[batch head query key] -> the first maps of all heads, then the second [batch 2*head query key]"""
        first = q[..., ::2] @ k[..., ::2].transpose(-2, -1) / math.sqrt(q.shape[-1] / 2)
        second = math.sqrt(2) * scores - first  # `scores` sum both halves' products, at the scale of a whole head
        return torch.cat((first, second), 1)

    def mix(self, weights: Tensor, context: AttentionContext) -> Tensor:
        first, second = weights.chunk(2, 1)
        terms = self.vectors[context.layer].prod(0).sum(-1).exp()
        return first - (terms[0] - terms[1] + initial_lambda(context.layer)) * second

    def read(self, heads: Tensor, weights: Tensor, context: AttentionContext) -> Tensor:
        return self.norms[context.layer](heads) * (1 - initial_lambda(context.layer))

    def notes(self) -> list[str]:
        if not dominates_embedding(self.shape, self.scale):
            return []
        return [f"heads normed to {self.scale:g} may dominate token vectors of 0.02; try differential:scale=0.1"]


def initial_lambda(layer: int) -> float:
    """0.2 in the first layer (0), rising to 0.8 in deep ones."""
    return 0.8 - 0.6 * math.exp(-0.3 * layer)
