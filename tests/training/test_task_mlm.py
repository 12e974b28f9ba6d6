"""Masked words: what is hidden, what is scored, and that a model learns from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fairtrial.data.batches import MaskedSentences, Masker
from fairtrial.model.network import MaskedModel
from fairtrial.recipe import PartChoice, Shape
from fairtrial.trial import load, run_trial
from sealed import events_of

MASKER = Masker(mask=2, first=3, vocabulary=1000)


def test_a_share_is_hidden_as_bert_hides_it() -> None:
    chance = np.random.default_rng(0)
    ids = np.arange(3, 903)
    seen, answers = MASKER(ids, chance)
    hidden = answers >= 0
    assert hidden.sum() == 135
    assert (answers[hidden] == ids[hidden]).all()
    assert (seen[~hidden] == ids[~hidden]).all()
    assert 0.7 < (seen[hidden] == 2).mean() < 0.9
    other = hidden & (seen != 2)
    assert 0.3 < (seen[other] != ids[other]).mean() < 0.8  # half of these are random, half stay
    assert ids[0] == 3  # what was given is untouched


def test_marks_are_never_hidden_and_one_word_always_is() -> None:
    seen, answers = MASKER(np.array([0, 1, 1]), np.random.default_rng(0))
    assert (answers == -1).all()
    assert (seen == [0, 1, 1]).all()
    assert (MASKER(np.array([5, 6]), np.random.default_rng(0))[1] >= 0).sum() == 1


def test_batches_are_a_pure_function_of_seed_and_number() -> None:
    rows = [np.arange(3, 3 + count) for count in (4, 9, 2, 7, 30)]
    one, other = (MaskedSentences(rows, MASKER, batch=2, seed=7, pad=0) for _ in range(2))
    first = one.batch(0)
    for number in (3, 1, 0):
        one.batch(number)
    left, right = one.batch(4), other.batch(4)
    assert (left.ids == right.ids).all()
    assert (left.answers == right.answers).all()
    later = other.batch(3)  # the same sentences in another epoch have other words hidden
    assert first.count > 0
    assert later.count > 0
    assert (MaskedSentences(rows, MASKER, batch=2, seed=8, pad=0).batch(0).ids != first.ids[:, :1]).any()


def test_the_loss_is_that_of_the_hidden_places_alone() -> None:
    torch.manual_seed(0)
    shape = Shape(layers=1, heads=2, width=8, hidden=8, length=6, dropout=0.0)
    network = MaskedModel(shape, (PartChoice(name="learned"),), 20).double()
    ids = torch.tensor([[4, 2, 6, 7], [2, 9, 0, 0]])
    lengths, answers = torch.tensor([4, 2]), torch.tensor([[-1, 5, -1, 7], [8, -1, -1, -1]])
    logits = network(ids, lengths)
    places = ((0, 1, 5), (0, 3, 7), (1, 0, 8))
    expected = -sum(logits[row, place].log_softmax(-1)[entry] for row, place, entry in places)
    objective, nats = network.loss(ids, lengths, answers, 0.0, 1.0)
    torch.testing.assert_close(nats, expected.detach(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(network.nll(ids, lengths, answers).sum(), expected.detach(), rtol=1e-9, atol=1e-9)
    objective.backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_a_masked_model_learns_and_its_score_repeats(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    record = run_trial(
        tiny_recipe("mlm", "training.duration=150 steps", "training.learning_rate=1e-2"), 0, tmp_path / "run"
    )
    first = next(event for event in events_of(record) if event["event"] == "score" and event["split"] == "validation")
    result = record.result
    assert result.validation.masked_perplexity < first["masked_perplexity"] / 1.5
    assert result.test_reads == dict.fromkeys(record.trial.test_sets, 1)
    again = load(record).task
    for name, figures in result.tests.items():
        assert abs(again.score(name).metrics.masked_nll - figures.masked_nll) < 1e-6
        outcomes = record.outcomes()
        assert outcomes[f"{name}/tokens"].sum() == figures.tokens
