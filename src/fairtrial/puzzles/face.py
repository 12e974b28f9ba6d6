"""Faces of the keys' hull, by linear programs.

A query that grows without end gives all attention to the keys of greatest score. Those are the keys on one face of
their convex hull: a corner, an edge, ... or all of it. So whoever wants attention on some keys alone asks: is there a
direction in which they, and only they, are greatest?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairtrial.puzzles.frame import SAME, Array

Places = NDArray[np.intp]
TIGHT = 1e-7  # a lead below this share of the keys' spread is no lead
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Exposure:
    """Both sides of one linear program. If `lead` is above zero, `direction` puts the chosen keys ahead of all others
    by it. If not, `pressure` (a weight for each other key, adding up to one) mixes the others to a point level with
    the chosen ones in every direction that treats those alike: whoever raises the chosen keys raises some of the
    others as much."""

    direction: Array
    lead: float
    others: Places
    pressure: Array

    @property
    def found(self) -> bool:
        return self.lead > TIGHT


def across(points: Array) -> Array:
    """Orthonormal directions in which all points are level [direction rank]."""
    _, sizes, axes = np.linalg.svd(points[1:] - points[0])
    return axes[int((sizes > SAME).sum()) :]


def expose(points: Array, chosen: Places) -> Exposure:
    """max lead, so that direction @ (chosen - other) >= lead for all others, each coordinate within -1 and 1."""
    others = np.setdiff1d(np.arange(len(points)), chosen)
    level = across(points[chosen])
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


def smallest_face(points: Array, chosen: Places) -> Places:
    """All keys on the smallest face that holds the chosen ones: those that no direction leaves behind."""
    level = across(points[chosen])
    ahead = (points[chosen[0]] - points) @ level.T  # key direction
    left = np.setdiff1d(np.arange(len(points)), chosen)
    while len(left) and len(level):
        solved = _program(cost=-ahead[left].sum(0), below=-ahead, bounds=[(-1.0, 1.0)] * len(level))
        behind = ahead[left] @ solved.x > 10 * TIGHT
        if not behind.any():
            break
        left = left[~behind]
    face = np.sort(np.concatenate((chosen, left)))
    while not (found := expose(points, face)).found:  # a lead too small to count: who presses belongs to the face
        face = np.union1d(face, found.others[found.pressure > 1e-9])
    return face


def _program(cost: Array, below: Array, bounds: list[tuple[Any, Any]]) -> Any:
    from scipy.optimize import linprog

    # the simplex method: its answers are corners, so that the pressure rests on few keys
    solved = linprog(cost, A_ub=below, b_ub=np.zeros(len(below)), bounds=bounds, method="highs-ds", options=EXACT)
    if solved.status != 0:
        raise ArithmeticError(f"the linear program failed: {solved.message}")
    return solved
