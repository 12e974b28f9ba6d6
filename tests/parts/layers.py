"""An attention layer with random weights, run with parts; its head outputs side by side, before the output layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fairtrial.model.attention import Attention, ForwardContext, Layout
from fairtrial.model.part import AttentionContext, Part
from fairtrial.recipe import Shape

SHAPE = Shape(width=24, heads=3, layers=2, length=16, hidden=20, qkv_bias=True)
TIME, LENGTHS = 9, [9, 5, 1]


def attention_layer(shape: Shape = SHAPE, layer: int = 0, key_heads: int | None = None) -> Attention:
    """In float64, with scores of about 2, and an output layer that changes nothing."""
    torch.manual_seed(layer)
    attention = Attention(shape, layer, key_heads).double()
    with torch.no_grad():
        attention.qkv.weight.normal_(0.0, 0.4)
        attention.out.weight.copy_(torch.eye(shape.width))
        attention.out.bias.zero_()
    return attention


def vectors(*sizes: int, seed: int = 0) -> Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def perturbed(part: Part) -> Part:
    """In float64, every weight moved, so that what starts at zero counts."""
    part = part.double()
    with torch.no_grad():
        for number, weight in enumerate(part.parameters()):
            weight.add_(0.5 * vectors(*weight.shape, seed=number + 7))
    return part


@torch.no_grad()
def run_layer(
    attention: Attention, x: Tensor, parts: Sequence[Part], causal: bool, lengths: Sequence[int] = ()
) -> Tensor:
    """[batch time width] -> [batch time width]"""
    rows = torch.tensor(lengths or [x.shape[1]] * len(x))
    layout = Layout.ragged(rows, x.shape[1])
    return layout.unpack(attention(layout.pack(x), ForwardContext(layout, causal, 0, x.dtype), parts))


def heads_of(attention: Attention, x: Tensor) -> tuple[Tensor, ...]:
    """Queries, keys and values [batch head time head_dim]"""
    with torch.no_grad():
        return tuple(map(attention.split_heads, attention.qkv(x).split(attention.sizes, -1)))


def side_by_side(heads: list[list[list[Tensor]]], row: int, query: int) -> Tensor:
    return torch.cat([head[query] for head in heads[row]])


def context(causal: bool = True, layer: int = 0, first: int = 0, time: int = TIME) -> AttentionContext:
    return AttentionContext(layer, causal, torch.arange(first, time), torch.arange(time))


def with_heads(heads: int) -> Shape:
    return replace(SHAPE, heads=heads)
