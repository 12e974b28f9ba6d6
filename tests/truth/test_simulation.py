"""The judge in worlds whose truth is known: few runs, with limits as wide as few runs deserve."""

from __future__ import annotations

import numpy as np
import pytest
from families import STRONGLY_UNEQUAL, STUDY_WORLDS, any_false, measure
from rates import SEEDS, claims, power_after_pilot, power_as_stated, power_of_the_need, text_claims, watched, widened
from worlds import GROUP_WORLDS, TEXT_WORLDS, WORLDS

from fairtrial.statistics.crossed import crossed_t
from sampling import cases

RUNS, FEW = 300, 80


@cases("name", WORLDS)
def test_a_world_has_the_variances_that_it_promises(name: str) -> None:
    world = WORLDS[name]
    found = [crossed_t(each).components for each in world.differences(np.random.default_rng(0), 20, 60)]
    for source in ("seed", "item", "rest"):
        mean = float(np.mean([getattr(shares, source) for shares in found])) ** 0.5
        assert mean == pytest.approx(getattr(world, source), rel=0.2), source


@cases("name", WORLDS)
def test_where_nothing_differs_few_claims_are_made(name: str) -> None:
    low, high = widened(0.015, 0.06, RUNS)
    found = claims(WORLDS[name], RUNS)
    for seeds in SEEDS:
        assert low <= found[seeds][0] <= high, f"{seeds} seeds"


def test_pooling_all_answers_would_fail_the_same_gate() -> None:
    """The control: answers of several seeds taken as independent claim far too much."""
    alarms = 0
    for differences in WORLDS["B"].differences(np.random.default_rng(1), 5, RUNS):
        error = differences.std(ddof=1) / differences.size**0.5
        alarms += abs(differences.mean()) > 1.96 * error
    assert alarms / RUNS > widened(0.015, 0.06, RUNS)[1]


@cases(("name", "points"), [("A", 2), ("B", 3), ("D", 2)])
def test_intervals_hold_the_truth(name: str, points: float) -> None:
    low, high = widened(0.94, 0.985, RUNS)
    for seeds, (_, coverage) in claims(WORLDS[name], RUNS, points).items():
        assert low <= coverage <= high, f"{seeds} seeds"


def test_two_points_are_found_with_ten_seeds_where_seeds_are_calm() -> None:
    found = claims(WORLDS["A"], RUNS, 2)
    assert found[10][0] > 0.88
    assert found[5][0] < found[10][0]


@cases("name", TEXT_WORLDS)
def test_perplexities_are_judged_as_carefully(name: str) -> None:
    low, high = widened(0.015, 0.06, RUNS)
    for seeds, (alarms, _) in text_claims(TEXT_WORLDS[name], RUNS).items():
        assert low <= alarms <= high, f"{seeds} seeds"


def test_looking_three_times_costs_nothing_with_its_own_alphas() -> None:
    naive, honest = watched(WORLDS["B"], RUNS)
    assert honest <= widened(0.0, 0.05, RUNS)[1]
    assert naive > honest


@cases("name", STUDY_WORLDS)
@cases("variants", [12])
def test_a_study_rarely_claims_anything_false(name: str, variants: int) -> None:
    limit = 0.08 if name in STRONGLY_UNEQUAL else 0.06
    assert any_false(STUDY_WORLDS[name], 5, variants, FEW) <= widened(0.0, limit, FEW)[1]


def test_one_comparison_at_a_time_would_fail_the_same_gate_and_find_less() -> None:
    """The control: version 0.2's test."""
    rates = measure(STUDY_WORLDS["the same, nothing shared"], 5, 30, RUNS)
    assert rates.false_before > widened(0.0, 0.06, RUNS)[1]
    assert rates.false_now < rates.false_before
    assert rates.found_now > rates.found_before + 0.2


def test_the_seeds_that_are_said_to_be_needed_are_enough_and_not_too_many() -> None:
    _, power = power_of_the_need(WORLDS["A"], 1.5, RUNS)
    low, high = widened(0.75, 0.90, RUNS)
    assert low <= power <= high


@cases("name", GROUP_WORLDS)
def test_a_few_large_groups_count_as_few(name: str) -> None:
    low, high = widened(0.015, 0.06, RUNS)
    for seeds, (alarms, _) in text_claims(GROUP_WORLDS[name], RUNS).items():
        assert low <= alarms <= high, f"{seeds} seeds"


@cases(("seeds", "alpha", "family"), [(10, 0.05, 1), (10, 0.05, 12), (5, 0.005, 1)])
def test_the_stated_difference_is_found_at_the_level_that_decides(seeds: int, alpha: float, family: int) -> None:
    assert power_as_stated(WORLDS["D"], seeds, alpha, family, RUNS)[1] >= widened(0.75, 1.0, RUNS)[0]


@cases("name", WORLDS)
def test_what_a_pilot_promises_is_found(name: str) -> None:
    assert power_after_pilot(WORLDS[name], 10, RUNS) >= widened(0.75, 1.0, RUNS)[0]
