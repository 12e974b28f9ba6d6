"""The release gates: the figures that the method was accepted with, repeated at full size."""

from __future__ import annotations

import pytest
from families import STRONGLY_UNEQUAL, STUDY_WORLDS, any_false, measure
from figures import STUDIES
from rates import SEEDS, claims, power_after_pilot, power_as_stated, power_of_the_need, text_claims, watched
from worlds import GROUP_WORLDS, TEXT_WORLDS, WORLDS

from fairtrial.results.records import LARGE_FAMILY, SEEDS_OF_LARGE_FAMILIES

pytestmark = pytest.mark.slow
RUNS = 2000

# power that the method was accepted with, at 5, 10 and 20 seeds; itself measured in 1,000 runs. One comparison alone
# finds less at 5 seeds than with Satterthwaite's degrees of freedom (0.26 and 0.71 in A), which families do not allow.
POWER = {
    ("A", 1): (0.16, 0.40, 0.64),
    ("A", 2): (0.61, 0.94, 1.00),
    ("B", 2): (0.21, 0.44, 0.75),
    ("B", 3): (0.40, 0.78, 0.98),
    ("C", 3): (0.12, 0.26, 0.47),
}


@pytest.mark.parametrize("name", WORLDS)
def test_false_alarms_stay_near_one_in_twenty(name: str) -> None:
    for seeds, (alarms, _) in claims(WORLDS[name], RUNS).items():
        assert 0.015 <= alarms <= 0.06, f"{seeds} seeds"


@pytest.mark.parametrize(("name", "points"), [*POWER, ("D", 2)])
def test_intervals_hold_the_truth_nineteen_times_in_twenty(name: str, points: float) -> None:
    for seeds, (_, coverage) in claims(WORLDS[name], RUNS, points).items():
        assert 0.94 <= coverage <= 0.985, f"{seeds} seeds"


@pytest.mark.parametrize(("name", "points"), POWER)
def test_power_is_what_was_promised(name: str, points: float) -> None:
    found = claims(WORLDS[name], RUNS, points)
    for seeds, promised in zip(SEEDS, POWER[name, points], strict=True):
        own_error = 2 * (promised * (1 - promised) / 1000) ** 0.5
        assert found[seeds][0] >= promised - 0.03 - own_error, f"{seeds} seeds"


@pytest.mark.parametrize("name", TEXT_WORLDS)
def test_perplexities_too(name: str) -> None:
    for seeds, (alarms, _) in text_claims(TEXT_WORLDS[name], RUNS).items():
        assert 0.01 <= alarms <= 0.06, f"{seeds} seeds"
    for seeds, (_, coverage) in text_claims(TEXT_WORLDS[name], RUNS, 0.02).items():
        assert 0.94 <= coverage <= 0.99, f"{seeds} seeds"


@pytest.mark.parametrize("name", ["A", "B"])
def test_looks_keep_their_level(name: str) -> None:
    naive, honest = watched(WORLDS[name], RUNS)
    assert honest <= 0.055 < naive


@pytest.mark.parametrize("name", STUDY_WORLDS)
@pytest.mark.parametrize("variants", [2, 6, 12, 30, 100, 210])
@pytest.mark.parametrize("seeds", SEEDS)
def test_anything_false_is_claimed_in_at_most_one_study_in_twenty(seeds: int, variants: int, name: str) -> None:
    """More studies, 4,000 in the end, where the rate is near the limit. Families for which a plan asks for more seeds
    must be better than without shared variances, and no more."""
    limit = 0.08 if name in STRONGLY_UNEQUAL else 0.06
    if variants > LARGE_FAMILY and seeds < SEEDS_OF_LARGE_FAMILIES:
        limit = max(limit, measure(STUDY_WORLDS[name], seeds, variants, 100).false_before / 2)
    for runs, near in ((400, 0.012), (1600, 0.006), (4000, 0.0)):
        false = any_false(STUDY_WORLDS[name], seeds, variants, runs, seed=runs)
        if false <= limit - near:
            return
    raise AssertionError(f"{false:.3f} of studies claim something false")


@pytest.mark.parametrize("name", STRONGLY_UNEQUAL)
@pytest.mark.parametrize("variants", [2, 12, 100])
@pytest.mark.parametrize("seeds", SEEDS)
def test_sharing_is_never_worse_than_each_comparison_by_itself(seeds: int, variants: int, name: str) -> None:
    runs = max(600, 6000 // variants)
    rates = measure(STUDY_WORLDS[name], seeds, variants, runs)
    assert rates.false_now <= rates.false_before + 2 * (0.05 / runs) ** 0.5
    assert rates.found_now >= rates.found_before - 0.05


@pytest.mark.parametrize(("name", "points"), [("A", 1.5), ("A", 2), ("B", 3), ("C", 5)])
def test_the_need_gives_four_fifths_of_power(name: str, points: float) -> None:
    _, power = power_of_the_need(WORLDS[name], points, RUNS // 2)
    assert 0.75 <= power <= 0.92


@pytest.mark.parametrize("name", GROUP_WORLDS)
def test_groups_of_unequal_size_raise_no_more_alarms(name: str) -> None:
    """Between 1 and 6.5%."""
    for seeds, (alarms, _) in text_claims(GROUP_WORLDS[name], 2 * RUNS).items():
        assert 0.01 <= alarms <= 0.065, f"{seeds} seeds"


@pytest.mark.parametrize("name", ["A", "B", "D"])
@pytest.mark.parametrize(("seeds", "alpha", "family"), STUDIES)
def test_the_stated_difference_is_found_in_four_of_five_studies(
    name: str, seeds: int, alpha: float, family: int
) -> None:
    _, found = power_as_stated(WORLDS[name], seeds, alpha, family, RUNS // 2)
    assert found >= 0.75


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_what_a_pilot_promises_is_found_in_four_of_five_studies(name: str, seeds: int) -> None:
    assert power_after_pilot(WORLDS[name], seeds, RUNS // 2) >= 0.75
