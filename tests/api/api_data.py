"""Small reviews whose label a word or two tell, and settings of a network that learns them in a moment."""

from __future__ import annotations

import random
import threading
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


class Meeting:
    """Where several threads are to be in one place at once. Those that wait for a lock on the way count as arrived, so
    that nobody waits for someone who cannot come: it goes by what happens, not by the clock."""

    def __init__(self) -> None:
        self.lock, self.changed = threading.RLock(), threading.Condition()
        self.expected = self.arrived = 0

    def arrive(self, *, wait: bool) -> None:
        with self.changed:
            self.arrived += 1
            self.changed.notify_all()
            if wait:
                self.changed.wait_for(lambda: self.arrived >= self.expected)

    def __enter__(self) -> None:  # in place of the lock
        if not self.lock.acquire(blocking=False):
            self.arrive(wait=False)
            self.lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.lock.release()


meeting = Meeting()


def meet() -> None:
    meeting.arrive(wait=True)
