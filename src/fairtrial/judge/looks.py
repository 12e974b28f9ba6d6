"""Looking more than once, honestly: the 5% that may go wrong are dealt out over the looks beforehand."""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 0.05  # one look at a number of seeds fixed in advance


@dataclass(frozen=True)
class Look:
    seeds: int
    alpha: float


# they sum to ALPHA, so the whole is valid however the looks depend on one another
LOOKS = (Look(5, 0.005), Look(10, 0.015), Look(20, 0.03))


def next_look(look: Look) -> Look | None:
    later = [other for other in LOOKS if other.seeds > look.seeds]
    return later[0] if later else None
