"""Dropout with named rng: what is dropped at a step is a pure function of seed, place and step.

torch's own dropout draws from one global generator, so one more draw anywhere would shift all that follow, and a
resumed run would need that generator's state. Here nothing needs to be remembered.

Taps: places where a tensor may be watched. Watching changes no number.

First weights: each parameter has rng of its own name, so variants at one seed share what they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from fairtrial.rng import seed_for


class Dropout(nn.Module):
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
        kept = torch.empty_like(x).bernoulli_(1 - self.share, generator=self.generator)
        return x * kept.div_(1 - self.share) if self.share < 1 else x * kept


def dropouts_of(network: nn.Module) -> dict[str, Dropout]:
    """The places that drop something, by name."""
    found = {name: module for name, module in network.named_modules() if isinstance(module, Dropout)}
    return {name: module for name, module in found.items() if module.share}


def seed_dropout(dropouts: dict[str, Dropout], seed: int, step: int) -> None:
    """Set the rng of every dropout for one optimizer step."""
    for name, dropout in dropouts.items():
        dropout.generator.manual_seed(seed_for(seed, "dropout", name, step))


class Tap(nn.Module):
    """Hands on what it gets; shows it to a watcher, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.watcher: Callable[[Tensor], None] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.watcher is not None:
            self.watcher(x)
        return x


@contextmanager
def watch(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect what passes every tap while the block runs: `blocks.0.attention.maps` -> [batch head query key], ..."""
    seen: dict[str, Tensor] = {}
    taps = {name: module for name, module in network.named_modules() if isinstance(module, Tap)}
    for name, tap in taps.items():
        tap.watcher = lambda x, name=name: seen.__setitem__(name, x.detach())
    try:
        yield seen
    finally:
        for tap in taps.values():
            tap.watcher = None


SMALL = 0.02  # the standard deviation that GPT-2 and BERT start with


@torch.no_grad()
def start(network: nn.Module, how: str, seed: int) -> None:
    """Draw every embedding and linear layer. Norms and the bare parameters of parts stay as they were built."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Embedding):
            _normal(module.weight, 1.0 if how == "torch" else SMALL, seed, f"{name}.weight")
        elif isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)  # what torch.nn.Linear does, for weight and bias alike
            if how == "torch":
                _uniform(module.weight, bound, seed, f"{name}.weight")
            else:
                _normal(module.weight, SMALL, seed, f"{name}.weight")
            if module.bias is not None:
                _uniform(module.bias, bound if how == "torch" else 0.0, seed, f"{name}.bias")


def _generator(seed: int, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_for(seed, "init", name))


def _normal(weight: Tensor, deviation: float, seed: int, name: str) -> None:
    weight.normal_(0.0, deviation, generator=_generator(seed, name))


def _uniform(weight: Tensor, bound: float, seed: int, name: str) -> None:
    if bound:
        weight.uniform_(-bound, bound, generator=_generator(seed, name))
    else:
        weight.zero_()
