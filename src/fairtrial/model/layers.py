"""The feed-forward layer, dropout with named random streams, and hook points that show a tensor as it passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairtrial.recipe import Shape
from fairtrial.rng import seed_for

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    def __init__(self, shape: Shape, *, bias: bool = True) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.hidden, bias=bias)
        self.down = nn.Linear(shape.hidden, shape.width, bias=bias)
        self.activation = ACTIVATIONS[shape.activation]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Dropout(nn.Module):
    """What is dropped at a step is a pure function of seed, module name and step. torch's own dropout draws from one
    global generator: one more draw anywhere would shift all that follow, and a resumed run would need its state."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.generator = torch.Generator()

    @property
    def drops(self) -> bool:
        return self.training and self.share > 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.drops:
            return x
        return x * dropout_mask(x, self.share, self.generator)


class WordDropout(Dropout):
    """Drops whole vectors: a token's embedding is there or not. [token width]"""

    def forward(self, x: Tensor) -> Tensor:
        return x * dropout_mask(x[:, :1], self.share, self.generator) if self.drops else x


def dropout_mask(x: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """What dropout multiplies with. Drawn on the CPU, whatever device computes: the same is dropped everywhere."""
    kept = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, torch.float32))
    kept = kept.bernoulli_(1 - share, generator=generator).to(x.device, x.dtype)
    return kept.div_(1 - share) if share < 1 else kept


def dropouts_of(network: nn.Module) -> dict[str, Dropout]:
    """The dropouts that drop something, by module name."""
    return {name: module for name, module in network.named_modules() if isinstance(module, Dropout) and module.share}


def seed_dropout(dropouts: dict[str, Dropout], seed: int, step: int) -> None:
    """Seed every dropout for one optimizer step."""
    for name, dropout in dropouts.items():
        dropout.generator.manual_seed(seed_for(seed, "dropout", name, step))


_turns = threading.RLock()


@contextmanager
def own_rng(seed: int | None = None) -> Iterator[None]:
    """torch's layers, and parts, draw from the global generator when they are built. It is left as it was, and builders
    in several Python threads take turns, so that none draws another's numbers. `seed`: what it starts from inside."""
    with _turns, torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        yield


class HookPoint(nn.Module):
    """An identity that shows its input to whoever captures it, who may put something else in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.on_capture: Callable[[Tensor], Tensor | None] | None = None

    def forward(self, x: Tensor) -> Tensor:
        changed = None if self.on_capture is None else self.on_capture(x)
        return x if changed is None else changed


@contextmanager
def capture(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """What passes the hook points while the block runs: `blocks.0.attention.maps` -> [batch head query key], ..."""
    seen: dict[str, Tensor] = {}
    points = {name: module for name, module in network.named_modules() if isinstance(module, HookPoint)}
    for name, point in points.items():
        point.on_capture = lambda x, name=name: seen.__setitem__(name, x.detach())
    try:
        yield seen
    finally:
        for point in points.values():
            point.on_capture = None
