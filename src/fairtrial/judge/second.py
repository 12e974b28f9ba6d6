"""A second opinion: the Multi-Bootstrap (Sellam and others 2022), which draws seeds and items anew.

It counts the rest about three times (Owen 2007), so it is conservative where items dominate, and too narrow at few
seeds where seeds do. It never decides."""

from __future__ import annotations

import numpy as np

DRAWS, FEWEST = 2000, 400
MOST_WORK = 20_000_000  # draws x items: of very many items fewer draws


def multi_bootstrap(differences: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of the mean of `differences` [seed item]; the same dice every time."""
    chance = np.random.default_rng(20_220_301)
    seeds, items = differences.shape
    draws = min(DRAWS, max(FEWEST, MOST_WORK // items))
    sums = [_counts(chance, seeds) @ differences @ _counts(chance, items) for _ in range(draws)]
    low, high = np.quantile(sums, [(1 - level) / 2, (1 + level) / 2]) / (seeds * items)
    return float(low), float(high)


def _counts(chance: np.random.Generator, size: int) -> np.ndarray:
    """How often each of `size` things is drawn in `size` draws with replacement."""
    return np.bincount(chance.integers(0, size, size), minlength=size)
