"""Keys and wanted weights -> the query that comes closest, with a certificate that no query does better.

Wanted weights t can be reached to any precision exactly when (1) the wanted keys are all the keys of one face of the
hull, and (2) log t is an affine function of the key on them (Barndorff-Nielsen's closure of an exponential family). If
both hold, a direction and a base query show it: base + r direction tends to t as r grows. If one fails, a balance shows
it: numbers c with sum c = 0 and sum c_i k_i = 0, so that every query gives sum c_i log w_i = 0 (scores are linear, and
the softmax's denominator cancels), which the wanted weights violate.

The best weights have the least Kullback-Leibler divergence from the wanted ones: sum_i t_i log softmax_i is concave in
the query.

Adding one number to all scores changes no weight, so only differences between keys count. A frame centres the keys,
drops the directions in which none of them differ, and measures in units of their spread, so that one tolerance fits
all keys. A query that grows without bound gives all attention to the keys with the highest score: the keys on one face
of their convex hull. Attention on some keys alone needs a direction in which they, and only they, lead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
from fairtrial.typed import unstructure

Array = NDArray[np.float64]
Places = NDArray[np.intp]  # numbers of keys
SAME = 1e-7  # in units of the keys' spread: what differs by less is the same, as 0.1 + 0.2 is 0.3 in single precision
ROUNDING = 1e-12  # the same for keys that such a tolerance gives no sound answer for: near copies, long and thin sets
TIGHT = 1e-7  # a lead below this share of the keys' spread is no lead
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LEAST_PENALTY = 1e-11  # a penalty too weak to change a weight by more than rounding does
CLOSE = 1e-6  # in logarithms of weights: one part in a million
BAR, MOST_ROWS = 30, 24  # letters of a bar; weights that are listed
ZERO_WEIGHT = 1e-10  # rounding error of a zero weight


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


def mix_target(count: int, shares: Mapping[int, float]) -> Array:
    """Shares must sum to one, so that a forgotten key is noticed."""
    target = np.zeros(count)
    for place, share in shares.items():
        if not 0 <= place < count:
            raise BadInput(f"there is no key {place}", f"the {count} keys are numbered 0 to {count - 1}")
        target[place] = share
        if not (math.isfinite(share) and share > 0):
            raise BadInput(f"the weight of key {place} must be above 0 and at most 1, got {share:g}")
    total = float(target.sum())
    if abs(total - 1) > 1e-6:
        raise BadInput(f"the weights must sum to 1, got {total:g}")
    return target / total


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


@dataclass(frozen=True)
class Certificate:
    """Either `direction`, `lead` and `base` (possible), or `balance` (impossible)."""

    possible: bool
    direction: Array | None = None  # of length 1, in the keys' own coordinates
    lead: float = 0.0  # how far the wanted keys are ahead in this direction; 0 where there is no other key
    base: Array | None = None  # a query that gives the wanted keys their proportions
    balance: Array | None = None  # a number for each key

    def in_the_way(self, target: Array) -> list[int]:
        """The keys that make it impossible: unwanted ones that come along, or wanted ones bound to each other."""
        if self.balance is None:
            return []
        carried = np.abs(self.balance) > ZERO_WEIGHT * np.abs(self.balance).max()
        unwanted = carried & (target == 0)
        return [int(place) for place in np.flatnonzero(unwanted if unwanted.any() else carried)]

    def holds(self, keys: Array, target: Array) -> bool:
        """Check the certificate with a few products, without a solver."""
        spread = spread_of(keys) or float(np.abs(keys).max()) or 1.0
        wanted = target > 0
        if not self.possible:
            assert self.balance is not None
            c = self.balance / np.abs(self.balance).max()
            if (c[~wanted] < 0).any():
                return False
            pressed = float(c[~wanted].sum())  # on keys that should get nothing
            exact = CLOSE * len(keys) * (pressed if pressed > ZERO_WEIGHT else 1.0)
            if abs(c.sum()) > exact or np.abs(c @ (keys - keys.mean(0))).max() > exact * spread:
                return False
            return bool(pressed > ZERO_WEIGHT or abs(c[wanted] @ np.log(target[wanted])) > CLOSE)
        assert self.direction is not None
        assert self.base is not None
        scores = keys @ self.direction
        logs = np.log(target[wanted]) - keys[wanted] @ self.base
        level = np.ptp(scores[wanted]) <= 10 * TIGHT * spread
        ahead = wanted.all() or scores[wanted].min() - scores[~wanted].max() > 0
        return bool(level and ahead and np.ptp(logs) <= 10 * CLOSE)


def certify(frame: Frame, target: Array) -> Certificate:
    chosen = np.flatnonzero(target > 0)
    exposure = expose(frame.points, chosen, frame.same)
    if not exposure.found:
        return Certificate(False, balance=_pressed(frame.points, chosen, exposure.others, exposure.pressure))
    base, rest = proportions(frame.points[chosen], np.log(target[chosen]), frame.same)
    if np.abs(rest).max() > CLOSE:
        return Certificate(False, balance=_scatter(rest / np.abs(rest).max(), chosen, len(target)))
    length = float(np.linalg.norm(exposure.direction))
    if not length:  # every key is wanted: no direction is needed
        return Certificate(True, np.zeros(frame.keys.shape[1]), 0.0, frame.query(base) * frame.factor)
    direction = exposure.direction / length
    lead = exposure.lead / length * frame.spread
    return Certificate(True, direction @ frame.axes, lead, frame.query(base) * frame.factor)


def proportions(points: Array, logs: Array, same: float = SAME) -> tuple[Array, Array]:
    """The shortest place whose scores differ as `logs` do, and what is left over. What is left is itself a balance:
    it is level with every coordinate and with a constant."""
    centred = points - points.mean(0)
    wanted = logs - logs.mean()
    if np.abs(wanted).max() < 1e-15:
        return np.zeros(points.shape[1]), wanted
    far, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > same
    base = (far[:, kept].T @ wanted / sizes[kept]) @ axes[kept]
    return base, wanted - centred @ base


def _pressed(points: Array, chosen: Places, others: Places, pressure: Array) -> Array:
    """The pressure's mix of other keys, written as a mix of the chosen ones, and the difference of the two."""
    held = np.vstack((points[chosen].T, np.ones(len(chosen))))
    met = np.append(pressure @ points[others], pressure.sum())
    mix, rest = nnls(held, met)  # few keys, all with a plus, where the others meet the chosen keys' own hull
    if rest > TIGHT:  # they meet its plane outside the hull
        mix = np.linalg.lstsq(held, met, rcond=1e-13)[0]
    balance = _scatter(-mix, chosen, len(points))
    balance[others] = pressure
    return balance / np.abs(balance).max()


