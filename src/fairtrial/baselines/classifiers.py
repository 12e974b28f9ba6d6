"""What a simple classifier is: a function from texts to log-probabilities of classes.

Majority: always the most frequent class of training. What a classifier reaches that reads nothing.

Naive Bayes over counts of words and word pairs (McCallum and Nigam 1998), lower case, by scikit-learn.

Logistic regression over tf-idf of words and word pairs, and over the length alone, by scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

Guess = Callable[[Sequence[str]], np.ndarray]  # texts -> log-probabilities [item class]
Fit = Callable[[Sequence[str], np.ndarray, int], Guess]  # texts, labels [item], number of classes -> Guess

LEAST = 1e-300  # a probability that underflows to zero would make a log-likelihood infinite


def log_probabilities(model: Any, features: Any, classes: int) -> np.ndarray:
    """[item class] of a fitted scikit-learn classifier; a class that it never saw is as good as impossible."""
    log_p = np.full((features.shape[0], classes), np.log(LEAST))
    log_p[:, model.classes_] = np.log(np.clip(model.predict_proba(features), LEAST, None))
    return log_p


def words_or_letters(texts: Sequence[str]) -> str:
    """The pattern of a word: scikit-learn's (two letters or more), or any letter where the texts hold no such word."""
    import re

    usual = r"(?u)\b\w\w+\b"
    return usual if any(re.search(usual, text) for text in texts) else r"(?u)\S"


def fit_majority(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    counts = np.bincount(labels, minlength=classes) + 1.0  # one more each, so that no class is impossible
    shares = np.log(counts / counts.sum())
    return lambda asked: np.tile(shares, (len(asked), 1))


def fit_unigram_bayes(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    return _fit(texts, labels, classes, words=1, alpha=1.0)


def fit_bayes(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    return _fit(texts, labels, classes, words=2, alpha=0.3)


def _fit(texts: Sequence[str], labels: np.ndarray, classes: int, *, words: int, alpha: float) -> Guess:
    counter = CountVectorizer(ngram_range=(1, words), token_pattern=words_or_letters(texts))
    model = MultinomialNB(alpha=alpha).fit(counter.fit_transform(texts), labels)
    return lambda asked: log_probabilities(model, counter.transform(asked), classes)


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
