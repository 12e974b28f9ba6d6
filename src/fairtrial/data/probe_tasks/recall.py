"""Associative recall: pairs of keys and values, then every key once more. Which value stood beside it? (MQAR, Arora et
al. 2023.) A language model: it must say the value after each repeated key."""

from __future__ import annotations

import numpy as np

KEYS, VALUES = 32, 32
PAIRS, MORE_PAIRS = (4, 8), (12, 16)  # inside and beyond training


def recall(rng: np.random.Generator, beyond: bool) -> tuple[list[str], str]:
    low, high = MORE_PAIRS if beyond else PAIRS
    count = int(rng.integers(low, high + 1))
    keys, values = rng.permutation(KEYS)[:count], rng.integers(VALUES, size=count)
    pairs = [(f"key{key}", f"value{value}") for key, value in zip(keys, values, strict=True)]
    asked = [pairs[place] for place in rng.permutation(count)]
    return [word for pair in (*pairs, *asked) for word in pair], ""
