"""Keys and wanted weights -> the query that comes closest, with a certificate that no query does better.

Wanted weights t can be reached to any precision exactly when (1) the wanted keys are all the keys of one face of the
hull, and (2) log t is an affine function of the key on them (Barndorff-Nielsen's closure of an exponential family). If
both hold, a direction and a base query show it: base + r direction tends to t as r grows. If one fails, a balance shows
it: numbers c with sum c = 0 and sum c_i k_i = 0, so that every query gives sum c_i log w_i = 0 (scores are linear, and
the softmax's denominator cancels), which the wanted weights violate.

The best weights have the least Kullback-Leibler divergence from the wanted ones: sum_i t_i log softmax_i is concave in
the query, so Newton's method finds the optimum. The shortest query of a precision p has w_i >= p t_i for every wanted
key, which is convex in the query as well: Newton's method on a barrier. Least squares for desired scores is shown for
comparison: it asks for too much, since scores may all shift and anything far below is low enough."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairtrial.description import Description, Result
from fairtrial.errors import BadInput
from fairtrial.puzzles.keys import (
    ROUNDING,
    SAME,
    TIGHT,
    Array,
    Frame,
    Goals,
    Places,
    across,
    as_keys,
    expose,
    log_sum,
    smallest_face,
    softmax,
    spread_of,
    step_of,
)

GOALS = Goals()
LEAST_PENALTY = 1e-11  # a penalty too weak to change a weight by more than rounding does
FAR = 100.0  # least squares: desired score of a single wanted key, the others at 0
NEAR = 3.0  # least squares: desired score of several wanted keys, the others at -3
CLOSE = 1e-6  # in logarithms of weights: one part in a million
ZERO_WEIGHT = 1e-10  # rounding error of a zero weight


def select_target(count: int, chosen: int) -> Array:
    return mix_target(count, {chosen: 1.0})


def average_target(count: int, chosen: Iterable[int]) -> Array:
    places = list(chosen)
    if not places:
        raise BadInput("nothing to average", "name the keys: fairtrial puzzle average 0 1")
    if len(set(places)) < len(places):
        raise BadInput(f"a key is named twice in {places}", "use mix to give keys different weights")
    return mix_target(count, dict.fromkeys(places, 1 / len(places)))


def mix_target(count: int, shares: Mapping[int, float]) -> Array:
    """Shares must sum to one, so that a forgotten key is noticed."""
    target = np.zeros(count)
    for place, share in shares.items():
        target[need_place(place, count)] = share
        if not (math.isfinite(share) and share > 0):
            raise BadInput(f"the weight of key {place} must be above 0 and at most 1, got {share:g}")
    total = float(target.sum())
    if abs(total - 1) > 1e-6:
        raise BadInput(f"the weights must sum to 1, got {total:g}")
    return target / total


def need_place(place: int, count: int) -> int:
    if not 0 <= place < count:
        raise BadInput(f"there is no key {place}", f"the {count} keys are numbered 0 to {count - 1}")
    return place


def precision_of(weights: Array, target: Array) -> float:
    """The least share of its wanted weight that a wanted key gets; for a selection, the chosen key's weight. At
    precision p at most 1 - p of the attention is in the wrong place."""
    wanted = target > 0
    return float((weights[wanted] / target[wanted]).min())


def misplaced(weights: Array, target: Array) -> float:
    """The share of the attention that is in the wrong place (the total variation distance)."""
    return float(np.abs(weights - target).sum() / 2)


def as_lists(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


@dataclass(frozen=True, kw_only=True, repr=False)
class Reached(Result):
    """What was asked about keys, and what attention does."""

    ask: str
    keys: Array  # as given
    names: tuple[str, ...]
    scaled: bool
    target: Array  # wanted weights
    query: Array
    weights: Array  # that attention gives
    wanted_precision: float

    @property
    def precision(self) -> float:
        return precision_of(self.weights, self.target)

    @property
    def error(self) -> float:
        return misplaced(self.weights, self.target)

    def values(self, **more: object) -> dict[str, object]:
        """For JSON."""
        about = {"ask": self.ask, "scaled": self.scaled, "keys": self.keys, "names": self.names, "query": self.query}
        about |= {"wanted": self.target, "weights": self.weights, "precision": self.precision}
        about |= {"wanted_precision": self.wanted_precision, "misplaced": self.error, **more}
        return as_lists(about)


def best_place(points: Array, target: Array, penalty: float = 0.0, start: Array | None = None) -> Array:
    """The place that maximises sum_i t_i log softmax_i - penalty / 2 |place|^2."""
    place = np.zeros(points.shape[1]) if start is None else start
    mean = target @ points

    def height(at: Array) -> float:
        return float(mean @ at) - log_sum(points @ at) - penalty / 2 * float(at @ at)

    now = height(place)
    for _ in range(200):
        gradient, hessian = gradient_and_hessian(points, place)
        uphill = mean - gradient - penalty * place
        step = step_of(hessian + penalty * np.eye(len(place)), uphill)
        gain = float(uphill @ step)
        if gain < 1e-12:  # so near the top, a whole step squares what is left
            return place + step
        size = 1.0
        while (then := height(place + size * step)) < now + 1e-4 * size * gain and size > 1e-9:
            size /= 2
        if then <= now:
            break  # rounding is all that is left
        place, now = place + size * step, then
    return place


def gradient_and_hessian(points: Array, place: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of log sum exp: the mean and the covariance of the keys under the weights."""
    weights = softmax(points @ place)
    mean = weights @ points
    centred = points - mean
    return mean, centred.T @ (weights[:, None] * centred)


