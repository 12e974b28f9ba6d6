"""Whoever looks more than once, by a rule that allows it, is wrong in at most 5% of studies."""

from __future__ import annotations

import numpy as np
import pytest
from looks import PEEKED, outcomes, peeking, until_clear
from rates import widened

from fairtrial.results.values import VerdictKind
from fairtrial.statistics.multiplicity import LOOKS, holm
from fairtrial.statistics.verdict import judge_study


@pytest.mark.parametrize("world", PEEKED)
def test_peeking_after_every_seed_raises_few_false_alarms(world: str) -> None:
    assert peeking(world, 1, 60) <= widened(0, 0.05, 60)[1]
    assert peeking(world, 6, 12) <= widened(0, 0.05, 12)[1]


@pytest.mark.slow
@pytest.mark.parametrize("variants", [1, 6])
@pytest.mark.parametrize("world", PEEKED)
def test_open_ended_keeps_its_promise(world: str, variants: int) -> None:
    assert peeking(world, variants, 2000) <= widened(0, 0.05, 2000)[1]


def test_until_clear_keeps_the_family_error() -> None:
    assert until_clear("items", 6, 40) <= widened(0, 0.05, 40)[1]


@pytest.mark.slow
@pytest.mark.parametrize("gain", [0.0, 1.0])
@pytest.mark.parametrize("world", ["seeds", "items"])
def test_until_clear_keeps_the_family_error_where_some_are_decided_early(world: str, gain: float) -> None:
    assert until_clear(world, 6, 200, margin=0.8, gain=gain) <= widened(0, 0.05, 200)[1]


def test_a_claim_stands_and_leaves_the_family_of_its_kind() -> None:
    """The first variant is much better at the first look; the second differs a little, which ten seeds show."""
    chance = np.random.default_rng(9)
    every = PEEKED["seeds"](chance, 3, 20)
    every[1] += 5
    every[2] += 1.6
    looks = [(look, {"score": outcomes(every, look.seeds, 0.1)}) for look in LOOKS]
    first = judge_study("looks", looks[0][1], look=looks[0][0]).comparisons
    assert [each.verdict for each in first] == [VerdictKind.BETTER, VerdictKind.UNDECIDED, VerdictKind.UNDECIDED]
    second = judge_study("looks", looks[1][1], look=looks[1][0], before=looks[:1])
    kept, now, other = second.comparisons
    assert kept == first[0]  # with its five seeds and the level of its look
    assert (kept.seeds, kept.alpha, kept.family) == (5, 0.005, 3)
    assert (now.seeds, now.alpha, now.family) == (10, 0.015, 2)
    assert now.p is not None
    assert other.p is not None
    assert now.p_adjusted == pytest.approx(holm([now.p, other.p])[0])
    assert second.look is not None
    assert second.look.seeds == 10


def test_open_ended_counts_all_that_was_ever_compared() -> None:
    every = PEEKED["seeds"](np.random.default_rng(6), 2, 4)
    every[1] += 9
    task = {"score": outcomes(every, 4, 0.1)}
    alone, among = (judge_study("open", task, open_ended=True, family=family).comparisons[0] for family in (0, 12))
    assert (alone.family, among.family) == (2, 12)
    assert alone.p is not None
    assert among.p_adjusted == pytest.approx(min(1, 12 * alone.p))
    assert not alone.too_few_seeds  # four are enough for this rule
    assert judge_study("fixed", task).comparisons[0].too_few_seeds
    assert alone.detectable is None
    fixed = judge_study("fixed", {"score": outcomes(PEEKED["seeds"](np.random.default_rng(6), 2, 8), 8, 0.1)})
    lasting = judge_study(
        "open", {"score": outcomes(PEEKED["seeds"](np.random.default_rng(6), 2, 8), 8, 0.1)}, open_ended=True
    )
    for one, other in zip(fixed.comparisons, lasting.comparisons, strict=True):
        assert other.difference.low < one.difference.low < one.difference.high < other.difference.high


def test_open_ended_equivalence_needs_the_lasting_interval_inside_the_margin() -> None:
    every = PEEKED["seeds"](np.random.default_rng(7), 1, 60)
    for margin in np.linspace(0.3, 2.0, 18):
        (found,) = judge_study("open", {"score": outcomes(every, 60, margin)}, open_ended=True).comparisons
        inside = -margin < found.difference.low and found.difference.high < margin
        assert (found.verdict == VerdictKind.EQUIVALENT) == (inside and found.p_adjusted >= 0.05)
