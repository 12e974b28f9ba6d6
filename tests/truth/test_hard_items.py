"""No false certainty: verdicts on rare items, on items that never vary, and on running text."""

from __future__ import annotations

import numpy as np
import pytest
from hard_items import FAR_WORLDS, RARE_WORLDS, RUNNING_WORLDS, RareWorld, RunningWorld, share_of
from rates import widened

import fairtrial as ft
from fairtrial.results.values import VerdictKind
from sampling import cases

CLAIMS = VerdictKind.BETTER, VerdictKind.WORSE
RUNS, FEW = 300, 120


@cases("items", [1, 2, 5])
@cases("seeds", [5, 20])
def test_a_handful_of_items_decides_nothing(items: int, seeds: int) -> None:
    """However many seeds agree that all of them differ."""
    judged = ft.compare(np.ones((seeds, items), int), np.zeros((seeds, items), int))
    assert not judged.decided or judged.verdict == VerdictKind.NOT_COMPARABLE
    assert judged.difference.low is None or judged.difference.low < 100


@cases("items", [6, 12, 100, 1000])
def test_items_that_all_differ_leave_some_doubt(items: int) -> None:
    judged = ft.compare(np.ones((5, items), int), np.zeros((5, items), int))
    low, p = judged.difference.low, judged.p
    assert low is not None
    assert p is not None
    assert low < 100
    assert p > 1.99 * 0.5**items  # a sign test over items
    assert judged.verdict in (VerdictKind.BETTER, VerdictKind.UNDECIDED)


@cases(("items", "equivalent"), [(30, False), (100, False), (250, False), (600, True), (2000, True)])
def test_answers_that_never_differ_are_equivalent_if_there_are_enough(items: int, equivalent: bool) -> None:
    """If 1% of all items differ, 299 items miss them in one of twenty studies."""
    same = np.tile(np.random.default_rng(0).random(items) < 0.8, (5, 1))
    assert (ft.compare(same, same).verdict == VerdictKind.EQUIVALENT) == equivalent


def test_groups_of_many_items_are_not_taken_for_single_answers() -> None:
    """34 groups of 25 items each, alike within a group by chance only: the doubt is that of 850 items."""
    chance = np.random.default_rng(6)
    ours, theirs = chance.random((2, 5, 850)) < 0.85
    ends = ft.compare(ours, theirs, np.arange(850) // 25).difference
    assert ends.low is not None
    assert ends.high is not None
    assert ends.high - ends.low < 8


def test_scores_that_never_vary_decide_nothing() -> None:
    judged = ft.compare(np.full((5, 40), 2.0), np.full((5, 40), 1.0), metric="score")
    assert judged.verdict == VerdictKind.UNDECIDED
    assert "same difference" in judged.sentence


def called_equivalent(world: RareWorld, runs: int) -> float:
    return share_of(world.studies(np.random.default_rng(1), runs), VerdictKind.EQUIVALENT)


@cases("world", RARE_WORLDS[:: len(RARE_WORLDS) // 9])
def test_a_loss_on_rare_items_is_rarely_called_equivalent(world: RareWorld) -> None:
    assert called_equivalent(world, FEW) <= widened(0.0, 0.05, FEW)[1]


def test_two_one_sided_tests_alone_would_fail_the_same_gate() -> None:
    """The control: 100 items of which none was rare."""
    wrong = [each.difference for each in RareWorld(0.01, 100).studies(np.random.default_rng(1), FEW)]
    assert float(np.mean([(each.estimate or 0.0) == 0.0 for each in wrong])) > widened(0.0, 0.05, FEW)[1]


def test_variants_that_do_not_differ_are_found_equivalent() -> None:
    """The gate is not passed by never calling anything equivalent."""
    chance = np.random.default_rng(2)
    studies = (
        ft.compare(chance.random((5, 2000)) < 0.99, chance.random((5, 2000)) < 0.99, margin=2.0) for _ in range(FEW)
    )
    assert share_of(studies, VerdictKind.EQUIVALENT) > 0.9


def false_alarms(world: RunningWorld, runs: int) -> float:
    return share_of(world.studies(np.random.default_rng(3), runs), *CLAIMS)


@cases("world", RUNNING_WORLDS[:: len(RUNNING_WORLDS) // 9])
def test_a_running_text_raises_few_false_alarms(world: RunningWorld) -> None:
    assert false_alarms(world, FEW) <= widened(0.0, 0.065, FEW)[1]


def test_a_difference_on_a_running_text_is_found() -> None:
    """The gate is not passed by never claiming anything."""
    chance, found = np.random.default_rng(4), 0
    for _ in range(60):
        theirs = 4 + chance.standard_normal((5, 400))
        ours = theirs + 0.2 + chance.standard_normal(400)  # 4 standard errors
        found += ft.compare(ours, theirs, metric="perplexity").verdict == VerdictKind.WORSE
    assert found > 50


@cases("world", FAR_WORLDS)
def test_beyond_that_there_is_a_warning(world: RunningWorld) -> None:
    studies = list(world.studies(np.random.default_rng(5), 100))
    warned = [each for each in studies if "alike" in each.sentence or "count as" in each.sentence]
    assert len(warned) > 70
    assert any("Neighbouring test items may be alike" in each.sentence for each in studies)


@pytest.mark.slow
@pytest.mark.parametrize("world", RARE_WORLDS, ids=str)
def test_a_loss_on_rare_items_is_called_equivalent_in_at_most_one_study_in_twenty(world: RareWorld) -> None:
    assert called_equivalent(world, RUNS) <= widened(0.0, 0.05, RUNS)[1]


@pytest.mark.slow
@pytest.mark.parametrize("world", RUNNING_WORLDS, ids=str)
def test_a_running_text_keeps_the_promise(world: RunningWorld) -> None:
    """More studies where the rate is near the limit."""
    alarms = false_alarms(world, RUNS)
    if alarms > 0.05:
        alarms = false_alarms(world, 2500)
    assert alarms <= 0.065