def _scatter(numbers: Array, places: Places, count: int) -> Array:
    scattered = np.zeros(count)
    scattered[places] = numbers
    return scattered


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Result):
    """A query, what attention does with it, and why nothing better is possible."""

    ask: str
    keys: Array  # as given
    goals: Goals
    target: Array  # wanted weights
    query: Array
    weights: Array  # that attention gives
    certificate: Certificate
    nearest: Array  # the best weights of all: the wanted ones where they are possible
    exact: bool  # the query gives `nearest` itself, not only to the wanted precision

    @property
    def possible(self) -> bool:
        return self.certificate.possible

    @property
    def in_the_way(self) -> list[int]:
        return self.certificate.in_the_way(self.target)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"key {place}" for place in range(len(self.keys)))

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.query))

    @property
    def precision(self) -> float:
        return precision_of(self.weights, self.target)

    @property
    def error(self) -> float:
        """The share of the attention that is in the wrong place (the total variation distance)."""
        return float(np.abs(self.weights - self.target).sum() / 2)

    def describe(self) -> Description:
        count, width = self.keys.shape
        names, ask = self.names, self.ask[:80]
        scale = f"scores divided by sqrt({width})" if self.goals.scale else "scores not scaled"
        shown = list(zip(names, self.weights.tolist(), self.target.tolist(), strict=True))[:MOST_ROWS]
        rows = tuple(row(name, f"{weight:.4f}", bar_of(weight), f"{share:.4g}") for name, weight, share in shown)
        note = f"Precision {self.precision:.6f}; share of the attention in the wrong place {self.error:.6f}."
        note += f" {count - MOST_ROWS} more keys are not shown." * (count > MOST_ROWS)
        goal = "what is wanted" if self.possible else "these best weights"
        how = "exact" if self.exact else f"just long enough for a precision of {self.goals.precision:g} towards {goal}"
        query = f"The query {vector(self.query)} has length {round(self.norm, 12):.4g}, {how}."
        why = why_possible(self) if self.possible else why_impossible(self)
        about = f"{ask}: {count} keys of width {width}, {scale}."
        chart = BarChart(ask, "weight", tuple((name, weight) for name, weight, _ in shown))
        table = Table("", ("key", "weight", "", "wanted"), rows, note)
        return Description([*why, query, about], [table], charts=[chart])

    def to_json(self) -> dict[str, object]:
        return {
            "ask": self.ask,
            "possible": self.possible,
            "in_the_way": self.in_the_way,
            "exact": self.exact,
            "scaled": self.goals.scale,
            "keys": self.keys.tolist(),
            "names": self.names,
            "wanted": self.target.tolist(),
            "wanted_precision": self.goals.precision,
            "query": self.query.tolist(),
            "query_length": self.norm,
            "weights": self.weights.tolist(),
            "precision": self.precision,
            "misplaced": self.error,
            "best_weights": self.nearest.tolist(),
            "certificate": unstructure(self.certificate, lambda array: np.asarray(array).tolist()),
        }


