"""Scores of a classifier: accuracy, macro-F1, confusion, and the outcome of every sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fairtrial.judge.interval import wilson
from fairtrial.model.network import Classifier
from fairtrial.text.batches import padded
from fairtrial.train.score import Score, scoring

ROWS = 128  # sentences scored at once; neighbours in length, so that little is padding


def log_probabilities(network: Classifier, rows: Sequence[np.ndarray], pad: int) -> np.ndarray:
    """[item class], float64"""
    order = np.argsort([len(row) for row in rows], kind="stable")
    answers = np.empty((len(rows), network.out.out_features))
    with scoring(network):
        for begin in range(0, len(rows), ROWS):
            chosen = order[begin : begin + ROWS]
            ids, lengths = padded([rows[item] for item in chosen], pad)
            logits = network(torch.from_numpy(ids), torch.from_numpy(lengths))
            answers[chosen] = logits.double().log_softmax(-1).numpy()
    return answers


def score_classify(network: Classifier, rows: Sequence[np.ndarray], labels: np.ndarray, pad: int) -> Score:
    log_p = log_probabilities(network, rows, pad)
    guesses = log_p.argmax(1)
    right = guesses == labels
    nats = -log_p[np.arange(len(labels)), labels]
    figures = {
        "items": len(labels),
        "accuracy": float(right.mean()),
        "interval": list(wilson(int(right.sum()), len(labels))),
        "macro_f1": macro_f1(confusion(labels, guesses, log_p.shape[1])),
        "nats": float(nats.mean()),
        "confusion": confusion(labels, guesses, log_p.shape[1]).tolist(),
    }
    outcomes = {"label": labels.astype(np.int64), "guess": guesses.astype(np.int64), "log_p": -nats}
    return Score(figures, (float(right.mean()), -float(nats.mean())), outcomes)


def confusion(labels: np.ndarray, guesses: np.ndarray, classes: int) -> np.ndarray:
    """Counts [true class, guessed class]"""
    return np.bincount(labels * classes + guesses, minlength=classes * classes).reshape(classes, classes)


def macro_f1(table: np.ndarray) -> float:
    """Mean over classes of F1; a class that neither occurs nor is guessed counts as 0, as in scikit-learn."""
    right = table.diagonal()
    total = table.sum(0) + table.sum(1)
    return float(np.mean(np.divide(2 * right, total, out=np.zeros(len(right)), where=total > 0)))
