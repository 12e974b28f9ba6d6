"""Keys and wanted weights -> the query, with its certificate. The flow of every puzzle that asks for a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairtrial.puzzles.certificate import Certificate, certify, proportions
from fairtrial.puzzles.climb import FAINT, best_within, climb
from fairtrial.puzzles.face import Places, across, expose, smallest_face
from fairtrial.puzzles.frame import Array, Frame, as_keys, as_values
from fairtrial.puzzles.least_squares import LeastSquares, least_squares
from fairtrial.puzzles.reached import Reached
from fairtrial.puzzles.shortest import room, shortest
from fairtrial.puzzles.target import misplaced, need_norm, need_precision

PRECISION = 0.999


@dataclass(frozen=True)
class Answer(Reached):
    """A query, what it does, and why nothing better is possible."""

    ask: str
    keys: Array
    names: tuple[str, ...]
    scaled: bool
    target: Array  # wanted weights
    query: Array
    weights: Array  # that the query gives
    certificate: Certificate
    nearest: Array  # the best weights of all: the wanted ones where they are possible
    exact: bool  # the query gives `nearest` itself; else it comes as near as asked
    wanted_precision: float
    budget: float | None  # greatest length allowed
    smallest_norm: float  # of a query that reaches the precision, towards `nearest`
    least_squares: LeastSquares
    values: Array | None = None

    @property
    def possible(self) -> bool:
        return self.certificate.possible

    @property
    def in_the_way(self) -> list[int]:
        return self.certificate.in_the_way(self.target)

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.query))


def solve(
    ask: str,
    keys: ArrayLike,
    target: Array,
    *,
    scale: bool = True,
    norm: float | None = None,
    precision: float = PRECISION,
    values: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    scores: Array | None = None,
) -> Answer:
    """`scores` are those that least squares is to aim at, where they are not the usual ones."""
    table = as_keys(keys)
    need_norm(norm), need_precision(precision)
    frame = Frame.of(table, scale)
    certificate = certify(frame, target)
    nearest, base, face = nearest_possible(frame.points, target, certificate.possible)
    whole = len(face) == len(target)
    least = shortest(frame.points, nearest, precision, precise_start(frame.points, nearest, precision, base, face))
    place = base if whole else least
    if norm is not None:
        place = best_within(frame.points, target, norm * frame.unit)
    query = frame.query(place)
    weights = frame.weights(query)
    return Answer(
        ask=ask,
        keys=table,
        names=tuple(names) if names is not None else tuple(f"key {place}" for place in range(len(table))),
        scaled=scale,
        target=target,
        query=query,
        weights=weights,
        certificate=certificate,
        nearest=nearest,
        exact=bool(misplaced(weights, nearest) < 1e-9),
        wanted_precision=precision,
        budget=norm,
        smallest_norm=float(np.linalg.norm(frame.query(least))),
        least_squares=least_squares(table, target, frame.factor, scores),
        values=None if values is None else as_values(values, len(table)),
    )


def nearest_possible(points: Array, target: Array, possible: bool) -> tuple[Array, Array, Places]:
    """The best weights that queries come near to, a place that gives them their proportions, and the face they lie on.

    The best weights have the wanted weights' mean key; so they live on the smallest face that holds the wanted keys,
    and on that face they are a softmax of a finite query."""
    chosen = np.flatnonzero(target > 0)
    if possible:
        return target, proportions(points[chosen], np.log(target[chosen]))[0], chosen
    face = smallest_face(points, chosen)
    centred = points[face] - points[face].mean(0)
    along = np.eye(points.shape[1]) - (level := across(points[face])).T @ level
    base = climb(centred @ along, target[face], FAINT) @ along
    raised = np.exp(centred @ base - (centred @ base).max())
    nearest = np.zeros(len(target))
    nearest[face] = raised / raised.sum()
    return nearest, base, face


def precise_start(points: Array, nearest: Array, precision: float, base: Array, face: Places) -> Array:
    """Far enough out in the face's direction to be more precise than asked."""
    exposure = expose(points, face)
    if not len(exposure.others):
        return base
    best = base + exposure.direction
    for doubling in range(1, 40):
        if (worst := room(points, nearest, precision, best).min()) > 0:
            break
        further = base + 2.0**doubling * exposure.direction
        best = further if room(points, nearest, precision, further).min() > worst else best
    return best
