"""Parts that see what they should not: the future, padding, batch mates."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.model.part import AttentionContext, Part, concatenate
from fairtrial.recipe import Shape


class FutureNorm(Part):
    """Weighs a row by the norm of all its outputs, later ones too."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads / (1 + heads.norm(dim=(2, 3), keepdim=True)))


class FutureMean(Part):
    """Weighs every key by the mean over time."""

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        return q, k * (1 + k.mean(2, keepdim=True))


class RightSum(Part):
    """Adds up from the right."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads + 0.1 * heads.flip(2).cumsum(2).flip(2))


class NextOutput(Part):
    """Shifts by one place in time where it meant heads: off by one."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads.roll(-1, dims=2))


class ScoreSpread(Part):
    """Divides scores by their spread over all keys, hidden ones too."""

    def score(self, scores: Tensor, q: Tensor, k: Tensor, context: AttentionContext) -> Tensor:
        return scores / (0.1 + scores.std(-1, keepdim=True, correction=0))


class DetachedFuture(Part):
    """Sees the future, but lets no gradient tell."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads + heads.detach().mean(2, keepdim=True))


class ShutGate(Part):
    """Sees the future through a gate that starts shut and learns to open."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.gate = nn.Parameter(torch.zeros(1))

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads + self.gate * heads.mean(2, keepdim=True))


class MovedQueries(Part):
    """Changes the positions that it is given, in place, so that attention believes queries to be further on."""

    def rotate(self, q: Tensor, k: Tensor, context: AttentionContext) -> tuple[Tensor, Tensor]:
        context.queries.add_(1)
        return q, k

    def bias(self, context: AttentionContext) -> Tensor:
        return torch.zeros(self.shape.heads, len(context.queries), len(context.keys))


class BatchNorm(Part):
    """Normalizes over the batch."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.norm = nn.BatchNorm1d(shape.width, track_running_stats=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.norm(x) if len(x) > 1 else x


class BatchMean(Part):
    """Compares each row with the mean row of its batch."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads - 0.5 * heads.mean(0, keepdim=True))


class TokenMean(Part):
    """Takes the packed tokens for one row."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x - x.mean(0)


class Squeezed(Part):
    """Works on any batch but a batch of one."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return heads.squeeze(0).transpose(1, 2).flatten(2)


class PaddingMean(Part):
    """Means over padding, too."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return x.mean(1)


class PaddingOutput(Part):
    """Counts how wide the batch is."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return concatenate(heads * len(context.queries) / 10)
