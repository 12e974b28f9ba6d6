"""Keys that try the arithmetic: copies, near copies, keys in a row or a plane, of all sizes, far from zero."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from brute_hull import faces_in_space, holds
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial import puzzles
from fairtrial.rng import generator_for
from sampling import cases

small = st.integers(-1, 2)


@settings(max_examples=150)
@given(st.lists(st.tuples(small, small, small), min_size=4, max_size=8), st.data())
def test_faces_in_space_agree_with_brute_force(keys: list[tuple[int, int, int]], data: st.DataObject) -> None:
    found = faces_in_space(keys)
    if found is None:
        return
    chosen = data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1), label="chosen")
    for asked in (frozenset(chosen), data.draw(st.sampled_from(sorted(found, key=sorted)), label="face")):
        answer = puzzles.average(keys, sorted(asked))
        assert answer.possible == (asked in found)
        assert holds(answer)


def test_a_cubes_faces_are_its_corners_edges_and_sides() -> None:
    cube = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    assert len(faces_in_space(cube) or ()) == 8 + 12 + 6 + 1


def awkward(kind: str, rolls: np.random.Generator) -> np.ndarray:
    count, width = int(rolls.integers(2, 9)), int(rolls.integers(1, 6))
    keys = rolls.normal(size=(count, width))
    if kind == "whole numbers":
        return rolls.integers(-2, 3, size=(count, width)).astype(float)
    if kind == "of any size":
        return keys * 10.0 ** rolls.integers(-8, 9)
    if kind == "in a plane":
        return rolls.normal(size=(count, 2)) @ rolls.normal(size=(2, width))
    if kind == "near copies":
        keys[0] = keys[-1] + rolls.normal(size=width) * 10.0 ** -rolls.integers(3, 12)
    if kind == "far from zero":
        return rolls.integers(-2, 3, size=(count, width)) / 10 + 1e3
    if kind == "almost on a side":
        inside = rolls.dirichlet(np.ones(count)) @ keys
        return np.vstack((keys, inside + rolls.normal(size=width) * 10.0 ** -rolls.integers(5, 14)))
    if kind == "long and thin":
        return keys * 10.0 ** rolls.integers(-6, 3, size=(1, width))
    return keys


KINDS = [
    "whole numbers",
    "of any size",
    "in a plane",
    "near copies",
    "far from zero",
    "almost on a side",
    "long and thin",
]


@pytest.mark.parametrize("count", [15, pytest.param(400, marks=pytest.mark.slow)])
@cases("kind", KINDS)
def test_awkward_keys_get_an_answer_that_holds(kind: str, count: int) -> None:
    rolls = generator_for(0, "awkward", kind)
    for number in range(count):
        keys = awkward(kind, rolls)
        chosen = rolls.permutation(len(keys))[: rolls.integers(1, len(keys) + 1)].tolist()
        answer = puzzles.average(keys, chosen)
        assert holds(answer), number
        reached = answer.nearest > 0
        assert (answer.weights[reached] / answer.nearest[reached]).min() >= 0.999 - 1e-6, number
        assert answer.possible == (answer.nearest is answer.target)
        assert str(answer)
        assert json.dumps(answer.to_json(), allow_nan=False)


def test_a_tenth_and_two_tenths_are_three_tenths() -> None:
    """In floats the middle key is not exactly in the middle; a corner by rounding is no corner."""
    keys = np.array([[0.1, 0.1], [0.1 + 0.2, 0.1 + 0.2], [0.2, 0.2], [0.0, 1.0]])
    assert not puzzles.select(keys, 2).possible
    assert not puzzles.select(keys.astype(np.float32), 2).possible
    keys[2, 0] += 1e-3
    assert puzzles.select(keys, 2).possible
    assert math.isfinite(puzzles.select(keys, 2).norm)
