"""Logistic regression over tf-idf of words and word pairs, and over the length alone, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from fairtrial.baselines.guess import Guess, log_probabilities, words_or_letters

STEPS = 1000  # the most that the solver may take; on the course's data it needs 5


def fit_logistic(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    weigher = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=words_or_letters(texts))
    # newton-cg: the same optimum as the default solver in a tenth of the time
    model = LogisticRegression(C=10.0, solver="newton-cg", max_iter=STEPS).fit(weigher.fit_transform(texts), labels)
    return lambda asked: log_probabilities(model, weigher.transform(asked), classes)


def fit_length(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    """What the length of a text gives away: a set whose classes differ in length is easier than it looks."""
    model = LogisticRegression(max_iter=STEPS).fit(_lengths(texts), labels)
    return lambda asked: log_probabilities(model, _lengths(asked), classes)


def _lengths(texts: Sequence[str]) -> np.ndarray:
    """[item, 2]: the logarithm of characters and of words"""
    return np.log1p([[len(text), len(text.split())] for text in texts])
