"""What a study could have seen, and what it would take to see more."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import chdtri, stdtrit

from fairtrial.statistics.crossed import Crossed, Shares, pooled

POWER = 0.80
BOTH = 2.80  # normal quantiles of .975 and .80 together: what many degrees of freedom come to
STEPS = (5, 10, 20, 40, 80)
MOST = 1_000_000


def reach(variance: float, df: float) -> float:
    """The smallest difference that is found in 80% of studies, at the 5% level."""
    return float(stdtrit(df, 0.975) + stdtrit(df, POWER)) * math.sqrt(variance)


def smallest_detectable(found: Crossed) -> float:
    return reach(found.variance, found.df)


def reach_of(shares: Shares, seeds: int, items: int) -> float:
    """The same for another number of seeds and items."""
    seed = items * shares.seed + shares.rest
    item = seeds * shares.item + shares.rest
    return reach(*pooled(seed, item, shares.rest, seeds, items))


def seeds_needed(shares: Shares, items: int, least: float) -> int | None:
    """Seeds in all that show a difference of `least`; None where no number is enough."""
    if least <= 0 or shares.item / items >= (least / BOTH) ** 2:
        return None
    high = 2
    while reach_of(shares, high, items) > least:
        high *= 2
        if high > MOST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach_of(shares, middle, items) > least else (low, middle)
    return max(2, high)


def items_needed(shares: Shares, least: float) -> int | None:
    """Test items without which no number of seeds shows a difference of `least`."""
    return math.ceil(shares.item / (least / BOTH) ** 2) if least > 0 else None


@dataclass(frozen=True)
class MoreSeeds:
    """Seeds to add, coarsely: a few seeds know their own variance badly. None: more than any step."""

    low: int | None
    high: int | None

    def __str__(self) -> str:
        if self.low == self.high:
            return "more than 100" if self.low is None else str(self.low)
        return f"{self.low} to {'over 100' if self.high is None else self.high}"


def more_seeds(found: Crossed, least: float) -> MoreSeeds | None:
    """A range of seeds to add until `least` shows, out of the 80% chi-square interval of the seeds' mean square; None
    where more seeds cannot help, or are not needed."""
    middle = seeds_needed(found.shares, found.items, least)
    if middle is None or middle <= found.seeds:
        return None
    df = found.seeds - 1
    ends = [_coarse(_needed_if(found, df / float(chdtri(df, tail)), least), found.seeds) for tail in (0.1, 0.9)]
    return MoreSeeds(ends[0], ends[1])


def _needed_if(found: Crossed, factor: float, least: float) -> int | None:
    """Seeds needed if the seeds' true mean square is `factor` times the observed one."""
    seed = max(0.0, (factor * found.seed_square - found.shares.rest) / found.items)
    return seeds_needed(Shares(seed, found.shares.item, found.shares.rest), found.items, least)


def _coarse(needed: int | None, seeds: int) -> int | None:
    if needed is None:
        return None
    return next((step for step in STEPS if needed - seeds <= step), None)
