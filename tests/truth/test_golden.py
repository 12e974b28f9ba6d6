"""Two worked cases, small enough to check by another route: one without a detectable difference, one with a clear gain.

What is expected of equal items was computed from the arrays in exact fractions (total = seeds + items + rest) with
scipy.stats' t, not with the judge; of documents of unequal length by `worked_out` below, with loops over each document
as the formulas are written in docs/statistics.md. The third case is worked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairtrial.results.values import Comparison
from fairtrial.statistics.crossed import crossed_t
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_task

GOLDEN = Path(__file__).parent / "golden"


def worked_out(ours: np.ndarray, theirs: np.ndarray, tokens: list[int]) -> dict[str, float]:
    """Nats [seed document] of two models on the same documents: the crossed t-test with weights."""
    seeds, documents, total = len(ours), len(tokens), sum(tokens)
    share = [count / total for count in tokens]
    ratio = [sum(side.sum(1)) / seeds / total for side in (ours, theirs)]
    means = [
        [((ours[s][d] - theirs[s][d]) / tokens[d]) for d in range(documents)] for s in range(seeds)
    ]  # difference per token
    by_seed = [sum(share[d] * means[s][d] for d in range(documents)) for s in range(seeds)]
    by_document = [sum(means[s][d] for s in range(seeds)) / seeds for d in range(documents)]
    mean = sum(by_seed) / seeds
    leverage = [(1 - share[d]) ** 1.5 / (1 - 1 / documents) ** 0.5 for d in range(documents)]
    seed = sum((value - mean) ** 2 for value in by_seed) / (seeds - 1) / seeds
    item = sum((share[d] * (by_document[d] - mean)) ** 2 / leverage[d] for d in range(documents))
    rest = sum(
        (share[d] * (means[s][d] - by_seed[s] - by_document[d] + mean)) ** 2 / leverage[d]
        for s in range(seeds)
        for d in range(documents)
    ) / (seeds * (seeds - 1))
    freedom = 1 / sum(value**2 for value in share) - 1
    assert seed > rest
    assert item > rest
    variance = seed + item - rest
    df = variance**2 / (seed**2 / (seeds - 1) + item**2 / freedom + rest**2 / ((seeds - 1) * freedom))
    half = stats.t.isf(0.025, df) * variance**0.5
    assert mean == pytest.approx(ratio[0] - ratio[1])
    p = 2 * stats.t.sf(abs(mean) / variance**0.5, df)
    return {"difference": mean, "low": mean - half, "high": mean + half, "p": p, "df": df}


KINDS = {"undetected": "undecided"}  # as older files call them


def check(found: Comparison, expected: dict[str, Any], close: float = 1e-9) -> None:
    """The estimate to the last digit; an interval a little wider than Satterthwaite's, which trusts its degrees of
    freedom; wider by the root of what neighbours in a running text have in common."""
    difference = found.difference
    assert difference.estimate == pytest.approx(expected["difference"], rel=close)
    wider = (difference.high - difference.low) / (expected["high"] - expected["low"])
    assert 1 <= wider < 1.15 * found.alike**0.5
    assert expected["p"] <= found.p < 2 * expected["p"] + 1e-3
    assert found.verdict == KINDS.get(expected["verdict"], expected["verdict"])
    if "on_these_items" in expected:
        assert found.on_these_items is not None
        here = {"low": found.on_these_items.low, "high": found.on_these_items.high}
        assert here == pytest.approx(expected["on_these_items"], rel=close)
    if "ratio" in expected:
        assert 1 + found.shown.estimate / 100 == pytest.approx(expected["ratio"])


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
    check(entry.comparisons[0], case["expected"])


def test_a_window_against_full_attention_is_better() -> None:
    case = json.loads((GOLDEN / "window.json").read_text())
    tokens = np.tile(case["tokens"], (8, 1))
    facts = {"tokens": tokens, "bytes": 5 * tokens, "unknown": np.zeros_like(tokens)}
    variants = {
        name: {"obama": SetOutcomes(tuple(range(8)), {"nll": np.array(case[name]), **facts})}
        for name in ("full", "window")
    }
    entry = judge_task(TaskOutcomes(task="lm", baseline="full", least_difference=0.01, variants=variants))
    check(
        entry.comparisons[0],
        case["expected"] | worked_out(np.array(case["window"]), np.array(case["full"]), case["tokens"]),
    )


def test_a_case_by_hand() -> None:
    """Three seeds, four items. Seed means 1, 2, 6; item means 5, 3, 2, 2; grand mean 3.
    Squares: seeds 4 (4 + 1 + 9) / 2 = 28; items 3 (4 + 0 + 1 + 1) / 3 = 6; total 86, so rest (86 - 56 - 18) / 6 = 2.
    Variance (28 + 6 - 2) / 12 = 8/3."""
    values = np.array([[4.0, 2, -1, -1], [3, 1, 1, 3], [8, 6, 6, 4]])
    assert values.mean(1).tolist() == [1, 2, 6]
    assert values.mean(0).tolist() == [5, 3, 2, 2]
    assert ((values - 3) ** 2).sum() == 86
    found = crossed_t(values)
    assert found.difference == 3
    assert found.seed is not None
    assert found.item is not None
    total = found.seed.variance + found.item.variance - found.rest
    assert total == pytest.approx(8 / 3)
    assert (found.components.seed, found.components.item, found.components.rest) == pytest.approx(
        ((28 - 2) / 4, (6 - 2) / 3, 2)
    )


def check_trained(found: Comparison, expected: dict[str, Any]) -> None:
    check(found, {name: value for name, value in expected.items() if name != "on_these_items"}, 1e-6)


def test_trained_classifiers_rotary_shows_no_difference() -> None:
    case = json.loads((GOLDEN / "trained-rotary.json").read_text())
    variants = {}
    for name in ("learned", "rope"):
        right = np.array([[int(letter) for letter in row] for row in case[name]])
        facts = {"label": np.ones_like(right), "guess": right, "log_p": np.where(right == 1, -0.1, -3.0)}
        variants[name] = {"test": SetOutcomes(tuple(range(8)), facts)}
    entry = judge_task(TaskOutcomes(task="classify", baseline="learned", least_difference=1.0, variants=variants))
    check_trained(entry.comparisons[0], case["expected"])


def test_trained_language_models_a_window_is_better() -> None:
    case = json.loads((GOLDEN / "trained-window.json").read_text())
    tokens = np.tile(case["tokens"], (5, 1))
    facts = {"tokens": tokens, "bytes": 5 * tokens, "unknown": np.zeros_like(tokens)}
    variants = {
        name: {"wbush": SetOutcomes(tuple(range(5)), {"nll": np.array(case[name]), **facts})}
        for name in ("full", "window")
    }
    entry = judge_task(TaskOutcomes(task="lm", baseline="full", least_difference=0.01, variants=variants))
    expected = worked_out(np.array(case["window"]), np.array(case["full"]), case["tokens"])
    check_trained(entry.comparisons[0], case["expected"] | expected)
