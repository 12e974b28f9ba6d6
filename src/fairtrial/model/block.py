"""One block: attention and a feed-forward layer, each beside a residual, with its norm before it or behind the sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairtrial.model.attention import Attention, Cache, View
from fairtrial.model.dropout import Dropout
from fairtrial.model.part import Part
from fairtrial.recipe import Shape

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
}


def make_norm(shape: Shape) -> nn.Module:
    kind = nn.LayerNorm if shape.norm == "layer" else nn.RMSNorm
    return kind(shape.width, eps=shape.norm_epsilon)


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.hidden)
        self.down = nn.Linear(shape.hidden, shape.width)
        self.activation = ACTIVATIONS[shape.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


Choose = Callable[[Tensor], Tensor]


def everyone(x: Tensor) -> Tensor:
    return x


def carried(x: Tensor, read: Tensor, parts: Sequence[Part], centre: Choose = everyone) -> Tensor:
    """What a layer's output is added to, of the `centre`'s tokens [token width]"""
    stream = centre(x)
    for part in parts:
        if part.owns("carry"):
            stream = part.carry(stream, centre(read))
    return stream


class Block(nn.Module):
    """Pre-norm: each layer reads a normed copy, and the residual stream stays as it is (GPT-2)."""

    def __init__(self, shape: Shape, layer: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = make_norm(shape), Attention(shape, layer)
        self.forward_norm, self.feed_forward = make_norm(shape), FeedForward(shape)
        self.attention_dropout, self.forward_dropout = Dropout(shape.dropout), Dropout(shape.dropout)

    def forward(
        self, x: Tensor, view: View, parts: Sequence[Part], cache: Cache | None = None, centre: Choose = everyone
    ) -> Tensor:
        """[token width] -> [token width]; only those of the `centre` go on, the others are there to be seen"""
        read = self.attention_norm(x)
        seen = centre(self.attention(read, view, parts, cache))
        x = carried(x, read, parts, centre) + self.attention_dropout(seen)
        read = self.forward_norm(x)
        return carried(x, read, parts) + self.forward_dropout(self.feed_forward(read))


class PostBlock(Block):
    """Post-norm: what a layer adds is normed together with the stream (Vaswani et al. 2017, BERT)."""

    def forward(
        self, x: Tensor, view: View, parts: Sequence[Part], cache: Cache | None = None, centre: Choose = everyone
    ) -> Tensor:
        """[token width] -> [token width]; only those of the `centre` go on, the others are there to be seen"""
        seen = centre(self.attention(x, view, parts, cache))
        x = self.attention_norm(carried(x, x, parts, centre) + self.attention_dropout(seen))
        return self.forward_norm(carried(x, x, parts) + self.forward_dropout(self.feed_forward(x)))