def best_within(points: Array, target: Array, length: float) -> Array:
    """The best place at most `length` from zero. Its penalty is found by Newton's method on 1 / |place|,
    which is almost linear in the penalty (as in trust-region methods)."""
    steepest = float(np.linalg.norm(target @ points - points.mean(0)))
    if length == 0 or steepest < 1e-15:
        return np.zeros(points.shape[1])
    low, high = 0.0, max(steepest / length, 2 * LEAST_PENALTY)  # |place| <= steepest / penalty
    penalty, place = high, best_place(points, target, high)
    for _ in range(100):
        norm = float(np.linalg.norm(place))
        if abs(norm - length) <= 1e-8 * length or high - low <= 1e-13 * high:
            break
        if penalty == LEAST_PENALTY and norm < length:
            break  # the best of all places is nearer than the length allows
        low, high = (penalty, high) if norm > length else (low, penalty)
        _, hessian = gradient_and_hessian(points, place)
        shrink = float(place @ step_of(hessian + penalty * np.eye(len(place)), place)) / norm**3
        penalty = penalty + (1 / length - 1 / norm) / shrink
        if not low < penalty < high:
            penalty = math.sqrt(max(low, LEAST_PENALTY) * high)
        penalty = max(penalty, LEAST_PENALTY)
        place = best_place(points, target, penalty, place)
    norm = float(np.linalg.norm(place))
    return place * min(1.0, length / norm) if norm else place


def shortest(points: Array, target: Array, precision: float, start: Array) -> Array:
    """`start` reaches more than the precision; the answer reaches it, and none shorter does (to 1e-6 of its length)."""
    if (slack(points, target, precision, np.zeros(points.shape[1])) > 0).all():
        return np.zeros(points.shape[1])
    if not (slack(points, target, precision, start) > 0).all():
        return start  # out of reach of what floats can tell
    place, wanted = start, points[target > 0]
    weight = len(wanted) / max(float(start @ start), 1e-12)
    while True:
        place = _settle(points, target, precision, place, weight, wanted)
        if len(wanted) / weight < 1e-6 * float(place @ place):
            return place
        weight *= 20


