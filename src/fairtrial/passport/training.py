"""A short training of an audited network on a few rows, to see whether it repeats, resumes and reloads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from fairtrial.duration import Duration
from fairtrial.passport.sample import MOST
from fairtrial.passport.subject import Plan
from fairtrial.recipe import Scoring, Training
from fairtrial.streams import dice
from fairtrial.text.batches import Batches, LabelledSentences, Sentences
from fairtrial.train.checkpoint import weights_of
from fairtrial.train.loop import Loop
from fairtrial.train.score import Score

ROWS, BATCH = 12, 4


@dataclass
class SmallBench:
    """What the loop trains. There is nothing to choose by and no curve."""

    network: object
    batches: Batches
    choose_on: str | None = None
    curves: tuple[str, ...] = ()

    def quick_score(self, split: str) -> Score:
        raise KeyError(split)  # there are no splits, so nobody asks


def small_loop(plan: Plan, steps: int) -> Loop:
    chance = dice(plan.seed, "passport", "training")
    longest = min(plan.shape.length, MOST // 2) + (plan.task == "lm")  # a language model's row holds its last target
    sizes = chance.integers(min(2, longest), longest + 1, size=ROWS)
    rows = [chance.integers(plan.vocabulary, size=size) for size in sizes]
    batches: Batches
    if plan.task == "lm":
        batches = Sentences(rows, batch=BATCH, seed=plan.seed, pad=0)
    else:
        batches = LabelledSentences(rows, np.arange(ROWS) % plan.classes, batch=BATCH, seed=plan.seed, pad=0)
    training = Training(duration=Duration(steps, "steps"), batch=BATCH)
    return Loop(SmallBench(plan.build(), batches), training, Scoring(), plan.seed)


def train_to(loop: Loop, step: int) -> list[float]:
    """Train until `step` is done; the losses on the way."""
    losses: list[float] = []
    if loop.progress.begun and loop.progress.step >= step:
        return losses
    for event in loop.run():
        if event.kind == "step":
            losses.append(float(event.facts["loss"]))
        if event.kind == "ready" and event.step >= step:
            break
    return losses


def state_of(loop: Loop, losses: list[float]) -> str:
    """One fingerprint of all weights and losses."""
    whole = hashlib.sha256(repr(losses).encode())
    for name, tensor in sorted(weights_of(loop.network).items()):
        whole.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return whole.hexdigest()
