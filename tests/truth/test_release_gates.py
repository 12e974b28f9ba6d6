"""The release gates: the figures that the method was accepted with, repeated at full size."""

from __future__ import annotations

import pytest
from figures import STUDIES
from rates import SEEDS, claims, families, power_as_stated, power_of_the_need, text_claims, watched
from worlds import GROUP_WORLDS, TEXT_WORLDS, WORLDS

pytestmark = pytest.mark.slow
RUNS = 2000

# power that the method was accepted with, at 5, 10 and 20 seeds; itself measured in 1,000 runs
POWER = {
    ("A", 1): (0.26, 0.43, 0.66),
    ("A", 2): (0.71, 0.95, 1.00),
    ("B", 2): (0.22, 0.40, 0.74),
    ("B", 3): (0.45, 0.79, 0.99),
    ("C", 3): (0.17, 0.30, 0.52),
}


@pytest.mark.parametrize("name", WORLDS)
def test_false_alarms_stay_near_one_in_twenty(name: str) -> None:
    for seeds, (alarms, _) in claims(WORLDS[name], RUNS).items():
        assert 0.03 <= alarms <= 0.065, f"{seeds} seeds"


@pytest.mark.parametrize(("name", "points"), [*POWER, ("D", 2)])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(name: str, points: float) -> None:
    for seeds, (_, coverage) in claims(WORLDS[name], RUNS, points).items():
        assert 0.93 <= coverage <= 0.975, f"{seeds} seeds"


@pytest.mark.parametrize(("name", "points"), POWER)
def test_power_is_what_was_promised(name: str, points: float) -> None:
    found = claims(WORLDS[name], RUNS, points)
    for seeds, promised in zip(SEEDS, POWER[name, points], strict=True):
        own_error = 2 * (promised * (1 - promised) / 1000) ** 0.5
        assert found[seeds][0] == pytest.approx(promised, abs=0.05 + own_error), f"{seeds} seeds"


@pytest.mark.parametrize("name", TEXT_WORLDS)
def test_perplexities_too(name: str) -> None:
    for seeds, (alarms, _) in text_claims(TEXT_WORLDS[name], RUNS).items():
        assert 0.03 <= alarms <= 0.065, f"{seeds} seeds"
    for seeds, (_, coverage) in text_claims(TEXT_WORLDS[name], RUNS, 0.02).items():
        assert 0.93 <= coverage <= 0.975, f"{seeds} seeds"


@pytest.mark.parametrize("name", ["A", "B"])
def test_looks_and_families_keep_their_level(name: str) -> None:
    naive, honest = watched(WORLDS[name], RUNS)
    assert honest <= 0.061 < naive
    raw, held = families(WORLDS[name], RUNS // 2)
    assert held <= 0.06 < raw


@pytest.mark.parametrize(("name", "points"), [("A", 1.5), ("A", 2), ("B", 3), ("C", 5)])
def test_the_need_gives_four_fifths_of_power(name: str, points: float) -> None:
    _, power = power_of_the_need(WORLDS[name], points, RUNS // 2)
    assert 0.75 <= power <= 0.90


@pytest.mark.parametrize("name", GROUP_WORLDS)
def test_groups_of_unequal_size_raise_no_more_alarms(name: str) -> None:
    """Between 3 and 6.5%, and the sampling error of 4,000 runs."""
    for seeds, (alarms, _) in text_claims(GROUP_WORLDS[name], 2 * RUNS).items():
        assert 0.03 - 0.003 <= alarms <= 0.065 + 0.004, f"{seeds} seeds"


@pytest.mark.parametrize("name", ["A", "B", "D"])
@pytest.mark.parametrize(("seeds", "alpha", "family"), STUDIES)
def test_the_stated_difference_is_found_in_four_of_five_studies(
    name: str, seeds: int, alpha: float, family: int
) -> None:
    _, found = power_as_stated(WORLDS[name], seeds, alpha, family, RUNS // 2)
    assert 0.75 <= found <= 0.85