def slack(points: Array, target: Array, precision: float, place: Array) -> Array:
    """How far each wanted key is above its minimum weight, in logarithms [wanted]."""
    scores, wanted = points @ place, target > 0
    return scores[wanted] - np.log(target[wanted]) - math.log(precision) - log_sum(scores)


def _settle(points: Array, target: Array, precision: float, place: Array, weight: float, wanted: Array) -> Array:
    """Newton's method on weight / 2 |place|^2 - sum log(room)."""

    def cost(at: Array) -> float:
        left = slack(points, target, precision, at)
        return weight / 2 * float(at @ at) - float(np.log(left).sum()) if (left > 0).all() else math.inf

    now = cost(place)
    for _ in range(100):
        left = slack(points, target, precision, place)
        mean, hessian = gradient_and_hessian(points, place)
        steep = (mean - wanted) / left[:, None]  # wanted rank
        gradient = weight * place + steep.sum(0)
        curvature = weight * np.eye(len(place)) + steep.T @ steep + hessian * float((1 / left).sum())
        step = -step_of(curvature, gradient)
        gain = -float(gradient @ step)
        if gain < 1e-9:
            break
        size = 1.0
        while (then := cost(place + size * step)) > now - 1e-4 * size * gain and size > 1e-12:
            size /= 2
        if then >= now:
            break
        place, now = place + size * step, then
    return place


@dataclass(frozen=True)
class LeastSquares:
    scores: Array  # desired
    query: Array
    weights: Array
    error: float  # share of the attention in the wrong place


def desired_scores(target: Array) -> Array:
    wanted = target > 0
    if np.ptp(target) < 1e-12:
        return np.zeros(len(target))
    if wanted.sum() == 1:
        return np.where(wanted, FAR, 0.0)
    scores = np.full(len(target), -NEAR)
    scores[wanted] = NEAR + np.log(target[wanted] / target.max())
    return scores


def least_squares(keys: Array, target: Array, factor: float, scores: Array | None = None) -> LeastSquares:
    desired = desired_scores(target) if scores is None else scores
    query = np.asarray(np.linalg.lstsq(factor * keys, desired, rcond=None)[0], dtype=np.float64)
    weights = softmax(factor * keys @ query)
    return LeastSquares(desired, query, weights, misplaced(weights, target))


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
    from scipy.optimize import nnls

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
class Answer(Reached):
    """A query, what it does, and why nothing better is possible."""

    certificate: Certificate
    nearest: Array  # the best weights of all: the wanted ones where they are possible
    exact: bool  # the query gives `nearest` itself, not only to the wanted precision
    budget: float | None  # greatest length allowed
    smallest_norm: float  # of a query that reaches the precision, towards `nearest`
    least_squares: LeastSquares

    @property
    def possible(self) -> bool:
        return self.certificate.possible

    @property
    def in_the_way(self) -> list[int]:
        return self.certificate.in_the_way(self.target)

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.query))

    def describe(self) -> Description:
        from fairtrial.puzzles.sentences import describe_answer

        return describe_answer(self)

    def to_json(self) -> dict[str, object]:
        squares = as_lists(vars(self.least_squares))
        return self.values(
            possible=self.possible,
            in_the_way=self.in_the_way,
            exact=self.exact,
            query_length=self.norm,
            length_allowed=self.budget,
            smallest_length=self.smallest_norm,
            best_weights=self.nearest,
            certificate=as_lists(vars(self.certificate)),
            least_squares=squares | {"misplaced": squares["error"]},
        )


@dataclass(frozen=True, repr=False)
class Answers(Result):
    """The rows of a query matrix."""

    answers: tuple[Answer, ...]

    def __getitem__(self, row: int) -> Answer:
        return self.answers[row]

    def __len__(self) -> int:
        return len(self.answers)

    def describe(self) -> Description:
        from fairtrial.puzzles.sentences import describe_identity

        return describe_identity(self.answers)

    def to_json(self) -> list[dict[str, object]]:
        return [answer.to_json() for answer in self.answers]


