"""What a classifier gets wrong on a test set: confusions, calibration, confident mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch

from fairtrial.description import Description, IntervalChart, IntervalRow, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import confusion_table, format_parts, percent
from fairtrial.inspection.predictions import Names, log_odds
from fairtrial.registry import did_you_mean
from fairtrial.statistics.crossed import wilson
from fairtrial.statistics.outcomes import confusion, macro_f1, score_interval
from fairtrial.training.scoring import log_probabilities
from fairtrial.training.tasks import ClassifyTask
from fairtrial.trial import Run

Ends = tuple[float, float]


@dataclass(frozen=True)
class Bin:
    """Answers of about one confidence."""

    items: int
    confidence: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    bins: int  # of equal width
    points: tuple[Bin, ...]  # of those that are not empty
    expected_error: float  # ECE (Guo et al. 2017, https://arxiv.org/abs/1706.04599): mean |confidence - accuracy|
    overconfidence: float
    brier: float  # summed over classes: 0 best, 2 worst

    def table(self) -> Table:
        """The reliability curve: where confidence and accuracy differ, the model misjudges itself."""
        rows = tuple(row(percent(each.confidence), each.items, percent(each.accuracy)) for each in self.points)
        sure = "overconfident" if self.overconfidence > 0 else "underconfident"
        note = (
            f"Expected calibration error (ECE, {self.bins} bins of equal width) {self.expected_error:.3f};"
            f" Brier score {self.brier:.3f}. On average the model is {sure} by {abs(self.overconfidence):.1%}."
        )
        return Table("calibration", ("mean confidence", "items", "right"), rows, note)

    def chart(self, test: str) -> IntervalChart:
        rows = (IntervalRow(percent(each.confidence), each.accuracy, each.low, each.high) for each in self.points)
        return IntervalChart(f"Share right over mean confidence on {test}", "share right", tuple(rows))


@dataclass(frozen=True)
class ClassScore:
    label: str
    precision: float | None  # None: the class was never predicted
    recall: float | None  # None: there are no such items
    f1: float
    items: int


@dataclass(frozen=True)
class Mistake:
    text: str
    place: str  # file and line
    true: str
    guess: str
    confidence: float
    share_of_truth: float  # probability of the true class
    copy: bool  # whether it also occurs in the training set


@dataclass(frozen=True)
class CleanScore:
    """Of the items that do not occur in the training set."""

    items: int
    accuracy: float
    interval: Ends | None


@dataclass(frozen=True)
class SetErrors:
    """Errors on one test set."""

    items: int
    accuracy: float
    interval: Ends | None
    macro_f1: float
    confusion: tuple[tuple[int, ...], ...]  # true class, guessed class
    classes: tuple[ClassScore, ...]
    calibration: Calibration
    copies: int  # items that also occur in the training set
    clean: CleanScore | None  # the score of the others
    mistakes: tuple[Mistake, ...]  # the most confident first

    def describe(self, test: str) -> Description:
        sentences = [
            f"{percent(self.accuracy)} right of {self.items:,}{span(self.interval, ', 95%')};"
            f" macro-F1 {percent(self.macro_f1)}"
        ]
        if self.copies:
            occur = "item also occurs" if self.copies == 1 else "items also occur"
            sentences.append(f"{self.copies:,} {occur} in the training set. Scores on duplicates measure memorization.")
        if clean := self.clean:
            sentences.append(f"On the other {clean.items:,}: {percent(clean.accuracy)} right{span(clean.interval)}")
        labels = [each.label for each in self.classes]
        scores = [(each.precision, each.recall, each.f1) for each in self.classes]
        tables = [confusion_table("confusion", self.confusion, labels, scores), self.calibration.table()]
        tables.append(self._mistakes())
        charts = [self.calibration.chart(test)]
        return Description(sentences, [table for table in tables if table.rows], test, charts)

    def _mistakes(self) -> Table:
        rows = tuple(
            row(
                percent(each.confidence),
                each.guess,
                f"{each.true} ({percent(each.share_of_truth)})",
                each.text + " (also in the training set)" * each.copy,
                Path(each.place).name if each.place else "",
            )
            for each in self.mistakes
        )
        columns = ("confidence", "guess", "true class", "text", "file")
        return Table("most confident mistakes", columns, rows, text_columns=5).without_empty_columns()


def span(interval: Ends | None, level: str = "") -> str:
    """` (45.1% to 52.0%)`; empty where too few items make one."""
    return "" if interval is None else f" ({interval[0]:.1%} to {interval[1]:.1%}{level})"


@dataclass(frozen=True, repr=False)
class Errors(Result):
    """A classifier's mistakes: confusions, calibration, the most confident ones.

    >>> errors = classifier.errors(most=3)
    >>> errors.labels, len(errors.tests["test"].mistakes) <= 3
    (('bad', 'good'), True)
    """

    record: str
    parts: str
    labels: tuple[str, ...]
    tests: Mapping[str, SetErrors]

    def describe(self) -> Description:
        about = f"Parts: {self.parts}. One seed: another would make other mistakes."
        sections = [of_set.describe(name) for name, of_set in self.tests.items()]
        return Description((about,), title=f"Errors of {self.record}", sections=sections)

    def rows(self) -> list[dict[str, object]]:
        """One for each mistake that is shown."""
        return [{"test": name, **asdict(each)} for name, of_set in self.tests.items() for each in of_set.mistakes]


def calibrate(log_p: np.ndarray, labels: np.ndarray, bins: int = 10) -> Calibration:
    """Log-probabilities [item class] and true classes [item], in `bins` bins of equal width over (0, 1]."""
    if bins < 1:
        raise BadInput(f"bins must be at least 1, got {bins}")
    shares = np.exp(log_p)
    confidence, right = shares.max(1), shares.argmax(1) == labels
    index = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)  # a bin includes its upper end
    points = []
    for number in np.unique(index):
        sure, hits = confidence[index == number], right[index == number]
        accuracy = float(hits.mean())
        points.append(Bin(len(hits), float(sure.mean()), accuracy, *wilson(accuracy, len(hits))))
    truth = np.eye(log_p.shape[1])[labels]
    return Calibration(
        bins,
        tuple(points),
        expected_error=sum(each.items * abs(each.confidence - each.accuracy) for each in points) / len(labels),
        overconfidence=float(confidence.mean() - right.mean()),
        brier=float(((shares - truth) ** 2).sum(1).mean()),
    )


def confident_mistakes(log_p: np.ndarray, labels: np.ndarray, most: int) -> list[int]:
    """The wrongly classified items, the most confident first: log-odds still rank what all rounds to 100%."""
    wrong, answers = np.flatnonzero(log_p.argmax(1) != labels), torch.from_numpy(log_p)
    odds = log_odds(answers, answers.argmax(1)).numpy()
    return [int(item) for item in wrong[np.argsort(-odds[wrong], kind="stable")][:most]]


def class_scores(labels: np.ndarray, guesses: np.ndarray, names: Sequence[str]) -> tuple[ClassScore, ...]:
    from sklearn.metrics import precision_recall_fscore_support

    classes = range(len(names))
    scores = precision_recall_fscore_support(labels, guesses, labels=classes, zero_division=np.nan)
    precisions, recalls, f1s = ([None if np.isnan(each) else each for each in some.tolist()] for some in scores[:3])
    every = zip(names, precisions, recalls, f1s, scores[3].tolist(), strict=True)
    return tuple(ClassScore(name, precision, recall, f1 or 0.0, items) for name, precision, recall, f1, items in every)


def errors(
    run: Run,
    *,
    test: str | None = None,
    bins: int = 10,
    most: int = 10,
    names: Names = None,
) -> Errors:
    """The errors of a trained classifier on its test sets, or on one of them."""
    labels = run.record.class_names(names)
    tests = list(run.record.trial.test_sets)
    if test is not None and test not in tests:
        raise BadInput(f"this record has no test set {test!r}{did_you_mean(test, tests)}")
    chosen = tests if test is None else [test]
    by_set = {name: errors_of(run, name, labels, bins, most) for name in chosen}
    return Errors(run.record.folder.resolve().name, format_parts(run.recipe), tuple(labels), by_set)


def errors_of(run: Run, test: str, names: Sequence[str], bins: int, most: int) -> SetErrors:
    """Errors on one test set. Copies of training texts test memory, so the rest is also scored alone."""
    task, documents = cast(ClassifyTask, run.task), run.splits.tests[test]
    (rows, labels), groups = task.sets[test], task.groups[test]
    log_p = log_probabilities(task.network, rows, run.tokenizer.pad)
    guesses = log_p.argmax(1)
    counts = confusion(labels, guesses, len(names))
    copied = run.prepared.copies[test].status > 0
    clean = None
    if copied.any() and not copied.all():
        own = None if groups is None else groups[~copied]
        clean = CleanScore(*_accuracy(guesses[~copied], labels[~copied], own))
    return SetErrors(
        *_accuracy(guesses, labels, groups),
        macro_f1=macro_f1(counts),
        confusion=tuple(map(tuple, counts.tolist())),
        classes=class_scores(labels, guesses, names),
        calibration=calibrate(log_p, labels, bins),
        copies=int(copied.sum()),
        clean=clean,
        mistakes=tuple(
            Mistake(
                text=documents[item].text,
                place=documents[item].location,
                true=names[labels[item]],
                guess=names[guesses[item]],
                confidence=float(np.exp(log_p[item].max())),
                share_of_truth=float(np.exp(log_p[item, labels[item]])),
                copy=bool(copied[item]),
            )
            for item in confident_mistakes(log_p, labels, most)
        ),
    )


def _accuracy(guesses: np.ndarray, labels: np.ndarray, groups: np.ndarray | None) -> tuple[int, float, Ends | None]:
    outcomes = {"guess": guesses, "label": labels} | ({} if groups is None else {"group": groups})
    return len(labels), float((guesses == labels).mean()), score_interval(outcomes)
