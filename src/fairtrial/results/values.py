"""What the statistics give: a verdict and all that it is made of, as plain frozen values. No numpy, no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from fairtrial.description import Description, Result
from fairtrial.typed import Count

if TYPE_CHECKING:
    from pathlib import Path


FEWEST_SEEDS = 5  # for a verdict


class VerdictKind(StrEnum):
    """What a comparison shows.

    >>> ft.compare([[1, 0, 1, 1]] * 5, [[0, 0, 1, 1]] * 5).verdict.value
    'undecided'
    """

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"  # no difference larger than the margin
    UNDECIDED = "undecided"
    NOT_COMPARABLE = "not_comparable"


class Question(StrEnum):
    """What a comparison asks: of new training runs, or of the very networks that were given.

    >>> ft.verdict({"old": [1, 0, 1, 0, 1, 0], "new": [1, 1, 1, 0, 1, 1]}).comparisons[0].question.value
    'these_checkpoints'
    """

    NEW_RUNS = "new_runs"
    NEW_RUNS_SAME_ITEMS = "new_runs_same_items"  # one number per run: this very test set
    CHECKPOINTS = "these_checkpoints"


class ReasonCode(StrEnum):
    """Why a comparison is undecided without a test, or why two variants cannot be compared."""

    TOO_FEW_SEEDS = "too_few_seeds"
    TOO_FEW_ITEMS = "too_few_items"
    NO_VARIATION = "no_variation"
    DIFFERENT_ITEMS = "different_items"
    DIFFERENT_TOKENS = "different_tokens"
    DIFFERENT_TEXTS = "different_texts"
    DIFFERENT_VOCABULARIES = "different_vocabularies"
    FAILED_AUDIT = "failed_audit"
    NOT_AUDITED = "not_audited"
    NEITHER_LEARNED = "neither_learned"
    ATTENTION_UNUSED = "attention_unused"  # by either side, and the idea is about attention or positions
    EARLIER_LOOK = "earlier_look"  # the study was judged before, on other data or with another question
    EARLIER_VERSION = "earlier_version"  # of a verdict that was read from a file of version 0.2


class Rule(StrEnum):
    """When a study is judged, and so how its claims are corrected."""

    FIXED = "fixed"  # once, at a number of seeds that was fixed before
    UNTIL_CLEAR = "until_clear"  # at three planned looks, which share the 5% of false alarms
    OPEN_ENDED = "open_ended"  # after any seed, again and again


@dataclass(frozen=True)
class Reason:
    code: ReasonCode
    text: str  # a clause for people


class AuditLevel(StrEnum):
    """The worst finding of a leak audit."""

    PASS = "pass"
    AMBER = "amber"
    RED = "red"
    UNAUDITED = "unaudited"  # the audit broke down: nothing is known, for or against


class TrainingEndKind(StrEnum):
    """How a training ended, by its validation loss. The words are those of stored results."""

    STILL_IMPROVING = "still improving"
    OVERFITTED = "overfitted"  # worse since its best
    SETTLED = "settled"


class UnlearnedKind(StrEnum):
    """What a network does that knows nothing of its task."""

    ONE_CLASS = "one_class"  # it always gives the same answer
    LARGEST_CLASS = "largest_class"  # no better than the largest class
    WORD_FREQUENCIES = "word_frequencies"  # no better than a unigram model


@dataclass(frozen=True)
class Metric:
    """What is compared, in which unit, and which direction is better.

    >>> finished.verdict.tasks["classify"].metric
    Metric(name='accuracy', unit='points', higher_is_better=True)
    """

    name: str
    unit: str
    higher_is_better: bool

    @property
    def is_accuracy(self) -> bool:
        """Right and wrong answers, in points; also `accuracy (exact_match)`, which others call by another name."""
        return is_accuracy(self.name)

    @property
    def in_points(self) -> bool:
        """Whether it is made of right and wrong answers."""
        return self.is_accuracy or self.name == "macro-F1"

    @property
    def in_percent(self) -> bool:
        """Whether differences are shown in per cent of the other's: perplexity, whose logarithm is compared."""
        return self.name == "perplexity"

    @property
    def difference_unit(self) -> str:
        return "% of perplexity" if self.in_percent else self.unit

    def shown(self, difference: float | None) -> float | None:
        """A difference as a reader sees it: in its unit, or in per cent of the other's perplexity.

        >>> round(ft.Metric("perplexity", "nats per token", higher_is_better=False).shown(0.1), 1)
        10.5
        """
        if difference is None or not math.isfinite(difference):
            return None
        if not self.in_percent:
            return difference
        return 100 * math.expm1(difference) if difference < 700 else None


