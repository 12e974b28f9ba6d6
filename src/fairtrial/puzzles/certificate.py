"""Why weights can or cannot be had, in a form that anyone can check with a few products.

Wanted weights t can be reached to any precision exactly when (1) the wanted keys are all the keys of one face of the
hull, and (2) log t is an affine function of the key on them. If both hold, a direction and a base query show it: base
+ r direction tends to t as r grows. If one fails, a balance shows it: numbers c with sum c = 0 and sum c_i k_i = 0,
so that every query whatever gives sum c_i log w_i = 0 (scores are linear, and the softmax's denominator cancels); the
wanted weights break that. The two cases exclude each other and there is no third: Barndorff-Nielsen's closure of an
exponential family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairtrial.puzzles.face import TIGHT, Places, expose
from fairtrial.puzzles.frame import SAME, Array, Frame, spread_of

CLOSE = 1e-6  # in logarithms of weights: one part in a million
FAINT = 1e-10  # what is left of nothing after rounding


@dataclass(frozen=True)
class Certificate:
    """Either `direction`, `lead` and `base` (possible), or `balance` (impossible)."""

    possible: bool
    direction: Array | None = None  # of length 1, in the keys' own coordinates
    lead: float = 0.0  # how far the wanted keys are ahead in this direction
    base: Array | None = None  # a query that gives the wanted keys their proportions
    balance: Array | None = None  # a number for each key

    def in_the_way(self, target: Array) -> list[int]:
        """The keys that stand in the way: unwanted ones that no query can leave behind, or wanted ones that are bound
        to one another."""
        if self.balance is None:
            return []
        carried = np.abs(self.balance) > FAINT * np.abs(self.balance).max()
        unwanted = carried & (target == 0)
        return [int(place) for place in np.flatnonzero(unwanted if unwanted.any() else carried)]

    def holds(self, keys: Array, target: Array) -> bool:
        """Check the certificate from scratch: no solver is asked."""
        spread = spread_of(keys) or float(np.abs(keys).max()) or 1.0
        wanted = target > 0
        if not self.possible:
            assert self.balance is not None
            c = self.balance / np.abs(self.balance).max()
            if (c[~wanted] < 0).any():
                return False
            pressed = float(c[~wanted].sum())  # on keys that should get nothing
            exact = CLOSE * len(keys) * (pressed if pressed > FAINT else 1.0)
            if abs(c.sum()) > exact or np.abs(c @ (keys - keys.mean(0))).max() > exact * spread:
                return False
            return bool(pressed > FAINT or abs(c[wanted] @ np.log(target[wanted])) > CLOSE)
        assert self.direction is not None
        assert self.base is not None
        scores = keys @ self.direction
        logs = np.log(target[wanted]) - keys[wanted] @ self.base
        level = np.ptp(scores[wanted]) <= 10 * TIGHT * spread
        ahead = wanted.all() or scores[wanted].min() - scores[~wanted].max() > 0
        return bool(level and ahead and np.ptp(logs) <= 10 * CLOSE)


def certify(frame: Frame, target: Array) -> Certificate:
    chosen = np.flatnonzero(target > 0)
    exposure = expose(frame.points, chosen)
    if not exposure.found:
        return Certificate(False, balance=_pressed(frame.points, chosen, exposure.others, exposure.pressure))
    base, rest = proportions(frame.points[chosen], np.log(target[chosen]))
    if np.abs(rest).max() > CLOSE:
        return Certificate(False, balance=_spread_out(rest / np.abs(rest).max(), chosen, len(target)))
    length = float(np.linalg.norm(exposure.direction))
    if not length:  # every key is wanted: no direction is needed
        return Certificate(True, np.zeros(frame.keys.shape[1]), np.inf, frame.query(base) * frame.factor)
    direction = exposure.direction / length
    lead = exposure.lead / length * frame.spread
    return Certificate(True, direction @ frame.axes, lead, frame.query(base) * frame.factor)


def proportions(points: Array, logs: Array) -> tuple[Array, Array]:
    """The shortest place whose scores differ as `logs` do, and what is left over. What is left is itself a balance:
    it is level with every coordinate and with a constant."""
    centred = points - points.mean(0)
    wanted = logs - logs.mean()
    if np.abs(wanted).max() < 1e-15:
        return np.zeros(points.shape[1]), wanted
    far, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    told = sizes > SAME
    base = (far[:, told].T @ wanted / sizes[told]) @ axes[told]
    return base, wanted - centred @ base


def _pressed(points: Array, chosen: Places, others: Places, pressure: Array) -> Array:
    """The pressure's mix of other keys, written as a mix of the chosen ones, and the difference of the two."""
    from scipy.optimize import nnls

    held = np.vstack((points[chosen].T, np.ones(len(chosen))))
    met = np.append(pressure @ points[others], pressure.sum())
    mix, rest = nnls(held, met)  # few keys, all with a plus, where the others meet the chosen keys' own hull
    if rest > TIGHT:  # they meet its plane outside the hull
        mix = np.linalg.lstsq(held, met, rcond=1e-13)[0]
    balance = _spread_out(-mix, chosen, len(points))
    balance[others] = pressure
    return balance / np.abs(balance).max()


def _spread_out(numbers: Array, places: Places, count: int) -> Array:
    whole = np.zeros(count)
    whole[places] = numbers
    return whole
