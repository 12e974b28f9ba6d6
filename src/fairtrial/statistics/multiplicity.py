"""More than one chance to be wrong: many comparisons, several interim looks, picking the best of several variants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fairtrial.statistics.crossed import Array, Counts, Crossed

ALPHA = 0.05  # a single look at a number of seeds fixed in advance


@dataclass(frozen=True)
class Look:
    """An interim look at so many seeds, and its share of the 5% of false alarms."""

    seeds: int
    alpha: float


# the alphas sum to ALPHA, so the procedure is valid however the looks depend on one another
LOOKS = (Look(5, 0.005), Look(10, 0.015), Look(20, 0.03))


@dataclass(frozen=True)
class Terms:
    """How a family of claims is decided: its share of false alarms, and how many more claims belong to the family than
    are decided now, of differences and of equivalence."""

    alpha: float = ALPHA
    more_differences: int = 0
    more_equivalences: int = 0


def next_look(look: Look) -> Look | None:
    return next((later for later in LOOKS if later.seeds > look.seeds), None)


def holm(p: Sequence[float], more: int = 0) -> list[float]:
    """Adjusted p-values for claims: they bound the chance of any false claim in the family, dependent or not. `more`:
    claims of the family that are not among these and not made."""
    order = np.argsort(p, kind="stable")
    factors = more + len(p) - np.arange(len(p))
    rising = np.maximum.accumulate(np.asarray(p, float)[order] * factors)
    return _unsorted(order, rising)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """q-values for exploration: of the findings with q below a level, at most that share is expected to be false."""
    order = np.argsort(p, kind="stable")
    factors = len(p) / (1 + np.arange(len(p)))
    scaled = np.asarray(p, float)[order] * factors
    return _unsorted(order, np.minimum.accumulate(scaled[::-1])[::-1])


def _unsorted(order: Counts, values: Array) -> list[float]:
    original = np.empty(len(values))
    original[order] = np.minimum(values, 1.0)
    return original.tolist()


def largest_of(count: int) -> float:
    """Expected maximum of `count` independent standard normal draws: the integral of x d(ndtr(x)^count)."""
    points = np.linspace(-12, 12, 4001)
    density = count * ndtr(points) ** (count - 1) * np.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    return float((points * density).sum() * (points[1] - points[0]))


def expected_bias(tests: Sequence[Crossed], variants: int) -> float | None:
    """Expected lead of the luckiest of `variants` that are equally good. Items are shared, so what moves all alike does
    not count: a variant's own noise is half the variance of a difference between two."""
    if not tests or variants < 2:
        return None
    own = float(np.mean([test.variance for test in tests])) / 2
    return largest_of(variants) * math.sqrt(own)
