"""The score of a classifier: accuracy, macro-F1, confusion and outcomes, by hand and against scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.model.network import Classifier
from fairtrial.recipe import PartChoice, Shape
from fairtrial.statistics.outcomes import confusion, macro_f1
from fairtrial.training import scoring as module
from fairtrial.training.scoring import log_probabilities, score_classify
from sampling import cases

CLASSES, PAD = 3, 0


class FirstTokenSays(nn.Module):
    """A network whose guess can be read off a row: its first token. Probabilities are 1/2, 1/4, 1/4."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(1, CLASSES)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        return nn.functional.one_hot(ids[:, 0], CLASSES) * math.log(2.0)


@pytest.fixture(scope="module")
def network() -> Classifier:
    shape = Shape(layers=1, heads=2, width=8, hidden=12, classifier_hidden=6, length=12, dropout=0.4)
    return Classifier(shape, [PartChoice(name="learned")], 20, CLASSES, seed=1).double()


def some_rows(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.integers(1, 20, size) for size in rng.integers(1, 13, count)]


def test_figures_and_outcomes_of_a_hand_made_case() -> None:
    guesses = [0, 0, 1, 2, 1, 0]
    labels = np.array([0, 1, 1, 2, 0, 0])
    rows = [np.array([guess] + [1] * (6 - place)) for place, guess in enumerate(guesses)]  # of falling length
    score = score_classify(FirstTokenSays(), rows, labels, PAD)
    assert score.metrics.items == 6
    assert score.metrics.accuracy == pytest.approx(4 / 6)
    assert score.metrics.confusion == ((2, 1, 0), (1, 1, 0), (0, 0, 1))
    # class 0: 2 of 3 guessed, 2 of 3 found; class 1: 1 of 2 and 1 of 2; class 2: all
    assert score.metrics.macro_f1 == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert score.metrics.nll == pytest.approx((4 * math.log(2) + 2 * math.log(4)) / 6)
    low, high = score.metrics.interval
    assert 0.15 < low < 4 / 6 < high < 0.97
    assert score.outcomes["label"].tolist() == labels.tolist()
    assert score.outcomes["guess"].tolist() == guesses
    expected = [-math.log(2 if guess == label else 4) for guess, label in zip(guesses, labels, strict=True)]
    assert score.outcomes["log_p"] == pytest.approx(expected)
    assert score.selection_key == pytest.approx((1, 4 / 6, -score.metrics.nll))  # accuracy decides


def test_one_answer_for_all_is_chosen_last() -> None:
    """Although it is more often right."""
    labels = np.array([0, 0, 0, 1])

    def key(guesses: list[int], truth: np.ndarray = labels) -> tuple[float, ...]:
        return score_classify(FirstTokenSays(), [np.array([guess, 1]) for guess in guesses], truth, PAD).selection_key

    assert key([0, 0, 0, 0]) < key([1, 1, 0, 1]) < key([0, 0, 1, 1]) < key([0, 0, 0, 1])
    assert key([0, 0, 0, 0], np.zeros(4, int)) > key([0, 0, 0, 1], np.zeros(4, int))  # where there is one class only


@cases(
    ("table", "expected"),
    [
        ([[5, 0], [0, 5]], 1.0),
        ([[0, 5], [5, 0]], 0.0),
        ([[9, 0], [1, 0]], 18 / 19 / 2),  # all guessed the same: accuracy 0.9, macro-F1 below a half
        ([[3, 0, 0], [0, 2, 0], [0, 0, 0]], 2 / 3),  # a class that neither occurs nor is guessed
        ([[1, 1], [0, 2]], (2 / 3 + 4 / 5) / 2),
    ],
)
def test_macro_f1_of_hand_made_tables(table: list[list[int]], expected: float) -> None:
    assert macro_f1(np.array(table)) == pytest.approx(expected, rel=1e-12)


def test_confusion_counts_true_classes_in_rows() -> None:
    table = confusion(np.array([0, 0, 2]), np.array([1, 1, 0]), 3)
    assert table.tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60))
def test_confusion_and_macro_f1_equal_scikit_learns(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    labels, guesses = np.array(pairs).T
    table = confusion(labels, guesses, 4)
    assert table.tolist() == metrics.confusion_matrix(labels, guesses, labels=range(4)).tolist()
    expected = metrics.f1_score(labels, guesses, labels=range(4), average="macro", zero_division=0)
    assert macro_f1(table) == pytest.approx(expected, rel=1e-12)


def test_probabilities_are_those_of_each_sentence_alone(network: Classifier) -> None:
    rows = some_rows(30)
    log_p = log_probabilities(network, rows, PAD)
    network.eval()
    with torch.no_grad():
        for row, mine in zip(rows, log_p, strict=True):
            alone = network(torch.from_numpy(row)[None])[0].log_softmax(-1).numpy()
            np.testing.assert_allclose(mine, alone, rtol=1e-10)
    np.testing.assert_allclose(np.exp(log_p).sum(1), 1, rtol=1e-12)
    assert np.ptp(log_p[:, 0]) > 1e-3  # the sentences are told apart


def test_the_order_of_items_does_not_matter(network: Classifier) -> None:
    rows, labels = some_rows(300), np.random.default_rng(2).integers(CLASSES, size=300)
    order = np.random.default_rng(3).permutation(300)
    one = score_classify(network, rows, labels, PAD)
    two = score_classify(network, [rows[item] for item in order], labels[order], PAD)
    for name in ("label", "guess", "log_p"):
        np.testing.assert_allclose(two.outcomes[name], one.outcomes[name][order], rtol=1e-10)
    assert not np.array_equal(one.outcomes["log_p"], two.outcomes["log_p"])  # they did move
    assert two.metrics.confusion == one.metrics.confusion
    assert two.metrics.nll == pytest.approx(one.metrics.nll, rel=1e-12)


def test_how_many_are_scored_at_once_does_not_matter(network: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, answers = some_rows(50), []
    for size in (1, 7, 1000):
        monkeypatch.setattr(module, "ROWS", size)
        answers.append(log_probabilities(network, rows, PAD))
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-10)
    np.testing.assert_allclose(answers[2], answers[0], rtol=1e-10)


def test_scoring_a_classifier_drops_nothing_and_leaves_it_training(network: Classifier) -> None:
    rows = some_rows(10)
    network.train()
    one, two = log_probabilities(network, rows, PAD), log_probabilities(network, rows, PAD)
    assert np.array_equal(one, two)
    assert network.training


def test_a_sentence_without_tokens_has_a_score(network: Classifier) -> None:
    rows = [np.array([], dtype=np.int64), np.array([3, 4])]
    assert np.isfinite(log_probabilities(network, rows, PAD)).all()
    assert np.isfinite(log_probabilities(network, rows[:1], PAD)).all()