def solve(ask: str, keys: ArrayLike, target: Array, goals: Goals) -> Answer:
    table = as_keys(keys)
    for same in (SAME, ROUNDING):
        frame = Frame.of(table, goals.scale, same)
        certificate = certify(frame, target)
        nearest, base, face = nearest_possible(frame, target, certificate.possible)
        place = base
        if len(face) < len(target):
            place = base + far_enough(frame, nearest, goals.precision, base, face)
        query = frame.query(place)
        weights = frame.weights(query)
        if precision_of(weights, nearest) > goals.precision - 1e-6 and certificate.holds(table, target):
            break
    return Answer(
        ask=ask,
        keys=table,
        goals=goals,
        target=target,
        query=query,
        weights=weights,
        certificate=certificate,
        nearest=nearest,
        exact=len(face) == len(target),
    )


def nearest_possible(frame: Frame, target: Array, possible: bool) -> tuple[Array, Array, Places]:
    """The best weights that queries come near to, a place that gives them their proportions, and the face they lie on.

    The best weights have the wanted weights' mean key; so they live on the smallest face that holds the wanted keys,
    and on that face they are a softmax of a finite query."""
    chosen, points = np.flatnonzero(target > 0), frame.points
    if possible:
        return target, proportions(points[chosen], np.log(target[chosen]), frame.same)[0], chosen
    face = smallest_face(points, chosen, frame.same)
    centred = points[face] - points[face].mean(0)
    along = np.eye(points.shape[1]) - (level := across(points[face], frame.same)).T @ level
    base = best_place(centred @ along, target[face], LEAST_PENALTY) @ along
    return _scatter(np.asarray(softmax(centred @ base)), face, len(target)), base, face


def far_enough(frame: Frame, nearest: Array, precision: float, base: Array, face: Places) -> Array:
    """As far in the face's direction as the precision takes: there the keys of the face score alike, so that going on
    leaves their proportions as they are, and all other keys behind."""
    direction = expose(frame.points, face, frame.same).direction

    def short(far: float) -> float:
        return precision - precision_of(softmax(frame.points @ (base + far * direction)), nearest)

    far = 1.0
    while short(far) > 0 and far < 2.0**40:
        far *= 2
    if short(far) < 0 < short(0.0):
        far = brentq(short, 0.0, far, xtol=1e-12) * (1 + 1e-12)
    return far * direction


def select(keys: ArrayLike, chosen: int, goals: Goals | None = None, **options: Any) -> Answer:
    """A query that attends to one key alone. Options: the fields of `Goals` (scale, precision)."""
    return mixed("select", keys, {chosen: 1.0}, goals or Goals(**options))


def average(keys: ArrayLike, chosen: Iterable[int], goals: Goals | None = None, **options: Any) -> Answer:
    """A query that attends to the chosen keys alike, and to no other."""
    places = list(chosen)
    if not places:
        raise BadInput("nothing to average", "name the keys: fairtrial puzzle average 0 1")
    if len(set(places)) < len(places):
        raise BadInput(f"a key is named twice in {places}", "use mix to give keys different weights")
    return mixed("average", keys, dict.fromkeys(places, 1 / len(places)), goals or Goals(**options))


def mix(keys: ArrayLike, shares: Mapping[int, float], goals: Goals | None = None, **options: Any) -> Answer:
    """A query with these weights: `mix(keys, {0: 0.5, 2: 0.3, 3: 0.2})`."""
    return mixed("mix", keys, shares, goals or Goals(**options))