def is_accuracy(name: str) -> bool:
    return name == "accuracy" or name.startswith("accuracy (")


@dataclass(frozen=True)
class Interval:
    """An estimate and its interval; without ends where there are too few seeds or items for one.

    >>> ft.compare([[1, 1, 0, 1]], [[0, 1, 0, 1]]).difference
    Interval(estimate=25.0, low=None, high=None, level=0.95)
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95

    def shown(self, metric: Metric) -> Interval:
        """Of a difference, as a reader sees it.

        >>> perplexity = ft.Metric("perplexity", "nats per token", higher_is_better=False)
        >>> round(ft.Interval(-0.1).shown(perplexity).estimate, 1)
        -9.5
        """
        estimate, low, high = (metric.shown(value) for value in (self.estimate, self.low, self.high))
        return Interval(estimate, low, high, self.level)


@dataclass(frozen=True)
class VarianceComponents:
    """Of one seed's outcome on one item."""

    seed: float
    item: float
    rest: float


@dataclass(frozen=True)
class MoreSeeds:
    """Seeds to add, in coarse steps: few seeds estimate their own variance badly. None: more than the largest step."""

    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        if self.low == self.high:
            return "more than 100" if self.low is None else str(self.low)
        return f"{self.low} to {'over 100' if self.high is None else self.high}"


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """A variant minus its baseline on one test set: the difference with its interval, and what it shows.

    >>> import numpy as np, fairtrial as ft
    >>> rng = np.random.default_rng(0)
    >>> theirs = rng.random((5, 400)) < 0.7
    >>> ours = theirs | (rng.random((5, 400)) < 0.2)
    >>> ft.compare(ours, theirs).verdict.value
    'better'
    """

    variant: str
    baseline: str
    test_set: str
    subset: str  # all, clean or contaminated items
    metric: Metric
    seeds: int
    items: int
    paired: bool = True
    groups: int | None = None  # of items that belong together, if they do
    runs: tuple[int, int] | None = None  # of one score per run: of the variant and of the baseline
    question: Question = Question.NEW_RUNS
    verdict: VerdictKind = VerdictKind.UNDECIDED
    reasons: tuple[Reason, ...] = ()
    difference: Interval = Interval()  # for a new seed and new items; of perplexity the logarithm
    p: float | None = None
    p_adjusted: float | None = None  # Holm's correction over the family
    p_equivalent: float | None = None  # of "the difference is larger than the margin", corrected too
    q: float | None = None  # of an exploratory comparison: false discovery rate
    family: int = 1  # comparisons that are corrected together
    alpha: float = 0.05  # of the look that this is, for the whole family
    margin: float = 0.0  # the smallest difference of interest
    effective_items: float | None = None  # independent items, or groups, of equal size that would say as much
    alike: float = 1.0  # neighbouring items of a running text that say as much as one
    detectable: tuple[float, float] | None = None  # the difference that a study like this one finds in 4 of 5 cases
    more_seeds: MoreSeeds | None = None  # to detect the margin
    more_items: int | None = None  # without which no number of seeds detects the margin
    accepted_failures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # failed checks that were accepted
    scores: tuple[float, float] | None = None  # of the variant and of the baseline
    by_seed: tuple[float, ...] = ()
    on_these_items: Interval | None = None  # the paired t interval over seeds: narrower, about these items only
    share_of_seeds_better: Interval | None = None
    effect_size: float | None = None  # in standard deviations over seeds
    relative_error_change: float | None = None  # -0.1: a tenth fewer mistakes
    components: VarianceComponents | None = None
    variance_shares: Mapping[str, float] = field(default_factory=dict)  # of the difference: from seed, item and rest

    @property
    def level(self) -> float:
        """The share of false alarms that decides this comparison."""
        return self.alpha / max(1, self.family)

    @property
    def gain(self) -> float | None:
        """The difference with the sign that makes more better."""
        estimate = self.difference.estimate
        return estimate if estimate is None or self.metric.higher_is_better else -estimate

    @property
    def decided(self) -> bool:
        return self.verdict != VerdictKind.UNDECIDED

    @property
    def too_few_seeds(self) -> bool:
        return any(reason.code == ReasonCode.TOO_FEW_SEEDS for reason in self.reasons)

    @property
    def judged_before(self) -> bool:  # so it is exploratory
        return any(reason.code == ReasonCode.EARLIER_LOOK for reason in self.reasons)

    @property
    def neither_learned(self) -> bool:  # and nothing else stands in the way
        return [reason.code for reason in self.reasons] == [ReasonCode.NEITHER_LEARNED]

    @property
    def sentence(self) -> str:
        """What it shows, in words."""
        from fairtrial.results.sentences import comparison_sentence

        return comparison_sentence(self)

    @property
    def shown(self) -> Interval:
        """The difference as the sentence tells it: in points, or in per cent of the other's perplexity."""
        return self.difference.shown(self.metric)

    def describe(self) -> Description:
        """Its sentence, its row and its chart."""
        from fairtrial.results.verdict_tables import describe_comparison

        return describe_comparison(self)

    def rows(self) -> list[dict[str, object]]:
        from fairtrial.results.verdict_tables import comparison_numbers

        return [comparison_numbers(self)]


