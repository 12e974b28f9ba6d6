"""Two ways to one answer: the fast kernel says what the equation says (E1), a cache what the whole text says (C1).

Again: the same training gives the same bits (R1), also when it is resumed (R2) and its weights reloaded (R3).

A short training of an audited network on a few rows, to see whether it repeats, resumes and reloads.

Twins: two fresh processes that train the same plans, their dictionaries ordered by other hashes (R1).
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
import torch
from safetensors.torch import load, save

import fairtrial
from fairtrial.audit.finding import Measured, at_most
from fairtrial.audit.subject import MOST, Plan, Subject, as_batch, largest_change
from fairtrial.data.batches import Batches, LabelledSentences, Sentences
from fairtrial.errors import FairtrialError
from fairtrial.model.layers import watch
from fairtrial.model.part import parts
from fairtrial.recipe import Duration, Scoring, Training
from fairtrial.rng import generator_for
from fairtrial.training.checkpoint import Checkpoints, put_weights, weights_of
from fairtrial.training.loop import Loop
from fairtrial.training.scoring import Score


def eager_is_fast(subject: Subject) -> Measured:
    fast = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    with watch(subject.network):  # watched attention is computed as its equation says
        eager = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    return at_most(
        largest_change(fast, eager),
        subject.tolerance,
        "The fast path gives the numbers of the equation.",
        "The fast path and the equation give different numbers: maps do not show what was computed.",
    )


def cached_is_full(subject: Subject) -> Measured | None:
    if not subject.causal:
        return None
    ids = subject.full_rows
    time = ids.shape[1]
    whole = subject.log_p(ids)
    pieces = [time // 2, 1, time - time // 2 - 1] if time > 2 else [time]
    worst = max(largest_change([whole], [subject.in_pieces(ids, sizes)]) for sizes in ([1] * time, pieces))
    return at_most(
        worst,
        subject.tolerance,
        "Reading word by word with a cache gives what reading all at once gives.",
        f"Reading word by word with a cache changes predictions by up to {worst:.2g} nats.",
    )


STEPS = 30
RESUMED = 8


def random_generator(number: int) -> None:
    """The world's rng, which no part should read."""
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def trained_state(plan: Plan, number: int) -> str:
    random_generator(number)
    loop = small_loop(plan, STEPS)
    return state_of(loop, train_to(loop, STEPS))


def equal(same: bool, good: str, bad: str) -> Measured:
    return Measured(0.0 if same else 1.0, "equal bits", same, good if same else bad)


def same_in_process(subject: Subject) -> Measured:
    return told(trained_state(subject.plan, 0) == trained_state(subject.plan, 1), "Training twice")


def told(same: bool, what: str) -> Measured:
    bad = f"{what} from one seed ends with different weights: something draws from rng that are not its own."
    return equal(same, f"{what} from one seed ends with the same bits.", bad)


def resumes(subject: Subject) -> Measured:
    random_generator(3)
    whole = small_loop(subject.plan, RESUMED)
    losses = train_to(whole, RESUMED)
    random_generator(4)
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


ROWS, BATCH = 12, 4


@dataclass
class SmallTask:
    """What the loop trains. There is nothing to choose by and no curve."""

    network: object
    batches: Batches
    choose_on: str | None = None
    curves: tuple[str, ...] = ()

    def quick_score(self, split: str) -> Score:
        raise KeyError(split)  # there are no splits, so nobody asks


def small_loop(plan: Plan, steps: int) -> Loop:
    chance = generator_for(plan.seed, "passport", "training")
    longest = min(plan.shape.length, MOST // 2) + (plan.task == "lm")  # a language model's row holds its last target
    sizes = chance.integers(min(2, longest), longest + 1, size=ROWS)
    rows = [chance.integers(plan.vocabulary, size=size) for size in sizes]
    batches: Batches
    if plan.task == "lm":
        batches = Sentences(rows, batch=BATCH, seed=plan.seed, pad=0)
    else:
        batches = LabelledSentences(rows, np.arange(ROWS) % plan.classes, batch=BATCH, seed=plan.seed, pad=0)
    training = Training(duration=Duration(steps, "steps"), batch=BATCH)
    return Loop(SmallTask(plan.build(), batches), training, Scoring(), plan.seed)


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


SECONDS = 180


class Twins:
    """They train beside the other checks; `judge` waits for them."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = list(plans)
        self.running: list[tuple[subprocess.Popen[str], IO[str]]] = []
        self.states: list[list[str]] | None = None

    def __enter__(self) -> Twins:
        for number in (0, 1):
            self.running.append(start(self.plans, number))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process, told_here in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
            told_here.close()

    def judge(self, plan: Plan) -> Measured:
        if self.states is None:
            self.states = [answer(*each) for each in self.running]
        place = self.plans.index(plan)
        return told(self.states[0][place] == self.states[1][place], "Training in two fresh processes")


def start(plans: Sequence[Plan], number: int) -> tuple[subprocess.Popen[str], IO[str]]:
    order = {"plans": [asdict(plan) for plan in plans], "number": number, "homes": homes_of(plans)}
    paths = os.pathsep.join(filter(None, (str(Path(fairtrial.__file__).parents[1]), *sys.path)))
    complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  (a file never fills up, as a pipe does)
    process = subprocess.Popen(
        [sys.executable, "-m", "fairtrial.audit.fresh", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(number), "PYTHONPATH": paths},
    )
    return process, complaints


def answer(process: subprocess.Popen[str], complaints: IO[str]) -> list[str]:
    """The states that a process ended with, one for each plan."""
    out, _ = process.communicate(timeout=SECONDS)
    if process.returncode:
        complaints.seek(0)
        last = (complaints.read().strip().splitlines() or ["it says nothing"])[-1]
        raise FairtrialError(f"training in a fresh process fails: {last}")
    return [str(state) for state in json.loads(out.strip().splitlines()[-1])]


def homes_of(plans: Sequence[Plan]) -> dict[str, dict[str, str]]:
    """The file and class of every part that is not built in."""
    found = {}
    for name in dict.fromkeys(choice.name for plan in plans for choice in plan.choices):
        kind = parts.find(name)
        if not kind.__module__.startswith("fairtrial."):
            found[name] = {"file": inspect.getfile(kind), "kind": kind.__qualname__}
    return found