def solve(ask: str, keys: ArrayLike, target: Array, goals: Goals = GOALS, scores: Array | None = None) -> Answer:
    """`scores`: what least squares aims at, instead of the usual."""
    table, precision, norm = as_keys(keys), goals.precision, goals.norm
    for same in (SAME, ROUNDING):
        frame = Frame.of(table, goals.scale, same)
        certificate = certify(frame, target)
        nearest, base, face = nearest_possible(frame, target, certificate.possible)
        least = shortest(frame.points, nearest, precision, precise_start(frame, nearest, precision, base, face))
        reached = precision_of(softmax(frame.points @ least), nearest) > precision - 1e-6
        if reached and certificate.holds(table, target):
            break
    place = base if len(face) == len(target) else least
    if norm is not None:
        place = best_within(frame.points, target, norm * frame.unit)
    query = frame.query(place)
    weights = frame.weights(query)
    return Answer(
        ask=ask,
        keys=table,
        names=goals.named(len(table)),
        scaled=goals.scale,
        target=target,
        wanted_precision=precision,
        query=query,
        weights=weights,
        certificate=certificate,
        budget=norm,
        nearest=nearest,
        exact=bool(misplaced(weights, nearest) < 1e-9),
        smallest_norm=float(np.linalg.norm(frame.query(least))),
        least_squares=least_squares(table, target, frame.factor, scores),
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
    return _scatter(softmax(centred @ base), face, len(target)), base, face


def precise_start(frame: Frame, nearest: Array, precision: float, base: Array, face: Places) -> Array:
    """Far enough out in the face's direction to be more precise than asked."""
    points, exposure = frame.points, expose(frame.points, face, frame.same)
    if not len(exposure.others):
        return base
    best = base + exposure.direction
    for doubling in range(1, 40):
        if (worst := slack(points, nearest, precision, best).min()) > 0:
            break
        further = base + 2.0**doubling * exposure.direction
        best = further if slack(points, nearest, precision, further).min() > worst else best
    return best


def select(keys: ArrayLike, chosen: int, goals: Goals | None = None, **options: Any) -> Answer:
    """A query that attends to one key alone. Options: the fields of `Goals` (scale, norm, precision, names)."""
    table, goals = as_keys(keys), goals or Goals(**options)
    target = select_target(len(table), chosen)
    return solve(f"select {label(chosen, goals)}", table, target, goals)


def identity(keys: ArrayLike, goals: Goals | None = None, **options: Any) -> Answers:
    """A query for each key that attends to it alone: stacked, they map every position to itself."""
    table, goals = as_keys(keys), goals or Goals(**options)
    return Answers(tuple(select(table, chosen, goals) for chosen in range(len(table))))


def average(
    keys: ArrayLike,
    chosen: Iterable[int],
    goals: Goals | None = None,
    *,
    scores: Array | None = None,
    **options: Any,
) -> Answer:
    """A query that attends to the chosen keys alike, and to no other. `scores`: what least squares aims at."""
    table, places, goals = as_keys(keys), list(chosen), goals or Goals(**options)
    target = average_target(len(table), places)
    return solve("average " + " ".join(label(place, goals) for place in places), table, target, goals, scores)


def mix(keys: ArrayLike, shares: Mapping[int, float], goals: Goals | None = None, **options: Any) -> Answer:
    """A query with these weights: `mix(keys, {0: 0.5, 2: 0.3, 3: 0.2})`."""
    table, goals = as_keys(keys), goals or Goals(**options)
    target = mix_target(len(table), shares)
    words = " ".join(f"{label(place, goals)}:{share:g}" for place, share in shares.items())
    return solve(f"mix {words}", table, target, goals)


def label(place: int, goals: Goals) -> str:
    return str(goals.names[place] if goals.names else place)
