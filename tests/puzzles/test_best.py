"""The best weights, against brute force and plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import softmax

from fairtrial import puzzles
from fairtrial.puzzles.solve import Frame, best_place
from fairtrial.rng import generator_for
from sampling import cases

SQUARE = np.array([[0.0, 0], [4, 0], [0, 4], [4, 4], [1, 2], [2, 0]])


def nats(target: np.ndarray, weights: np.ndarray) -> np.ndarray:
    wanted = target > 0
    return -(np.log(weights[..., wanted]) @ target[wanted])


@cases("chosen", [[4], [4, 0], [5], [5, 1], [0, 3]])
def test_no_query_of_a_fine_fan_beats_the_best_weights(chosen: list[int]) -> None:
    answer = puzzles.average(SQUARE, chosen, scale=False)
    assert not answer.possible
    angles, lengths = np.linspace(0, 2 * np.pi, 721), np.geomspace(1e-3, 30, 300)
    fan = lengths[:, None, None] * np.stack((np.cos(angles), np.sin(angles)), -1)  # length angle 2
    tried = nats(answer.target, np.maximum(softmax(fan @ SQUARE.T, axis=-1), 1e-300))
    best = nats(answer.target, np.maximum(answer.nearest, 1e-300))
    assert best <= tried.min() + 1e-9
    assert tried.min() - best < 0.02  # the control: the fan comes near
    # the best weights have the wanted weights' mean key: the condition of an optimum of an exponential family
    assert answer.nearest @ SQUARE == pytest.approx(answer.target @ SQUARE, abs=1e-7)


def test_two_keys_are_arithmetic() -> None:
    """Keys at 0 and 1 on a line: weight p needs a query of log(p / (1 - p)), and nothing shorter."""
    answer = puzzles.select([[0.0], [1.0]], 1, scale=False)
    assert answer.query[0] == pytest.approx(math.log(0.999 / 0.001), rel=1e-5)
    with_scale = puzzles.select([[0.0, 0, 0, 0], [1.0, 0, 0, 0]], 1)
    assert with_scale.norm == pytest.approx(2 * math.log(0.999 / 0.001), rel=1e-5)
    assert with_scale.query[1:] == pytest.approx(0)


def test_keys_that_are_all_the_same_give_everyone_the_same() -> None:
    answer = puzzles.select(np.ones((4, 3)), 2)
    assert not answer.possible
    assert answer.weights == pytest.approx([0.25] * 4)
    assert answer.in_the_way
    assert puzzles.average(np.ones((4, 3)), range(4)).possible


def test_moving_or_stretching_all_keys_changes_no_verdict() -> None:
    keys = generator_for(5, "moved").normal(size=(7, 3))
    for chosen in range(7):
        here = puzzles.select(keys, chosen)
        moved = puzzles.select(1e4 * keys + 1e5, chosen)
        assert here.possible == moved.possible
        assert moved.nearest == pytest.approx(here.nearest, abs=1e-5)
        assert moved.norm == pytest.approx(here.norm / 1e4, rel=1e-3)


def test_newton_stops_at_the_top() -> None:
    points = Frame.of(SQUARE, True).points
    target = np.full(6, 1 / 6)
    assert best_place(points, target) == pytest.approx([0, 0], abs=1e-9)
