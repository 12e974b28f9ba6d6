"""The loop: a generator of events. The caller writes, prints, saves and stops; the loop only trains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from fairtrial.errors import Diverged
from fairtrial.events import Improved, Logged, Ready, Scored, Stepped
from fairtrial.model.external import ExternalModel, seeded
from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.progress import status
from fairtrial.recipe import Duration, Scoring, Training
from fairtrial.rng import seed_for
from fairtrial.training.device import computing, device_of
from fairtrial.training.optimizer import gradient_norm, learning_rate, make_optimizer
from fairtrial.training.scoring import Score, as_tensors
from fairtrial.training.tasks import Task

REMEDY = "try a lower learning rate, warm-up steps, or training.clip=1"


@dataclass
class Progress:
    """All that is needed, beside weights and optimizer, to resume training."""

    step: int = 0
    begun: bool = False  # the scores before the first step are done
    best_step: int | None = None
    best_key: tuple[float, ...] | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)


class Loop:
    def __init__(self, task: Task, training: Training, scoring: Scoring, seed: int) -> None:
        self.task, self.training, self.seed = task, training, seed
        self.network: Any = task.network
        self.device = device_of(task.network)
        self.optimizer: Optimizer = make_optimizer(self.network, training)
        self.dropouts = dropouts_of(self.network)
        self.external = isinstance(self.network, ExternalModel)  # it may draw from the global generators
        self.progress = Progress()
        per_epoch = task.batches.batches_per_epoch()
        self.steps_per_epoch = per_epoch
        self.steps = training.duration.steps(per_epoch)
        self.select_every = max(1, training.select_every.steps(per_epoch))
        self.curve_every = max(1, scoring.curve_every.steps(per_epoch))
        self.quarters = quarters_of(self.steps, self.select_every, self.curve_every)
        self.score_pace: float | None = None  # seconds for each sentence or token of the last score

    def run(self) -> Iterator[Logged | Ready]:
        """Events until training ends. At `ready` all that belongs to the step is done: the moment to save or stop."""
        progress = self.progress
        self.network.train()
        if not progress.begun:
            yield from self.score_curves({})
            progress.begun = True
            yield Ready(0)
        while progress.step < self.steps:
            loss, rate = self.train_step(progress.step)
            progress.step += 1
            yield Stepped(progress.step, loss, rate)
            scores: dict[str, Score] = {}
            last = progress.step == self.steps
            if self.task.choose_on and (progress.step % self.select_every == 0 or last):
                yield from self.select(scores)
            if progress.step % self.curve_every == 0 or last:
                yield from self.score_curves(scores)
            elif progress.step in self.quarters:
                yield from self.score_curves(scores, only=("validation",))
            yield Ready(progress.step)

    def train_step(self, step: int) -> tuple[float, float]:
        """One optimizer step: (nats per answer, learning rate)"""
        training = self.training
        rate = learning_rate(training, step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        seed_dropout(self.dropouts, self.seed, step)
        with seeded(seed_for(self.seed, "dropout", "model", step)) if self.external else nullcontext():
            nats, count = self.gradients(step)
        if not math.isfinite(nats):
            norm = gradient_norm(self.network)
            what = f"the loss is {nats} at step {step + 1} (learning rate {rate:g}, gradient {norm:g})"
            raise Diverged(what, REMEDY)
        if math.isfinite(training.clip):
            clip_grad_norm_(self.network.parameters(), training.clip)
        self.optimizer.step()
        return nats / count, rate

    def gradients(self, step: int) -> tuple[float, int]:
        """Those of one step, in the network: (summed nats, answers)"""
        batch = self.task.batches.batch(step)
        self.optimizer.zero_grad(set_to_none=True)
        tensors = as_tensors(batch, self.device)
        with computing(self.network):
            objective, nats = self.network.loss(*tensors, self.training.label_smoothing, 1 / batch.count)
        objective.backward()
        return float(nats), batch.count

    def select(self, scores: dict[str, Score]) -> Iterator[Logged]:
        """Score the split that weights are selected on, and keep the best."""
        progress, split = self.progress, self.task.choose_on
        assert split is not None
        score = scores[split] = self.score(split)
        yield Scored(progress.step, split, score.metrics)
        if progress.best_key is None or score.selection_key > progress.best_key:
            progress.best_step, progress.best_key = progress.step, score.selection_key
            if self.training.keep == "best":
                progress.best_weights = cloned(weights_of(self.network))
            yield Improved(progress.step, split)

    def score_curves(self, scores: dict[str, Score], only: tuple[str, ...] = ()) -> Iterator[Logged]:
        """Score every split of the curves, or `only` these, that was not scored at this step already."""
        for split in self.task.curves:
            if split not in scores and (not only or split in only):
                scores[split] = self.score(split)
                yield Scored(self.progress.step, split, scores[split].metrics)

    def score(self, split: str) -> Score:
        started, when = time.perf_counter(), "before the first step" if not self.progress.step else "for the curves"
        with status(f"scoring {split} {when}"):
            score = self.task.quick_score(split)
        self.score_pace = (time.perf_counter() - started) / max(1, self.task.work(split, quick=True))
        if not all(map(math.isfinite, score.selection_key)):  # the last step's loss was finite, its weights are not
            rate = learning_rate(self.training, max(0, self.progress.step - 1), self.steps)
            what = f"the {split} score is not a finite number after step {self.progress.step}"
            raise Diverged(f"{what} (learning rate {rate:g})", REMEDY)
        return score

    def final_seconds(self, splits: Iterable[str]) -> float | None:
        """How long the scores at the end will take, by the pace of the last one; None: nothing was scored yet."""
        if self.score_pace is None:
            return None
        return self.score_pace * sum(self.task.work(split) for split in splits if split in self.task.sets)

    def restore_best(self) -> int:
        """Put the selected weights into the network; the step they are from."""
        progress = self.progress
        if self.training.keep == "last" or not progress.best_weights:
            return progress.step
        put_weights(self.network, progress.best_weights)
        assert progress.best_step is not None
        return progress.best_step


WARM_STEPS = 2
LEAST_STEPS, MOST_STEPS = 3, 30  # timed once warm
STEP_SECONDS = 0.8  # spent on timing steps


def timed_loop(task: Task, training: Training, scoring: Scoring, seed: int) -> tuple[Loop, float]:
    """A loop that has taken a few steps, and the seconds of one. It knows how many steps fill a duration in time."""
    known = training if training.duration.seconds is None else replace(training, duration=Duration(1000, "steps"))
    loop = Loop(task, known, scoring, seed)
    pace = step_seconds(loop)
    loop.steps = training.duration.at_pace(pace).steps(loop.steps_per_epoch)
    return loop, pace


def step_seconds(loop: Loop) -> float:
    """Seconds of one step, once warm."""
    spent: list[float] = []
    loop.network.train()
    while len(spent) < WARM_STEPS + LEAST_STEPS or (sum(spent) < STEP_SECONDS and len(spent) < MOST_STEPS):
        spent.append(timed(partial(loop.train_step, len(spent))))
    return median(spent[WARM_STEPS:])


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def quarters_of(steps: int, *every: int) -> set[int]:
    """Where a training that is scored at fewer than four steps scores validation, too: fewer points do not show whether
    it was long enough."""
    usual = range(4) if steps > 2 * min(every) else {0, steps}.union(*(range(0, steps, each) for each in every))
    if steps < 4 or len(usual) >= 4:
        return set()
    return {steps * quarter // 4 for quarter in (1, 2, 3)}


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, also where two names share one tensor."""
    return {name: tensor.detach() for name, tensor in (*network.named_parameters(), *network.named_buffers())}


def cloned(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


@torch.no_grad()
def put_weights(network: nn.Module, tensors: dict[str, Tensor]) -> None:
    for name, tensor in weights_of(network).items():
        tensor.copy_(tensors[name])
