"""A classifier's predictions for texts, and what each word of a text adds to its prediction: leave-one-out.

The log-odds of the predicted class, log p / (1 - p), in nats, with all words and without one: a probability near one
would hide every change. Above zero a word supports the prediction, below zero it opposes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from fairtrial.description import BarChart, Description, Result, Table
from fairtrial.description import row as as_cells
from fairtrial.inspection.text import OnProgress, encode_texts, no_progress, unknown_notice
from fairtrial.model.network import Classifier
from fairtrial.report.plots import draw
from fairtrial.training.scoring import log_probabilities
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
            rows = [as_cells(label, share_text(share), "█" * round(30 * share)) for label, share in shares]
            table = Table(only.text, ("class", "probability", ""), tuple(rows))
        else:
            rows = [
                as_cells(each.text[:80], guess, *map(share_text, each.shares))
                for each, guess in zip(self.predictions, self.guesses, strict=True)
            ]
            table = Table("", ("text", "guess", *self.labels), tuple(rows), text_columns=2)
        charts = [self._chart(number) for number in range(min(MOST_CHARTS, len(self.predictions)))]
        words = [self._words(number) for number in range(len(self.attributions))]
        return Description(self.notices, [table, *words], charts=charts)

    def _words(self, text: int) -> Table:
        each = self.attributions[text]
        words = zip(each.words, each.leave_one_out, strict=True)
        rows = tuple(as_cells(word, f"{nats:+.3f}") for word, nats in words)
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
        for number, row in enumerate(shares, begin):
            text, cut = encoded[number], len(ids[number]) > len(rows[number])
            found.append(Prediction(text.text, rows[number], tuple(row.tolist()), text.unknown, cut))
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

    for item, row in enumerate(rows):
        waiting += [(item, index) for index in range(len(row))]
        if len(waiting) >= ROWS_AT_ONCE or item == len(rows) - 1:
            score()
            on_progress("leaving words out", item + 1, len(rows))
    return found
