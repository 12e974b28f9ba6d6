"""Keys in the coordinates that matter to a softmax, faces of their convex hull, and keys from CSV files.

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

from fairtrial.data import read_lines
from fairtrial.errors import BadInput
from fairtrial.rng import generator_for

Array = NDArray[np.float64]
Places = NDArray[np.intp]  # numbers of keys
SAME = 1e-7  # in units of the keys' spread: what differs by less is the same, as 0.1 + 0.2 is 0.3 in single precision
ROUNDING = 1e-12  # the same for keys that such a tolerance gives no sound answer for: near copies, long and thin sets
TIGHT = 1e-7  # a lead below this share of the keys' spread is no lead
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
MOST_ROWS, MOST_NUMBERS = 2_000, 1_000_000


@dataclass(frozen=True)
class Goals:
    """How a puzzle is to be solved."""

    scale: bool = True  # scores are divided by the square root of the keys' width
    precision: float = 0.999  # least share of its wanted weight that a wanted key gets
    names: Sequence[str] | None = None  # of the keys

    def __post_init__(self) -> None:
        if not 0 < self.precision <= 0.999999:
            raise BadInput(f"precision must be above 0 and at most 0.999999, got {self.precision:g}")

    def named(self, count: int) -> tuple[str, ...]:
        return tuple(f"key {place}" for place in range(count)) if self.names is None else tuple(self.names)


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
        return softmax(self.factor * self.keys @ query)


def spread_of(keys: Array) -> float:
    """The greatest distance of a key from the keys' mean; zero where it is nothing beside the keys' own size."""
    spread = float(np.linalg.norm(keys - keys.mean(0), axis=1).max())
    return spread if spread > SAME * float(np.abs(keys).max()) else 0.0


# scipy's softmax and logsumexp round differently in the last digit
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
    from scipy.optimize import linprog

    # the simplex method: its answers are corners, so that the pressure rests on few keys
    solved = linprog(cost, A_ub=below, b_ub=np.zeros(len(below)), bounds=bounds, method="highs-ds", options=EXACT)
    if solved.status != 0:
        raise ArithmeticError(f"the linear program failed: {solved.message}")
    return solved


def read_table(path: Path) -> tuple[Array, tuple[str, ...] | None]:
    """Numbers [row width], and the rows' names. Cells are separated by commas, semicolons, tabs or blanks; a first line
    without numbers is a heading; a first column of words names the rows."""
    rows: list[list[float]] = []
    names: list[str] = []
    heading = False
    for number, line in read_lines(path).numbered():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        separator = next((mark for mark in (",", ";", "\t") if mark in line), None)
        cells = [cell.strip().strip('"') for cell in line.split(separator)]
        numbers = [as_number(cell) for cell in cells]
        if not (rows or heading) and all(each is None for each in numbers):
            heading = True
            continue
        named = len(cells) > 1 and numbers[0] is None
        if wrong := [cell for cell, each in zip(cells[named:], numbers[named:], strict=True) if each is None]:
            raise BadInput(f"{wrong[0]!r} is not a finite number", "such as 0.5 or -1e-3", path=path, line=number)
        rows.append([each for each in numbers[named:] if each is not None])
        names += cells[:named]
        if len(rows[-1]) != len(rows[0]) or len(names) not in (0, len(rows)):
            what = f"this row has {len(rows[-1])} numbers and {'a' if named else 'no'} name"
            raise BadInput(what, "all rows need as many numbers, and all a name or none", path=path, line=number)
        if len(rows) > MOST_ROWS or len(rows) * len(rows[0]) > MOST_NUMBERS:
            raise BadInput(f"more than {MOST_ROWS:,} rows, or a million numbers", path=path, line=number)
    if not rows:
        raise BadInput("this file has no numbers", "write one row per line, such as 0.5,-1,2", path=path)
    if double := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"two rows are named {double!r}", "give every row a name of its own", path=path)
    return np.array(rows), tuple(names) or None


def as_number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def random_keys(count: int, width: int, seed: int) -> Array:
    """Keys from a standard normal distribution."""
    return generator_for(seed, "puzzle keys").normal(size=(count, width))
