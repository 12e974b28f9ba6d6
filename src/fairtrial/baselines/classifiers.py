"""Simple classifiers by scikit-learn, each a function from texts to log-probabilities of classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from fairtrial.data.corpus import Document

Guess = Callable[[Sequence[str]], np.ndarray]  # texts -> log-probabilities [item class]
Fit = Callable[[Sequence[str], np.ndarray, int], Guess]  # texts, labels [item], number of classes -> Guess

STEPS = 1000  # the most that a solver may take
LEAST = 1e-300  # a probability that underflows to zero would make a log-likelihood infinite


def log_probabilities(model: Any, features: Any, classes: int) -> np.ndarray:
    """[item class] of a fitted scikit-learn classifier; a class that it never saw gets almost nothing."""
    log_p = np.full((features.shape[0], classes), np.log(LEAST))
    log_p[:, model.classes_] = np.log(np.clip(model.predict_proba(features), LEAST, None))
    return log_p


def word_pattern(texts: Sequence[str]) -> str:
    """scikit-learn's (two letters or more), or any character where the texts hold no such word."""
    usual = r"(?u)\b\w\w+\b"
    return usual if any(re.search(usual, text) for text in texts) else r"(?u)\S"


def fit_majority(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    counts = np.bincount(labels, minlength=classes) + 1.0  # one more each, so that no class is impossible
    shares = np.log(counts / counts.sum())
    return lambda items: np.tile(shares, (len(items), 1))


def _fit_bayes(texts: Sequence[str], labels: np.ndarray, classes: int, *, words: int, alpha: float) -> Guess:
    """Counts of words, or of words and pairs of words (McCallum and Nigam 1998)."""
    vectorizer = CountVectorizer(ngram_range=(1, words), token_pattern=word_pattern(texts))
    model = MultinomialNB(alpha=alpha).fit(vectorizer.fit_transform(texts), labels)
    return lambda items: log_probabilities(model, vectorizer.transform(items), classes)


fit_unigram_bayes: Fit = partial(_fit_bayes, words=1, alpha=1.0)
fit_bayes: Fit = partial(_fit_bayes, words=2, alpha=0.3)


def fit_logistic(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=word_pattern(texts))
    # newton-cg: the same optimum as the default solver in a tenth of the time
    model = LogisticRegression(C=10.0, solver="newton-cg", max_iter=STEPS).fit(vectorizer.fit_transform(texts), labels)
    return lambda items: log_probabilities(model, vectorizer.transform(items), classes)


def fit_length(texts: Sequence[str], labels: np.ndarray, classes: int) -> Guess:
    """How much the length alone reveals: a set whose classes differ in length is easier than it looks."""
    model = LogisticRegression(max_iter=STEPS).fit(_lengths(texts), labels)
    return lambda items: log_probabilities(model, _lengths(items), classes)


def _lengths(texts: Sequence[str]) -> np.ndarray:
    """[item, 2]: the logarithm of characters and of words"""
    return np.log1p([[len(text), len(text.split())] for text in texts])


CLASSIFIERS: dict[str, Fit] = {
    "majority": fit_majority,
    "length only": fit_length,
    "unigram naive Bayes": fit_unigram_bayes,
    "naive Bayes": fit_bayes,
    "logistic regression": fit_logistic,
}


def fitted(fit: Fit, documents: Sequence[Document], labels: Sequence[str]) -> Guess:
    return fit([document.text for document in documents], label_numbers(documents, labels), len(labels))


def label_numbers(documents: Sequence[Document], labels: Sequence[str]) -> np.ndarray:
    index = {label: number for number, label in enumerate(labels)}
    return np.array([index[document.label] for document in documents], dtype=np.int64)
