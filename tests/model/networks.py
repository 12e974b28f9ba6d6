"""Small networks, tokens and parts for the tests of the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.model.network import Classifier, LanguageModel
from fairtrial.model.part import AttentionContext, Part
from fairtrial.recipe import PartChoice, Shape

ENTRIES = 40
SMALL = Shape(layers=2, heads=2, width=16, length=12, hidden=24, classifier_hidden=10, dropout=0.0, qkv_bias=True)


def choices(*names: str) -> tuple[PartChoice, ...]:
    return tuple(PartChoice(name=name) for name in names)


def decoder(*names: str, seed: int = 0, **changes: Any) -> LanguageModel:
    """In float64, so that a difference is a difference and no rounding."""
    return LanguageModel(replace(SMALL, **changes), choices(*names), ENTRIES, seed=seed).double()


def encoder(*names: str, seed: int = 0, **changes: Any) -> Classifier:
    return Classifier(replace(SMALL, **changes), choices(*names), ENTRIES, 3, seed=seed).double()


def some_tokens(batch: int, time: int, seed: int = 0) -> Tensor:
    """No token twice in a row, so that each has a gradient of its own."""
    rng = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(ENTRIES, generator=rng)[:time] for _ in range(batch)])


def other(ids: Tensor) -> Tensor:
    return (ids + 1) % ENTRIES


def gradients(network: nn.Module) -> dict[str, Tensor]:
    found = {}
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{name} got no gradient"
        found[name] = parameter.grad
    return found


class Slope(Part):
    """A bias that falls with distance, a different one for each head."""

    def bias(self, context: AttentionContext) -> Tensor:
        rates = torch.arange(1, self.shape.heads + 1) / self.shape.heads
        return -rates[:, None, None] * context.distance


class Blind(Part):
    """Nobody sees anything."""

    def allow(self, context: AttentionContext) -> Tensor:
        return torch.zeros_like(context.offset, dtype=torch.bool)


class PastOnly(Part):
    """Nobody sees itself, so the first token of a decoder sees nothing."""

    def allow(self, context: AttentionContext) -> Tensor:
        return context.offset != 0


class FirstToken(Part):
    """Owns `pool`: a sentence is its first token."""

    def pool(self, x: Tensor, real: Tensor) -> Tensor:
        return x[:, 0]


class Backwards(Part):
    """Owns `merge`: heads side by side, last first."""

    def merge(self, heads: Tensor, context: AttentionContext) -> Tensor:
        return heads.flip(1).transpose(1, 2).flatten(2)


class Coin(Part):
    """Draws in its constructor from whatever rng are there."""

    def __init__(self, shape: Shape, *, sides: int = 6) -> None:
        super().__init__(shape)
        self.thrown = nn.Parameter(torch.randn(sides))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.thrown.sum()


STRANGERS = {
    "slope": Slope,
    "blind": Blind,
    "past": PastOnly,
    "first": FirstToken,
    "backwards": Backwards,
    "coin": Coin,
}
