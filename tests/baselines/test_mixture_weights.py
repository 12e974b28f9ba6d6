"""Weights of a mixture: the best there are, found again by brute force, and never worse than any model alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairtrial.baselines.ensemble import linear_weights, log_linear_weights, mix_linear, mix_log_linear, unseen


def test_linear_weights_are_those_of_a_grid() -> None:
    rng = np.random.default_rng(0)
    said = rng.uniform(0.01, 1, (2, 400)) * np.array([[1.0], [0.7]])
    grid = np.linspace(0, 1, 2001)
    losses = [-np.log(share * said[0] + (1 - share) * said[1]).mean() for share in grid]
    weights = linear_weights(said)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] == pytest.approx(grid[int(np.argmin(losses))], abs=1e-3)
    assert 0.05 < weights[0] < 0.95  # a control: neither model alone is best here
    assert -np.log(mix_linear(said, weights)).mean() <= min(losses) + 1e-9


def test_a_model_that_is_always_better_gets_everything() -> None:
    worse = np.random.default_rng(1).uniform(0.1, 0.5, 50)
    assert linear_weights(np.stack((worse, worse * 1.5)))[1] == pytest.approx(1, abs=1e-3)


def test_a_linear_mixture_of_distributions_sums_to_one() -> None:
    rng = np.random.default_rng(2)
    models = rng.dirichlet(np.ones(9), 3)  # model entry
    assert mix_linear(models, np.array([0.2, 0.5, 0.3])).sum() == pytest.approx(1)


def classes(items: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Two models of three classes that know different things, the second far too sure of itself."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, items)
    logits = rng.normal(size=(2, items, 3)) + 1.0 * np.eye(3)[labels]
    logits[1] *= 8
    return logits - np.log(np.exp(logits).sum(2, keepdims=True)), labels


def test_log_linear_weights_are_those_of_a_grid() -> None:
    log_p, labels = classes()
    items = np.arange(len(labels))
    weights = log_linear_weights(log_p, labels)

    def loss(*tried: float) -> float:
        return -float(mix_log_linear(log_p, np.array(tried))[items, labels].mean())

    best = min(loss(one, other) for one in np.linspace(0, 2, 81) for other in np.linspace(0, 0.5, 81))
    assert loss(*weights) <= best + 1e-6
    assert loss(*weights) < min(loss(1, 0), loss(0, 1)) - 0.01  # a control: mixing helps here
    assert weights[1] < weights[0]  # the sure one is cooled


def test_log_linear_weights_are_a_logistic_regression_on_two_classes() -> None:
    """Of two classes, a log-linear mixture is a logistic regression without intercept on differences of logs."""
    log_p, labels = classes()
    kept = labels < 2
    pair, right = log_p[:, kept, :2], labels[kept]
    differences = (pair[:, :, 1] - pair[:, :, 0]).T
    oracle = LogisticRegression(C=1e9, fit_intercept=False, tol=1e-10, max_iter=1000).fit(differences, right)
    assert log_linear_weights(pair, right) == pytest.approx(oracle.coef_[0], rel=1e-3)


def test_log_linear_mixtures_sum_to_one_and_a_single_weight_gives_a_model_back() -> None:
    log_p, _ = classes(20)
    mixed = mix_log_linear(log_p, np.array([0.4, 0.3]))
    assert np.exp(mixed).sum(1) == pytest.approx(np.ones(20))
    assert mix_log_linear(log_p, np.array([0.0, 1.0])) == pytest.approx(log_p[1])
    assert np.abs(mixed - log_p[1]).max() > 0.1


def test_unseen_words_share_what_is_theirs() -> None:
    train = [np.array([2, 3, 3]), np.array([5, 2])]
    shares = unseen(train, 8, pad=0, unknown=1)  # never seen: 1, 4, 6, 7
    assert shares == pytest.approx([0, 0.5, 0, 0, 1 / 6, 0, 1 / 6, 1 / 6])
    assert unseen([np.array([1, 2, 3])], 5, pad=0, unknown=1) == pytest.approx([0, 0, 0, 0, 1])  # unknown is trained
    assert unseen([np.array([2, 3, 4])], 5, pad=0, unknown=1) == pytest.approx([0, 1, 0, 0, 0])
    assert unseen([np.array([1, 2, 3, 4])], 5, pad=0, unknown=1) == pytest.approx(np.full(5, 0.2))  # nothing is missing
