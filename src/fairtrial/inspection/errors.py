"""What a classifier gets wrong on a test set: confusions, calibration, confident mistakes, the words behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from fairtrial.description import Description, Result, Table
from fairtrial.errors import BadInput
from fairtrial.formatting import format_parts
from fairtrial.inspection.predictions import Names, Rows, attribute, log_odds, strongest_words
from fairtrial.inspection.text import OnProgress, no_progress
from fairtrial.registry import did_you_mean
from fairtrial.report.page import reliability_charts
from fairtrial.report.plots import draw_intervals
from fairtrial.report.text import errors_summary, errors_tables
from fairtrial.statistics.comparison import score_interval
from fairtrial.statistics.crossed import wilson
from fairtrial.statistics.outcomes import confusion, macro_f1
from fairtrial.training.scoring import evenly, log_probabilities
from fairtrial.training.tasks import ClassifyTask
from fairtrial.trial import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TEXTS = 1000  # that are searched for influential words, evenly spaced where there are more
LEAST_TIMES = 5  # occurrences; a rarer word is an anecdote


@dataclass(frozen=True, repr=False)
class Errors(Result):
    """A classifier's mistakes: confusions, calibration, the most confident ones, influential words.

    >>> found = classifier.errors(most=3)
    >>> found.labels, len(found.tests["test"]["mistakes"]) <= 3
    (('bad', 'good'), True)
    """

    facts: Mapping[str, Any] = field(repr=False)  # what `fairtrial inspect errors --json` prints

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.facts["labels"])

    @property
    def tests(self) -> dict[str, dict[str, Any]]:
        """What was found on each test set: accuracy, confusion, calibration, mistakes ..."""
        return dict(self.facts["tests"])

    def describe(self) -> Description:
        return Description(self._sentences(), self._tables(), charts=self._charts())

    def _sentences(self) -> Sequence[str]:
        return [line for name, found in self.tests.items() for line in errors_summary(name, found)]

    def _tables(self) -> Sequence[Table]:
        return [table for name, found in self.tests.items() for table in errors_tables(name, found, self.labels)]

    def rows(self) -> list[dict[str, object]]:
        """One for each mistake that is shown."""
        return [{"test": name, **mistake} for name, found in self.tests.items() for mistake in found["mistakes"]]

    def _charts(self) -> Sequence[str]:
        return list(reliability_charts(self.facts).values())

    def plot(self) -> Figure:
        """Reliability: the share right of each bin of confidence, with its 95% interval."""
        rows = [
            (f"{name}, {each['low']:.0%} to {each['high']:.0%} sure", each["accuracy"], *each["interval"])
            for name, found in self.tests.items()
            for each in found["calibration"]["bins"]
            if each["items"]
        ]
        return draw_intervals(rows, "reliability", "share right")


def calibrate(log_p: np.ndarray, labels: np.ndarray, bins: int = 10) -> dict[str, Any]:
    """Log-probabilities [item class] and true classes [item], in `bins` bins of equal width over (0, 1]."""
    if bins < 1:
        raise BadInput(f"bins must be at least 1, got {bins}")
    shares = np.exp(log_p)
    confidence, right = shares.max(1), shares.argmax(1) == labels
    index = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)  # a bin includes its upper end
    found, gaps = [], []
    for number in range(bins):
        sure, hits = confidence[index == number], right[index == number]
        # an empty bin has no mean confidence, no accuracy and no 95% interval of it
        measured: dict[str, Any] = dict.fromkeys(("confidence", "accuracy", "interval"))
        if len(hits):
            mean, accuracy = float(sure.mean()), float(hits.mean())
            measured = {"confidence": mean, "accuracy": accuracy, "interval": wilson(accuracy, len(hits))}
            gaps.append((abs(mean - accuracy), len(hits)))
        found.append({"low": number / bins, "high": (number + 1) / bins, "items": len(hits), **measured})
    truth = np.eye(log_p.shape[1])[labels]
    return {
        "bins": found,
        # ECE (Guo et al. 2017, https://arxiv.org/abs/1706.04599): mean |confidence - accuracy|
        "expected_error": float(sum(gap * items for gap, items in gaps) / len(labels)),
        "worst_error": float(max(gap for gap, _ in gaps)),
        "overconfidence": float(confidence.mean() - right.mean()),
        "brier": float(((shares - truth) ** 2).sum(1).mean()),  # summed over classes: 0 best, 2 worst
    }


def confident_mistakes(log_p: np.ndarray, labels: np.ndarray, most: int) -> list[int]:
    """The wrongly classified items, the most confident first."""
    wrong = np.flatnonzero(log_p.argmax(1) != labels)
    return [int(item) for item in wrong[np.argsort(-guess_log_odds(log_p)[wrong], kind="stable")][:most]]


def guess_log_odds(log_p: np.ndarray) -> np.ndarray:
    """Log-odds of each answer [item]: they still rank what all rounds to 100%."""
    found = torch.from_numpy(log_p)
    return log_odds(found, found.argmax(1)).numpy()


def class_scores(confusion: np.ndarray) -> list[dict[str, Any]]:
    """Of a table of counts [true class, guessed class]."""
    counts = zip(confusion.diagonal().tolist(), confusion.sum(1).tolist(), confusion.sum(0).tolist(), strict=True)
    return [
        {
            "precision": right / guessed if guessed else None,  # None: the class was never predicted
            "recall": right / items if items else None,  # None: there are no such items
            "f1": 2 * right / (items + guessed) if items + guessed else 0.0,
            "items": items,
        }
        for right, items, guessed in counts
    ]


def errors(
    run: Run, *, test: str | None = None, bins: int = 10, most: int = 10, names: Names = None, words: bool = True,
    on_progress: OnProgress = no_progress,
) -> dict[str, Any]:  # fmt: skip
    """The errors of a trained classifier on its test sets, or on one of them. `words`: with influential words."""
    labels = run.record.class_names(names)
    tests = list(run.record.trial.test_sets)
    if test is not None and test not in tests:
        raise BadInput(f"this record has no test set {test!r}{did_you_mean(test, tests)}")
    chosen = tests if test is None else [test]
    return {
        "record": run.record.folder.resolve().name,
        "parts": format_parts(run.recipe),
        "labels": list(labels),
        "tests": {name: errors_of(run, name, labels, bins, most, words, on_progress) for name in chosen},
    }


def errors_of(
    run: Run, test: str, names: Sequence[str], bins: int, most: int, words: bool, on_progress: OnProgress
) -> dict[str, Any]:
    """Errors on one test set. Copies of training texts test memory, so the rest is also scored alone."""
    task, documents = cast(ClassifyTask, run.task), run.splits.tests[test]
    (rows, labels), groups = task.sets[test], task.groups[test]
    log_p = log_probabilities(task.network, rows, run.tokenizer.pad)
    guesses, odds = log_p.argmax(1), guess_log_odds(log_p)
    counts = confusion(labels, guesses, len(names))
    copied = run.prepared.copies[test].status > 0
    clean: dict[str, Any] | None = None  # the score of items that do not occur in the training set
    if copied.any() and not copied.all():
        error = calibrate(log_p[~copied], labels[~copied], bins)["expected_error"]
        own = None if groups is None else groups[~copied]
        clean = _accuracy(guesses[~copied], labels[~copied], own) | {"expected_error": error}
    scores = zip(names, class_scores(counts), strict=True)
    found: dict[str, Any] = {
        **_accuracy(guesses, labels, groups),
        "macro_f1": macro_f1(counts),
        "confusion": counts.tolist(),
        "classes": [{"label": name, **score} for name, score in scores],
        "calibration": calibrate(log_p, labels, bins),
        "copies": int(copied.sum()),
        "clean": clean,
        "mistakes": [
            {
                "text": documents[item].text,
                "place": documents[item].location,
                "true": names[labels[item]],
                "guess": names[guesses[item]],
                "confidence": float(np.exp(log_p[item].max())),
                "log_odds": float(odds[item]),
                "share_of_truth": float(np.exp(log_p[item, labels[item]])),
                "copy": bool(copied[item]),
            }
            for item in confident_mistakes(log_p, labels, most)
        ],
    }
    if words:
        found["telling"] = _influential_words(run, rows, guesses, names, most, on_progress)
    return found


def _accuracy(guesses: np.ndarray, labels: np.ndarray, groups: np.ndarray | None) -> dict[str, Any]:
    outcomes = {"guess": guesses, "label": labels} | ({} if groups is None else {"group": groups})
    return {"items": len(labels), "accuracy": float((guesses == labels).mean()), "interval": score_interval(outcomes)}


def _influential_words(
    run: Run, rows: Rows, guesses: np.ndarray, names: Sequence[str], most: int, on_progress: OnProgress
) -> dict[str, Any]:
    tokenizer = run.tokenizer
    chosen = evenly(len(rows), MAX_TEXTS)
    classes = [int(guesses[item]) for item in chosen]
    attributions = attribute(run.task.network, tokenizer, [rows[item] for item in chosen], classes, on_progress)
    marks = tokenizer.words(mark for mark in (tokenizer.start, tokenizer.stop) if mark is not None)
    least = min(LEAST_TIMES, max(1, len(chosen) // 20))
    found: dict[str, Any] = {"texts": len(chosen), "least_times": least}
    for method in ("gradient_times_input", "leave_one_out"):
        found[method] = {}
        for number, name in enumerate(names):
            own = [each for each, guess in zip(attributions, classes, strict=True) if guess == number]
            texts = [(each.words, getattr(each, method)) for each in own]
            found[method][name] = strongest_words(texts, most=most, least_times=least, excluded=marks)
    return found
