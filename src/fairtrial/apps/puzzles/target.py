"""The wanted weights, one for each key, summing to one; and how close an answer comes to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from fairtrial.apps.puzzles.keys import Array
from fairtrial.errors import BadInput


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


def need_precision(precision: float) -> float:
    if not 0 < precision <= 0.999999:
        raise BadInput(f"precision must be above 0 and at most 0.999999, got {precision:g}")
    return precision


def need_norm(norm: float | None) -> float | None:
    if norm is not None and not (math.isfinite(norm) and norm >= 0):
        raise BadInput(f"norm must be finite and not negative, got {norm:g}", "--norm 5")
    return norm


def precision_of(weights: Array, target: Array) -> float:
    """The least share of its wanted weight that a wanted key gets; for a selection, the chosen key's weight.

    At precision p at most 1 - p of the attention is in the wrong place."""
    wanted = target > 0
    return float((weights[wanted] / target[wanted]).min())


def misplaced(weights: Array, target: Array) -> float:
    """The share of the attention that is in the wrong place (the total variation distance)."""
    return float(np.abs(weights - target).sum() / 2)


class Reached:
    target: Array  # wanted weights
    weights: Array  # that attention gives
    values: Array | None

    @property
    def precision(self) -> float:
        return precision_of(self.weights, self.target)

    @property
    def error(self) -> float:
        """Share of the attention in the wrong place."""
        return misplaced(self.weights, self.target)

    @property
    def output(self) -> Array | None:
        return None if self.values is None else self.weights @ self.values

    @property
    def wanted_output(self) -> Array | None:
        return None if self.values is None else self.target @ self.values