@dataclass(frozen=True)
class Score:
    """The mean over seeds with its interval: accuracy in per cent; perplexities are averaged as logarithms.

    >>> score = finished.verdict.tasks["classify"].scores["none"]["test"]["all"]
    >>> len(score.by_seed), score.mean.low <= score.mean.estimate <= score.mean.high
    (5, True)
    """

    mean: Interval
    by_seed: tuple[float, ...]
    seeds: tuple[int, ...]
    items: int
    bits_per_byte: float | None = None
    unknown_share: float | None = None
    perplexity_without_unknown: float | None = None


Scores = Mapping[str, Mapping[str, Mapping[str, Score]]]  # variant, test set, subset


@dataclass(frozen=True)
class TestSet:
    """Its items, how many of them also occur in the training set, and those that verdicts are on."""

    __test__ = False  # not a test, whatever pytest thinks

    items: int
    subset: str = "all"  # that verdicts are on: all or clean items
    exact: int | None = None  # None: the training set was not searched for copies
    near: int | None = None
    clean: int | None = None
    context: float | None = None  # the least share of a length that a token sees, where it is not all

    @property
    def copies(self) -> int | None:
        return None if self.exact is None or self.near is None else self.exact + self.near

    def count(self, subset: str) -> int | None:
        return {"all": self.items, "clean": self.clean, "contaminated": self.copies}.get(subset)


@dataclass(frozen=True)
class TrainingEnd:
    """Of one seed."""

    end: TrainingEndKind
    best_step: int
    steps: int


@dataclass(frozen=True)
class Unlearned:
    """Seeds of a variant that learned nothing."""

    variant: str
    test_set: str
    kind: UnlearnedKind
    seeds: tuple[int, ...]
    of: int  # all seeds


class OwnCode(StrEnum):
    """What a variant brings beside a network: it takes part in the comparison."""

    OPTIMIZER = "optimizer"
    LOSS = "loss"
    TABLES = "tables"  # that are filled before training, and not trained


