"""Glu: gated feed-forward layers, one product of two projections. `swiglu` is SiLU(x W) * (x V), `geglu` GELU(x W) * (x
V) (Shazeer 2020, https://arxiv.org/abs/2002.05202; SwiGLU as in LLaMA). W is the block's own layer, V the part's: at an
equal `shape.hidden` the feed-forward layer has half as many weights again. `bias` = false: no projection has
a bias, as in LLaMA, Qwen 3 and Gemma."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.functional import gelu, silu

from fairtrial.model.part import FeedForward, Part, parts
from fairtrial.recipe import Shape


class Gated(Part):
    activation: Callable[[Tensor], Tensor]

    def __init__(self, shape: Shape, *, bias: bool = True) -> None:
        super().__init__(shape)
        self.forward_bias = bias
        self.gates = nn.ModuleList(nn.Linear(shape.width, shape.hidden, bias=bias) for _ in range(shape.layers))

    def feed_forward(self, x: Tensor, own: FeedForward, layer: int) -> Tensor:
        return own.down(self.activation(own.up(x)) * self.gates[layer](x))


@parts.add("swiglu")
class SwiGLU(Gated):
    """A gated feed-forward layer, SiLU of one projection times another."""

    activation = staticmethod(silu)


@parts.add("geglu")
class GEGLU(Gated):
    """A gated feed-forward layer, GELU of one projection times another."""

    activation = staticmethod(gelu)
