"""Does a classifier know how sure it may be? Pure functions of log-probabilities and labels.

All that is to be said of a classifier's mistakes on one test set, as plain values for the terminal and the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairtrial.analysis.predictions import gradient_times_input, leave_one_out, telling_words
from fairtrial.data.corpus import Document
from fairtrial.data.duplicates import find_duplicates
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier
from fairtrial.statistics.crossed import wilson
from fairtrial.training.scoring import confusion, log_probabilities, macro_f1


@dataclass(frozen=True)
class Bin:
    """Answers of about one confidence, the probability that the model gave its own guess."""

    low: float
    high: float
    items: int
    confidence: float | None  # their mean; None: there are none
    accuracy: float | None
    interval: tuple[float, float] | None  # of the accuracy, 95%


@dataclass(frozen=True)
class Calibration:
    bins: tuple[Bin, ...]
    expected_error: float  # ECE (Guo et al. 2017, https://arxiv.org/abs/1706.04599): mean |confidence - accuracy|
    worst_error: float  # of the bins that have items
    overconfidence: float  # mean confidence - accuracy: above 0, the model is surer than it may be
    brier: float  # mean squared distance from the truth, summed over classes (0 best, 2 worst)


def calibrate(log_p: np.ndarray, labels: np.ndarray, bins: int = 10) -> Calibration:
    """Log-probabilities [item class] and true classes [item], in `bins` bins of equal width over (0, 1]."""
    if bins < 1:
        raise BadInput(f"{bins} bins will not do", "take at least 1")
    shares = np.exp(log_p)
    sure, right = shares.max(1), shares.argmax(1) == labels
    place = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)  # a bin holds its upper end
    found = tuple(_bin(number, bins, sure[place == number], right[place == number]) for number in range(bins))
    gaps = [(abs(each.confidence - each.accuracy), each.items) for each in found
            if each.confidence is not None and each.accuracy is not None]  # fmt: skip
    truth = np.eye(log_p.shape[1])[labels]
    return Calibration(
        found,
        float(sum(gap * items for gap, items in gaps) / len(labels)),
        float(max(gap for gap, _ in gaps)),
        float(sure.mean() - right.mean()),
        float(((shares - truth) ** 2).sum(1).mean()),
    )


def _bin(number: int, bins: int, sure: np.ndarray, right: np.ndarray) -> Bin:
    low, high = number / bins, (number + 1) / bins
    if not len(sure):
        return Bin(low, high, 0, None, None, None)
    low_end, high_end = wilson(int(right.sum()), len(right))
    return Bin(low, high, len(sure), float(sure.mean()), float(right.mean()), (low_end, high_end))


def confident_mistakes(log_p: np.ndarray, labels: np.ndarray, most: int) -> list[int]:
    """The items that the model got wrong, the surest first."""
    wrong = np.flatnonzero(log_p.argmax(1) != labels)
    return [int(item) for item in wrong[np.argsort(-log_p.max(1)[wrong], kind="stable")][:most]]


@dataclass(frozen=True)
class ClassScore:
    precision: float | None  # of what was guessed so, how much is; None: nothing was
    recall: float | None  # of what is so, how much was guessed
    f1: float
    items: int


def class_scores(confusion: np.ndarray) -> list[ClassScore]:
    """Of a table of counts [true class, guessed class]."""
    found = []
    for own in range(len(confusion)):
        right, items, guessed = confusion[own, own], int(confusion[own].sum()), int(confusion[:, own].sum())
        found.append(
            ClassScore(
                float(right / guessed) if guessed else None,
                float(right / items) if items else None,
                float(2 * right / (items + guessed)) if items + guessed else 0.0,
                items,
            )
        )
    return found


MOST_TEXTS = 1000  # in which telling words are looked for; evenly spread where there are more
LEAST_TIMES = 5  # a word that stands in fewer places is an anecdote


def errors_of(
    network: Classifier,
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    rows: Sequence[np.ndarray],
    labels: np.ndarray,
    names: Sequence[str],
    *,
    known: Sequence[str] = (),
    bins: int = 10,
    most: int = 10,
    telling: bool = True,
    tell: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """`known`: the training texts; what stands in them tests memory, so the rest is scored apart. `tell` hears how many
    texts have been searched for telling words."""
    log_p = log_probabilities(network, rows, tokenizer.pad)
    guesses = log_p.argmax(1)
    counts = confusion(labels, guesses, len(names))
    right = int((guesses == labels).sum())
    copied = find_duplicates(known, [each.text for each in documents]).status > 0
    scores = zip(names, class_scores(counts), strict=True)
    found: dict[str, Any] = {
        "items": len(labels),
        "accuracy": right / len(labels),
        "interval": list(wilson(right, len(labels))),
        "macro_f1": macro_f1(counts),
        "confusion": counts.tolist(),
        "classes": [{"label": name, **asdict(score)} for name, score in scores],
        "calibration": asdict(calibrate(log_p, labels, bins)),
        "copies": int(copied.sum()),
        "clean": _clean(log_p[~copied], labels[~copied], bins) if copied.any() and not copied.all() else None,
        "mistakes": [
            {
                "text": documents[item].text,
                "place": documents[item].location,
                "true": names[labels[item]],
                "guess": names[guesses[item]],
                "confidence": float(np.exp(log_p[item].max())),
                "share_of_truth": float(np.exp(log_p[item, labels[item]])),
                "copy": bool(copied[item]),
            }
            for item in confident_mistakes(log_p, labels, most)
        ],
    }
    if telling:
        found["telling"] = _telling(network, tokenizer, rows, guesses, names, most, tell)
    return found


def _clean(log_p: np.ndarray, labels: np.ndarray, bins: int) -> dict[str, Any]:
    """The score of what does not stand in the training text."""
    right = int((log_p.argmax(1) == labels).sum())
    return {
        "items": len(labels),
        "accuracy": right / len(labels),
        "interval": list(wilson(right, len(labels))),
        "expected_error": calibrate(log_p, labels, bins).expected_error,
    }


def _telling(
    network: Classifier,
    tokenizer: Tokenizer,
    rows: Sequence[np.ndarray],
    guesses: np.ndarray,
    names: Sequence[str],
    most: int,
    tell: Callable[[int], None],
) -> dict[str, Any]:
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_TEXTS)).round().astype(int))
    texts, answers = [rows[item] for item in chosen], [int(guesses[item]) for item in chosen]
    nothing = tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad
    ways = {
        "gradient_times_input": gradient_times_input(network, texts, answers, tokenizer.pad),
        "leave_one_out": leave_one_out(network, texts, answers, tokenizer.pad, nothing, tell),
    }
    words = [tokenizer.words(row) for row in texts]
    marks = tokenizer.words(mark for mark in (tokenizer.start, tokenizer.stop) if mark is not None)
    least = min(LEAST_TIMES, max(1, len(texts) // 20))
    found: dict[str, Any] = {"texts": len(texts), "least_times": least}
    for way, told in ways.items():
        found[way] = {}
        for number, name in enumerate(names):
            own = [place for place, answer in enumerate(answers) if answer == number]
            own_words, own_told = [words[place] for place in own], [told[place] for place in own]
            best = telling_words(own_words, own_told, most=most, least_times=least, silent=marks)
            found[way][name] = [asdict(each) for each in best]
    return found
