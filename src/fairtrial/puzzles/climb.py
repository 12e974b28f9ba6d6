"""The best weights that a softmax can give, by convex optimisation of the softmax itself.

Best means: least Kullback-Leibler divergence from the wanted weights, which is the loss that a network is trained with.
sum_i t_i log softmax_i is concave in the query, so Newton's method finds the one best point.
"""

from __future__ import annotations

import math

import numpy as np

from fairtrial.puzzles.frame import Array, log_sum, softmax, step_of

FAINT = 1e-11  # a pull towards zero that moves no weight by more than rounding does


def climb(points: Array, target: Array, pull: float = 0.0, start: Array | None = None) -> Array:
    """The place that maximises sum_i t_i log softmax_i - pull / 2 |place|^2."""
    place = np.zeros(points.shape[1]) if start is None else start
    mean = target @ points

    def height(at: Array) -> float:
        return float(mean @ at) - log_sum(points @ at) - pull / 2 * float(at @ at)

    now = height(place)
    for _ in range(200):
        slope, bend = slope_and_bend(points, place)
        uphill = mean - slope - pull * place
        step = step_of(bend + pull * np.eye(len(place)), uphill)
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


def slope_and_bend(points: Array, place: Array) -> tuple[Array, Array]:
    """Gradient and Hessian of log sum exp: the mean and the covariance of the keys under the weights."""
    weights = softmax(points @ place)
    mean = weights @ points
    centred = points - mean
    return mean, centred.T @ (weights[:, None] * centred)


def best_within(points: Array, target: Array, length: float) -> Array:
    """The best place at most `length` from zero. The pull that holds it there is found by Newton's method on 1 /
    |place|, which is almost a straight line in the pull (the trust-region way)."""
    steepest = float(np.linalg.norm(target @ points - points.mean(0)))
    if length == 0 or steepest < 1e-15:
        return np.zeros(points.shape[1])
    low, high = 0.0, max(steepest / length, 2 * FAINT)  # |place| <= steepest / pull
    pull, place = high, climb(points, target, high)
    for _ in range(100):
        norm = float(np.linalg.norm(place))
        if abs(norm - length) <= 1e-8 * length or high - low <= 1e-13 * high:
            break
        if pull == FAINT and norm < length:
            break  # the best of all places is nearer than the length allows
        low, high = (pull, high) if norm > length else (low, pull)
        _, bend = slope_and_bend(points, place)
        shrink = float(place @ step_of(bend + pull * np.eye(len(place)), place)) / norm**3
        pull = pull + (1 / length - 1 / norm) / shrink
        if not low < pull < high:
            pull = math.sqrt(max(low, FAINT) * high)
        pull = max(pull, FAINT)
        place = climb(points, target, pull, place)
    norm = float(np.linalg.norm(place))
    return place * min(1.0, length / norm) if norm else place
