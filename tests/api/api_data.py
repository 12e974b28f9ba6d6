"""Small reviews whose label a word or two tell, and settings of a network that learns them in a moment."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from typing import Any

WORDS = {"good": "fine warm bright funny clever tender lively", "bad": "dull cold slow sad clumsy loud hollow"}
PLAIN = "film story scene actor music end plot voice town night train river letter house garden ship road light"
PLAIN += " morning window winter market teacher doctor captain brother song bridge forest paper colour mirror"
SMALL: dict[str, Any] = {"layers": 1, "width": 16, "hidden": 16, "length": 12, "learning_rate": 0.02, "quiet": True}


def reviews_of(count: int = 240) -> list[tuple[str, str]]:
    """(label, text): a word or two of a text tell its label."""
    rng = random.Random(0)
    found = []
    for number in range(count):
        label = ("good", "bad")[number % 2]
        words = [*rng.sample(WORDS[label].split(), 2), *rng.sample(PLAIN.split(), 6)]
        rng.shuffle(words)
        found.append((label, " ".join(words)))
    return found


meeting = threading.Barrier(3)


def meet() -> None:
    """Where three threads are in the same place at once, they go on together; where they take turns, they cannot be."""
    with suppress(threading.BrokenBarrierError):
        meeting.wait(timeout=0.5)
