"""Distillation: a teacher is asked for what follows the two tokens before each answer, in reading order."""

from __future__ import annotations

import numpy as np
import torch

from fairtrial.data.batches import Batch, Sentences, Windows
from fairtrial.prepare import prepare
from fairtrial.recipe import built_in_recipe, with_settings
from fairtrial.training.tasks import last_two
from sampling import cases

ROWS = [np.arange(size) + 10 * size for size in (3, 2, 6, 4)]


@cases("kind", ["sentences", "windows"])
def test_the_two_tokens_before_each_answer(kind: str) -> None:
    if kind == "sentences":
        batch: Batch = Sentences(ROWS, batch=4, seed=0, pad=0).batch(0)
    else:
        batch = Windows(np.arange(40), length=5, how="every", batch=3, seed=0).batch(0)
    lengths = [batch.ids.shape[1]] * len(batch.ids) if batch.lengths is None else batch.lengths.tolist()
    expected = [
        [row[time - 1] if time else -1, row[time]]
        for row, length in zip(batch.ids.tolist(), lengths, strict=True)
        for time in range(length)
    ]
    assert last_two(batch).tolist() == expected
    assert len(expected) == batch.count


def test_with_the_teacher_as_the_only_target_the_gradient_leads_to_what_it_says() -> None:
    """The answers themselves no longer matter, and the loss is least where the network says what the teacher says."""
    settings = ["training.distill=1.0", "shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.dropout=0"]
    task = prepare(with_settings(built_in_recipe("default", "lm"), [*settings, "shape.length=16"]), 0).task
    batch = task.batches.batch(0)
    ids, answers = torch.from_numpy(batch.ids), torch.from_numpy(batch.answers)
    assert batch.lengths is None, "windows of running text, all full"
    soft = task.soft_targets(batch)
    one, other = (task.network.loss(ids, None, each, 0.0, 1.0, **soft)[0] for each in (answers, answers.flip(0)))
    torch.testing.assert_close(one, other)
    taught = soft["taught"](0, batch.count)
    torch.testing.assert_close(taught.sum(1), torch.ones(batch.count))
    bias = torch.nn.Parameter(torch.zeros(task.network.out.weight.shape[0]))
    task.network.out.weight.data.zero_()
    task.network.out.bias = bias
    task.network.loss(ids, None, answers, 0.0, 1.0, **soft)[0].backward()
    expected = batch.count / len(bias) - taught.sum(0)  # softmax less target
    torch.testing.assert_close(bias.grad, expected, atol=1e-4, rtol=1e-4)
