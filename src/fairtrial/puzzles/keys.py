"""Keys in the coordinates that matter to a softmax, faces of their convex hull.

Adding one number to all scores changes no weight, so only differences between keys count. A frame centres the keys,
drops the directions in which none of them differ, and measures in units of their spread, so that one tolerance fits
all keys. A query that grows without bound gives all attention to the keys with the highest score: the keys on one face
of their convex hull. Attention on some keys alone needs a direction in which they, and only they, lead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.special import softmax

from fairtrial.errors import BadInput
from fairtrial.rng import generator_for

Array = NDArray[np.float64]
Places = NDArray[np.intp]  # numbers of keys
SAME = 1e-7  # in units of the keys' spread: what differs by less is the same, as 0.1 + 0.2 is 0.3 in single precision
ROUNDING = 1e-12  # the same for keys that such a tolerance gives no sound answer for: near copies, long and thin sets
TIGHT = 1e-7  # a lead below this share of the keys' spread is no lead
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Goals:
    """How a puzzle is to be solved."""

    scale: bool = True  # scores are divided by the square root of the keys' width
    precision: float = 0.999  # least share of its wanted weight that a wanted key gets

    def __post_init__(self) -> None:
        if not 0 < self.precision <= 0.999999:
            raise BadInput(f"precision must be above 0 and at most 0.999999, got {self.precision:g}")


@dataclass(frozen=True)
class Frame:
    keys: Array  # as given [key width]
    factor: float  # what scores are multiplied by: 1 / sqrt(width), or 1
    points: Array  # keys in the frame [key rank]
    axes: Array  # orthonormal [rank width]
    spread: float  # greatest distance of a key from the keys' mean
    same: float = SAME

    @classmethod
    def of(cls, keys: Array, scaled: bool, same: float = SAME) -> Frame:
        centred, spread = keys - keys.mean(0), spread_of(keys)
        if not spread:
            spread, axes = 1.0, np.zeros((0, keys.shape[1]))
        else:
            _, sizes, axes = np.linalg.svd(centred / spread, full_matrices=False)
            axes = axes[sizes > same]
        factor = 1 / math.sqrt(keys.shape[1]) if scaled else 1.0
        return cls(keys, factor, centred @ axes.T / spread, axes, spread, same)

    @property
    def unit(self) -> float:
        """Length in the frame of a query of length 1."""
        return self.factor * self.spread

    def query(self, place: Array) -> Array:
        """The shortest query that gives the scores `points @ place`, up to one number for all."""
        return place @ self.axes / self.unit

    def weights(self, query: Array) -> Array:
        return np.asarray(softmax(self.factor * self.keys @ query))


def spread_of(keys: Array) -> float:
    """The greatest distance of a key from the keys' mean; zero where it is nothing beside the keys' own size."""
    spread = float(np.linalg.norm(keys - keys.mean(0), axis=1).max())
    return spread if spread > SAME * float(np.abs(keys).max()) else 0.0


def as_keys(keys: ArrayLike) -> Array:
    """A table of keys, one in each row, checked."""
    try:
        table = np.array(keys, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"keys: {error}", "give numbers, the same count in each row") from error
    if not np.isfinite(table).all():
        raise BadInput("keys: numbers must be finite")
    if table.ndim != 2 or not table.size:
        raise BadInput(f"keys are a table with one row per key, got shape {table.shape}")
    return table


@dataclass(frozen=True)
class Exposure:
    """Both sides of one linear program. If `lead` is above zero, `direction` puts the chosen keys ahead of all others
    by it. If not, `pressure` (a weight for each other key, summing to one) mixes the others to a point that scores
    like the chosen ones in every direction in which those tie: raising the chosen keys raises some others as much."""

    direction: Array
    lead: float
    others: Places
    pressure: Array

    @property
    def found(self) -> bool:
        return self.lead > TIGHT


def across(points: Array, same: float = SAME) -> Array:
    """Orthonormal directions in which all points are level [direction rank]."""
    _, sizes, axes = np.linalg.svd(points[1:] - points[0])
    return axes[int((sizes > same).sum()) :]


def expose(points: Array, chosen: Places, same: float = SAME) -> Exposure:
    """max lead, so that direction @ (chosen - other) >= lead for all others, each coordinate within -1 and 1."""
    others = np.setdiff1d(np.arange(len(points)), chosen)
    level = across(points[chosen], same)
    if not len(others):
        return Exposure(np.zeros(points.shape[1]), np.inf, others, np.zeros(0))
    ahead = (points[chosen[0]] - points[others]) @ level.T  # other direction
    if not len(level):
        nearest = np.linalg.norm(points[others] - points[chosen].mean(0), axis=1).argmin()
        return Exposure(np.zeros(points.shape[1]), 0.0, others, np.eye(len(others))[nearest])
    count = len(level)
    solved = _program(
        cost=np.append(np.zeros(count), -1.0),
        below=np.column_stack((-ahead, np.ones(len(others)))),
        bounds=[(-1.0, 1.0)] * count + [(None, None)],
    )
    return Exposure(solved.x[:count] @ level, float(solved.x[count]), others, np.maximum(0, -solved.ineqlin.marginals))


def smallest_face(points: Array, chosen: Places, same: float = SAME) -> Places:
    """All keys on the smallest face that holds the chosen ones: those that no direction leaves behind."""
    level = across(points[chosen], same)
    ahead = (points[chosen[0]] - points) @ level.T  # key direction
    left = np.setdiff1d(np.arange(len(points)), chosen)
    while len(left) and len(level):
        solved = _program(cost=-ahead[left].sum(0), below=-ahead, bounds=[(-1.0, 1.0)] * len(level))
        behind = ahead[left] @ solved.x > 10 * TIGHT
        if not behind.any():
            break
        left = left[~behind]
    face = np.sort(np.concatenate((chosen, left)))
    while not (found := expose(points, face, same)).found:  # a lead too small to count: who presses belongs to the face
        face = np.union1d(face, found.others[found.pressure > 1e-9])
    return face


def _program(cost: Array, below: Array, bounds: Sequence[tuple[float | None, float | None]]) -> Any:
    # the simplex method: its answers are corners, so that the pressure rests on few keys
    solved = linprog(cost, A_ub=below, b_ub=np.zeros(len(below)), bounds=bounds, method="highs-ds", options=EXACT)
    if solved.status != 0:
        raise ArithmeticError(f"the linear program failed: {solved.message}")
    return solved


def read_table(path: Path) -> Array:
    """Numbers [key width] from a CSV file, one key per line."""
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise BadInput(f"is not a table of numbers ({error})", "write one key per line: 0.5,-1,2", path=path) from error


def random_keys(count: int, width: int, seed: int) -> Array:
    """Keys from a standard normal distribution."""
    return generator_for(seed, "puzzle keys").normal(size=(count, width))