def mixed(ask: str, keys: ArrayLike, shares: Mapping[int, float], goals: Goals) -> Answer:
    table = as_keys(keys)
    target = mix_target(len(table), shares)
    words = [f"{place}:{share:g}" if ask == "mix" else str(place) for place, share in shares.items()]
    return solve(f"{ask} {' '.join(words)}", table, target, goals)


def bar_of(share: float) -> str:
    return ("█" * round(BAR * share)).ljust(BAR, "·")


def why_possible(answer: Answer) -> list[str]:
    wanted, certificate = np.flatnonzero(answer.target > 0), answer.certificate
    if len(wanted) == len(answer.target):
        if np.ptp(answer.target) < 1e-12:
            return ["Possible exactly. A query of zero scores every key equally, as wanted."]
        return ["Possible exactly. The logarithms of the wanted weights, up to a constant, are scores of a query."]
    who = listed([answer.names[place] for place in wanted])
    lead, way = f"by {certificate.lead:.4g}", vector(certificate.direction)
    reason = f"{who} is a corner of the keys' hull: in the direction {way} it leads all others {lead}."
    if len(wanted) > 1:
        reason = f"{who} are all the keys on one face of the keys' hull: in the direction {way} "
        reason += f"they score equally and lead all others {lead}."
    longer = "A longer query in this direction leaves the others further behind."
    lines = [f"Possible to any precision. {reason}", longer]
    if len(wanted) > 1 and np.ptp(answer.target[wanted]) > 1e-12:
        lines.append(f"Their proportions come from this component of the query: {vector(certificate.base)}.")
    return lines


def why_impossible(answer: Answer) -> list[str]:
    balance = answer.certificate.balance
    assert balance is not None
    names, target = answer.names, answer.target
    carried = np.abs(balance) > 1e-10 * np.abs(balance).max()
    left, right = np.where(carried & (balance > 0), balance, 0), np.where(carried & (balance < 0), -balance, 0)
    left, right = left / (left.sum() or 1.0), right / (right.sum() or 1.0)
    equation = f"{mixture(left, names)} = {mixture(right, names)}"
    logs = f"{mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}"
    way = listed([names[place] for place in answer.in_the_way])
    copies = (left > 0).sum() == 1 and (right > 0).sum() == 1
    unwanted = bool((target[answer.in_the_way] == 0).all())
    if copies and unwanted:
        reason = [f"{way} is a copy of {mixture(right, names)}: every query scores both equally."]
    elif unwanted:
        reason = [
            f"In the way: {way}. Since {equation} and scores are linear, no query raises one side without the other.",
            f"For every query, {logs}. The wanted weights would make the left side minus infinity.",
        ]
    else:
        sides = [float(side[target > 0] @ np.log(target[target > 0])) for side in (left, right)]
        reason = [
            f"{way} depend on each other: {equation}. So for every query, {logs}.",
            f"The wanted weights give {sides[0]:.4g} on the left and {sides[1]:.4g} on the right.",
        ]
    best = greatest(answer.nearest, names)
    return ["Impossible.", *reason, f"The best that queries can approach (least divergence): {best}."]


def greatest(weights: Array, names: Sequence[str], most: int = 6) -> str:
    """0.6 on key 1 and 0.4 on key 5"""
    order = np.argsort(-weights, kind="stable")[:most]
    return listed([f"{weights[place]:.4g} on {names[place]}" for place in order if weights[place] > 5e-5])


def mixture(shares: Array, names: Sequence[str], before: str = "", after: str = "") -> str:
    """0.4 key 1 + 0.6 key 5"""
    parts = [(share, f"{before}{name}{after}") for share, name in zip(shares, names, strict=True) if share > 0]
    terms = [part if share > 1 - 1e-9 else f"{share:.3g} {part}" for share, part in parts]
    return " + ".join(terms[:8]) + (f" + {len(terms) - 8} more" if len(terms) > 8 else "")


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    words = [*words[:8], f"{len(words) - 8} more"] if len(words) > 9 else list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def vector(numbers: Array | None) -> str:
    shown = [] if numbers is None else [f"{number + 0.0:.4g}" for number in np.round(numbers, 10)]
    return "[" + ", ".join(shown[:12]) + (f", ... {len(shown)} numbers]" if len(shown) > 12 else "]")
