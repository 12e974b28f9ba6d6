"""Keep, discard or one more pair: the rule for one proposal, and the error budget over all of them.

A pair is the candidate and the incumbent, trained with one seed that the ledger never used before. The evidence of a
gain is an e-process: where there is none, the chance that it ever reaches 1 / alpha is at most alpha, so it may be
looked at after every pair. Over proposals the levels follow e-LOND (Xu and Ramdas 2024): of the kept ones, at most a
share of `alpha` is expected to be no gain, whatever they have in common and however they were chosen.

The e-process takes pairs for independent. A machine that changes slowly makes a pair's luck resemble the last one's, so
the variance is widened by the correlation that the ledger's earlier pairs cannot exclude."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.results.values import Interval
from fairtrial.statistics.crossed import Crossed, runs_t
from fairtrial.statistics.spread import Source

Control = Literal["fdr", "fwer"]
FEWEST_PAIRS = 2
OPTIMISM = 1.3  # standard errors that are added to a gain before it is given up
EXPECTED_CORRELATION = 0.35  # of neighbouring pairs, before any are known; it counts like so many comparisons of them:
PRIOR_COMPARISONS = 10
MOST_CORRELATION = 0.9
WEIGHTS_SUM = 2.10974  # of 1 / (k log(k)^2) over k from 2 on


class Answer(StrEnum):
    """What becomes of a candidate.

    >>> ft.Answer("keep").exit_code
    0
    """

    KEEP = "keep"
    DISCARD = "discard"
    MORE = "more"

    @property
    def exit_code(self) -> int:
        return {Answer.KEEP: 0, Answer.DISCARD: 10, Answer.MORE: 11}[self]


class Why(StrEnum):
    EVIDENCE = "evidence"  # of a gain, as much as its level asks for
    TOO_SMALL = "too_small"  # a gain of the margin is ruled out
    HOPELESS = "too_weak"  # the pairs that are left cannot decide it
    NO_PAIRS = "no_pairs_left"  # all pairs are used
    AUDIT = "audit"  # the leak audit failed
    SUPERSEDED = "superseded"  # another candidate was kept meanwhile
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class GateRule:
    """How a ledger decides; fixed when it is made."""

    alpha: float = 0.1  # share of kept candidates that are no gain, or chance of any such
    control: Control = "fdr"
    margin: float = 0.0  # the least gain worth keeping
    most_pairs: int = 40  # for one proposal

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise BadInput(f"alpha must be between 0 and 1, got {self.alpha}")
        if not (self.margin >= 0 and math.isfinite(self.margin)):
            raise BadInput(f"margin must be at least 0, got {self.margin}")
        if self.most_pairs < FEWEST_PAIRS:
            raise BadInput(f"a proposal needs {FEWEST_PAIRS} pairs or more, got {self.most_pairs}")

    def level(self, number: int, kept: int) -> float:
        """Of the proposal with this number (the first is 1), where so many were kept before it began."""
        share = 1 / (WEIGHTS_SUM * (number + 1) * math.log(number + 1) ** 2)
        return self.alpha * share * (kept + 1 if self.control == "fdr" else 1)


@dataclass(frozen=True)
class Evidence:
    """What the pairs of one proposal show."""

    answer: Answer
    why: Why
    pairs: int
    gain: Interval  # more is better, whatever the metric's direction; at the decision's level, valid after every pair
    shrunken: float  # the gain, less what was luck on average
    evidence: float  # against "no gain"; the most that it ever was
    needed: float
    curve: tuple[float, ...] = ()  # the evidence after each pair


def correlation_allowed(proposals: Sequence[Sequence[float]]) -> float:
    """The correlation of a pair's luck with the last one's that the gains of earlier proposals allow: an estimate, and
    half a standard error. Neighbours differ by 1 - r and next neighbours by 1 - r^2, whatever the gain of a proposal
    is, so the ratio of both is 1 + r."""
    steps = np.concatenate([np.zeros(0), *(np.diff(gains) ** 2 for gains in proposals)])
    double = np.concatenate([np.zeros(0), *(np.subtract(gains[2:], gains[:-2]) ** 2 for gains in proposals)])
    seen = len(double)
    measured = float(double.mean() / steps.mean()) - 1 if seen and steps.any() else 0.0
    count = seen + PRIOR_COMPARISONS
    estimate = (seen * measured + PRIOR_COMPARISONS * EXPECTED_CORRELATION) / count
    return min(MOST_CORRELATION, max(0.0, estimate + 0.5 / math.sqrt(count)))


def judge_pairs(gains: Sequence[float], rule: GateRule, level: float, correlation: float = 0.0) -> Evidence:
    """`gains`: of the candidate over the incumbent, pair by pair, in the order in which they came."""
    answer, why, curve = Answer.MORE, Why.UNDECIDED, [1.0][: len(gains)]
    for pairs in range(FEWEST_PAIRS, len(gains) + 1):
        test = gain_test(gains[:pairs], correlation)
        curve.append(max(curve[-1], test.evidence_of_gain()))
        answer, why = _answer(test, rule, curve[-1], 1 / level)
        if answer != Answer.MORE:
            break
    used = gains[: len(curve)]
    size, shrunken = _size(used, 1 - 2 * level, correlation)
    return Evidence(answer, why, len(used), size, shrunken, max(curve, default=1.0), 1 / level, tuple(curve))


def gain_test(gains: Sequence[float], correlation: float = 0.0) -> Crossed:
    """The mean gain of pairs, as one sample, each of which may resemble the last."""
    test = runs_t(np.asarray(gains, float), np.empty(0), ((), ()))
    assert test.seed is not None
    return replace(test, seed=Source(test.seed.variance * (1 + correlation) / (1 - correlation), test.seed.df))


def _answer(test: Crossed, rule: GateRule, evidence: float, needed: float) -> tuple[Answer, Why]:
    pairs = round(test.seeds)
    if evidence >= needed:
        return Answer.KEEP, Why.EVIDENCE
    if test.varies and test.lasting_interval()[1] < max(rule.margin, 0.0):
        return Answer.DISCARD, Why.TOO_SMALL
    if pairs >= rule.most_pairs:
        return Answer.DISCARD, Why.NO_PAIRS
    if not test.varies:  # exact copies, or too few digits
        return (Answer.MORE, Why.UNDECIDED) if pairs < FEWEST_PAIRS + 1 else (Answer.DISCARD, Why.HOPELESS)
    hoped = test.difference + OPTIMISM * test.error
    if hoped <= rule.margin or _evidence_at(hoped / (test.error * math.sqrt(pairs)), rule.most_pairs) < needed:
        return Answer.DISCARD, Why.HOPELESS
    return Answer.MORE, Why.UNDECIDED


def _evidence_at(gain: float, pairs: int) -> float:
    """Of so many pairs whose mean gain is `gain` standard deviations."""
    return Crossed(gain, Source(1 / pairs, pairs - 1), None, 0.0, np.empty(0), pairs, 1, 1.0).evidence_of_gain()


def _size(gains: Sequence[float], level: float, correlation: float) -> tuple[Interval, float]:
    if not gains:
        return Interval(None, None, None), 0.0
    mean = float(np.mean(gains))
    if len(gains) < FEWEST_PAIRS:
        return Interval(mean, None, None, level), mean / 2
    test = gain_test(gains, correlation)
    low, high = test.lasting_interval(level) if test.varies else (mean, mean)
    size = Interval(mean, low, high, level) if math.isfinite(low) else Interval(mean, level=level)
    return size, mean * len(gains) / (len(gains) + 1)


def pairs_needed(gain: float, rule: GateRule, level: float, correlation: float) -> int:
    """Pairs until the evidence of a gain of so many standard deviations of a pair is enough, in the middle."""
    gain *= math.sqrt((1 - correlation) / (1 + correlation))
    for pairs in range(FEWEST_PAIRS, 10 * rule.most_pairs):
        if _evidence_at(gain, pairs) >= 1 / level:
            return pairs
    return 10 * rule.most_pairs
