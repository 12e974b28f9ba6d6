"""Keys in the coordinates that matter to a softmax.

Adding one number to all scores changes no weight, so only differences between keys count. A frame centres the keys,
drops the directions in which none of them differ, and measures in units of their spread, so that one tolerance fits
all keys."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairtrial.errors import BadInput

Array = NDArray[np.float64]
SAME = 1e-7  # in units of the keys' spread: what differs by less is the same, as 0.1 + 0.2 is 0.3 in single precision


@dataclass(frozen=True)
class Frame:
    keys: Array  # as given [key width]
    factor: float  # what scores are multiplied by: 1 / sqrt(width), or 1
    points: Array  # keys in the frame [key rank]
    axes: Array  # orthonormal [rank width]
    spread: float  # greatest distance of a key from the keys' mean

    @classmethod
    def of(cls, keys: Array, scaled: bool) -> Frame:
        centred, spread = keys - keys.mean(0), spread_of(keys)
        if not spread:
            spread, axes = 1.0, np.zeros((0, keys.shape[1]))
        else:
            _, sizes, axes = np.linalg.svd(centred / spread, full_matrices=False)
            axes = axes[sizes > SAME]
        factor = 1 / math.sqrt(keys.shape[1]) if scaled else 1.0
        return cls(keys, factor, centred @ axes.T / spread, axes, spread)

    @property
    def unit(self) -> float:
        """Length in the frame of a query of length 1."""
        return self.factor * self.spread

    def query(self, place: Array) -> Array:
        """The shortest query that gives the scores `points @ place`, up to one number for all."""
        return place @ self.axes / self.unit

    def weights(self, query: Array) -> Array:
        return softmax(self.factor * self.keys @ query)


def spread_of(keys: Array) -> float:
    """The greatest distance of a key from the keys' mean; zero where it is nothing beside the keys' own size."""
    spread = float(np.linalg.norm(keys - keys.mean(0), axis=1).max())
    return spread if spread > SAME * float(np.abs(keys).max()) else 0.0


def softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def log_sum(scores: Array) -> float:
    top = scores.max()
    return float(top + np.log(np.exp(scores - top).sum()))


def step_of(matrix: Array, slope: Array) -> Array:
    """A Newton step; the shortest one where rounding leaves the matrix without an inverse."""
    try:
        step = np.linalg.solve(matrix, slope)
    except np.linalg.LinAlgError:
        step = np.linalg.lstsq(matrix, slope, rcond=None)[0]
    return np.asarray(step, dtype=np.float64)


def as_keys(keys: ArrayLike) -> Array:
    """A table of keys, one in each row, checked."""
    return _table(keys, "keys")


def as_values(values: ArrayLike, count: int) -> Array:
    table = _table(values, "values")
    if len(table) != count:
        raise BadInput(f"there are {count} keys and {len(table)} values", "give one value for each key")
    return table


def as_query(query: ArrayLike, width: int) -> Array:
    vector = _numbers(query, "query").reshape(-1)
    if len(vector) != width:
        raise BadInput(f"the query has {len(vector)} numbers, the keys have {width}")
    return vector


def _table(numbers: ArrayLike, what: str) -> Array:
    table = _numbers(numbers, what)
    if table.ndim != 2 or not table.size:
        raise BadInput(f"{what} are a table with one row each, not of shape {table.shape}")
    return table


def _numbers(numbers: ArrayLike, what: str) -> Array:
    try:
        table = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what}: {error}", "give numbers, the same count in each row") from error
    if not np.isfinite(table).all():
        raise BadInput(f"{what}: every number must be finite")
    return table
