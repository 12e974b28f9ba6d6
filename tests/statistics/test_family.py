"""Corrections for many comparisons, the looks, and the luck of the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairtrial.statistics.comparison import multi_bootstrap
from fairtrial.statistics.crossed import crossed_t
from fairtrial.statistics.multiplicity import (
    ALPHA,
    LOOKS,
    benjamini_hochberg,
    expected_bias,
    holm,
    largest_of,
    next_look,
)
from sampling import cases


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1, 1]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []


def test_holm_rejects_what_the_stepwise_procedure_rejects() -> None:
    chance = np.random.default_rng(0)
    for _ in range(200):
        p = chance.beta(0.4, 3, 6)
        rejected = set()
        for step, place in enumerate(np.argsort(p)):
            if p[place] >= 0.05 / (6 - step):
                break
            rejected.add(int(place))
        assert {place for place, each in enumerate(holm(list(p))) if each < 0.05} == rejected


def test_q_values_are_scipys() -> None:
    p = list(np.random.default_rng(1).beta(0.5, 2, 25))
    assert benjamini_hochberg(p) == pytest.approx(list(stats.false_discovery_control(p)))
    assert benjamini_hochberg([]) == []


def test_the_looks_share_one_alpha() -> None:
    assert sum(look.alpha for look in LOOKS) == pytest.approx(ALPHA)
    following = next_look(LOOKS[0])
    assert following == LOOKS[1]
    assert next_look(LOOKS[-1]) is None


@cases("count", [2, 4, 8])
def test_the_largest_of_several_draws(count: int) -> None:
    drawn = np.random.default_rng(2).normal(size=(200_000, count)).max(1).mean()
    assert largest_of(count) == pytest.approx(drawn, abs=0.01)


def test_the_best_of_equals_leads_by_the_expected_bias() -> None:
    """Four equals on the same items, ten seeds: the luckiest one's lead over its true score."""
    chance = np.random.default_rng(3)
    leads, biases = [], []
    for _ in range(300):
        scores = chance.normal(0, 1, (4, 10, 1)) + chance.normal(0, 5, (4, 10, 50)) + chance.normal(0, 9, (1, 1, 50))
        means = scores.mean((1, 2))
        leads.append(means.max() - means.mean())  # what all share is no lead
        biases.append(expected_bias([crossed_t(each - scores[0]) for each in scores[1:]], 4))
    assert np.mean(biases) == pytest.approx(np.mean(leads), rel=0.1)
    assert expected_bias([], 1) is None


def test_the_second_opinion_is_an_honest_bootstrap() -> None:
    """Against plain loops that draw seeds and items with replacement; and the same twice."""
    chance = np.random.default_rng(4)
    values = chance.normal(0.5, 1, (5, 1)) + chance.normal(0, 3, (5, 60))
    drawn = [
        values[np.ix_(chance.integers(0, 5, 5), chance.integers(0, 60, 60))].mean() for _ in range(4000)
    ]  # fmt: skip
    low, high = multi_bootstrap(values)
    assert (low, high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.1)
    assert multi_bootstrap(values) == (low, high)
