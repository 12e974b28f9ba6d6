"""Two ways to one answer: fast kernel and equation (E1), cache and full text (C1); the same training gives the same
bits (R1), also when it is resumed (R2), and its saved weights the same answers (R3)."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import random
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import fairtrial
from fairtrial.audit.probe import changed
from fairtrial.audit.subject import MOST, Plan, Subject, as_batch, generator, largest_change
from fairtrial.data.batches import Batches, LabelledSentences, Sentences
from fairtrial.disk import temporary_folder
from fairtrial.errors import HelperDied, message_of
from fairtrial.events import Ready, Stepped
from fairtrial.finding import Measured, Untestable, at_most
from fairtrial.model.external import ExternalModel, attention_kernel, models
from fairtrial.model.layers import capture
from fairtrial.model.part import parts
from fairtrial.plugins import load_files, source_of
from fairtrial.recipe import Duration, PartChoice, Scoring, Shape, Training
from fairtrial.rng import generator_for
from fairtrial.stored import DataCounts
from fairtrial.training.checkpoint import Checkpoints
from fairtrial.training.loop import Loop, put_weights, weights_of
from fairtrial.training.tasks import ClassifyTask

# R1's short training in a process of its own, which ends with the one that waits for it, also while it imports torch
FRESH = """
import json, sys
from fairtrial.environment import end_with_caller
end_with_caller()
from fairtrial.audit.determinism import train_as_requested
print(json.dumps(train_as_requested(*json.loads(sys.argv[1]))))
"""
STEPS, RESUMED_STEPS = 30, 8
ROWS, BATCH = 12, 4
BATCHED = 6  # times as many rows, and words, that are read with a cache as one batch
SECONDS = 180  # for a training in a fresh process
RAISED, AGAIN = "raised ", "the audit returned no findings: run it again"


def eager_is_fast(subject: Subject) -> Measured | str:
    if subject.external is not None:
        return external_kernels(subject, subject.external)
    fast = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    with capture(subject.network):  # captured attention is computed as its equation says
        eager = [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]
    good = "The fast path and the equation agree."
    bad = "The fast path and the equation give different numbers: attention maps do not show what was computed."
    return at_most(largest_change(fast, eager), subject.tolerance, good, bad)


def external_kernels(subject: Subject, network: ExternalModel) -> Measured | str:
    """Attention as its equation says beside torch's fused kernel, where a network has both ways."""

    def answers() -> list[Tensor]:
        return [*subject.answers(subject.rows), *subject.log_p(subject.full_rows)]

    usual = answers()
    others: dict[str, list[Tensor]] = {}
    for kind in ("eager", "sdpa"):
        with attention_kernel(network, kind) as chosen:
            if chosen:
                others[kind] = answers()
    if len(others) < 2 and subject.trace.fused:
        with sdpa_kernel(SDPBackend.MATH):
            others = {"math": answers()}
    if not others or (len(others) < 2 and "math" not in others):
        return "It has no second way to compute attention."
    worst = max(largest_change(usual, found) for found in others.values())
    good, bad = "Eager and fused attention give the same numbers.", "Eager and fused attention give different numbers"
    return at_most(worst, max(1e-6, subject.tolerance), good, f"{bad}, by up to {worst:.2g} nats.")


def no_cache(subject: Subject) -> str:
    """Why there is no cache to test; empty: there is one."""
    if subject.network.new_cache() is not None:
        return ""
    name = "none" if subject.external is None else subject.external.declared.cache
    if name == "none":
        return 'No cache was found in its arguments; declare "cache" to have it tested.'
    return Untestable(f"It takes {name} and gives none back when {name} is None: its cache is not tested.")


