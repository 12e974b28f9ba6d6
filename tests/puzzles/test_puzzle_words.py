"""What a reader sees: sentences and plain values say what the numbers say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairtrial import puzzles
from fairtrial.rng import generator_for

SQUARE = np.array([[0.0, 0], [4, 0], [0, 4], [4, 4], [2, 2], [2, 0], [0, 0]])


def text_of(answer: puzzles.Answer) -> str:
    return " ".join(answer.describe().sentences)


def test_a_copy_is_in_the_way() -> None:
    assert "key 6 = key 0" in text_of(puzzles.select(SQUARE, 0))


def test_the_equation_of_the_keys_in_the_way_is_true() -> None:
    answer = puzzles.select(SQUARE, 5)
    assert "0.5 key 0 + 0.5 key 1 = key 5" in text_of(answer)
    assert 0.5 * SQUARE[0] + 0.5 * SQUARE[1] == pytest.approx(SQUARE[5])
    assert answer.in_the_way == [0, 1]


def test_many_keys_do_not_flood_the_screen() -> None:
    keys = generator_for(0, "many").normal(size=(200, 20))
    assert len(str(puzzles.select(keys, 3)).splitlines()) < 60
    assert max(map(len, str(puzzles.average(keys, range(200))).splitlines())) < 200


def test_plain_values_are_json_and_hold_the_certificate() -> None:
    for place in range(7):
        plain = json.loads(json.dumps(puzzles.select(SQUARE, place).to_json(), allow_nan=False))
        assert (plain["balance"] is None) == plain["possible"] == (plain["direction"] is not None)
    everything = puzzles.average(SQUARE, range(7)).to_json()
    assert json.loads(json.dumps(everything, allow_nan=False))["lead"] == 0
