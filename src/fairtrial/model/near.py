"""Attention to near tokens at a cost of length x window: the text is cut into blocks of queries, and each block meets
only the keys that it can reach. The same numbers as hiding the rest, without ever computing it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from fairtrial.model.part import Part, Site

LEAST_BLOCK = 64  # smaller blocks cost more in calls than they save in arithmetic


def shortest_reach(parts: Sequence[Part], causal: bool) -> tuple[int, int] | None:
    """(back, ahead) that all parts together leave; None where it is not bounded, or where a part that adds to scores
    or hides tokens does so by absolute positions, which blocks do not know."""
    for part in parts:
        if part.owns("score") or ((part.owns("bias") or part.owns("allow")) and not part.relative):
            return None
    found = [reach for reach in (part.reach(causal) for part in parts) if reach is not None]
    return (min(back for back, _ in found), min(ahead for _, ahead in found)) if found else None


def worth_it(reach: tuple[int, int], time: int) -> bool:
    return time >= 4 * max(LEAST_BLOCK, sum(reach) + 1)


def attend_near(
    q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, reach: tuple[int, int], site: Site, parts: Sequence[Part]
) -> Tensor:
    """[batch head time each] -> the same, each query seeing what it can reach. `real`: real keys [batch time]"""
    back, ahead = reach
    batch, time = q.shape[0], q.shape[2]
    size = max(LEAST_BLOCK, back + ahead + 1)
    blocks = -(-time // size)
    over = blocks * size - time
    span = back + size + ahead  # keys that a block of queries meets
    q = into_rows(pad(q, (0, 0, 0, over)).unflatten(2, (blocks, size)))
    k, v = (into_rows(pad(x, (0, 0, back, over + ahead)).unfold(2, span, size).transpose(-2, -1)) for x in (k, v))

    near = Site(site.layer, site.causal, torch.arange(back, back + size), torch.arange(span))
    visible = torch.ones(size, span, dtype=torch.bool) if not site.causal else near.offset >= 0
    for part in parts:
        allowed = part.allow(near)
        visible = visible if allowed is None else visible & allowed
    known = torch.ones(1, time, dtype=torch.bool) if real is None else real
    known = pad(known, (back, over + ahead)).unfold(1, span, size).expand(batch, -1, -1).flatten(0, 1)  # row key
    mask = visible & known[:, None, None, :]  # row head query key
    biases = [bias for bias in (part.bias(near) for part in parts) if bias is not None]
    if biases:
        mask = sum(biases[1:], biases[0])[None].masked_fill(~mask, -math.inf).to(q.dtype)
    seen = scaled_dot_product_attention(q, k, v, attn_mask=mask)  # row head query each
    return seen.unflatten(0, (batch, blocks)).transpose(1, 2).flatten(2, 3)[:, :, :time]


def into_rows(x: Tensor) -> Tensor:
    """[batch head block time each] -> [batch*block head time each]"""
    return x.transpose(1, 2).flatten(0, 1)
