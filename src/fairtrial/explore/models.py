"""Trained networks, each loaded once. Those that nobody asked for longest leave when there are too many."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.explore.library import Library
    from fairtrial.run import Run

MOST_MODELS = 64
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Model:
    """A network is watched and changed while it answers, so that one thread at a time may ask it."""

    run: Run
    name: str
    untrained: bool
    bytes: int
    lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)


@dataclass
class Models:
    loaded: OrderedDict[tuple[str, bool, int], Model] = field(default_factory=OrderedDict)
    lock: Any = field(default_factory=threading.RLock, repr=False)

    def get(self, library: Library, name: str, untrained: bool = False) -> Model:
        """The network of a record; `untrained`: with the weights that its training began with."""
        record = library.record(name)
        written = (record.folder / "result.json").stat().st_mtime_ns if record.complete else 0
        key = (name, untrained, written)
        with self.lock:
            if key not in self.loaded:
                self.loaded[key] = self.load(library, name, untrained)
            self.loaded.move_to_end(key)
            while len(self.loaded) > 1 and (len(self.loaded) > MOST_MODELS or self.bytes > MOST_BYTES):
                self.loaded.popitem(last=False)
            return self.loaded[key]

    @property
    def bytes(self) -> int:
        return sum(model.bytes for model in self.loaded.values())

    def load(self, library: Library, name: str, untrained: bool) -> Model:
        from fairtrial.api import load

        run = load(library.place(name))
        if untrained:
            run = replace(run, network=run.initial_network())
        size = sum(weight.numel() * weight.element_size() for weight in run.network.parameters())
        return Model(run, name, untrained, size)
