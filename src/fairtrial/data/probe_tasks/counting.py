"""Counting: how many times does 'a' stand after the last bar?"""

from __future__ import annotations

import numpy as np

MOST = 4
LENGTH, LONGER = (6, 16), (24, 32)


def counting(rng: np.random.Generator, beyond: bool) -> tuple[list[str], str]:
    """As many before the bar as after it on average, so that the total tells little."""
    low, high = LONGER if beyond else LENGTH
    count, answer = int(rng.integers(low, high + 1)), int(rng.integers(MOST + 1))
    after = int(rng.integers(max(2, answer), max(3, count // 2 + 1))) if answer < count // 2 else answer
    words = np.array(["b", "c", "d"])[rng.integers(3, size=count)].tolist()
    for place in rng.permutation(after)[:answer]:
        words[count - 1 - int(place)] = "a"
    before = count - after
    for place in rng.permutation(before)[: int(rng.integers(MOST + 1))]:
        words[int(place)] = "a"
    return [*words[:before], "|", *words[before:]], str(answer)
