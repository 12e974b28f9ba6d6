"""The crossed t-test: is there a difference for a new seed and a new item of the same kind?

Every seed meets every item, so a difference [seed item] is delta + seed + item + rest. A two-way analysis of variance
tells how much each contributes; Satterthwaite's degrees of freedom make the t interval right for few seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats takes most of a second to import


@dataclass(frozen=True)
class Shares:
    """How much seeds, items and the rest vary: variances of one answer of one seed."""

    seed: float
    item: float
    rest: float


@dataclass(frozen=True)
class Crossed:
    """A mean over seeds and items, and how far it may be off."""

    difference: float
    variance: float  # of the difference
    df: float
    shares: Shares
    seed_square: float  # mean square of seeds; its own chance has seeds - 1 degrees of freedom
    by_seed: np.ndarray  # mean of each seed
    items: int

    @property
    def seeds(self) -> int:
        return len(self.by_seed)

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(self.variance)

    @property
    def p(self) -> float:
        """Two-sided; without any variation the answer is certain."""
        if self.variance == 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * stdtr(self.df, -abs(self.difference) / self.error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        half = float(stdtrit(self.df, 0.5 + level / 2)) * self.error
        return self.difference - half, self.difference + half


def crossed_t(differences: np.ndarray) -> Crossed:
    """`differences` [seed item], at least 2 x 2."""
    seeds, items = differences.shape
    mean, by_seed, by_item = float(differences.mean()), differences.mean(1), differences.mean(0)
    rest = differences - by_seed[:, None] - by_item[None, :] + mean
    seed_square = items * float(by_seed.var(ddof=1))
    item_square = seeds * float(by_item.var(ddof=1))
    rest_square = float((rest**2).sum()) / ((seeds - 1) * (items - 1))
    variance, df = pooled(seed_square, item_square, rest_square, seeds, items)
    shares = Shares(
        seed=max(0.0, (seed_square - rest_square) / items),
        item=max(0.0, (item_square - rest_square) / seeds),
        rest=rest_square,
    )
    return Crossed(mean, variance, df, shares, seed_square, by_seed, items)


def pooled(seed: float, item: float, rest: float, seeds: int, items: int) -> tuple[float, float]:
    """Variance of the grand mean and its degrees of freedom, from mean squares. A source that varies no more than the
    rest is taken as not varying at all, else its negative estimate would shrink the interval."""
    answers = seeds * items
    if seed <= rest and item <= rest:
        return rest / answers, (seeds - 1) * (items - 1)
    if seed <= rest:
        return item / answers, items - 1
    if item <= rest:
        return seed / answers, seeds - 1
    total = seed + item - rest
    spread = seed**2 / (seeds - 1) + item**2 / (items - 1) + rest**2 / ((seeds - 1) * (items - 1))
    return total / answers, total**2 / spread
