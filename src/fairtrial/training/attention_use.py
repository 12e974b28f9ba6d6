"""Is attention in use? How far heads have moved from their first weights, and what it costs a trained network to attend
evenly, not at all, or to words in another order. Validation only: no test set is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairtrial.data.batches import padded
from fairtrial.model.layers import HookPoint, capture
from fairtrial.model.part import OUTSIDE_ATTENTION
from fairtrial.rng import generator_for
from fairtrial.stored import AttentionUse, ChangedLoss
from fairtrial.training.device import device_of
from fairtrial.training.scoring import evenly
from fairtrial.training.tasks import ClassifyTask, LanguageTask, Task

# fewer texts would say little; more would take over 5% of a classifier's training
FEWEST, MOST_TEXTS, MOST_WINDOWS, MOST_MAPS = 50, 160, 96, 16
Pair = tuple[np.ndarray, np.ndarray]  # inputs, answers; -1 where there is none


def attention_use(task: Task, initial: Any, seed: int) -> AttentionUse | None:
    """None where validation has too few texts, or the network is not one of ours. `initial`: as it was built."""
    pairs = [] if "validation" not in task.sets or not hasattr(task.network, "body") else validation_pairs(task)
    if len(pairs) < FEWEST:
        return None
    network = task.network.eval()
    last, kept = pairs, 0
    if isinstance(task, LanguageTask):  # of what follows the last word, whose earlier words have changed places
        last = [(ids, np.where(np.arange(len(ids)) < len(ids) - 1, -1, answers)) for ids, answers in pairs]
        kept = 1
    rng = generator_for(seed, "eval", "order")
    shuffled = [(shuffle(ids, rng, kept), answers) for ids, answers in last]
    whole = nats(network, pairs)
    with replaced_maps(network, evened):
        even = nats(network, pairs)
    with replaced_maps(network, torch.zeros_like):
        without = nats(network, pairs)
    parts = network.body.parts.items()
    return AttentionUse(
        parts=tuple(name for name, part in parts if not part.hooks or not part.hooks <= OUTSIDE_ATTENTION),
        heads_changed=heads_changed(network, initial.to(device_of(network)).eval(), pairs),
        uniform=cost(even - whole),
        removed=cost(without - whole),
        shuffled=cost(nats(network, shuffled) - (whole if last is pairs else nats(network, last))),
    )


def validation_pairs(task: Task) -> list[Pair]:
    """Texts and classes, or windows of text and their next words."""
    if isinstance(task, ClassifyTask):
        rows, labels = task.sets["validation"]
        chosen = evenly(len(rows), MOST_TEXTS)
        return [(np.asarray(rows[n]), labels[n : n + 1]) for n in chosen if len(rows[n])]
    if not isinstance(task, LanguageTask):
        return []
    pairs = [
        (row[begin : begin + task.length], row[begin + 1 : begin + task.length + 1])
        for row in task.sets["validation"].sequences
        for begin in range(0, len(row) - 1, task.length)
    ]
    pairs = [(ids[: len(answers)], answers) for ids, answers in pairs]
    return [pairs[n] for n in evenly(len(pairs), MOST_WINDOWS)]


def shuffle(ids: np.ndarray, rng: np.random.Generator, kept: int) -> np.ndarray:
    """Its tokens in another order, but for the last `kept`."""
    free = len(ids) - kept
    return np.concatenate((rng.permutation(ids[:free]), ids[free:]))


@torch.no_grad()
def nats(network: Any, pairs: Sequence[Pair]) -> np.ndarray:
    """Mean nats of each text's answers [text]"""
    device, found = device_of(network), []
    for begin in range(0, len(pairs), 32):
        some = pairs[begin : begin + 32]
        ids, lengths = (torch.from_numpy(array).to(device) for array in padded([ids for ids, _ in some], 0))
        if hasattr(network, "nll"):
            answers = torch.from_numpy(padded([answers for _, answers in some], -1)[0]).to(device)
            rows = (answers >= 0).nonzero()[:, 0]
            sums = torch.zeros(len(some), dtype=torch.float64, device=device)
            sums.index_add_(0, rows, network.nll(ids, lengths, answers).double())
            found.append(sums / (answers >= 0).sum(1))
        else:
            labels = torch.from_numpy(np.concatenate([answers for _, answers in some])).to(device)
            found.append(cross_entropy(network(ids, lengths), labels, reduction="none").double())
    return torch.cat(found).cpu().numpy()


def evened(weights: Tensor) -> Tensor:
    """The same weight on everything that is seen at all [batch head query key]"""
    seen = (weights > 0).to(weights.dtype)
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


@contextmanager
def replaced_maps(network: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Inside, attention goes by changed weights."""
    points = [block.attention.maps for block in network.body.blocks if isinstance(block.attention.maps, HookPoint)]
    for point in points:
        point.on_capture = change
    try:
        yield
    finally:
        for point in points:
            point.on_capture = None


@torch.no_grad()
def heads_changed(network: Any, initial: Any, pairs: Sequence[Pair]) -> tuple[float, ...]:
    """How much of each head's attention has gone to other words since the first step: 0 none, 1 all. Layer by layer"""
    some = [pairs[n] for n in evenly(len(pairs), MOST_MAPS)]
    ids, lengths = (torch.from_numpy(array).to(device_of(network)) for array in padded([ids for ids, _ in some], 0))
    maps = []
    for each in (network, initial):
        with capture(each) as seen:
            each.body(ids, lengths)
        maps.append([seen[f"body.blocks.{layer}.attention.maps"] for layer in range(len(each.body.blocks))])
    changes = []
    for now, then in zip(*maps, strict=True):
        rows = now.sum((1, 3)) > 0  # batch query: real ones
        moved = (now - then).abs().sum(-1) / 2  # batch head query
        changes += [float(moved[:, head][rows].mean()) for head in range(moved.shape[1])]
    return tuple(round(each, 4) for each in changes)


def cost(added: np.ndarray) -> ChangedLoss:
    """Nats more for each answer, and how well that is known."""
    error = float(added.std(ddof=1) / len(added) ** 0.5) if len(added) > 1 else float("inf")
    return ChangedLoss(round(float(added.mean()), 5), round(error, 5))
