"""Statistical power: the smallest difference that a study can detect, and the seeds or items that would detect less.

`alpha` is the level that decides: that of the look, divided by the comparisons of the family (Holm's first step)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from scipy.special import chdtri, gammaln, nctdtrinc, ndtri, stdtrit

from fairtrial.statistics.crossed import Crossed, Shares, pooled

POWER = 0.80
STEPS = (5, 10, 20, 40, 80)  # seeds to add
MOST_SEEDS = 1_000_000


def reach(variance: float, df: float, alpha: float) -> float:
    """The smallest difference that 80% of studies find."""
    return noncentrality(df, alpha) * math.sqrt(variance)


def noncentrality(df: float, alpha: float) -> float:
    """How many standard errors it is from zero: that of the noncentral t distribution."""
    if df > 10_000:
        return float(ndtri(1 - alpha / 2) + ndtri(POWER))
    return float(nctdtrinc(df, 1 - POWER, stdtrit(df, 1 - alpha / 2)))


def smallest_detectable(test: Crossed, alpha: float) -> float:
    """`reach` from an estimated variance. Its root is too small on average, by `root`; once more that factor makes up
    for studies that by chance see too little variance: their power is still above 75%."""
    half = test.df / 2
    root = math.exp(gammaln(half + 0.5) - gammaln(half)) / math.sqrt(half)
    return reach(test.variance, test.df, alpha) / root**2


def reach_of(shares: Shares, seeds: int, items: float, alpha: float) -> float:
    """`reach` for another number of seeds and items."""
    seed = items * shares.seed + shares.rest
    item = seeds * shares.item + shares.rest
    return reach(*pooled(seed, item, shares.rest, seeds, items), alpha)


def seeds_needed(shares: Shares, items: float, least: float, alpha: float) -> int | None:
    """Total seeds that detect a difference of `least`; None where no number is enough."""
    if least <= 0 or shares.item / items >= (least / noncentrality(items - 1, alpha)) ** 2:
        return None
    high = 2
    while reach_of(shares, high, items, alpha) > least:
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach_of(shares, middle, items, alpha) > least else (low, middle)
    return max(2, high)


def items_needed(shares: Shares, least: float, alpha: float) -> int | None:
    """Test items without which no number of seeds detects a difference of `least`."""
    return math.ceil(shares.item / (least / noncentrality(math.inf, alpha)) ** 2) if least > 0 else None


@dataclass(frozen=True)
class MoreSeeds:
    """Seeds to add, in coarse steps: few seeds estimate their own variance badly. None: more than the largest step."""

    low: int | None
    high: int | None

    def __str__(self) -> str:
        if self.low == self.high:
            return "more than 100" if self.low is None else str(self.low)
        return f"{self.low} to {'over 100' if self.high is None else self.high}"


def more_seeds(test: Crossed, least: float, alpha: float) -> MoreSeeds | None:
    """Seeds to add until `least` is detected, from the 80% chi-square interval of the seeds' mean square; None where
    more seeds cannot help, or are not needed."""
    middle = seeds_needed(test.shares, test.effective, least, alpha)
    if middle is None or middle <= test.seeds:
        return None
    df = test.seeds - 1
    bounds: list[int | None] = []
    for tail in (0.1, 0.9):
        square = df / float(chdtri(df, tail)) * test.seed_square
        shares = replace(test.shares, seed=max(0.0, (square - test.shares.rest) / test.effective))
        needed = seeds_needed(shares, test.effective, least, alpha) or math.inf
        bounds.append(next((step for step in STEPS if needed - test.seeds <= step), None))
    return MoreSeeds(*bounds)
