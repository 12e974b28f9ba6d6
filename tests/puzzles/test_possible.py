"""Possible is reached and impossible is proved, for thousands of random keys; both agree with brute force in the
plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from brute_hull import faces, holds
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from fairtrial import puzzles
from fairtrial.model import Attention, AttentionContext, ForwardContext, Layout
from fairtrial.puzzles.solve import Answer
from fairtrial.recipe import Shape
from fairtrial.rng import generator_for
from sampling import cases

grid = st.integers(-3, 3)
plane_keys = st.lists(st.tuples(grid, grid), min_size=1, max_size=6)


def verdict(keys: np.ndarray, chosen: Iterable[int]) -> Answer:
    found = puzzles.average(keys, sorted(chosen))
    assert holds(found)
    return found


def attention_weights(keys: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Puzzles of one shape: keys [puzzle key width], queries [puzzle query width] -> weights [puzzle query key]"""
    puzzles, count, width = keys.shape
    # batch head time head_dim
    q, k = (torch.from_numpy(np.ascontiguousarray(each))[:, None] for each in (queries, keys))
    forward = ForwardContext(Layout.full(puzzles, count), causal=False, past=0, dtype=q.dtype)
    context = AttentionContext(0, False, torch.arange(queries.shape[1]), forward.keys)
    with torch.random.fork_rng(devices=[]):
        attention = Attention(Shape(layers=1, heads=1, width=width), layer=0)
    values = torch.eye(count, dtype=q.dtype).expand(puzzles, 1, count, count)  # so that what comes out is the weights
    with torch.no_grad():
        return attention.attend(q, k, values, forward, context, [])[:, 0].numpy()


@settings(max_examples=200)
@given(plane_keys, st.data())
def test_averages_in_the_plane_agree_with_brute_force(keys: list[tuple[int, int]], data: st.DataObject) -> None:
    """Whole-number keys are full of copies, keys in a row, and keys on an edge: what floats hardly ever draw."""
    table, all_faces = np.array(keys, dtype=float), faces(keys)
    chosen = data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1), label="chosen")
    for asked in (frozenset(chosen), *list(all_faces)[:3]):
        assert verdict(table, asked).possible == (asked in all_faces)


def test_all_sets_of_a_square_with_a_middle_and_a_copy() -> None:
    keys = [(0, 0), (4, 0), (0, 4), (4, 4), (2, 2), (2, 0), (0, 0)]
    possible = {
        frozenset(chosen)
        for size in range(1, 8)
        for chosen in combinations(range(7), size)
        if verdict(np.array(keys, dtype=float), chosen).possible
    }
    everything = frozenset(range(7))
    edges = {frozenset({0, 5, 1, 6}), frozenset({1, 3}), frozenset({2, 3}), frozenset({0, 2, 6})}
    assert possible == faces(keys) == {everything, *edges, *map(frozenset, ({1}, {2}, {3}, {0, 6}))}


@pytest.mark.parametrize("puzzle_count", [100, pytest.param(1000, marks=pytest.mark.slow)])
@cases(("count", "width"), [(4, 2), (5, 3), (8, 4), (12, 3)])
def test_random_keys_reach_their_precision_in_our_own_attention(count: int, width: int, puzzle_count: int) -> None:
    rolls = generator_for(0, "reach", count, width)
    keys = rolls.normal(size=(puzzle_count, count, width))
    answers = []
    for table in keys:
        chosen = rolls.choice(count, size=rolls.integers(1, 3), replace=False)
        answers.append(puzzles.average(table, chosen.tolist()))
    ran = attention_weights(keys, np.array([[answer.query] for answer in answers]))[:, 0]
    assert np.array([answer.weights for answer in answers]) == pytest.approx(ran, abs=1e-9)
    for answer, weights in zip(answers, ran, strict=True):
        assert holds(answer)
        wanted = answer.target > 0
        if answer.possible:
            assert (weights[wanted] >= 0.999 * answer.target[wanted] - 1e-9).all()
        else:
            assert answer.in_the_way
            assert not any(answer.target[place] for place in answer.in_the_way)
    assert any(answer.possible for answer in answers)


@pytest.mark.parametrize("puzzle_count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_random_keys_are_certified(puzzle_count: int) -> None:
    """`holds` checks each by products, without a solver."""
    rolls, possible = generator_for(0, "certificates"), 0
    for number in range(puzzle_count):
        count, width = int(rolls.integers(2, 9)), int(rolls.integers(1, 5))
        keys = rolls.normal(size=(count, width))
        found = verdict(keys, rolls.permutation(count)[: rolls.integers(1, min(3, count) + 1)].tolist())
        possible += found.possible
        if count <= width + 1:
            assert found.possible, number  # so few keys are the corners of a simplex, and every set of them is a face
        if not found.possible:  # the balance binds every query's weights
            weights = softmax((keys @ rolls.normal(size=(width, 20))).T)  # query key
            assert np.log(weights) @ found.balance == pytest.approx(0, abs=1e-5)
    assert 0.2 < possible / puzzle_count < 0.95


def test_control_a_false_certificate_does_not_hold() -> None:
    keys = np.array([[0.0, 0], [1, 0], [0, 1], [0.3, 0.3]])
    true, false = verdict(keys, [0]), verdict(keys, [3])
    assert true.possible
    assert not false.possible
    assert not holds(replace(true, target=false.target))
    assert not holds(replace(false, target=true.target))
    assert not holds(replace(false, keys=keys + np.array([[0, 0], [0, 0], [0, 0], [-1, -1]])))


@pytest.mark.slow
def test_many_keys_of_a_heads_width_are_certified() -> None:
    rolls = generator_for(0, "heads")
    for width in (8, 32, 64):
        keys = rolls.normal(size=(256, width))
        for chosen in range(0, 256, 32):
            answer = puzzles.select(keys, chosen)
            assert holds(answer)
            assert answer.possible == (answer.precision >= 0.999)
