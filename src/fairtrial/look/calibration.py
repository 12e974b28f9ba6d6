"""Does a classifier know how sure it may be? Pure functions of log-probabilities and labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.judge.interval import wilson


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
