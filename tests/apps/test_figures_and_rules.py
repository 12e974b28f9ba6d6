"""Published figures among ours, and the rules that decide claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairtrial.apps.reports.claims import FAILS, HOLDS, NOT_RUN, OPEN, Answer, likeness, weak, welch_interval
from fairtrial.apps.reports.evidence import mean_of
from fairtrial.apps.reports.measures import Retried, sentence_means
from fairtrial.apps.reports.published import Figure, claims, explain_accuracy, nearest_right
from fairtrial.statistics.outcomes import SetOutcomes


def retried(value: float, *seeds: float, measure: str = "accuracy") -> Retried:
    return Retried(Figure("r0", "speeches-classify", "learned", "test", measure, value), seeds, None, "")


def test_the_mean_of_sentence_perplexities_is_what_report_r4_computes() -> None:
    nats, tokens = np.array([10.0, 3.0, 0.0]), np.array([5, 3, 0])
    by_hand = (math.exp(10 / 5) + math.exp(3 / 3)) / 2
    assert sentence_means(nats, tokens)[0] == pytest.approx(by_hand)
    assert sentence_means(nats, np.array([5, 5, 0]))[0] > math.exp(13 / 10)  # sentences of one length: never below


def test_the_mean_of_sentence_losses_counts_sentences_alike() -> None:
    assert sentence_means(np.array([10.0, 3.0, 0.0]), np.array([5, 3, 0]))[1] == pytest.approx((10 / 5 + 3 / 3) / 2)


def test_a_published_figure_is_inside_near_or_outside_of_what_seeds_give() -> None:
    seeds = (84.0, 85.0, 86.0, 85.5, 84.5)
    assert retried(85.3, *seeds).position == "inside"
    assert retried(86.5, *seeds).position == "near"
    assert retried(95.0, *seeds).position == "above"
    assert retried(70.0, *seeds).position == "below"


def test_intervals_of_figures_are_those_of_scipy() -> None:
    seeds = (84.0, 85.0, 86.0, 85.5, 84.5)
    low, high = stats.t.interval(0.95, 4, loc=np.mean(seeds), scale=stats.sem(seeds))
    assert retried(85.0, *seeds).interval() == pytest.approx((low, high))
    logs = np.log(seeds)
    low, high = stats.t.interval(0.95, 4, loc=logs.mean(), scale=stats.sem(logs))
    ours = retried(85.0, *seeds, measure="window perplexity")
    assert ours.interval() == pytest.approx((math.exp(low), math.exp(high)))
    assert ours.mean == pytest.approx(stats.gmean(seeds))
    assert retried(85.0, 85.0).interval() is None


def test_a_mean_over_seeds_holds_fails_or_is_open() -> None:
    assert mean_of([-2.0, -2.1, -1.9, -2.0, -2.2]).is_negative() == HOLDS
    assert mean_of([2.0, 2.1, 1.9, 2.0, 2.2]).is_negative() == FAILS
    assert mean_of([-0.1, 0.1, 0.05, -0.05, 0.0]).is_negative() == OPEN
    assert mean_of([-0.1, 0.1, 0.05, -0.05, 0.0]).is_negative(negligible=1.0) == FAILS  # no difference that matters
    assert mean_of([-2.0, -2.1, -1.9, -2.0]).is_negative() == OPEN  # four seeds are too few for a verdict


def lengths(nats: np.ndarray) -> SetOutcomes:
    return SetOutcomes((0,), {"nll": nats[None], "tokens": np.ones_like(nats)[None]})


def test_two_test_sets_are_told_apart_as_welch_does() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(6.0, 1.0, 80), rng.normal(5.5, 0.5, 50)
    found = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    assert welch_interval(lengths(one), lengths(other)) == pytest.approx((found.low, found.high))


def like(lead: dict[str, tuple[float, float]], rows: dict[str, int]) -> str:
    return likeness([list(lead.values())] * 2, rows, "0")


def test_likeness_needs_perplexity_and_known_rows_to_agree() -> None:
    clear, unclear, against = (0.1, 0.3), (-0.1, 0.2), (-0.3, -0.1)
    rows = {"0": 500, "1": 0, "2": 300}
    assert like({"wbush": clear, "hbush": clear}, rows) == HOLDS
    assert like({"wbush": clear, "hbush": clear}, {}) == HOLDS
    assert like({"wbush": clear, "hbush": unclear}, rows) == OPEN
    assert like({"wbush": against, "hbush": against}, rows) == FAILS
    assert like({"wbush": clear, "hbush": clear}, {"0": 10, "1": 0, "2": 300}) == FAILS


def test_an_unsound_comparison_is_told_before_what_the_sound_one_found() -> None:
    claim = claims()[0]
    assert Answer(claim, HOLDS, "").headline == HOLDS
    assert "unsound" in Answer(claim, HOLDS, "", unsound=("it sees the future",)).headline
    assert Answer(claim, NOT_RUN, "", unsound=("it sees the future",)).headline == NOT_RUN


def test_printed_accuracies_are_checked_against_all_that_can_be() -> None:
    def brute(printed: str) -> set[int]:
        places = len(printed.partition(".")[2])
        return {right for right in range(751) if f"{100 * right / 750:.{places}f}" == printed}

    for printed in ("85.3", "87.60", "84.67", "84.667", "63.680", "84.333", "33.6"):
        found = nearest_right(printed, 750)
        assert (found is not None) == bool(brute(printed)), printed
        assert found is None or (found[0] in brute(printed) and found[1] == "rounded")
    assert nearest_right("85.86", 750) == (644, "cut off")
    assert "63.600 and 63.733" in explain_accuracy("63.680", 750)


def test_a_report_whose_own_figures_say_the_contrary_is_told_so() -> None:
    def doubts(name: str) -> tuple[str, ...]:
        return weak(next(claim for claim in claims() if claim.id == name))

    assert "its own perplexities are higher on train, obama, hbush" in doubts("r2-perplexity")
    assert doubts("r1-window") == ("one run of each",)
    assert "the epoch picked on the test set" in doubts("r0-rope")
    assert doubts("r0-layers") == ("one run",)
