"""Metrics that are no mean over items: their jackknife values are, so that the crossed t-test serves them too."""

from __future__ import annotations

import numpy as np


def macro_f1_values(
    labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None = None
) -> np.ndarray:
    """[seed item] -> [seed unit]: the seed's macro-F1 plus what each unit (item, or cluster of items) contributes to
    it. The mean over units is the macro-F1 itself."""
    return np.stack([_one_seed(row, guess, classes, clusters) for row, guess in zip(labels, guesses, strict=True)])


def _one_seed(labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None) -> np.ndarray:
    places = np.arange(len(labels)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    units = int(places.max()) + 1
    right, seen = np.zeros((units, classes)), np.zeros((units, classes))
    np.add.at(right, (places, labels), labels == guesses)
    np.add.at(seen, (places, labels), 1)
    np.add.at(seen, (places, guesses), 1)
    whole = _from_counts(right.sum(0), seen.sum(0))
    without = _from_counts(right.sum(0) - right, seen.sum(0) - seen)
    influence = (units - 1) * (whole - without)
    return whole + influence - influence.mean()


def _from_counts(right: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Counts [... class] of right answers, and of true plus guessed; a class that never occurs counts as 0."""
    return np.divide(2 * right, seen, out=np.zeros(seen.shape), where=seen > 0).mean(-1)
