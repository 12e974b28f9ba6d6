"""Many comparisons at once: Holm's correction for claims, Benjamini and Hochberg's for what is only explored.

Looking more than once, honestly: the 5% that may go wrong are prepared out over the looks beforehand.

What picking the best of several variants on the test set adds to its score although nothing is real.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fairtrial.statistics.crossed import Crossed


def holm(p: Sequence[float]) -> list[float]:
    """Adjusted p-values: the chance that any claim of the family is false stays below the level, dependent or not."""
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    rising = np.maximum.accumulate(np.asarray(p, float)[order] * factors)
    return _in_place(order, rising)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """q-values: of all findings with q below a level, at most that share is expected to be false."""
    order = np.argsort(p, kind="stable")
    factors = len(p) / (1 + np.arange(len(p)))
    scaled = np.asarray(p, float)[order] * factors
    return _in_place(order, np.minimum.accumulate(scaled[::-1])[::-1])


def _in_place(order: np.ndarray, values: np.ndarray) -> list[float]:
    back = np.empty(len(values))
    back[order] = np.minimum(values, 1.0)
    return [float(value) for value in back]


ALPHA = 0.05  # one look at a number of seeds fixed in advance


@dataclass(frozen=True)
class Look:
    seeds: int
    alpha: float


# they sum to ALPHA, so the whole is valid however the looks depend on one another
LOOKS = (Look(5, 0.005), Look(10, 0.015), Look(20, 0.03))


def next_look(look: Look) -> Look | None:
    later = [other for other in LOOKS if other.seeds > look.seeds]
    return later[0] if later else None


def largest_of(count: int) -> float:
    """Expected maximum of `count` independent standard normal draws."""
    points = np.linspace(-10, 10, 4001)
    below = ndtr(points) ** count  # P(all are below)
    # E = integral of P(largest > x) over x > 0, less that of P(largest < x) over x < 0
    return float(np.where(points > 0, 1 - below, -below).sum() * (points[1] - points[0]))


def expected_bias(found: Sequence[Crossed], variants: int) -> float | None:
    """Expected lead of the luckiest of `variants` equals. Items are shared, so what moves all alike does not count: a
    variant's own noise is half the variance of a difference between two."""
    if not found or variants < 2:
        return None
    own = float(np.mean([each.variance for each in found])) / 2
    return largest_of(variants) * math.sqrt(own)