@dataclass(frozen=True)
class AuditSummary:
    """Of a variant's leak audit."""

    level: AuditLevel
    failed: tuple[str, ...] = ()
    accepted: bool = False  # with an explicit option
    own_code: tuple[OwnCode, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether the variant may not be rated."""
        return self.level in (AuditLevel.RED, AuditLevel.UNAUDITED) and not self.accepted


@dataclass(frozen=True)
class DataFinding:
    """A check of the data that did not pass."""

    id: str
    name: str
    level: AuditLevel
    where: str = ""
    measured: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class TestReuse:
    """How often a test set was scored while training, and what picking the best step on it would claim."""

    __test__ = False

    reads: int
    watched: bool = False
    picked_on_test: float | None = None
    honest: float | None = None


@dataclass(frozen=True)
class Cost:
    parameters: int | None = None
    flops_per_step: float | None = None
    seconds_per_step: float | None = None
    peak_memory_mb: float | None = None
    seconds_ratio: float | None = None  # to the baseline's
    load: float | None = None  # the highest of the machine in its trials, for each core, where it was above 1


@dataclass(frozen=True)
class Failure:
    """A trial that failed and is left out."""

    variant: str
    seed: int
    error: str


@dataclass(frozen=True)
class VariantSearch:
    """What a search chose for one variant, on validation."""

    tries: Count
    best: Mapping[str, object]
    validation: float
    scores: tuple[float | None, ...]  # of every try; None: it failed
    rates: tuple[float, ...] = ()  # of a tuned learning rate; its scores are of a short training
    whole: tuple[float | None, ...] = ()  # of the whole training, of the rates that it was tried for


@dataclass(frozen=True)
class TaskSearch:
    tries: Count
    trials: Count
    seconds: float
    variants: Mapping[str, VariantSearch]


class SpeedupProblem(StrEnum):
    """Why curves give no speedup."""

    DIVERGED = "diverged"
    TOO_SHORT = "too_short"  # a curve of one point
    OUT_OF_REACH = "out_of_reach"  # a run never falls to the loss at which another one begins


@dataclass(frozen=True, repr=False)
class Speedup(Result):
    """How much less training than its baseline a variant needs for the same loss: the lowest that every run reaches.

    >>> curves = {name: {seed: [(step, 3 + 8 * (speed * step) ** -0.3 + seed / 99) for step in range(50, 2000, 50)]
    ...                  for seed in range(5)} for name, speed in (("adamw", 1.0), ("muon", 1.5))}
    >>> round(ft.compare_curves(curves).speedups[0].ratio.estimate, 2)
    1.5
    """

    variant: str
    baseline: str
    runs: tuple[int, int]  # of the variant and of the baseline
    ratio: Interval = Interval()  # cost of the baseline by that of the variant: 2 is half the training
    loss: float | None = None
    cost: float | None = None  # of the baseline, in the unit of its curves
    problem: SpeedupProblem | None = None
    run: str = ""  # which has the problem

    @property
    def sentence(self) -> str:
        """What it shows, in words."""
        from fairtrial.results.sentences import speedup_sentence

        return speedup_sentence(self)

    def describe(self) -> Description:
        """Its sentence and its row."""
        from fairtrial.results.verdict_tables import speedup_table

        return Description((self.sentence,), (speedup_table((self,)),))

    def rows(self) -> list[dict[str, object]]:
        from fairtrial.results.verdict_tables import speedup_numbers

        return [speedup_numbers(self)]


@dataclass(frozen=True, repr=False)
class Speedups(Result):
    """What `compare_curves` gives: a speedup for each variant but the baseline.

    >>> curves = {name: {0: [(step, 3 + 8 * (speed * step) ** -0.3) for step in range(50, 2000, 50)]}
    ...           for name, speed in (("adamw", 1.0), ("muon", 1.5))}
    >>> [each.variant for each in ft.compare_curves(curves).speedups]
    ['muon']
    """

    speedups: tuple[Speedup, ...]
    notes: tuple[str, ...] = ()  # what was assumed of the table

    def describe(self) -> Description:
        """A sentence for each variant, and a table."""
        from fairtrial.results.verdict_tables import speedup_table

        sentences = (*(each.sentence for each in self.speedups), *self.notes)
        return Description(sentences, (speedup_table(self.speedups),))

    def rows(self) -> list[dict[str, object]]:
        return [each.rows()[0] for each in self.speedups]


@dataclass(frozen=True)
class BestOf:
    """The expected lead of the luckiest of several variants that are equally good."""

    variants: int
    test_set: str
    expected_bias: float


@dataclass(frozen=True)
class TaskVerdict:
    """One task of a study: scores, comparisons, and what limits them.

    >>> finished.verdict.tasks["classify"].seeds
    (0, 1, 2, 3, 4)
    """

    baseline: str
    metric: Metric
    margin: float  # the smallest difference of interest
    seeds: tuple[int, ...]
    sets: Mapping[str, TestSet]
    scores: Scores
    comparisons: tuple[Comparison, ...]
    exploratory: tuple[Comparison, ...] = ()
    baseline_scores: Scores = field(default_factory=dict)  # of what needs no network
    baseline_comparisons: tuple[Comparison, ...] = ()
    labels: tuple[str, ...] = ()
    vocabularies_differ: bool = False
    unlearned: tuple[Unlearned, ...] = ()
    training: Mapping[str, Mapping[int, TrainingEnd]] = field(default_factory=dict)
    test_reuse: Mapping[str, Mapping[str, TestReuse]] = field(default_factory=dict)
    cost: Mapping[str, Cost] = field(default_factory=dict)
    attention_unused: tuple[str, ...] = ()  # variants, where others differ in attention or positions and use it
    audits: Mapping[str, AuditSummary] = field(default_factory=dict)
    data_findings: tuple[DataFinding, ...] | None = None  # None: the data was not audited
    failures: tuple[Failure, ...] = ()
    search: TaskSearch | None = None
    best_of: BestOf | None = None
    speedups: tuple[Speedup, ...] = ()  # of language models, from their validation curves


@dataclass(frozen=True)
class Sentence:
    text: str
    task: str | None = None  # None: it is about all
    limit: bool = False  # what limits an answer, not the answer itself
    basis: bool = False  # what all answers rest on: metric, intervals, seeds and items


@dataclass(frozen=True)
class InterimLook:
    """One of several looks, and its share of the 5% of false alarms."""

    seeds: int
    alpha: float
    next: int | None = None


@dataclass(frozen=True)
class ResultFiles:
    """Where results from elsewhere came from."""

    files: Mapping[str, str]  # path -> sha256; empty where they were given in Python
    question: Question
    rows: int


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """What a study found: sentences, comparisons with their intervals, scores.

    >>> finished.verdict.comparisons[0].verdict.value
    'undecided'
    """

    name: str
    baseline: str
    tasks: Mapping[str, TaskVerdict]
    sentences: tuple[Sentence, ...] = ()
    until_clear: bool = False
    open_ended: bool = False
    look: InterimLook | None = None
    results: ResultFiles | None = None

    @property
    def text(self) -> tuple[str, ...]:
        """Its sentences, the most important first."""
        several = len(self.tasks) > 1
        return tuple(f"[{each.task}] {each.text}" if several and each.task else each.text for each in self.sentences)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """One for each variant, task and test set, with its difference, interval, p and verdict."""
        return tuple(comparison for task in self.tasks.values() for comparison in task.comparisons)

    @property
    def rule(self) -> Rule:
        return Rule.OPEN_ENDED if self.open_ended else Rule.UNTIL_CLEAR if self.until_clear else Rule.FIXED

    @property
    def clear(self) -> bool:
        """Whether every comparison that can be judged is decided, so that no further look is needed."""
        return all(comparison.decided for comparison in self.comparisons)

    def describe(self, *, every: bool = False) -> Description:
        """Its sentences and tables. `every`: all tables, also contamination, test reuse, audits and search."""
        from fairtrial.results.verdict_tables import describe_verdict

        return describe_verdict(self, every=every)

    def rows(self) -> list[dict[str, object]]:
        from fairtrial.results.verdict_tables import comparison_numbers

        return [
            {"task": name, **comparison_numbers(comparison)}
            for name, task in self.tasks.items()
            for comparison in task.comparisons
        ]

    def to_json(self) -> dict[str, object]:
        """As plain values: what verdict.json holds."""
        from fairtrial.results.study import to_json

        return to_json(self)

    def to_text(self, *, every: bool = False) -> str:
        """Sentences and tables. `every`: all tables, also contamination, test reuse, audits and search."""
        return self.render("terminal", every=every)

    def render(self, to: str, *, every: bool = False) -> str:
        """As terminal, markdown, latex or csv."""
        from fairtrial.report.render import render

        return render(self.describe(every=every), to)

    def write_page(self, page: str | Path) -> Path:
        """Write it as a page to open in a browser."""
        from fairtrial.report.page import write_verdict_page

        return write_verdict_page(self, page)
