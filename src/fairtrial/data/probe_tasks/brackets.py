"""Brackets of two kinds: is every one closed, in the right order? (Dyck-2; Hewitt et al. 2020)"""

from __future__ import annotations

import numpy as np

KINDS = (("(", ")"), ("[", "]"))
PAIRS, MORE_PAIRS = (3, 8), (12, 16)
DEEPEST = 4


def brackets(rng: np.random.Generator, beyond: bool) -> tuple[list[str], str]:
    """Half of the texts are balanced; in the others two brackets have changed places, so that only order tells."""
    low, high = MORE_PAIRS if beyond else PAIRS
    words = balanced(rng, int(rng.integers(low, high + 1)))
    if rng.random() < 0.5:
        return words, "balanced"
    while is_balanced(words):
        one, other = rng.choice(len(words), 2, replace=False)
        words[one], words[other] = words[other], words[one]
    return words, "broken"


def balanced(rng: np.random.Generator, pairs: int) -> list[str]:
    words: list[str] = []
    still_open: list[int] = []
    while pairs or still_open:
        opens = pairs and (not still_open or (len(still_open) < DEEPEST and rng.random() < 0.5))
        if opens:
            still_open.append(int(rng.integers(len(KINDS))))
            words.append(KINDS[still_open[-1]][0])
            pairs -= 1
        else:
            words.append(KINDS[still_open.pop()][1])
    return words


def is_balanced(words: list[str]) -> bool:
    closes = dict(KINDS)
    expected: list[str] = []
    for word in words:
        if word in closes:
            expected.append(closes[word])
        elif not expected or expected.pop() != word:
            return False
    return not expected
