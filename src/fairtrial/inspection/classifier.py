"""A classifier's predictions for texts, and what it gets wrong on a test set: confusions and confident mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from fairtrial.description import BarChart, Description, Result, Table, row
from fairtrial.errors import BadInput
from fairtrial.formatting import confusion_table, format_parts, percent
from fairtrial.inspection.text import encode_texts, unknown_notice
from fairtrial.model.network import Classifier
from fairtrial.registry import did_you_mean
from fairtrial.statistics.outcomes import confusion, macro_f1, score_interval
from fairtrial.training.scoring import log_probabilities
from fairtrial.training.tasks import ClassifyTask
from fairtrial.trial import Run

if TYPE_CHECKING:
    pass


Rows = Sequence[np.ndarray]  # token ids of each text
Names = Sequence[str] | None
MOST_CHARTS = 3


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


@dataclass(frozen=True, repr=False)
class Predictions(Result):
    """The probability of each class for each text.

    >>> found = classifier.predict("a warm and funny film")
    >>> found.labels, round(sum(found.predictions[0].shares), 6)
    (('bad', 'good'), 1.0)
    """

    labels: tuple[str, ...]
    predictions: list[Prediction]
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
        charts = [
            BarChart(each.text[:100], "probability", tuple(zip(self.labels, each.shares, strict=True)))
            for each in self.predictions[:MOST_CHARTS]
        ]
        return Description(self.notices, [table], charts=charts)

    def rows(self) -> list[dict[str, object]]:
        both = zip(self.predictions, self.guesses, strict=True)
        return [
            {"text": each.text, "guess": guess, **dict(zip(self.labels, each.shares, strict=True))}
            for each, guess in both
        ]

    def to_json(self) -> list[dict[str, object]]:
        """One object for each text."""
        return [
            {"text": each.text, "guess": guess, "probabilities": dict(zip(self.labels, each.shares, strict=True))}
            | {"unknown": each.unknown, "cut": each.cut}
            for each, guess in zip(self.predictions, self.guesses, strict=True)
        ]


def share_text(share: float) -> str:
    """`12.3%`; what is not certain is not called 100% or 0%."""
    return ">99.9%" if 0.9995 <= share < 1 else "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def predict(run: Run, texts: Sequence[str], *, names: Names = None) -> Predictions:
    """The probability of each class for each text. `names`: shown instead of the labels."""
    labels = run.record.class_names(names)
    network = cast(Classifier, run.network)
    length, encoded = run.recipe.shape.length, encode_texts(run.tokenizer, texts)
    # a pretrained encoder's tokenizer sets marks around a text
    ids = run.tokenizer.encode(texts) if run.tokenizer.pretrained else [list(text.ids) for text in encoded]
    rows = [np.array(run.tokenizer.cut(row, length), dtype=np.int64) for row in ids]
    shares = np.exp(log_probabilities(network, rows, run.tokenizer.pad)).tolist()
    found = [
        Prediction(text.text, kept, tuple(chances), text.unknown, len(read) > len(kept))
        for text, read, kept, chances in zip(encoded, ids, rows, shares, strict=True)
    ]
    notices = [unknown_notice(run.tokenizer, encoded)]
    if shortened := [str(number) for number, each in enumerate(found, 1) if each.cut]:
        numbers = ", ".join(shortened[:8]) + ", ..." * (len(shortened) > 8)
        which = "the text" if len(found) == 1 else f"text {numbers}"
        notices.append(f"the model reads {length} tokens: {which} was truncated")
    return Predictions(labels, found, tuple(filter(None, notices)))


Ends = tuple[float, float]


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
class SetErrors:
    """Errors on one test set."""

    items: int
    accuracy: float
    interval: Ends | None
    macro_f1: float
    confusion: tuple[tuple[int, ...], ...]  # true class, guessed class
    labels: tuple[str, ...]
    copies: int  # items that also occur in the training set
    mistakes: tuple[Mistake, ...]  # the most confident first

    def describe(self, test: str) -> Description:
        span = "" if self.interval is None else f" ({self.interval[0]:.1%} to {self.interval[1]:.1%}, 95%)"
        sentences = [f"{percent(self.accuracy)} right of {self.items:,}{span}; macro-F1 {percent(self.macro_f1)}"]
        if self.copies:
            occur = "item also occurs" if self.copies == 1 else "items also occur"
            sentences.append(f"{self.copies:,} {occur} in the training set. Scores on duplicates measure memorization.")
        tables = [confusion_table("confusion", self.confusion, self.labels), self._mistakes()]
        return Description(sentences, [table for table in tables if table.rows], test)

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
        about = f"Parts: {self.parts}. One seed: another seed makes other mistakes."
        sections = [of_set.describe(name) for name, of_set in self.tests.items()]
        return Description((about,), title=f"Errors of {self.record}", sections=sections)

    def rows(self) -> list[dict[str, object]]:
        """One for each mistake that is shown."""
        return [{"test": name, **asdict(each)} for name, of_set in self.tests.items() for each in of_set.mistakes]


def confident_mistakes(log_p: np.ndarray, labels: np.ndarray, most: int) -> list[int]:
    """The wrongly classified items, the most confident first: also among those that all round to 100%."""
    wrong = np.flatnonzero(log_p.argmax(1) != labels)
    doubt = np.logaddexp.reduce(np.sort(log_p[wrong], axis=1)[:, :-1], axis=1)  # log-probability of all other classes
    return wrong[np.argsort(doubt, kind="stable")][:most].tolist()


def errors(
    run: Run,
    *,
    test: str | None = None,
    most: int = 10,
    names: Names = None,
) -> Errors:
    """The errors of a trained classifier on its test sets, or on one of them."""
    labels = run.record.class_names(names)
    tests = list(run.record.trial.test_sets)
    if test is not None and test not in tests:
        raise BadInput(f"this record has no test set {test!r}{did_you_mean(test, tests)}")
    chosen = tests if test is None else [test]
    by_set = {name: errors_of(run, name, labels, most) for name in chosen}
    return Errors(run.record.folder.resolve().name, format_parts(run.recipe), tuple(labels), by_set)


def errors_of(run: Run, test: str, names: Sequence[str], most: int) -> SetErrors:
    """Errors on one test set."""
    task, documents = cast(ClassifyTask, run.task), run.splits.tests[test]
    (rows, labels), groups = task.sets[test], task.groups[test]
    log_p = log_probabilities(task.network, rows, run.tokenizer.pad)
    guesses = log_p.argmax(1)
    counts = confusion(labels, guesses, len(names))
    copied = run.prepared.copies[test].status > 0
    outcomes = {"guess": guesses, "label": labels} | ({} if groups is None else {"group": groups})
    return SetErrors(
        items=len(labels),
        accuracy=float((guesses == labels).mean()),
        interval=score_interval(outcomes),
        macro_f1=macro_f1(counts),
        confusion=tuple(map(tuple, counts.tolist())),
        labels=tuple(names),
        copies=int(copied.sum()),
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
