"""Cheaper attention. Local: at a cost of length x window; the text is cut into blocks of queries, and each block
meets only the keys that its window can show. The same numbers as masking the rest, without ever computing it.

Linear attention by products of positive features, at a cost of length x features: sums over keys are carried along the
text instead of being made anew for every query (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from fairtrial.model.part import Part

SMALLEST_BLOCK = 32  # smaller blocks cost more in calls than they save in arithmetic
SHORTEST_TEXT = 256  # shorter texts are faster in one piece
MULTIPLE = 16  # windows of other lengths miss the processor's wide registers: measured, a fifth of the time


def shortest_window(parts: Sequence[Part], causal: bool) -> tuple[int, int] | None:
    """(back, ahead) that all parts together leave; None where it is not bounded, or where a part that adds to scores
    or masks tokens does so by absolute positions, which blocks do not know."""
    for part in parts:
        by_position = part.overrides("bias") or part.overrides("allow")
        if part.overrides("score") or part.overrides("features") or (by_position and not part.relative):
            return None
    windows = [part.window(causal) for part in parts if part.overrides("window")]
    bounded = [window for window in windows if window is not None]
    return (min(back for back, _ in bounded), min(ahead for _, ahead in bounded)) if bounded else None


def worth_it(window: tuple[int, int], time: int) -> bool:
    return time >= max(SHORTEST_TEXT, 4 * (sum(window) + 1))


class Cut:
    """How a text is cut: blocks of queries, and for each the keys from `back` before it to `ahead` behind it."""

    def __init__(self, window: tuple[int, int], time: int) -> None:
        # windows rounded up to fast lengths: the parts mask what is beyond their own
        self.back, self.ahead = (-(-tokens // MULTIPLE) * MULTIPLE for tokens in window)
        self.time = time
        # queries in a block: half of a window, so that a block meets three keys for each of its queries
        self.size = max(SMALLEST_BLOCK, (self.back + self.ahead) // 2)
        self.span = self.back + self.size + self.ahead  # keys that a block of queries meets
        self.blocks = -(-time // self.size)
        self.padding = self.blocks * self.size - time  # tokens by which the last block is longer than the text

    def positions(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Of a block's queries and keys, counted from its first key."""
        queries = torch.arange(self.back, self.back + self.size, device=device)
        return queries, torch.arange(self.span, device=device)

    def visible(self, real: Tensor) -> Tensor:
        """Which keys of each block are real: [batch time] -> [batch*block 1 1 key]"""
        padded = pad(real, (self.back, self.padding + self.ahead))
        return padded.unfold(1, self.span, self.size).flatten(0, 1)[:, None, None, :]

    def query_blocks(self, q: Tensor) -> Tensor:
        """[batch head time head_dim] -> [batch*block head query head_dim]"""
        q = q.transpose(1, 2)  # batch time head head_dim, as it lies in memory
        q = pad(q, (0, 0, 0, 0, 0, self.padding)) if self.padding else q
        return q.unflatten(1, (self.blocks, self.size)).flatten(0, 1).transpose(1, 2)

    def key_windows(self, x: Tensor) -> Tensor:
        """Keys or values [batch head time head_dim] -> those that each block meets [batch*block head key head_dim]"""
        return Windows.apply(x.transpose(1, 2), self).transpose(1, 2)

    def join(self, heads: Tensor) -> Tensor:
        """[batch*block head query head_dim] -> [batch head time head_dim]"""
        joined = heads.transpose(1, 2).unflatten(0, (-1, self.blocks)).flatten(1, 2)  # batch time head head_dim
        return joined[:, : self.time].transpose(1, 2)


class Windows(torch.autograd.Function):
    """[batch time head head_dim] -> the keys of each block [batch*block key head head_dim]. The gradient by hand adds
    whole blocks; autograd's own adds token by token, a tenth of a step."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cut: Cut) -> Tensor:
        ctx.cut = cut
        padded = pad(x, (0, 0, 0, 0, cut.back, cut.padding + cut.ahead))
        return padded.unfold(1, cut.span, cut.size).movedim(-1, 2).flatten(0, 1)

    @staticmethod
    def backward(ctx: Any, received: Tensor) -> tuple[Tensor, None]:
        cut: Cut = ctx.cut
        received = received.unflatten(0, (-1, cut.blocks))  # batch block key head head_dim
        pieces = received.split(cut.size, 2)  # piece i of a window lies in the i-th block after the window's first
        batch, blocks, _, *vector = received.shape
        total = received.new_zeros(batch, blocks + len(pieces) - 1, cut.size, *vector)
        for first, piece in enumerate(pieces):
            total[:, first : first + blocks, : piece.shape[2]] += piece
        return total.flatten(1, 2)[:, cut.back : cut.back + cut.time], None


LINEAR_FROM = 256  # shorter texts are faster in one piece
CHUNK = 64  # queries that meet their own chunk's keys one by one, and the sums of all earlier chunks


def positive_products(q: Tensor, k: Tensor) -> Tensor:
    """[batch head query key], never zero, so that a logarithm is finite."""
    return (q @ k.transpose(-2, -1)).clamp(min=torch.finfo(q.dtype).tiny)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, real: Tensor | None) -> Tensor:
    """Features of queries and keys [batch head time n], values, which tokens are real [batch time] -> head outputs."""
    if real is not None:
        k = k * real[:, None, :, None]
    v = pad(v, (0, 1), value=1.0)  # the last column sums the weights
    summed = causal_sums(q, k, v) if causal else q @ (k.transpose(-2, -1) @ v)
    total = summed[..., -1:].clamp(min=torch.finfo(q.dtype).tiny)
    return summed[..., :-1] / total


def causal_sums(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """For each query the sum over keys up to it of (q k) v. [batch head time ...]"""
    time = q.shape[2]
    chunks = [pad(x, (0, 0, 0, -time % CHUNK)).unflatten(2, (-1, CHUNK)) for x in (q, k, v)]
    q, k, v = chunks  # batch head chunk time ...
    own = (q @ k.transpose(-2, -1)).tril() @ v
    sums = (k.transpose(-2, -1) @ v).cumsum(2)  # of this chunk and all before it
    earlier = pad(sums[:, :, :-1], (0, 0, 0, 0, 1, 0))
    return (own + q @ earlier).flatten(2, 3)[:, :, :time]
