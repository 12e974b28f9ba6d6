"""Again: the same training gives the same bits (R1), also when it is resumed (R2) and its weights reloaded (R3)."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load, save

from fairtrial.passport.finding import Measured
from fairtrial.passport.subject import Plan, Subject, as_batch, largest_change
from fairtrial.passport.training import small_loop, state_of, train_to
from fairtrial.train.checkpoint import Checkpoints, put_weights, weights_of

STEPS = 30
RESUMED = 8


def throw_dice(number: int) -> None:
    """The world's dice, which no part should read."""
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def trained_state(plan: Plan, number: int) -> str:
    throw_dice(number)
    loop = small_loop(plan, STEPS)
    return state_of(loop, train_to(loop, STEPS))


def equal(same: bool, good: str, bad: str) -> Measured:
    return Measured(0.0 if same else 1.0, "equal bits", same, good if same else bad)


def same_in_process(subject: Subject) -> Measured:
    return told(trained_state(subject.plan, 0) == trained_state(subject.plan, 1), "Training twice")


def told(same: bool, what: str) -> Measured:
    bad = f"{what} from one seed ends with different weights: something draws from dice that are not its own."
    return equal(same, f"{what} from one seed ends with the same bits.", bad)


def resumes(subject: Subject) -> Measured:
    throw_dice(3)
    whole = small_loop(subject.plan, RESUMED)
    losses = train_to(whole, RESUMED)
    throw_dice(4)
    first = small_loop(subject.plan, RESUMED)
    again = train_to(first, RESUMED // 2)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(Path(folder) / "checkpoints")
        checkpoints.save(first, 0)
        second = small_loop(subject.plan, RESUMED)
        checkpoints.load(second, 0, lambda text: None)
    again += train_to(second, RESUMED)
    return equal(
        state_of(whole, losses) == state_of(second, again),
        "A killed and resumed training ends with the same bits.",
        "A killed and resumed training ends elsewhere: a part remembers something that no checkpoint holds.",
    )


def reloads(subject: Subject) -> Measured:
    trained = small_loop(subject.plan, RESUMED)
    train_to(trained, RESUMED)
    network = trained.network.eval()
    other = subject.plan.build().eval()
    put_weights(other, load(save(weights_of(network))))
    ids, lengths = as_batch(subject.rows)
    with torch.no_grad():
        change = largest_change([network(ids, lengths)], [other(ids, lengths)])
    return Measured(
        change,
        "1e-12",
        change <= 1e-12,
        "Saved and reloaded weights give the same answers."
        if change <= 1e-12
        else "Saved and reloaded weights give other answers: a part keeps something outside its saved weights.",
    )
