"""Multi-head attention: the one place that knows what may be seen, and that calls the parts' hooks in order.

Between attentions a network carries real tokens only, packed one after another: [token width]. Attention unpacks them
to [batch time width] and packs its output again: linear layers never run on padding, a third of a batch."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from fairtrial.model.layers import Dropout, HookPoint
from fairtrial.model.part import (
    AttentionContext,
    Part,
    and_masks,
    collect_biases,
    concatenate,
    find_override,
    to_attention_mask,
)
from fairtrial.recipe import Shape

EAGER = frozenset(("score", "weigh", "mix", "read"))  # overridden: no fused kernel does it


class Attention(nn.Module):
    def __init__(self, shape: Shape, layer: int, key_heads: int | None = None) -> None:
        super().__init__()
        self.layer, self.heads, self.head_dim = layer, shape.heads, shape.head_dim
        self.shared_by = 1 if key_heads is None else shape.heads // key_heads  # heads of queries for each of keys
        self.sizes = [shape.width, shape.width // self.shared_by, shape.width // self.shared_by]  # of q, k, v
        self.qkv = nn.Linear(shape.width, sum(self.sizes), bias=shape.qkv_bias)
        if self.shared_by > 1:  # keys and values start as the first head's of those that share them
            rows = torch.arange(3 * shape.width).view(3, shape.heads, -1)
            firsts = rows[1:, :: self.shared_by].flatten()
            self.qkv.rows = torch.cat((rows[0].flatten(), firsts))
        self.out = nn.Linear(shape.width, shape.width)
        self.dropout = Dropout(shape.attention_dropout)
        self.maps = HookPoint()  # attention weights [batch head query key]

    def forward(
        self, x: Tensor, forward: ForwardContext, parts: Sequence[Part], cache: KVCache | None = None
    ) -> Tensor:
        """[token width] -> [token width]"""
        layout = forward.layout
        joined = layout.unpack(self.qkv(x))
        # chunked before the heads are split: the gradient is one copy instead of two; and quicker than `split`
        pieces = joined.chunk(3, -1) if self.shared_by == 1 else joined.split(self.sizes, -1)
        q, k, v = map(self.split_heads, pieces)
        here = AttentionContext(self.layer, forward.causal, forward.queries, forward.queries, memory=forward.memory)
        for part in parts:
            if part.overrides("project"):
                q, k, v = part.project(q, k, v, here)
        for part in parts:
            q, k = part.rotate(q, k, here)  # batch head time head_dim
        if cache is not None:
            k, v = cache.extend(self.layer, k, v)
        if self.shared_by > 1:
            k, v = (each.repeat_interleave(self.shared_by, 1) for each in (k, v))
        context = AttentionContext(self.layer, forward.causal, forward.queries, forward.keys, memory=forward.memory)
        for part in parts:
            if part.overrides("attach") and (attached := part.attach(x, here)) is not None:
                attached = layout.unpack(attached)  # batch time n
                context.attached[part] = attached if cache is None else cache.attach(self.layer, part, attached)
        if self.maps.on_capture is None and all(EAGER.isdisjoint(part.hooks) for part in parts):
            heads = self.attend_fast(q, k, v, forward, context, parts)
        else:
            heads = self.attend(q, k, v, forward, context, parts)
        merger = find_override(parts, "merge")
        return self.out(layout.pack(concatenate(heads) if merger is None else merger.merge(heads, context)))

    def split_heads(self, x: Tensor) -> Tensor:
        """[batch time width] -> [batch head time head_dim]"""
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, forward: ForwardContext, context: AttentionContext, parts: Sequence[Part]
    ) -> Tensor:
        """Attention as its equation says. [batch head query head_dim]"""
        kernel = find_override(parts, "features")
        if kernel is None:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # batch head query key
        else:  # softmax of the logarithm: each product divided by the sum of all
            scores = positive_products(*kernel.features(q, k)).log()
        for part in parts:
            scores = part.score(scores, q, k, context)
        biases, allowed = collect_biases(context, parts)
        for bias in biases:  # after all scores, so that the order of parts does not matter
            scores = add_bias(scores, bias)
        weights = self.weigh(scores, and_masks(forward.visible, allowed), context, parts)
        heads = weights @ v
        for part in parts:
            if part.overrides("read"):
                heads = part.read(heads, weights, context)
        return heads

    def weigh(self, scores: Tensor, visible: Tensor | None, context: AttentionContext, parts: Sequence[Part]) -> Tensor:
        """Scores -> weights, zero where nothing may be seen, some of them dropped. [batch head query key]"""
        weigher, mixer = find_override(parts, "weigh"), find_override(parts, "mix")
        if weigher is not None:
            hidden = torch.zeros_like(scores, dtype=torch.bool) if visible is None else ~visible
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
            weights = weigher.weigh(scores, context).masked_fill(hidden, 0.0)
        else:
            weights = scores.softmax(-1) if visible is None else masked_softmax(scores, ~visible)
        if mixer is not None:
            weights = mixer.mix(weights, context)
            weights = weights if visible is None else weights.masked_fill(~visible, 0.0)
        return self.dropout(self.maps(weights))

    def attend_fast(
        self, q: Tensor, k: Tensor, v: Tensor, forward: ForwardContext, context: AttentionContext, parts: Sequence[Part]
    ) -> Tensor:
        """The same by torch's fused kernel, unless weights are dropped (its dropout draws from the global generator) or
        are products of features."""
        if self.dropout.drops or find_override(parts, "features") is not None:
            return self.attend(q, k, v, forward, context, parts)
        biases, allowed = collect_biases(context, parts)
        if not biases and not allowed:
            return scaled_dot_product_attention(q, k, v, attn_mask=forward.added, is_causal=forward.triangle)

        mask = forward.mask(biases, allowed, q.dtype)
        return scaled_dot_product_attention(q, k, v, attn_mask=mask)


def masked_softmax(scores: Tensor, hidden: Tensor) -> Tensor:
    """Zero where `hidden`. Lowest number, not minus infinity: a row that sees nothing stays finite, then is emptied."""
    return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(hidden, 0.0)


def add_bias(scores: Tensor, bias: Tensor) -> Tensor:
    """A bias for each head [head query key]; where a part has made several maps of a head, the same for all of them."""
    if scores.shape[1] in (bias.shape[0], 1) or bias.shape[0] == 1:
        return scores + bias
    return (scores.unflatten(1, (-1, bias.shape[0])) + bias).flatten(1, 2)


class ForwardContext:
    """What attention may see in one pass, the same for all layers."""

    def __init__(self, layout: Layout, causal: bool, past: int, dtype: torch.dtype) -> None:
        self.layout, self.causal, self.dtype = layout, causal, dtype
        device = layout.positions.device
        self.queries = torch.arange(past, past + layout.time, device=device)  # positions [query]
        self.keys = torch.arange(past + layout.time, device=device)  # positions [key]
        # only the future of a square is hidden: the fused kernel's own causal mask is enough
        self.triangle = causal and past == 0 and layout.lengths is None
        self.last_mask: tuple[list[Tensor], Tensor] | None = None  # what it was made of, and the mask
        self.memory: dict[Part, Tensor] = {}  # what parts hand from layer to layer

    @cached_property
    def visible(self) -> Tensor | None:
        """True where a key may be seen [batch head query key]; None: everywhere."""
        visible = None
        if self.causal and self.layout.time > 1:
            visible = (self.keys <= self.queries[:, None])[None, None]
        if self.layout.lengths is None:
            return visible
        real = self.layout.real()[:, None, None, :]
        return real if visible is None else visible & real

    def mask(self, biases: list[Tensor], allowed: list[Tensor], dtype: torch.dtype) -> Tensor:
        """What is added to scores; layers with the very same biases share it."""
        made_of = [*biases, *allowed]
        last = self.last_mask
        if last is not None and len(last[0]) == len(made_of) and all(map(operator.is_, last[0], made_of)):
            return last[1]
        mask = to_attention_mask(biases, and_masks(self.visible, allowed), dtype)
        self.last_mask = made_of, mask
        return mask

    @cached_property
    def added(self) -> Tensor | None:
        """`visible` as added to scores, once for all layers; None where the fused kernel needs no mask."""
        plain = self.triangle or self.visible is None
        return None if plain else to_attention_mask([], self.visible, self.dtype)


@dataclass(frozen=True)
class Layout:
    """Where the real tokens of a padded batch are."""

    batch: int
    time: int
    positions: Tensor  # of each real token [token]
    lengths: Tensor | None = None  # real tokens in each row [batch]; None: every row is full
    index: Tensor | None = None  # of each real token in the flattened batch [token]

    @classmethod
    def full(cls, batch: int, time: int, first: int = 0, *, device: torch.device | None = None) -> Layout:
        """Every row holds `time` tokens, the first at position `first`."""
        return cls(batch, time, torch.arange(first, first + time, device=device).repeat(batch))

    @classmethod
    def ragged(cls, lengths: Tensor, time: int, device: torch.device | None = None) -> Layout:
        """Rows of different lengths, padded at their end. Counted on the CPU, so that no GPU has to be waited for."""
        device, lengths = device or lengths.device, lengths.cpu()
        if bool((lengths == time).all()):
            return cls.full(len(lengths), time, device=device)
        real = torch.arange(time) < lengths[:, None]
        rows, positions = real.nonzero(as_tuple=True)
        positions, lengths, index = (each.to(device) for each in (positions, lengths, rows * time + positions))
        return cls(len(lengths), time, positions, lengths, index)

    def real(self) -> Tensor:
        """True at real tokens [batch time]"""
        if self.lengths is None:
            return torch.ones(self.batch, self.time, dtype=torch.bool, device=self.positions.device)
        return torch.arange(self.time, device=self.lengths.device) < self.lengths[:, None]

    def unpack(self, x: Tensor) -> Tensor:
        """[token width] -> [batch time width], zeros at padding"""
        if self.index is not None:
            x = x.new_zeros(self.batch * self.time, x.shape[-1]).index_copy_(0, self.index, x)
        return x.view(self.batch, self.time, -1)

    def pack(self, x: Tensor) -> Tensor:
        """[batch time ...] -> [token ...]"""
        x = x.flatten(0, 1)
        return x if self.index is None else x.index_select(0, self.index)

    def mean(self, x: Tensor) -> Tensor:
        """Mean of each row's real tokens: [token width] -> [batch width]"""
        if self.index is None or self.lengths is None:
            return x.view(self.batch, self.time, -1).mean(1)
        sums = x.new_zeros(self.batch, x.shape[-1]).index_add_(0, self.index // self.time, x)
        return sums / self.lengths.clamp(min=1)[:, None]


class KVCache:
    """Keys and values of the tokens so far, so that generating one token costs one token's work."""

    def __init__(self, layers: int) -> None:
        self.buffers: list[Tensor | None] = [None] * layers  # [key-or-value batch head time head_dim], with room
        self.attached: dict[tuple[int, Part], Tensor] = {}  # what parts attach to keys [batch time n]
        self.length = 0

    def extend(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values so far, the new ones [batch head time head_dim] at their end."""
        new = torch.stack((k, v)).detach()
        end, buffer = self.length + k.shape[2], self.buffers[layer]
        if buffer is None or buffer.shape[3] < end:  # twice the length that is needed, so that it rarely grows
            before = new[:, :, :, :0] if buffer is None else buffer[:, :, :, : self.length]
            room = new.new_empty(*new.shape[:3], 2 * end - self.length, new.shape[4])
            buffer = self.buffers[layer] = torch.cat((before, room), 3)
        buffer[:, :, :, self.length : end] = new
        keys, values = buffer[:, :, :, :end]
        return keys, values

    def attach(self, layer: int, part: Part, new: Tensor) -> Tensor:
        """All that a part has attached so far, the new [batch time n] at its end."""
        before = self.attached.get((layer, part), new[:, :0])
        self.attached[layer, part] = torch.cat((before, new.detach()), 1)
        return self.attached[layer, part]


def positive_products(q: Tensor, k: Tensor) -> Tensor:
    """[batch head query key], never zero, so that a logarithm is finite."""
    return (q @ k.transpose(-2, -1)).clamp(min=torch.finfo(q.dtype).tiny)
