"""A classifier's predictions for texts, what each word of a text adds to its prediction (leave-one-out), and what it
gets wrong on a test set: confusions, calibration, confident mistakes.

The log-odds of the predicted class, log p / (1 - p), in nats, with all words and without one: a probability near one
would hide every change. Above zero a word supports the prediction, below zero it opposes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from fairtrial.description import BarChart, Description, IntervalChart, IntervalRow, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import confusion_table, format_parts, percent
from fairtrial.inspection.text import OnProgress, encode_texts, no_progress, unknown_notice
from fairtrial.model.network import Classifier
from fairtrial.registry import did_you_mean
from fairtrial.report.plots import draw
from fairtrial.statistics.crossed import wilson
from fairtrial.statistics.outcomes import confusion, macro_f1, score_interval
from fairtrial.training.scoring import log_probabilities
from fairtrial.training.tasks import ClassifyTask
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Rows = Sequence[np.ndarray]  # token ids of each text
Names = Sequence[str] | None
CHUNK = 256  # texts between two reports of progress
MOST_CHARTS = 3
ROWS_AT_ONCE = 4096  # shortened sentences scored at once


@dataclass(frozen=True)
class Prediction:
    text: str
    ids: np.ndarray  # as the network read it
    shares: tuple[float, ...]  # probability of each class
    unknown: tuple[str, ...]  # out-of-vocabulary words
    cut: bool  # to the model's length

    @property
    def guess(self) -> int:
        return int(np.argmax(self.shares))


@dataclass(frozen=True)
class Attribution:
    """One value for each token, in nats of log-odds of the predicted class."""

    words: tuple[str, ...]
    leave_one_out: np.ndarray


@dataclass(frozen=True, repr=False)
class Predictions(Result):
    """The probability of each class for each text.

    >>> found = classifier.predict("a warm and funny film", words=True)
    >>> found.labels, round(sum(found.predictions[0].shares), 6)
    (('bad', 'good'), 1.0)
    """

    labels: tuple[str, ...]
    predictions: list[Prediction]
    attributions: list[Attribution]  # empty unless asked for
    notices: tuple[str, ...]

    @property
    def guesses(self) -> list[str]:
        """The most probable class of each text."""
        return [self.labels[each.guess] for each in self.predictions]

    def describe(self) -> Description:
        """One text: its classes and their probabilities; of several, a row for each."""
        if len(self.predictions) == 1:
            (only,) = self.predictions
            shares = sorted(zip(self.labels, only.shares, strict=True), key=lambda pair: -pair[1])
            rows = [row(label, share_text(share), "█" * round(30 * share)) for label, share in shares]
            table = Table(only.text, ("class", "probability", ""), tuple(rows))
        else:
            rows = [
                row(each.text[:80], guess, *map(share_text, each.shares))
                for each, guess in zip(self.predictions, self.guesses, strict=True)
            ]
            table = Table("", ("text", "guess", *self.labels), tuple(rows), text_columns=2)
        charts = [self._chart(number) for number in range(min(MOST_CHARTS, len(self.predictions)))]
        words = [self._words(number) for number in range(len(self.attributions))]
        return Description(self.notices, [table, *words], charts=charts)

    def _words(self, text: int) -> Table:
        each = self.attributions[text]
        words = zip(each.words, each.leave_one_out, strict=True)
        rows = tuple(row(word, f"{nats:+.3f}") for word, nats in words)
        title = f"how much each word supports {self.guesses[text]!r} (log-odds, nats)"
        return Table(title, ("word", "leave-one-out"), rows)

    def _chart(self, text: int) -> BarChart:
        """The probabilities of one of the texts; or, where they were asked for, what its words add."""
        if self.attributions:
            each = self.attributions[text]
            bars = tuple(zip(each.words, each.leave_one_out.tolist(), strict=True))
            return BarChart(f"support for {self.guesses[text]!r}, leave-one-out", "nats", bars, upright=True)
        chosen = self.predictions[text]
        return BarChart(chosen.text[:100], "probability", tuple(zip(self.labels, chosen.shares, strict=True)))

    def rows(self) -> list[dict[str, object]]:
        both = zip(self.predictions, self.guesses, strict=True)
        return [
            {"text": each.text, "guess": guess, **dict(zip(self.labels, each.shares, strict=True))}
            for each, guess in both
        ]

    def plot(self, text: int = 0) -> Figure:
        """The probabilities of one of the texts; or, where they were asked for, what its words add."""
        return draw([self._chart(text)])

    def to_json(self) -> list[dict[str, object]]:
        """One object for each text."""
        plain: list[dict[str, object]] = []
        for at, (each, guess) in enumerate(zip(self.predictions, self.guesses, strict=True)):
            shares = dict(zip(self.labels, each.shares, strict=True))
            plain.append(
                {"text": each.text, "guess": guess, "probabilities": shares, "unknown": each.unknown, "cut": each.cut}
            )
            if self.attributions:
                words = self.attributions[at]
                plain[-1] |= {
                    "words": words.words,
                    "leave_one_out": words.leave_one_out.tolist(),
                }
        return plain


def share_text(share: float) -> str:
    """`12.3%`; what is not certain is not called 100% or 0%."""
    return ">99.9%" if 0.9995 <= share < 1 else "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def predict(
    run: Run, texts: Sequence[str], *, names: Names = None, words: bool = False, on_progress: OnProgress = no_progress
) -> Predictions:
    """The probability of each class for each text. `names`: shown instead of the labels; `words`: with attributions."""
    labels = run.record.class_names(names)
    network = cast(Classifier, run.network)
    length, encoded = run.recipe.shape.length, encode_texts(run.tokenizer, texts)
    # a pretrained encoder's tokenizer sets marks around a text
    ids = run.tokenizer.encode(texts) if run.tokenizer.pretrained else [list(text.ids) for text in encoded]
    rows = [np.array(run.tokenizer.cut(row, length), dtype=np.int64) for row in ids]
    found: list[Prediction] = []
    for begin in range(0, len(rows), CHUNK):
        shares = np.exp(log_probabilities(network, rows[begin : begin + CHUNK], run.tokenizer.pad))
        for number, chances in enumerate(shares, begin):
            text, cut = encoded[number], len(ids[number]) > len(rows[number])
            found.append(Prediction(text.text, rows[number], tuple(chances.tolist()), text.unknown, cut))
        on_progress("reading", len(found), len(rows))
    attributions: list[Attribution] = []
    if words:
        nothing = run.tokenizer.pad if run.tokenizer.unknown is None else run.tokenizer.unknown
        guesses = [each.guess for each in found]
        falls = leave_one_out(network, rows, guesses, run.tokenizer.pad, nothing, on_progress)
        attributions = [
            Attribution(tuple(run.tokenizer.words(row)), fall) for row, fall in zip(rows, falls, strict=True)
        ]
    notices = [unknown_notice(run.tokenizer, encoded)]
    if shortened := [str(number) for number, each in enumerate(found, 1) if each.cut]:
        numbers = ", ".join(shortened[:8]) + ", ..." * (len(shortened) > 8)
        which = "the text" if len(found) == 1 else f"text {numbers}"
        notices.append(f"the model reads {length} tokens: {which} was truncated")
    return Predictions(labels, found, attributions, tuple(filter(None, notices)))


def log_odds(log_p: Tensor, classes: Tensor) -> Tensor:
    """log p / (1 - p) of one class of each row: [row class], [row] -> [row]"""
    if log_p.shape[1] == 1:  # there is no other class
        return log_p[:, 0]
    others = log_p.scatter(1, classes[:, None], -torch.inf).logsumexp(1)
    return log_p.gather(1, classes[:, None])[:, 0] - others


def leave_one_out(
    network: Classifier, rows: Rows, classes: Sequence[int], pad: int, nothing: int, on_progress: OnProgress
) -> list[np.ndarray]:
    """For each token of each row: log-odds(class) with it - without it. A row without tokens is read as `nothing`."""
    answers = torch.tensor(classes)
    full = log_odds(torch.from_numpy(log_probabilities(network, rows, pad)), answers)
    found = [np.zeros(len(row)) for row in rows]
    waiting: list[tuple[int, int]] = []

    def score() -> None:
        shorter = [np.delete(rows[item], index) for item, index in waiting]
        log_p = log_probabilities(network, [row if len(row) else np.array([nothing]) for row in shorter], pad)
        without = log_odds(torch.from_numpy(log_p), answers[[item for item, _ in waiting]])
        for (item, index), odds in zip(waiting, without, strict=True):
            found[item][index] = float(full[item] - odds)
        waiting.clear()

    for item, tokens in enumerate(rows):
        waiting += [(item, index) for index in range(len(tokens))]
        if len(waiting) >= ROWS_AT_ONCE or item == len(rows) - 1:
            score()
            on_progress("leaving words out", item + 1, len(rows))
    return found


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
