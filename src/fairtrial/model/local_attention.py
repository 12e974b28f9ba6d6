"""What parts say of a site whatever the content, and what may be seen, as one tensor that is added to scores.

Attention to near tokens at a cost of length x window: the text is cut into blocks of queries, and each block meets
only the keys that it can reach. The same numbers as hiding the rest, without ever computing it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from fairtrial.model.layers import Dropout
from fairtrial.model.part import Kept, Part, Site


def collect_biases(site: Site, parts: Sequence[Part]) -> tuple[list[Tensor], list[Tensor]]:
    """The biases [head query key], and what each part allows to be seen [query key]."""
    biases = [bias for bias in (part.bias(site) for part in parts) if bias is not None]
    return biases, [allowed for allowed in (part.allow(site) for part in parts) if allowed is not None]


def and_masks(visible: Tensor | None, allowed: Sequence[Tensor]) -> Tensor | None:
    """What is left to see when every part has forbidden what it forbids."""
    for each in allowed:
        visible = each if visible is None else visible & each
    return visible


def to_attention_mask(biases: Sequence[Tensor], visible: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The biases together, minus infinity where nothing may be seen. Broadcasts over [batch head query key]."""
    if not biases:
        if visible is None:
            raise ValueError("nothing to add up")
        return torch.zeros(visible.shape, dtype=dtype).masked_fill_(~visible, -math.inf)
    total = sum(biases[1:], biases[0])[None]
    return (total if visible is None else total.masked_fill(~visible, -math.inf)).to(dtype)


LEAST_BLOCK = 32  # smaller blocks cost more in calls than they save in arithmetic
SHORTEST = 256  # shorter texts are quicker whole
EVEN = 16  # windows of other lengths miss the processor's wide registers: measured, a fifth of the time


def shortest_reach(parts: Sequence[Part], causal: bool) -> tuple[int, int] | None:
    """(back, ahead) that all parts together leave; None where it is not bounded, or where a part that adds to scores
    or hides tokens does so by absolute positions, which blocks do not know."""
    for part in parts:
        if part.owns("score") or ((part.owns("bias") or part.owns("allow")) and not part.relative):
            return None
    found = [window for part in parts if part.owns("window") and (window := part.window(causal)) is not None]
    return (min(back for back, _ in found), min(ahead for _, ahead in found)) if found else None


def worth_it(reach: tuple[int, int], time: int) -> bool:
    return time >= max(SHORTEST, 4 * (sum(reach) + 1))


@dataclass(frozen=True)
class Cut:
    """How a text is cut: blocks of queries, and for each the keys from `back` before it to `ahead` behind it."""

    back: int
    ahead: int
    time: int

    @classmethod
    def of(cls, reach: tuple[int, int], time: int) -> Cut:
        """Windows of even lengths, a little longer than they need to be: the parts hide what is beyond their reach."""
        back, ahead = (-(-each // EVEN) * EVEN for each in reach)
        return cls(back, ahead, time)

    @property
    def size(self) -> int:
        """Queries in a block: half of what one of them reaches, so that it meets three keys for each of its own."""
        return max(LEAST_BLOCK, (self.back + self.ahead) // 2)

    @property
    def span(self) -> int:
        """Keys that a block of queries meets."""
        return self.back + self.size + self.ahead

    @property
    def blocks(self) -> int:
        return -(-self.time // self.size)

    @property
    def over(self) -> int:
        """Places in the last block that the text does not fill."""
        return self.blocks * self.size - self.time


def attend_near(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    real: Tensor | None,
    reach: tuple[int, int],
    site: Site,
    parts: Sequence[Part],
    kept: Kept[Tensor],
    dropout: Dropout,
) -> Tensor:
    """[batch head time head_dim] -> the same, each query seeing what it can reach. `real`: real keys [batch time]"""
    cut = Cut.of(reach, q.shape[2])
    near = Site(site.layer, site.causal, torch.arange(cut.back, cut.back + cut.size), torch.arange(cut.span))
    biases, allowed = collect_biases(near, parts)
    batch, dtype = q.shape[0], q.dtype

    def make_mask() -> Tensor:
        known = torch.ones(batch, cut.time, dtype=torch.bool) if real is None else real
        return to_attention_mask(biases, and_masks(visible_keys(cut, near, known), allowed), dtype)

    mask = kept.get(make_mask, dtype, len(biases), *biases, *allowed)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # batch time head head_dim, as they lie in memory
    q = (pad(q, (0, 0, 0, 0, 0, cut.over)) if cut.over else q).unflatten(1, (cut.blocks, cut.size)).flatten(0, 1)
    k, v = Windows.apply(k, cut), Windows.apply(v, cut)  # row time head head_dim
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    seen = weigh(q, k, v, mask, dropout)  # row head query head_dim
    whole = seen.transpose(1, 2).unflatten(0, (-1, cut.blocks)).flatten(1, 2)  # batch time head head_dim
    return whole[:, : cut.time].transpose(1, 2)


def weigh(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: Dropout) -> Tensor:
    """torch's fused attention, or the same written out where weights are dropped."""
    if not dropout.drops:
        return scaled_dot_product_attention(q, k, v, attn_mask=mask)
    hidden = mask.isneginf()
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask).masked_fill(hidden, torch.finfo(q.dtype).min)
    return dropout(scores.softmax(-1).masked_fill(hidden, 0.0)) @ v


def visible_keys(cut: Cut, near: Site, real: Tensor) -> Tensor:
    """Which keys of its window are real [batch time] and not of the future: [row 1 query key]"""
    known = pad(real, (cut.back, cut.over + cut.ahead)).unfold(1, cut.span, cut.size).flatten(0, 1)[:, None, None, :]
    return known & (near.offset >= 0) if near.causal else known


class Windows(torch.autograd.Function):
    """Keys or values [batch time head head_dim] -> those of each block [batch*block span head head_dim]. The gradient
    by hand adds whole blocks; autograd's own adds token by token."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cut: Cut) -> Tensor:
        ctx.cut = cut
        padded = pad(x, (0, 0, 0, 0, cut.back, cut.over + cut.ahead))
        return padded.unfold(1, cut.span, cut.size).movedim(-1, 2).flatten(0, 1)

    @staticmethod
    def backward(ctx: Any, received: Tensor) -> tuple[Tensor, None]:
        cut: Cut = ctx.cut
        received = received.unflatten(0, (-1, cut.blocks))  # batch block span head head_dim
        pieces = received.split(cut.size, 2)  # piece i of a window lies in the i-th block after the window's first
        batch, blocks, _, *vector = received.shape
        total = received.new_zeros(batch, blocks + len(pieces) - 1, cut.size, *vector)
        for first, piece in enumerate(pieces):
            total[:, first : first + blocks, : piece.shape[2]] += piece
        return total.flatten(1, 2)[:, cut.back : cut.back + cut.time], None
