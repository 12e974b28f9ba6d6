"""What picking the best of several variants on the test set adds to its score although nothing is real."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from fairtrial.judge.crossed import Crossed


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
