"""Weights of a mixture, chosen on held-out answers. Both searches have one optimum, so nothing depends on a start."""

from __future__ import annotations

import numpy as np

ROUNDS = 1000
ENOUGH = 1e-7  # a round that moves no weight further is the last
MOST = 20.0  # of a log-linear weight: beyond it a lucky model of few items would run away


def linear_weights(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities of the right answers [model item] -> weights [model] that sum to one and make them likeliest, by
    expectation maximisation (Jelinek and Mercer 1980)."""
    weights = np.full(len(probabilities), 1 / len(probabilities))
    for _ in range(ROUNDS):
        shares = weights[:, None] * probabilities
        better = (shares / shares.sum(0)).mean(1)
        moved = np.abs(better - weights).max()
        weights = better
        if moved < ENOUGH:
            break
    return weights


def mix_linear(probabilities: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item], [model] -> [item]"""
    return weights @ probabilities


def log_linear_weights(log_p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Log-probabilities [model item class], right classes [item] -> weights [model], none below zero, that make the
    right classes likeliest: a logistic regression on what the models say (Genest and Zidek 1986). They need not sum to
    one, so that a model that is too sure of itself is also cooled."""
    from scipy.optimize import minimize

    items = np.arange(len(labels))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = mix_log_linear(log_p, weights)
        right = log_p[:, items, labels] - (np.exp(mixed) * log_p).sum(2)  # model item
        return -float(mixed[items, labels].mean()), -right.mean(1)

    start = np.full(len(log_p), 1 / len(log_p))
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, MOST)] * len(log_p)).x)


def mix_log_linear(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item class], [model] -> log-probabilities [item class]: the product of powers, normed again"""
    powers = np.tensordot(weights, log_p, axes=1)
    powers -= powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))
