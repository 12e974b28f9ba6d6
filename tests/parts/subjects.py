"""What the conformance suite examines: every built-in part, plain and with options, in small networks of both kinds."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle, product
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.model.attention import KVCache
from fairtrial.model.layers import dropouts_of, seed_dropout
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.model.part import OTHER_WEIGHTS, parts
from fairtrial.recipe import PartChoice, Shape

ENTRIES, CLASSES, LAYERS, LONGEST = 90, 3, 2, 64
SHAPE = Shape(
    layers=LAYERS, width=24, length=LONGEST + 1, hidden=20, classifier_hidden=10, dropout=0.0, qkv_bias=True,
    start="torch", activation="gelu",  # smooth, so that slopes can be measured
)  # fmt: skip
KINDS = ("encoder", "decoder")
HEADS = (1, 2, 3, 4)
DROPOUTS = (0.0, 0.3)
LENGTHS = (1, 2, 17, LONGEST)
EXACT = 1e-9  # in float64

BUILT_IN = [name for name in parts.list() if parts.find(name).__module__.startswith("fairtrial.parts.")]
# every option of every part, away from its default
OPTIONS: dict[str, dict[str, Any]] = {
    "alibi": {"slope": 1.0},
    "block": {"size": 3},
    "cope": {"furthest": 5},
    "differential": {"scale": 0.5},
    "disentangled": {"furthest": 5},
    "experts": {"experts": 3, "top": 1, "balance": 0.01},
    "fire": {"hidden": 8, "threshold": 5.0},
    "geglu": {"bias": False},
    "grouped-query": {"groups": 1},
    "reweight": {"over": "row"},
    "rope": {"base": 50.0},
    "shaw": {"furthest": 5},
    "shuffle": {"seed": 3, "every_step": True},
    "sigmoid": {"bias": -1.0},
    "sinusoidal": {"scale": 0.5},
    "soft-cap": {"cap": 1.0},
    "swiglu": {"bias": False},
    "t5": {"buckets": 8, "furthest": 20},
    "window": {"size": 5, "global_tokens": 2},
}
SUBJECTS = [PartChoice(name=name) for name in BUILT_IN]
SUBJECTS += [PartChoice(name=name, options=options) for name, options in OPTIONS.items()]
CHEATS = {"reweight"}
HONEST = [subject for subject in SUBJECTS if subject.name not in CHEATS]
OTHER_SUMS = {name for name in BUILT_IN if any(parts.find(name).overrides(hook) for hook in OTHER_WEIGHTS)}
NEW_EVERY_PASS = [subject for subject in SUBJECTS if subject.options.get("every_step")]


def some_lengths(subject: PartChoice) -> tuple[int, ...]:
    """Two of the lengths for each subject; all parts together meet every length."""
    return LENGTHS[SUBJECTS.index(subject) % 2 :: 2]


def kinds_of(*subjects: PartChoice) -> Sequence[str]:
    """The kinds of network that these parts work in."""
    return KINDS[1:] if any(parts.find(subject.name).decoder_only for subject in subjects) else KINDS


def title(value: object) -> str | None:
    """A subject's name in the list of tests."""
    if isinstance(value, PartChoice):
        return "-".join((value.name, *value.options))
    return None


def sampled(subjects: Sequence[PartChoice], **settings: Sequence[Any]) -> Any:
    """Each subject once, with settings in an order drawn once: every part meets the property, and every combination of
    settings occurs. The full product would only repeat them."""
    combinations = list(product(*settings.values()))
    Random(0).shuffle(combinations)
    rows = [(subject, *chosen) for subject, chosen in zip(subjects, cycle(combinations), strict=False)]
    assert len(rows) >= len(combinations)
    return pytest.mark.parametrize(("subject", *settings), rows, ids=title)


def keywords(name: str) -> set[str]:
    """The options that a part's constructor takes."""
    signature = inspect.signature(parts.find(name).__init__)
    return {each.name for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY}


def build(kind: str, *subjects: PartChoice, heads: int = 2, dropout: float = 0.0, seed: int = 0) -> nn.Module:
    """In float64, so that a difference is a difference and no rounding; in training mode where something is dropped."""
    shape = replace(SHAPE, heads=heads, dropout=dropout)
    if kind not in kinds_of(*subjects):
        pytest.skip("it works in a decoder only")
    if kind == "decoder":
        network: nn.Module = LanguageModel(shape, subjects, ENTRIES, seed=seed)
    else:
        network = Classifier(shape, subjects, ENTRIES, CLASSES, seed=seed)
    return network.double().train(dropout > 0)


@cache
def some_tokens(batch: int, time: int, seed: int = 0) -> Tensor:
    """No token twice in a row."""
    rng = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(ENTRIES, generator=rng)[:time] for _ in range(batch)])


def other(ids: Tensor) -> Tensor:
    return (ids + 1) % ENTRIES


def changed(ids: Tensor, begin: int, end: int | None = None) -> Tensor:
    """Other tokens from `begin` to `end` of every row."""
    ids = ids.clone()
    ids[:, begin:end] = other(ids[:, begin:end])
    return ids


@torch.no_grad()
def run(network: nn.Module, *inputs: Any, **more: Any) -> Tensor:
    """One pass on the same rng as every other: what is dropped is the same, and what a pass counts is forgotten."""
    seed_dropout(dropouts_of(network), 0, 0)
    before = {name: tensor.clone() for name, tensor in network.named_buffers()}
    answer = network(*inputs, **more)
    for name, tensor in network.named_buffers():
        tensor.copy_(before[name])
    return answer


def far(one: Tensor, another: Tensor) -> float:
    """The largest difference; infinite where one is not finite."""
    assert one.shape == another.shape
    difference = (one.detach() - another.detach()).abs().max()
    return float(difference) if torch.isfinite(difference) else float("inf")


@torch.no_grad()
def in_pieces(network: nn.Module, ids: Tensor, pieces: list[int]) -> Tensor:
    """Cached decoding, so many tokens at a time."""
    cache = KVCache(LAYERS)
    return torch.cat([network(piece, cache=cache) for piece in ids.split(pieces, dim=1)], 1)


def loss_of(network: nn.Module, ids: Tensor, lengths: Tensor | None) -> Tensor:
    """A loss to take gradients of, on the same rng as `run`."""
    seed_dropout(dropouts_of(network), 0, 0)
    answers = other(ids) if isinstance(network, LanguageModel) else torch.arange(len(ids)) % CLASSES
    objective, _ = network.loss(ids, lengths, answers, 0.0, 1.0)  # type: ignore[operator]
    return objective
