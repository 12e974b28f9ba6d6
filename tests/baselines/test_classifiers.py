"""Simple classifiers: the formulas by hand, classes that never occurred, texts without words."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.baselines.classifiers import CLASSIFIERS

TEXTS = ["good good film", "good plot", "bad film", "bad bad plot", "good film"]
LABELS = np.array([0, 0, 1, 1, 0])


def test_majority_is_the_largest_class_with_its_share() -> None:
    log_p = CLASSIFIERS["majority"](TEXTS, LABELS, 2)(["bad", "whatever"])
    assert log_p.argmax(1).tolist() == [0, 0]
    assert np.exp(log_p[0]).tolist() == pytest.approx([4 / 7, 3 / 7])


def test_unigram_bayes_by_hand() -> None:
    """Words: good 4, film 2, plot 1 of class 0; bad 3, film 1, plot 1 of class 1; each count plus one."""
    found = CLASSIFIERS["unigram naive Bayes"](TEXTS, LABELS, 2)(["good plot"])
    weights = [3 / 5 * (5 / 11) * (2 / 11), 2 / 5 * (1 / 9) * (2 / 9)]
    assert np.exp(found[0]).tolist() == pytest.approx([weight / sum(weights) for weight in weights])


def test_pairs_of_words_see_order_and_single_words_do_not() -> None:
    texts = ["not good but bad"] * 5 + ["not bad but good"] * 5
    labels = np.repeat([0, 1], 5)
    asked = ["not good but bad", "not bad but good"]
    assert CLASSIFIERS["naive Bayes"](texts, labels, 2)(asked).argmax(1).tolist() == [0, 1]
    assert CLASSIFIERS["logistic regression"](texts, labels, 2)(asked).argmax(1).tolist() == [0, 1]
    blind = CLASSIFIERS["unigram naive Bayes"](texts, labels, 2)(asked)
    assert blind[0] == pytest.approx(blind[1])


def test_length_gives_away_classes_that_differ_in_length() -> None:
    texts = ["x " * 3] * 20 + ["x " * 30] * 20
    guess = CLASSIFIERS["length only"](texts, np.repeat([0, 1], 20), 2)
    assert guess(["y " * 4, "y " * 28]).argmax(1).tolist() == [0, 1]


def test_probabilities_sum_to_one_also_with_a_class_that_never_occurred() -> None:
    for name, fit in CLASSIFIERS.items():
        log_p = fit(TEXTS, LABELS, 4)(["good film", "words never seen", ""])
        assert log_p.shape == (3, 4), name
        assert np.isfinite(log_p).all(), name
        assert np.exp(log_p).sum(1) == pytest.approx(1), name
        assert (log_p.argmax(1) < 2).all(), name


def test_texts_without_words_are_classified_by_their_characters() -> None:
    for name in ("unigram naive Bayes", "naive Bayes", "logistic regression"):
        guess = CLASSIFIERS[name](["! ?", "? !", "+ -", "- +"] * 3, np.tile([0, 0, 1, 1], 3), 2)
        assert guess(["!", "-"]).argmax(1).tolist() == [0, 1], name
