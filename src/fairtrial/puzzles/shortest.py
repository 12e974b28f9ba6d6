"""The shortest query that reaches a wanted precision, by an interior-point method.

Precision p asks w_i >= p t_i for every wanted key. In logarithms, log sum exp(s) - s_i + log t_i <= -log p: convex in
the query, so the least norm is unique, and Newton's method on a barrier walks to it from any query that is precise
enough."""

from __future__ import annotations

import math

import numpy as np

from fairtrial.puzzles.climb import slope_and_bend
from fairtrial.puzzles.frame import Array, log_sum, step_of


def shortest(points: Array, target: Array, precision: float, start: Array) -> Array:
    """`start` reaches more than the precision; the answer reaches it, and no shorter place does (to 1e-6 of its
    length)."""
    if (room(points, target, precision, np.zeros(points.shape[1])) > 0).all():
        return np.zeros(points.shape[1])
    if not (room(points, target, precision, start) > 0).all():
        return start  # out of reach of what floats can tell
    place, wanted = start, points[target > 0]
    weight = len(wanted) / max(float(start @ start), 1e-12)
    while True:
        place = _settle(points, target, precision, place, weight, wanted)
        if len(wanted) / weight < 1e-6 * float(place @ place):
            return place
        weight *= 20


def room(points: Array, target: Array, precision: float, place: Array) -> Array:
    """How far each wanted key is above its least weight, in logarithms [wanted]."""
    scores, wanted = points @ place, target > 0
    return scores[wanted] - np.log(target[wanted]) - math.log(precision) - log_sum(scores)


def _settle(points: Array, target: Array, precision: float, place: Array, weight: float, wanted: Array) -> Array:
    """Newton's method on weight / 2 |place|^2 - sum log(room)."""

    def cost(at: Array) -> float:
        left = room(points, target, precision, at)
        return weight / 2 * float(at @ at) - float(np.log(left).sum()) if (left > 0).all() else math.inf

    now = cost(place)
    for _ in range(100):
        left = room(points, target, precision, place)
        mean, bend = slope_and_bend(points, place)
        steep = (mean - wanted) / left[:, None]  # wanted rank
        slope = weight * place + steep.sum(0)
        whole = weight * np.eye(len(place)) + steep.T @ steep + bend * float((1 / left).sum())
        step = -step_of(whole, slope)
        gain = -float(slope @ step)
        if gain < 1e-9:
            break
        size = 1.0
        while (then := cost(place + size * step)) > now - 1e-4 * size * gain and size > 1e-12:
            size /= 2
        if then >= now:
            break
        place, now = place + size * step, then
    return place
