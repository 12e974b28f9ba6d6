"""One key replaced under a query that stays: against our own attention and plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairtrial import puzzles
from fairtrial.puzzles.heads import attention_weights
from fairtrial.rng import generator_for
from sampling import cases

KEYS = generator_for(0, "replaced").normal(size=(5, 3))


@pytest.mark.parametrize("scale", [True, False])
def test_the_new_key_does_what_is_asked_in_our_own_attention(scale: bool) -> None:
    done = 0
    for seed in range(40):
        keys = generator_for(seed, "replace").normal(size=(4, 3))
        query = puzzles.average(keys, [0, 1], scale=scale, precision=0.9995).query
        for target in (
            puzzles.average_target(4, [0, 1, 2]),
            puzzles.select_target(4, 2),
            puzzles.average_target(4, [0, 1]),
        ):
            answer = puzzles.replace_key(keys, 2, target, query, scale=scale)
            ran = attention_weights(answer.new_keys[None], query[None, None], scale)[0, 0]
            assert ran == pytest.approx(answer.weights, abs=1e-9)
            assert answer.possible
            assert (ran[target > 0] >= 0.999 * target[target > 0] - 1e-9).all()
            others = np.delete(answer.new_keys - keys, 2, axis=0)
            assert not others.any()
            done += 1
    assert done == 120


def test_the_shortest_key_is_the_shortest() -> None:
    """A product with the query of s needs a length of |s| / |query|: nothing shorter has it."""
    query = np.array([3.0, -1.0, 2.0])
    answer = puzzles.replace_key(KEYS, 2, puzzles.select_target(5, 2), query, scale=False, precision=0.99)
    others = np.delete(KEYS @ query, 2)
    score = math.log(np.exp(others).sum() * 0.99 / 0.01)
    assert answer.needed == pytest.approx(score / np.linalg.norm(query), rel=1e-3)
    assert np.linalg.norm(answer.key) == pytest.approx(answer.needed)
    shorter = KEYS.copy()
    shorter[2] = 0.98 * answer.key
    assert attention_weights(shorter[None], query[None, None], False)[0, 0, 2] < 0.99


@cases("length", [0.0, 0.5, 3.0, 50.0])
def test_a_key_of_fixed_length_has_that_length_and_the_best_weight_on_its_sphere(length: float) -> None:
    query = np.array([3.0, -1.0, 2.0])
    target = puzzles.select_target(5, 2)
    answer = puzzles.replace_key(KEYS, 2, target, query, norm=length)
    assert np.linalg.norm(answer.key) == pytest.approx(length)
    sphere = generator_for(1, "sphere").normal(size=(3000, 3))
    tried = np.tile(KEYS, (3000, 1, 1))
    tried[:, 2] = length * sphere / np.linalg.norm(sphere, axis=1, keepdims=True)
    scores = tried @ query / math.sqrt(3)
    best = (np.exp(scores[:, 2]) / np.exp(scores).sum(1)).max()
    assert best <= answer.weights[2] + 1e-12
    assert answer.weights[2] - best < 0.05  # the control: the sphere was searched
    assert answer.possible == (length == 50.0)


def test_a_weight_between_is_met_exactly_at_any_length_that_is_long_enough() -> None:
    query = np.array([1.0, 0.0, 0.0])
    target = puzzles.average_target(5, range(5))
    keys = KEYS.copy()
    keys[:, 0] = 2.0  # the others score alike
    keys[3, 0] = -5.0
    answer = puzzles.replace_key(keys, 3, target, query, norm=7.0, scale=False)
    assert answer.weights == pytest.approx([0.2] * 5)
    assert answer.needed == pytest.approx(2.0)
    short = puzzles.replace_key(keys, 3, target, query, norm=1.0, scale=False)
    assert not short.possible
    assert short.further == [0, 1, 2, 4]


def test_a_query_of_zero_makes_it_impossible_and_says_so() -> None:
    zero = np.zeros(3)
    answer = puzzles.replace_key(KEYS, 2, puzzles.select_target(5, 2), zero)
    assert not answer.possible
    assert answer.weights == pytest.approx([0.2] * 5)
    assert "a query of zero scores every key equally" in " ".join(answer.describe().sentences)
    assert puzzles.replace_key(KEYS, 2, puzzles.average_target(5, range(5)), zero).possible


def test_wrong_proportions_of_other_keys_are_named() -> None:
    keys = np.array([[2.0, 0], [1, 0], [0, 0]])
    answer = puzzles.replace_key(keys, 2, puzzles.average_target(3, [0, 1, 2]), [5.0, 0.0], scale=False)
    assert not answer.possible
    assert answer.in_the_way == [0, 1]
    assert answer.best == pytest.approx([2 / 3 / (1 + math.exp(-5)), 2 / 3 / (1 + math.exp(5)), 1 / 3])


def test_a_longer_query_helps_a_short_key_unless_another_key_is_further() -> None:
    keys = np.array([[0.5, 1.0], [0.2, -1], [0, 0]])
    target = puzzles.select_target(3, 2)
    short = puzzles.replace_key(keys, 2, target, [4.0, 0.0], norm=1.0)
    assert not short.possible
    assert "a longer query in the same direction would work" in " ".join(short.describe().sentences)
    assert puzzles.replace_key(keys, 2, target, [400.0, 0.0], norm=1.0).possible
    keys[0, 0] = 1.2
    blocked = puzzles.replace_key(keys, 2, target, [400.0, 0.0], norm=1.0)
    assert blocked.in_the_way == [0]
    assert "further along the query" in " ".join(blocked.describe().sentences)


def test_a_query_that_just_misses_the_precision_is_told_with_the_keys_in_the_way() -> None:
    query = puzzles.average(KEYS, [0, 1]).query
    misses = 0
    for less in np.linspace(0.9, 1.0, 41):
        for target in (puzzles.average_target(5, [0, 1, 2]), puzzles.average_target(5, [0, 1])):
            answer = puzzles.replace_key(KEYS, 2, target, less * query)
            assert answer.possible == (not answer.wrong_proportions)
            assert str(answer)
            misses += not answer.possible
    assert 0 < misses < 82


def test_a_query_so_long_that_weights_vanish_is_told_too() -> None:
    answer = puzzles.replace_key(KEYS, 2, puzzles.average_target(5, [0, 1]), [1e4, -1e4, 1e4])
    assert not answer.possible
    assert answer.in_the_way
    assert np.isfinite(answer.key).all()
    assert str(answer)