def cached_is_full(subject: Subject) -> Measured | str:
    if why := no_cache(subject):
        return why
    time = subject.full_rows.shape[1]
    begun = [[time // 2] + [1] * (time - time // 2)] if time > 1 else []  # a prompt, then word by word
    measured = cached(subject, subject.full_rows, [[1] * time, *begun], "word by word")
    if not measured.passed or time < 2:
        return measured
    rng = generator(subject.plan.seed, "cache")
    many = torch.stack([changed(subject, row, rng, kind=1) for row in subject.full_rows.repeat(BATCHED, 1)])
    first = int(torch.randint(1, time, (), generator=rng))
    return cached(subject, many, [[first] + [1] * min(BATCHED, time - first)], "word by word")


def cached_in_pieces(subject: Subject) -> Measured | str | None:
    """A cache that is given several tokens at once, as when a second prompt follows."""
    if subject.network.new_cache() is None:
        return "There is no cache to test."
    time = subject.full_rows.shape[1]
    ways = [[time // 2, 1, time - time // 2 - 1]]
    return cached(subject, subject.full_rows, ways, "in pieces") if time > 3 else None


def cached(subject: Subject, ids: Tensor, ways: Sequence[list[int]], how: str) -> Measured:
    full = subject.log_p(ids)
    read = [(sum(sizes), subject.in_pieces(ids[:, : sum(sizes)], sizes)) for sizes in ways]
    worst = max(largest_change([full[:, :size]], [found]) for size, found in read)
    good = f"Reading {how} with a cache gives the same predictions as reading all at once."
    bad = f"Reading {how} with a cache changes predictions by up to {worst:.2g} nats."
    return at_most(worst, subject.tolerance, good, bad)


def repeats_in_process(subject: Subject) -> Measured:
    return same_bits(trained_state(subject.plan, 0) == trained_state(subject.plan, 1), "Training twice")


def same_bits(same: bool, what: str) -> Measured:
    bad = f"{what} from one seed ends with different weights: some random generator is not seeded by fairtrial."
    return equal(same, f"{what} from one seed ends with the same bits.", bad)


def equal(same: bool, good: str, bad: str) -> Measured:
    return Measured(0.0 if same else 1.0, "equal bits", same, good if same else bad)


def resumes(subject: Subject) -> Measured:
    seed_global_rng(3)
    uninterrupted = small_loop(subject.plan, RESUMED_STEPS)
    losses = train_to(uninterrupted, RESUMED_STEPS)
    seed_global_rng(4)
    first = small_loop(subject.plan, RESUMED_STEPS)
    resumed_losses = train_to(first, RESUMED_STEPS // 2)
    with temporary_folder() as folder:
        checkpoints = Checkpoints(folder / "checkpoints")
        checkpoints.save(first, 0, "")
        second = small_loop(subject.plan, RESUMED_STEPS)
        checkpoints.load(second, lambda size: "", lambda text: None)
    resumed_losses += train_to(second, RESUMED_STEPS)
    good = "A killed and resumed training ends with the same bits."
    bad = "A killed and resumed training ends with different bits: a part has state that checkpoints do not store."
    return equal(state_of(uninterrupted, losses) == state_of(second, resumed_losses), good, bad)


def reloads(subject: Subject) -> Measured:
    trained = small_loop(subject.plan, RESUMED_STEPS)
    train_to(trained, RESUMED_STEPS)
    network = trained.network.eval()
    other = subject.plan.build().eval()
    put_weights(other, load(save(weights_of(network))))
    ids, lengths = as_batch(subject.rows)
    with torch.no_grad():
        change = largest_change([network(ids, lengths)], [other(ids, lengths)])
    good = "Saved and reloaded weights give the same answers."
    bad = "Saved and reloaded weights give different answers: a part has state outside its saved weights."
    return at_most(change, 1e-12, good, bad)


def small_loop(plan: Plan, steps: int) -> Loop:
    """A short training on a few rows, without any split to score."""
    rng = generator_for(plan.seed, "passport", "training")
    longest = min(plan.shape.length, MOST // 2) + (plan.task == "lm")  # a language model's row holds its last target
    sizes = rng.integers(min(2, longest), longest + 1, size=ROWS)
    lowest = 0 if plan.model.name == "none" and plan.module is None else 1  # 0 is padding, which some networks look for
    rows = [rng.integers(lowest, plan.vocabulary, size=size) for size in sizes]
    batches: Batches
    if plan.task == "lm":
        batches = Sentences(rows, batch=BATCH, seed=plan.seed, pad=0)
    else:
        batches = LabelledSentences(rows, np.arange(ROWS) % plan.classes, batch=BATCH, seed=plan.seed, pad=0)
    training = Training(duration=Duration(steps, "steps"), batch=BATCH)
    # nothing is scored: any kind of task serves
    counts = DataCounts(documents={}, vocabulary=plan.vocabulary)
    task = ClassifyTask(cast(Any, plan.build()), batches, choose_on=None, curves=(), sets={}, counts=counts, groups={})
    return Loop(task, training, Scoring(), plan.seed)


def train_to(loop: Loop, step: int) -> list[float]:
    """Train until `step` is done; the losses on the way."""
    losses: list[float] = []
    for event in loop.run():
        if isinstance(event, Stepped):
            losses.append(event.loss)
        if isinstance(event, Ready) and event.step >= step:
            break
    return losses


def state_of(loop: Loop, losses: list[float]) -> str:
    """One fingerprint of all weights and losses."""
    digest = hashlib.sha256(repr(losses).encode())
    for name, tensor in sorted(weights_of(loop.network).items()):
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def trained_state(plan: Plan, number: int) -> str:
    seed_global_rng(number)
    loop = small_loop(plan, STEPS)
    return state_of(loop, train_to(loop, STEPS))


def seed_global_rng(number: int) -> None:
    """The global random generators, which no part should read."""
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


class RepeatedRuns:
    """R1: a fresh process trains the same plans, with another hash seed, while the other checks run; `judge` waits for
    it, and compares what a training in this process ends with."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = list(plans)
        self.states: list[str] = []

    def __enter__(self) -> RepeatedRuns:
        self.stack = ExitStack()
        folder = self.stack.enter_context(temporary_folder())  # sources of parts from a notebook
        held, alive = os.pipe()  # closed by the system when this process ends, however it does
        self.stack.callback(os.close, alive)
        self.process = start_process(self.plans, plugin_files(self.plans, folder), held)
        self.stack.callback(self.process.communicate)
        self.stack.callback(self.process.kill)
        os.close(held)
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def judge(self, plan: Plan) -> Measured:
        self.states = self.states or wait_for_states(self.process)
        there = self.states[self.plans.index(plan)]
        if there.startswith(RAISED):
            raise RuntimeError(f"training in a fresh process {there}")
        return same_bits(trained_state(plan, 0) == there, "Training in two processes")


def start_process(plans: Sequence[Plan], files: Sequence[str], held: int) -> Popen[str]:
    request = json.dumps([[asdict(plan) for plan in plans], 1, files])  # a plan of a module has no process
    ours, here = str(Path(fairtrial.__file__).parents[1]), {"", os.getcwd()}  # no import from the working folder
    paths = os.pathsep.join((ours, *(path for path in sys.path if path not in here)))
    command = [sys.executable, "-P", "-c", FRESH, request]
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = os.environ | {"PYTHONHASHSEED": other, "PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8"}
    return Popen(command, stdin=held, stdout=PIPE, stderr=PIPE, encoding="utf-8", errors="replace", env=environment)


def wait_for_states(process: Popen[str]) -> list[str]:
    """The states that a process ended with, one for each plan."""
    try:
        out, errors = process.communicate(timeout=SECONDS)
    except TimeoutExpired as error:
        raise HelperDied(f"a process of the audit took longer than {SECONDS:.0f} seconds", AGAIN) from error
    if process.returncode:
        last = (errors.strip().splitlines() or ["no message"])[-1]
        raise HelperDied(f"a process of the audit ended with code {process.returncode} ({last})", AGAIN)
    return [str(state) for state in json.loads(out.strip().splitlines()[-1])]


def plugin_files(plans: Sequence[Plan], folder: Path) -> list[str]:
    """Files that register the parts and models that are not built in. What was written in a notebook or a script, which
    must not be run again, becomes one."""
    kinds: dict[str, Any] = {choice.name: parts.find(choice.name) for plan in plans for choice in plan.choices}
    kinds |= {name: models.find(name) for name in {plan.model.name for plan in plans} & set(models.list())}
    files = []
    for name, kind in kinds.items():
        if kind.__module__.startswith("fairtrial_plugin_"):
            files.append(inspect.getfile(kind))
        elif not kind.__module__.startswith("fairtrial."):
            copy = folder / (name.partition(":")[0] if name in models.list() else f"{name}.py")
            copy.write_bytes(source_of(kind, name).encode())
            files.append(str(copy))
    return files


def train_as_requested(plans: list[dict[str, Any]], number: int, files: list[str]) -> list[str]:
    """In the fresh process: the state of each plan after its training."""
    torch.set_num_threads(1)
    load_files(map(Path, files))
    states = []
    for fields in plans:
        choices = tuple(PartChoice(**choice) for choice in fields["choices"])
        built = {"shape": Shape(**fields["shape"]), "choices": choices, "model": PartChoice(**fields["model"])}
        try:
            states.append(trained_state(Plan(**fields | built), number))
        except (Exception, GeneratorExit) as error:  # whatever a part raises
            states.append(f"{RAISED}{type(error).__name__}: {message_of(error)[:200]}")
    return states
