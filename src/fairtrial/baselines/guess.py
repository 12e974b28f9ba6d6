"""What a simple classifier is: a function from texts to log-probabilities of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
