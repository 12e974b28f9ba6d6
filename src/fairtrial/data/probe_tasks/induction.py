"""Induction: random words, then the same words once more. (Olsson et al. 2022.) A language model: the second half can
be copied, word by word, by looking for what followed the last word before."""

from __future__ import annotations

import numpy as np

WORDS = 32
LENGTH, LONGER = (6, 14), (20, 28)  # of one half, inside and beyond training


def induction(rng: np.random.Generator, beyond: bool) -> tuple[list[str], str]:
    low, high = LONGER if beyond else LENGTH
    words = [f"w{word}" for word in rng.permutation(WORDS)[: int(rng.integers(low, high + 1))]]
    return [*words, *words], ""
