"""A number of every seed -> its mean and a 95 % interval for new seeds, the test items being what they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

FEWEST = 5


class Mean(NamedTuple):
    value: float
    low: float
    high: float
    seeds: int

    def says(self, smaller: float, *, trifle: float = 0.0) -> str:
        """`holds` if the mean is clearly below `smaller`; `does not hold` if clearly above, or apart by a trifle."""
        if self.seeds < FEWEST or math.isnan(self.low):
            return "cannot be told"
        if self.high < smaller:
            return "holds"
        if self.low > smaller or (smaller - trifle < self.low and self.high < smaller + trifle):
            return "does not hold"
        return "cannot be told"


def mean_of(values: Sequence[float]) -> Mean:
    count = len(values)
    if count < 2:
        return Mean(mean(values) if values else math.nan, math.nan, math.nan, count)
    half = float(stdtrit(count - 1, 0.975)) * stdev(values) / math.sqrt(count)
    return Mean(mean(values), mean(values) - half, mean(values) + half, count)
