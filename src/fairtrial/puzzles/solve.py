"""Wanted keys -> the query with which attention goes to them alone and alike; or why there is none.

Adding one number to all scores changes no weight, so only differences between keys count. A frame centres the keys,
drops the directions in which none of them differ, and measures in units of their spread, so that one tolerance fits
all keys. A query that grows without bound gives all attention to the keys with the highest score: the keys on one face
of their convex hull. So keys can be attended to alone exactly when they are all the keys of one face: a direction shows
it, in which they are level and lead all others. If they are not, a balance shows it: numbers c with sum c = 0 and
sum c_i k_i = 0, so that every query gives sum c_i log w_i = 0 (scores are linear, and the softmax's denominator
cancels), which the wanted weights violate.

The best weights have the least Kullback-Leibler divergence from the wanted ones: sum_i t_i log softmax_i is concave in
the query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, linprog, minimize, nnls
from scipy.special import logsumexp, softmax

from fairtrial.description import BarChart, Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.rng import generator_for

Array = NDArray[np.float64]
Places = NDArray[np.intp]  # numbers of keys
SAME = 1e-7  # in units of the keys' spread: what differs by less is the same, as 0.1 + 0.2 is 0.3 in single precision
TIGHT = 1e-7  # a lead below this share of the keys' spread is no lead
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LEAST_PENALTY = 1e-11  # a penalty too weak to change a weight by more than rounding does
BAR, MOST_ROWS = 30, 24  # letters of a bar; weights that are listed
CARRIED = 1e-10  # least share of a balance that counts


@dataclass(frozen=True)
class Frame:
    keys: Array  # as given [key width]
    factor: float  # what scores are multiplied by: 1 / sqrt(width), or 1
    points: Array  # keys in the frame [key rank]
    axes: Array  # orthonormal [rank width]
    spread: float  # greatest distance of a key from the keys' mean

    @classmethod
    def of(cls, keys: Array, scaled: bool) -> Frame:
        centred = keys - keys.mean(0)
        spread = float(np.linalg.norm(centred, axis=1).max())
        if spread <= SAME * float(np.abs(keys).max()):  # nothing beside the keys' own size
            spread, axes = 1.0, np.zeros((0, keys.shape[1]))
        else:
            _, sizes, axes = np.linalg.svd(centred / spread, full_matrices=False)
            axes = axes[sizes > SAME]
        factor = 1 / math.sqrt(keys.shape[1]) if scaled else 1.0
        return cls(keys, factor, centred @ axes.T / spread, axes, spread)

    def query(self, place: Array) -> Array:
        """The shortest query that gives the scores `points @ place`, up to one number for all."""
        return place @ self.axes / (self.factor * self.spread)

    def weights(self, query: Array) -> Array:
        return np.asarray(softmax(self.factor * self.keys @ query))


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


def precision_of(weights: Array, target: Array) -> float:
    """The least share of its wanted weight that a wanted key gets; for a selection, the chosen key's weight. At
    precision p at most 1 - p of the attention is in the wrong place."""
    wanted = target > 0
    return float((weights[wanted] / target[wanted]).min())


def best_place(points: Array, target: Array, penalty: float = 0.0) -> Array:
    """The place that maximises sum_i t_i log softmax_i - penalty / 2 |place|^2."""
    mean = target @ points

    def depth(place: Array) -> float:
        return float(logsumexp(points @ place) - mean @ place + penalty / 2 * place @ place)

    def slope(place: Array) -> Array:
        return np.asarray(softmax(points @ place) @ points - mean + penalty * place)

    def curvature(place: Array) -> Array:
        weights = softmax(points @ place)
        centred = points - weights @ points
        return np.asarray(centred.T @ (weights[:, None] * centred) + penalty * np.eye(len(place)))

    start = np.zeros(points.shape[1])
    if not len(start):  # all keys are the same
        return start
    found = minimize(depth, start, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-10})
    return np.asarray(found.x)


def balance_of(points: Array, chosen: Places, exposure: Exposure) -> Array:
    """The pressure's mix of other keys, written as a mix of the chosen ones, and the difference of the two [key]."""
    held = np.vstack((points[chosen].T, np.ones(len(chosen))))
    met = np.append(exposure.pressure @ points[exposure.others], exposure.pressure.sum())
    mix, rest = nnls(held, met)  # few keys, all with a plus, where the others meet the chosen keys' own hull
    if rest > TIGHT:  # they meet its plane outside the hull
        mix = np.linalg.lstsq(held, met, rcond=1e-13)[0]
    balance = np.zeros(len(points))
    balance[chosen], balance[exposure.others] = -mix, exposure.pressure
    return balance / np.abs(balance).max()


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Result):
    """A query, what attention does with it, and why nothing better is possible."""

    ask: str
    keys: Array  # as given
    target: Array  # wanted weights
    query: Array
    weights: Array  # that attention gives
    nearest: Array  # the best weights of all: the wanted ones where they are possible
    direction: Array | None = None  # of length 1, in which the wanted keys lead; None: impossible
    lead: float = 0.0  # by so much; 0 where there is no other key
    balance: Array | None = None  # a number for each key; None: possible

    @property
    def possible(self) -> bool:
        return self.balance is None

    @property
    def in_the_way(self) -> list[int]:
        """Unwanted keys that come along with the wanted ones."""
        carried = self.balance is not None and (self.balance > CARRIED) & (self.target == 0)
        return [int(place) for place in np.flatnonzero(carried)]

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.query))

    @property
    def precision(self) -> float:
        return precision_of(self.weights, self.target)

    def describe(self) -> Description:
        shown = list(zip(names(range(len(self.keys))), self.weights.tolist(), self.target.tolist(), strict=True))
        rows = tuple(
            row(name, f"{weight:.4f}", ("█" * round(BAR * weight)).ljust(BAR, "·"), f"{share:.4g}")
            for name, weight, share in shown[:MOST_ROWS]
        )
        note = f"Precision {self.precision:.6f}."
        note += f" {len(shown) - MOST_ROWS} more keys are not shown." * (len(shown) > MOST_ROWS)
        query = f"The query {vector(self.query)} has length {round(self.norm, 12):.4g}."
        about = f"{self.ask[:80]}: {len(self.keys)} keys of width {self.keys.shape[1]}."
        chart = BarChart(self.ask[:80], "weight", tuple((name, weight) for name, weight, _ in shown[:MOST_ROWS]))
        table = Table("", ("key", "weight", "", "wanted"), rows, note)
        return Description([*self.why(), query, about], [table], charts=[chart])

    def why(self) -> list[str]:
        wanted = np.flatnonzero(self.target > 0)
        who = listed(names(wanted))
        if self.balance is not None:
            left, right = (
                np.where(self.balance > CARRIED, self.balance, 0),
                np.where(self.balance < 0, -self.balance, 0),
            )
            equation = f"{mixture(left / left.sum())} = {mixture(right / right.sum())}"
            order = [place for place in np.argsort(-self.nearest, kind="stable")[:6] if self.nearest[place] > 5e-5]
            best = listed([f"{self.nearest[place]:.4g} on key {place}" for place in order])
            return [
                f"Impossible, because of {listed(names(self.in_the_way))}.",
                f"Since {equation} and scores are linear, no query raises one side without the other.",
                f"The best that queries can approach (least divergence): {best}.",
            ]
        if len(wanted) == len(self.target):
            return ["Possible exactly. A query of zero scores every key equally."]
        lead = f"in the direction {vector(self.direction)}"
        if len(wanted) == 1:
            reason = f"{who} is a corner of the keys' hull: {lead} it leads all others by {self.lead:.4g}."
        else:
            reason = f"{who} are all the keys on one face of the keys' hull: {lead} they score equally and lead all"
            reason += f" others by {self.lead:.4g}."
        longer = "A longer query in this direction leaves the others further behind."
        return [f"Possible to any precision. {reason}", longer]

    def to_json(self) -> dict[str, object]:
        return {
            "ask": self.ask,
            "possible": self.possible,
            "in_the_way": self.in_the_way,
            "keys": self.keys.tolist(),
            "wanted": self.target.tolist(),
            "query": self.query.tolist(),
            "query_length": self.norm,
            "weights": self.weights.tolist(),
            "precision": self.precision,
            "best_weights": self.nearest.tolist(),
            "direction": None if self.direction is None else self.direction.tolist(),
            "lead": self.lead,
            "balance": None if self.balance is None else self.balance.tolist(),
        }


