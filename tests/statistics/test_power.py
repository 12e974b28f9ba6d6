"""What a study can see, and what it would take."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import fairtrial as ft
from fairtrial.results.values import VarianceComponents
from fairtrial.statistics.crossed import Crossed, runs_t
from fairtrial.statistics.power import (
    MOST_SEEDS,
    MoreSeeds,
    cautious,
    components_of_pilot,
    detectable_range,
    expected_smallest,
    items_needed,
    more_seeds,
    needs,
    reach,
    reach_of,
    seeds_needed,
)
from fairtrial.statistics.spread import Source, Spread
from fairtrial.statistics.verdict import judge_arrays
from sampling import cases

CALM = VarianceComponents(0.7**2, 7.0**2, 34.0**2)


def found_with(shares: VarianceComponents, seeds: int, items: int, difference: float = 0.0) -> Crossed:
    """A study that met exactly its expected mean squares."""
    rest = shares.rest / (seeds * items)
    seed, item = Source(shares.seed / seeds + rest, seeds - 1), Source(shares.item / items + rest, items - 1)
    return Crossed(difference, seed, item, rest, np.full(seeds, difference), seeds, items, items)


@cases("alpha", [0.05, 0.05 / 12, 0.005 / 3])
def test_at_the_smallest_detectable_difference_four_of_five_studies_find_it(alpha: float) -> None:
    """By the noncentral t distribution of scipy.stats, at the level that decides."""
    df = 7.3
    found = reach(Spread(np.array([4.0]), np.ones(1), df), alpha)
    assert stats.nct.sf(stats.t.isf(alpha / 2, df), df, found / 2) == pytest.approx(0.8, abs=1e-4)


def test_a_range_is_stated_whose_upper_end_other_studies_do_find() -> None:
    """Although its variance is an estimate of five seeds: for what each states, in another study."""
    chance = np.random.default_rng(0)
    tests = [runs_t(seeds, seeds[:0], ((), ())) for seeds in chance.normal(size=(2000, 5))]
    told = np.array([detectable_range(test, 0.05) for test in tests])
    assert (told[:, 0] < told[:, 1]).all()
    critical = stats.t.isf(0.025, 4)
    stated = chance.permutation(told[:, 1])
    found = [(test.difference + size) / test.error > critical for test, size in zip(tests, stated, strict=True)]
    assert 0.78 < np.mean(found) < 0.95


def test_the_variance_of_another_size_is_the_three_terms_formula() -> None:
    shares, seeds, items = CALM, 12, 400
    variance = shares.seed / seeds + shares.item / items + shares.rest / (seeds * items)
    many = reach_of(shares, seeds, items, 0.05) / variance**0.5
    assert 2.80 < many < 3.10


def test_the_seeds_needed_are_the_fewest_that_are_enough() -> None:
    for least in (1.0, 1.5, 2.0, 3.0):
        needed = seeds_needed(CALM, 750, least, 0.05)
        assert needed is not None
        assert reach_of(CALM, needed, 750, 0.05) <= least
        assert needed == 2 or reach_of(CALM, needed - 1, 750, 0.05) > least


def test_where_items_are_too_few_no_number_of_seeds_helps() -> None:
    shares = VarianceComponents(1.0, 25.0**2, 34.0**2)
    assert seeds_needed(shares, 750, 1.0, 0.05) is None
    items = items_needed(shares, MOST_SEEDS, 1.0, 0.05)
    assert items is not None
    assert seeds_needed(shares, items - 50, 1.0, 0.05) is None
    assert seeds_needed(shares, items + 50, 1.0, 0.05) is not None
    assert more_seeds(found_with(shares, 8, 750), 1.0, 0.05) is None


def test_a_range_of_steps_is_told_not_a_number() -> None:
    needed = seeds_needed(CALM, 750, 1.0, 0.05)
    assert needed is not None
    assert 30 < needed < 40
    told = more_seeds(found_with(CALM, 12, 750), 1.0, 0.05)
    assert told is not None
    assert told.low in (10, 20)
    assert told.high is not None
    assert told.low <= needed - 12 <= told.high
    assert more_seeds(found_with(CALM, needed, 750), 1.0, 0.05) is None


def test_a_short_pilot_gives_a_wider_range_than_a_long_one() -> None:
    noisy = VarianceComponents(2.9**2, 7.0**2, 34.0**2)
    short, long = more_seeds(found_with(noisy, 5, 750), 1.5, 0.05), more_seeds(found_with(noisy, 16, 750), 1.5, 0.05)
    assert short is not None
    assert long is not None
    assert short.high is None
    assert str(short).endswith("to over 100")
    assert long.high is not None


@cases(
    ("more", "told"),
    [((10, 40), "10 to 40"), ((20, 20), "20"), ((40, None), "40 to over 100"), ((None, None), "more than 100")],
)
def test_how_a_range_reads(more: tuple[int | None, int | None], told: str) -> None:
    assert str(MoreSeeds(*more)) == told


def test_before_anything_is_run_two_points_show_with_ten_seeds_not_one() -> None:
    expected = expected_smallest("classify", 10, 750)
    assert expected is not None
    assert 1 < expected.low < 2 < expected.high
    more = expected_smallest("classify", 40, 750)
    assert more is not None
    assert more.high < expected.high
    assert str(expected) == "1.6 to 3.2 points"
    assert "%" in str(expected_smallest("lm", 5, 250))
    assert expected_smallest("lm", 1, 250) is None


def test_more_comparisons_and_earlier_looks_detect_less() -> None:
    alone, dozen, first_look = (
        expected_smallest("classify", 10, 750, alpha, family) for alpha, family in ((0.05, 1), (0.05, 12), (0.005, 1))
    )
    assert alone is not None
    for harder in (dozen, first_look):
        assert harder is not None
        assert alone.low < harder.low


def test_a_difference_takes_fewer_items_with_more_seeds() -> None:
    found = needs(2.0, [CALM])
    assert [each.seeds for each in found] == [5, 10, 20, 40]
    assert [each.low for each in found] == [each.high for each in found]
    for each in found:
        assert each.low is not None
        assert reach_of(CALM, each.seeds, each.low, 0.05) <= 2 < reach_of(CALM, each.seeds, each.low - 1, 0.05)
    noisy = VarianceComponents(2.9**2, 7.0**2, 34.0**2)
    both, many = needs(2.0, [CALM, noisy]), needs(2.0, [CALM], family=6)
    assert both[0].low == found[0].low
    assert both[0].high is None  # five seeds are too few, however many items
    assert all(more.low > one.low for one, more in zip(found, many, strict=True) if one.low and more.low)


def test_a_pilot_is_taken_at_the_upper_end_of_what_its_variances_may_be() -> None:
    assert cautious(CALM, 5, 750).seed > cautious(CALM, 20, 750).seed > CALM.seed
    mean_square = CALM.seed / 5 + CALM.rest / (5 * 750)
    limit = mean_square * 4 / stats.chi2.ppf(0.2, 4)
    assert cautious(CALM, 5, 750).seed == pytest.approx((limit - CALM.rest / (5 * 750)) * 5)
    assert CALM.item < cautious(CALM, 5, 7500).item < cautious(CALM, 5, 750).item < 1.5 * CALM.item
    chance = np.random.default_rng(3)
    right = [chance.random((5, 60)) < share for share in (0.7, 0.8)]
    pilot = judge_arrays(*right)
    assert pilot.components is not None
    metric, (found,) = components_of_pilot([pilot])
    assert metric == "accuracy"
    assert found == cautious(pilot.components, 5, pilot.effective_items or 0)


def test_groups_of_items_count_with_what_they_average() -> None:
    """34 sections of 25 sentences that differ by 5 points: the upper end of the plan is found in 4 of 5 studies."""
    upper = expected_smallest("classify", 5, 34, in_group=25)
    alone = expected_smallest("classify", 5, 34)
    assert upper is not None
    assert alone is not None
    assert upper.high < 0.7 * alone.high, "a section says more than a single sentence"
    chance, found = np.random.default_rng(0), 0
    groups = np.repeat(np.arange(34), 25)
    for _ in range(100):
        theirs = chance.normal(0.0, 34 / 2**0.5, (5, 850))
        ours = chance.normal(0.0, 34 / 2**0.5, (5, 850)) + chance.normal(0.0, 2.9, (5, 1))
        ours += upper.high + chance.normal(0.0, 7.0, 850) + chance.normal(0.0, 5.0, 34)[groups]
        found += ft.compare(ours, theirs, metric="score", higher_is_better=True, groups=groups).verdict == "better"
    assert found >= 70
