"""Corrections for many comparisons, the looks, and the luck of the best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

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
from fairtrial.statistics.spread import Source, Spread, dependence_of, share_variance
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


def test_comparisons_share_what_they_know_of_the_seeds() -> None:
    """Many alike make one that looks calm by chance less calm; a truly noisy one stays noisy."""
    usual, calm, noisy = Source(1.0, 4), Source(0.1, 4), Source(100.0, 4)

    def typical(source: Source, others: list[Source]) -> float:
        values, weights = share_variance([source, *others], 0.0)[0]
        return float(np.exp(weights @ np.log(values)))

    alone = [float(np.exp(weights @ np.log(values))) for values, weights in (calm.nodes(), noisy.nodes())]
    assert typical(calm, [usual] * 20) > 3 * alone[0]
    assert typical(noisy, [usual] * 20) > 0.5 * alone[1]
    assert typical(calm, [noisy, usual, calm, noisy]) < 3 * alone[0]


def test_a_shared_variance_is_no_more_certain_than_what_the_comparisons_do_not_have_in_common() -> None:
    apart, together = (
        Spread(*share_variance([Source(1.0, 4)] * 30, dependence)[0]).half_width(0.001) for dependence in (0.0, 0.9)
    )
    alone = Spread(*Source(1.0, 4).nodes()).half_width(0.001)
    assert apart < together < alone


def test_dependence_is_the_squared_correlation_over_seeds() -> None:
    chance = np.random.default_rng(5)
    alone = chance.normal(size=(40, 200))
    assert dependence_of(list(alone)) == pytest.approx(0, abs=0.01)
    assert dependence_of(list(alone - chance.normal(size=200))) == pytest.approx(0.25, abs=0.05)
    assert dependence_of([alone[0], None]) == 0.25
