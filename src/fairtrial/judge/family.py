"""Many comparisons at once: Holm's correction for claims, Benjamini and Hochberg's for what is only explored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