def select(keys: ArrayLike, chosen: int, *, scale: bool = True, precision: float = 0.999) -> Answer:
    """A query that attends to one key alone. `scale`: scores are divided by the square root of the keys' width;
    `precision`: the least share of its wanted weight that a wanted key gets."""
    return solve(f"select {chosen}", as_keys(keys), [chosen], scale, precision)


def average(keys: ArrayLike, chosen: Iterable[int], *, scale: bool = True, precision: float = 0.999) -> Answer:
    """A query that attends to the chosen keys alike, and to no other."""
    places = list(chosen)
    if not places or len(set(places)) < len(places):
        raise BadInput(f"keys to average must be named once each: {places}", "such as: fairtrial puzzle average 0 1")
    return solve(f"average {' '.join(map(str, places))}", as_keys(keys), places, scale, precision)


def solve(ask: str, keys: Array, places: list[int], scale: bool, precision: float) -> Answer:
    if not 0 < precision <= 0.999999:
        raise BadInput(f"precision must be above 0 and at most 0.999999, got {precision:g}")
    if not all(0 <= place < len(keys) for place in places):
        raise BadInput(f"there is no such key: {places}", f"the {len(keys)} keys are numbered 0 to {len(keys) - 1}")
    target = np.zeros(len(keys))
    target[places] = 1 / len(places)
    frame, chosen = Frame.of(keys, scale), np.flatnonzero(target)
    exposure = expose(frame.points, chosen)
    proof: dict[str, Any]
    if exposure.found:
        face, base, nearest = chosen, np.zeros(frame.points.shape[1]), target
        length = float(np.linalg.norm(exposure.direction)) or 1.0
        lead = exposure.lead / length * frame.spread if len(chosen) < len(keys) else 0.0
        proof = {"direction": exposure.direction / length @ frame.axes, "lead": lead}
    else:
        face, base, nearest = nearest_possible(frame.points, target)
        proof = {"balance": balance_of(frame.points, chosen, exposure)}
    place = base
    if len(face) < len(keys):
        place = base + far_enough(frame, nearest, precision, base, face)
    query = frame.query(place)
    weights = frame.weights(query)
    return Answer(ask=ask, keys=keys, target=target, query=query, weights=weights, nearest=nearest, **proof)


