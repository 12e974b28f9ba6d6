"""Naive Bayes over counts of words and word pairs (McCallum and Nigam 1998), lower case, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from fairtrial.baselines.guess import Guess, log_probabilities, words_or_letters


def fit_unigram_bayes(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    return _fit(texts, labels, classes, words=1, alpha=1.0)


def fit_bayes(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    return _fit(texts, labels, classes, words=2, alpha=0.3)


def _fit(texts: Sequence[str], labels: np.ndarray, classes: int, *, words: int, alpha: float) -> Guess:
    counter = CountVectorizer(ngram_range=(1, words), token_pattern=words_or_letters(texts))
    model = MultinomialNB(alpha=alpha).fit(counter.fit_transform(texts), labels)
    return lambda asked: log_probabilities(model, counter.transform(asked), classes)
