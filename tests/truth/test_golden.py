"""Two worked cases, small enough to check by another route: one without a detectable difference, one with a clear gain.

What is expected was computed from the arrays in exact fractions (total = seeds + items + rest) with scipy.stats' t, not
with the judge. The third case is worked by hand."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtrial.statistics.crossed import crossed_t
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_task

GOLDEN = Path(__file__).parent / "golden"


def check(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in ("difference", "low", "high", "p", "df", "smallest_detectable", "on_these_items"):
        assert found[key] == pytest.approx(expected[key], rel=1e-9), key
    assert found["verdict"] == expected["verdict"]


def test_rotary_against_learned_gives_no_detectable_difference() -> None:
    case = json.loads((GOLDEN / "rotary.json").read_text())
    seeds = tuple(range(12))
    label = np.tile(case["label"], (12, 1))
    variants = {}
    for name in ("learned", "rope"):
        guess = np.array(case[name])
        outcomes = SetOutcomes(seeds, {"label": label, "guess": guess, "log_p": np.where(guess == label, -0.1, -3.0)})
        variants[name] = {"test": outcomes}
    entry = judge_task(TaskOutcomes(task="classify", baseline="learned", least_difference=1.0, variants=variants))
    check(entry["comparisons"][0], case["expected"])


def test_a_window_against_full_attention_is_better() -> None:
    case = json.loads((GOLDEN / "window.json").read_text())
    tokens = np.tile(case["tokens"], (8, 1))
    facts = {"tokens": tokens, "bytes": 5 * tokens, "unknown": np.zeros_like(tokens)}
    variants = {
        name: {"obama": SetOutcomes(tuple(range(8)), {"nll": np.array(case[name]), **facts})}
        for name in ("full", "window")
    }
    entry = judge_task(TaskOutcomes(task="lm", baseline="full", least_difference=0.01, variants=variants))
    found = entry["comparisons"][0]
    check(found, case["expected"])
    assert found["ratio"] == pytest.approx(case["expected"]["ratio"])


def test_a_case_by_hand() -> None:
    """Three seeds, four items. Seed means 1, 2, 6; item means 5, 3, 2, 2; grand mean 3.
    Squares: seeds 4 (4 + 1 + 9) / 2 = 28; items 3 (4 + 0 + 1 + 1) / 3 = 6; total 86, so rest (86 - 56 - 18) / 6 = 2.
    Variance (28 + 6 - 2) / 12 = 8/3; degrees of freedom 32^2 / (28^2 / 2 + 6^2 / 3 + 2^2 / 6) = 1024 / (404 + 2/3)."""
    values = np.array([[4.0, 2, -1, -1], [3, 1, 1, 3], [8, 6, 6, 4]])
    assert values.mean(1).tolist() == [1, 2, 6]
    assert values.mean(0).tolist() == [5, 3, 2, 2]
    assert ((values - 3) ** 2).sum() == 86
    found = crossed_t(values)
    assert found.difference == 3
    assert found.variance == pytest.approx(8 / 3)
    assert found.df == pytest.approx(float(1024 / (404 + Fraction(2, 3))))
    assert (found.shares.seed, found.shares.item, found.shares.rest) == pytest.approx(((28 - 2) / 4, (6 - 2) / 3, 2))


def check_trained(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for key in ("difference", "low", "high", "p", "df"):
        assert found[key] == pytest.approx(expected[key], rel=1e-6), key
    assert found["verdict"] == expected["verdict"]


def test_trained_classifiers_rotary_shows_no_difference() -> None:
    case = json.loads((GOLDEN / "trained-rotary.json").read_text())
    variants = {}
    for name in ("learned", "rope"):
        right = np.array([[int(letter) for letter in row] for row in case[name]])
        facts = {"label": np.ones_like(right), "guess": right, "log_p": np.where(right == 1, -0.1, -3.0)}
        variants[name] = {"test": SetOutcomes(tuple(range(8)), facts)}
    entry = judge_task(TaskOutcomes(task="classify", baseline="learned", least_difference=1.0, variants=variants))
    check_trained(entry["comparisons"][0], case["expected"])


def test_trained_language_models_a_window_is_better() -> None:
    case = json.loads((GOLDEN / "trained-window.json").read_text())
    tokens = np.tile(case["tokens"], (5, 1))
    facts = {"tokens": tokens, "bytes": 5 * tokens, "unknown": np.zeros_like(tokens)}
    variants = {
        name: {"wbush": SetOutcomes(tuple(range(5)), {"nll": np.array(case[name]), **facts})}
        for name in ("full", "window")
    }
    entry = judge_task(TaskOutcomes(task="lm", baseline="full", least_difference=0.01, variants=variants))
    check_trained(entry["comparisons"][0], case["expected"])
    assert entry["comparisons"][0]["ratio"] == pytest.approx(case["expected"]["ratio"])