def nearest_possible(points: Array, target: Array) -> tuple[Places, Array, Array]:
    """The face of the best weights, a place that gives them their proportions, and the weights themselves.

    The best weights have the wanted weights' mean key; so they live on the smallest face that holds the wanted keys,
    and on that face they are a softmax of a finite query."""
    face = smallest_face(points, np.flatnonzero(target))
    centred, level = points[face] - points[face].mean(0), across(points[face])
    along = np.eye(points.shape[1]) - level.T @ level
    base = best_place(centred @ along, target[face], LEAST_PENALTY) @ along
    nearest = np.zeros(len(target))
    nearest[face] = softmax(centred @ base)
    return face, base, nearest


def far_enough(frame: Frame, nearest: Array, precision: float, base: Array, face: Places) -> Array:
    """As far in the face's direction as the precision takes: there the keys of the face score alike, so that going on
    leaves their proportions as they are, and all other keys behind."""
    direction = expose(frame.points, face).direction

    def short(far: float) -> float:
        return precision - precision_of(softmax(frame.points @ (base + far * direction)), nearest)

    far = 1.0
    while short(far) > 0 and far < 2.0**40:
        far *= 2
    if short(far) < 0 < short(0.0):
        far = brentq(short, 0.0, far, xtol=1e-12) * (1 + 1e-12)
    return far * direction


def names(places: Iterable[int]) -> list[str]:
    return [f"key {place}" for place in places]


def mixture(shares: Array) -> str:
    """0.4 key 1 + 0.6 key 5"""
    parts = [(share, f"key {place}") for place, share in enumerate(shares) if share > CARRIED]
    terms = [part if share > 1 - 1e-9 else f"{share:.3g} {part}" for share, part in parts]
    return " + ".join(terms[:8]) + (f" + {len(terms) - 8} more" if len(terms) > 8 else "")


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    words = [*words[:8], f"{len(words) - 8} more"] if len(words) > 9 else list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def vector(numbers: Array | None) -> str:
    shown = [] if numbers is None else [f"{number + 0.0:.4g}" for number in np.round(numbers, 10)]
    return "[" + ", ".join(shown[:12]) + (f", ... {len(shown)} numbers]" if len(shown) > 12 else "]")
