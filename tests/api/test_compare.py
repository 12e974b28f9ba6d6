"""Arrays from anywhere are judged as a study's own are: the same numbers, by another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairtrial as ft
from fairtrial.statistics.comparison import Scored, compare
from fairtrial.statistics.outcomes import SetOutcomes
from fairtrial.statistics.power import cautious, reach_of
from sampling import cases


def outcomes(study: ft.Study, variant: str) -> np.ndarray:
    found = [study.run(variant, seed).record.outcomes() for seed in range(5)]
    return np.stack([each["test/guess"] == each["test/label"] for each in found])


def test_a_studys_own_outcomes_give_its_own_verdict(library: dict[str, Any]) -> None:
    study = library["finished"]
    found = ft.compare(outcomes(study, "learned"), outcomes(study, "none"), names=("learned", "none"))
    (row,) = study.verdict.comparisons
    assert replace(found, test_set="test", scores=row.scores) == row, "but for the test set's name"
    assert found.scores == pytest.approx(row.scores)


def test_a_language_models_documents_and_groups_weigh_as_in_a_study() -> None:
    rng = np.random.default_rng(7)
    tokens = rng.integers(0, 40, 90)  # documents without a single token, too
    speech = np.repeat(np.arange(15), 6)
    shared = rng.normal(0, 0.3, 90)
    nll = [(tokens * (5 + level + shared + rng.normal(0, 0.1, (6, 90)))) for level in (0.0, 0.2)]
    sides = [
        SetOutcomes(tuple(range(6)), {"nll": each, "tokens": np.tile(tokens, (6, 1)), "unknown": np.zeros((6, 90))})
        for each in nll
    ]
    own = compare(("a", "b", "test", "all"), "perplexity", [Scored(*sides, np.ones(90, bool), speech)])
    assert own.test is not None
    per_token = [np.divide(each, tokens, out=np.full(each.shape, np.nan), where=tokens > 0) for each in nll]
    found = ft.compare(*per_token, groups=speech, weights=tokens, metric="perplexity")
    assert found.difference.estimate == pytest.approx(own.difference, rel=1e-12)
    assert (found.difference.low, found.difference.high) == pytest.approx(own.test.interval(), rel=1e-9)
    assert found.p == pytest.approx(own.test.p, rel=1e-9)
    assert found.verdict == "better", "fewer nats are better"
    assert found.groups == 15


def test_any_score_has_a_name_a_unit_and_a_direction() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.normal(30, 3, (5, 60))
    ours = theirs + 2 + rng.normal(0, 1, (5, 60))
    found = ft.compare(ours, theirs, metric="BLEU")
    assert found.verdict == "better"
    assert "BLEU" in found.sentence
    assert ft.compare(ours, theirs, metric="errors", higher_is_better=False).verdict == "worse"
    close = ft.compare(theirs + rng.normal(0, 0.01, (5, 60)), theirs, metric="BLEU", margin=0.5)
    assert close.verdict == "equivalent"


def test_few_seeds_get_no_verdict_but_a_difference() -> None:
    found = ft.compare([[1, 1, 0, 1]], [[0, 1, 0, 1]])  # one seed
    assert (found.verdict, found.difference.estimate, found.p) == ("undecided", 25.0, None)
    assert found.reasons[0].code == "too_few_seeds"
    assert "a verdict needs 5" in found.sentence


@cases(
    ("arguments", "words"),
    [
        (([[1, 0]], [[1, 0, 1]]), r"the shape \(1, 2\) and theirs \(1, 3\)"),
        (([[0.5, 1.0]] * 2, [[1.0, 0.0]] * 2, None, None, "accuracy"), "right and wrong answers"),
        (([[1, 0]] * 5, [[1, 1]] * 5, [1, 2, 3]), r"groups has the shape \(3,\)"),
        (([[1.0, np.nan]] * 5, [[1.0, 0.5]] * 5), "missing or infinite"),
        (([[1.0, 2.0]] * 5, [[1.0, 0.5]] * 5, None, [1.0, -1.0]), "not negative"),
        (([0.8, 0.7], [0.6, 0.7]), r"a flat list does not say .*\n.*use ft\.compare_runs"),
        (([[1, 0], [1]], [[1, 0], [0, 1]]), "ours holds rows of different lengths"),
        (([["a", "b"]] * 5, [[1.0, 0.5]] * 5), "ours must hold numbers"),
        ((None, [[1.0, 0.5]] * 5), "ours must hold numbers"),
        (([[1.0, 0.5]] * 5, [[1.0, 0.2]] * 5, None, None, "sparkle"), "is a higher or a lower sparkle better"),
        (([[1.0, 0.5]] * 5, [[1.0, 0.2]] * 5, None, None, 3), "metric must be text or None, got 3"),
    ],
)
def test_other_arrays_are_refused(arguments: tuple[Any, ...], words: str) -> None:
    metric = {"metric": arguments[4]} if len(arguments) > 4 else {}
    with pytest.raises(ft.BadInput, match=words):
        ft.compare(*arguments[:4], **metric)


def test_power_is_what_a_studys_plan_says(library: dict[str, Any]) -> None:
    plan = library["finished"].plan
    found = ft.power(seeds=5, items=48)
    assert plan.smallest_detectable["classify"] in found.sentence
    assert ft.power(seeds=20, items=48).high < found.high
    assert ft.power(seeds=5, items=48, comparisons=6).low > found.low
    with pytest.raises(ft.BadInput, match="items are too few"):
        ft.power(seeds=1)


def test_power_after_a_pilot_takes_the_pilots_variances() -> None:
    rng = np.random.default_rng(1)
    pilot = ft.compare(rng.random((5, 200)) < 0.8, rng.random((5, 200)) < 0.8)
    found = ft.power(seeds=12, items=900, pilot=pilot)
    assert found.low == found.high == reach_of(cautious(pilot.components, 5, 200), 12, 900, 0.05)
