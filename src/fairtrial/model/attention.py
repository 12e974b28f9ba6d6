"""Multi-head attention: the one place that knows what may be seen, and that calls the parts' verbs in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fairtrial.model.layers import Dropout, Tap
from fairtrial.model.layout import Layout
from fairtrial.model.local_attention import (
    and_masks,
    attend_near,
    collect_biases,
    shortest_reach,
    to_attention_mask,
    worth_it,
)
from fairtrial.model.part import Kept, Part, Site, concatenate
from fairtrial.recipe import Shape


@dataclass(frozen=True)
class View:
    """What attention may see in one pass, the same for all layers."""

    layout: Layout
    causal: bool
    queries: Tensor  # positions [query]
    keys: Tensor  # positions [key]
    triangle: bool  # hidden is just the future of a square: the fast kernel's own mask will do
    dtype: torch.dtype
    mask: Kept[Tensor] = field(default_factory=Kept)  # of the last layer; layers with the same biases share it

    @classmethod
    def of(cls, layout: Layout, causal: bool, past: int, dtype: torch.dtype) -> View:
        queries = torch.arange(past, past + layout.time)
        keys = torch.arange(past + layout.time)
        triangle = causal and past == 0 and layout.lengths is None
        return cls(layout, causal, queries, keys, triangle, dtype)

    @cached_property
    def visible(self) -> Tensor | None:
        """True where a key may be seen [batch head query key]; None: by `triangle` alone. As large as the square of
        the text's length: attention to near tokens never asks for it."""
        visible = None
        if self.causal and not self.triangle and self.layout.time > 1:
            visible = (self.keys <= self.queries[:, None])[None, None]
        if self.layout.lengths is None:
            return visible
        real = self.layout.real()[:, None, None, :]
        return real if visible is None else visible & real

    @cached_property
    def added(self) -> Tensor | None:
        """`visible` as what is added to scores, made once for all layers: the fast kernel would make it in each."""
        if self.visible is None:
            return None
        return to_attention_mask([], self.visible, self.dtype)

    def seen(self) -> Tensor | None:
        """`visible` with the triangle written out."""
        if self.triangle:
            return (self.keys <= self.queries[:, None])[None, None]
        return self.visible


class Cache:
    """Keys and values of the tokens so far, so that generating one token costs one token's work."""

    def __init__(self, layers: int) -> None:
        self.kept: list[tuple[Tensor, Tensor] | None] = [None] * layers  # with room to grow
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values so far, the new ones [batch head time head_dim] at their end."""
        end = self.length + k.shape[2]
        kept = self.kept[layer]
        if kept is None or kept[0].shape[2] < end:
            old = (k, v) if kept is None else kept
            kept = self.kept[layer] = (self._roomier(old[0], end), self._roomier(old[1], end))
        kept[0][:, :, self.length : end] = k.detach()
        kept[1][:, :, self.length : end] = v.detach()
        return kept[0][:, :, :end], kept[1][:, :, :end]

    def _roomier(self, old: Tensor, end: int) -> Tensor:
        """Twice the room that is needed, so that growing costs little over many tokens."""
        room = old.new_empty(old.shape[0], old.shape[1], 2 * end, old.shape[3])
        room[:, :, : self.length] = old[:, :, : self.length].detach()
        return room


class Attention(nn.Module):
    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.layer, self.heads = layer, shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=shape.qkv_bias)
        self.out = nn.Linear(shape.width, shape.width)
        self.dropout = Dropout(shape.attention_dropout)
        self.maps = Tap()  # attention weights [batch head query key]

    def forward(self, x: Tensor, view: View, parts: Sequence[Part], cache: Cache | None = None) -> Tensor:
        """[token width] -> [token width]"""
        layout = view.layout
        # split before the heads are parted: its gradient is one copy instead of two
        q, k, v = (
            self.part_heads(each) for each in layout.unpack(self.qkv(x)).chunk(3, -1)
        )  # batch head time head_dim
        here = Site(self.layer, view.causal, view.queries, view.queries)
        for part in parts:
            q, k = part.rotate(q, k, here)
        if cache is not None:
            k, v = cache.extend(self.layer, k, v)
        site = Site(self.layer, view.causal, view.queries, view.keys)
        if self.maps.watcher is None and not any(part.owns("score") for part in parts):
            heads = self.attend_fast(q, k, v, view, site, parts)
        else:
            heads = self.attend(q, k, v, view, site, parts)
        merged = next((part.merge(heads, site) for part in parts if part.owns("merge")), None)
        return self.out(layout.pack(concatenate(heads) if merged is None else merged))

    def part_heads(self, x: Tensor) -> Tensor:
        """[batch time width] -> [batch head time head_dim]"""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, view: View, site: Site, parts: Sequence[Part]) -> Tensor:
        """Attention as its equation says. [batch head query head_dim]"""
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # batch head query key
        for part in parts:
            scores = part.score(scores, q, k, site)
        biases, allowed = collect_biases(site, parts)
        for bias in biases:  # after all scores, so that the order of parts does not matter
            scores = scores + bias
        visible = and_masks(view.seen(), allowed)
        if visible is None:
            weights = scores.softmax(-1)
        else:
            # the lowest number instead of minus infinity: a row with nothing to see stays finite, and is then emptied
            weights = scores.masked_fill(~visible, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~visible, 0.0)
        return self.dropout(self.maps(weights)) @ v

    def attend_fast(self, q: Tensor, k: Tensor, v: Tensor, view: View, site: Site, parts: Sequence[Part]) -> Tensor:
        """The same by torch's fused kernel, where no part reads the scores and no weight is dropped: its dropout has no
        rng of its own."""
        reach = shortest_reach(parts, view.causal)
        if reach is not None and len(view.queries) == len(view.keys) and worth_it(reach, len(view.queries)):
            real = None if view.layout.lengths is None else view.layout.real()
            return attend_near(q, k, v, real, reach, site, parts, view.mask, self.dropout)
        if self.dropout.drops:
            return self.attend(q, k, v, view, site, parts)
        biases, allowed = collect_biases(site, parts)
        if not biases and not allowed:
            return scaled_dot_product_attention(q, k, v, attn_mask=view.added, is_causal=view.triangle)
        mask = view.mask.get(
            lambda: to_attention_mask(biases, and_masks(view.seen(), allowed), q.dtype),
            q.dtype,
            len(biases),
            *biases,
            *allowed,
        )
        return scaled_dot_product_attention(q, k, v, attn_mask=mask)
