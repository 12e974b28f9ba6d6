"""Macro-F1 through its jackknife values."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.statistics.crossed import macro_f1_values
from fairtrial.statistics.outcomes import SetOutcomes, measure


def f1_by_loops(labels: np.ndarray, guesses: np.ndarray, classes: int) -> float:
    found = []
    for each in range(classes):
        hit = sum(1 for label, guess in zip(labels, guesses, strict=True) if label == guess == each)
        precision = hit / max(1, sum(guess == each for guess in guesses))
        recall = hit / max(1, sum(label == each for label in labels))
        found.append(2 * precision * recall / (precision + recall) if hit else 0.0)
    return sum(found) / classes


def answers(items: int = 30, seeds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    labels = np.tile(np.arange(items) % 3, (seeds, 1))
    guesses = np.where(chance.random((seeds, items)) < 0.6, labels, chance.integers(0, 3, (seeds, items)))
    return labels, guesses


def test_the_mean_of_the_values_is_the_metric() -> None:
    labels, guesses = answers()
    expected = [f1_by_loops(*pair, 3) for pair in zip(labels, guesses, strict=True)]
    assert macro_f1_values(labels, guesses, 3).mean(1) == pytest.approx(expected)


def test_each_value_is_what_leaving_the_item_out_says() -> None:
    labels, guesses = (each[0] for each in answers())
    values = macro_f1_values(labels[None], guesses[None], 3)[0]
    without = [f1_by_loops(np.delete(labels, at), np.delete(guesses, at), 3) for at in range(len(labels))]
    influence = -(len(labels) - 1) * np.array(without)
    assert values - values.mean() == pytest.approx(influence - influence.mean())


def test_clusters_are_left_out_whole() -> None:
    labels, guesses = (each[0] for each in answers())
    clusters = np.arange(len(labels)) // 5
    values = macro_f1_values(labels[None], guesses[None], 3, clusters)[0]
    without = [f1_by_loops(labels[clusters != each], guesses[clusters != each], 3) for each in range(6)]
    influence = -5 * np.array(without)
    assert values - values.mean() == pytest.approx(influence - influence.mean())


def test_their_spread_is_that_of_new_test_sets() -> None:
    """Draw fresh test sets many times: the macro-F1's true variance is what the values of one test set promise."""
    chance = np.random.default_rng(1)

    def draw() -> np.ndarray:
        labels = chance.integers(0, 3, (1, 300))
        right = chance.random((1, 300)) < np.array([0.9, 0.6, 0.5])[labels]
        return macro_f1_values(labels, np.where(right, labels, (labels + 1) % 3), 3)

    drawn = [draw() for _ in range(600)]
    promised = np.mean([values.var(ddof=1) / values.size for values in drawn])
    assert promised == pytest.approx(np.var([values.mean() for values in drawn]), rel=0.2)


def test_the_divisor_is_that_of_all_seeds() -> None:
    """One guess of a class that does not occur, in one seed, must not change how that seed's classes are counted."""
    labels = np.tile(np.arange(20) % 2, (2, 1))
    guesses = labels.copy()
    guesses[1, 0] = 2
    both = measure("macro-F1", SetOutcomes((0, 1), {"label": labels, "guess": guesses}), np.ones(20, bool))
    assert both.values.mean(1) == pytest.approx([100 * 2 / 3, 100 * f1_by_loops(labels[1], guesses[1], 3)])
