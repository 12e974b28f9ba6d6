"""Taps: places where a tensor may be watched. Watching changes no number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn


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
