"""First weights: each parameter has dice of its own name, so variants at one seed share what they have in common."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fairtrial.streams import seed_for

SMALL = 0.02  # the standard deviation that GPT-2 and BERT start with


@torch.no_grad()
def start(network: nn.Module, how: str, seed: int) -> None:
    """Draw every embedding and linear layer. Norms and the bare parameters of parts stay as they were built."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Embedding):
            _normal(module.weight, 1.0 if how == "torch" else SMALL, seed, f"{name}.weight")
        elif isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)  # what torch.nn.Linear does, for weight and bias alike
            if how == "torch":
                _uniform(module.weight, bound, seed, f"{name}.weight")
            else:
                _normal(module.weight, SMALL, seed, f"{name}.weight")
            if module.bias is not None:
                _uniform(module.bias, bound if how == "torch" else 0.0, seed, f"{name}.bias")


def _dice(seed: int, name: str) -> torch.Generator:
    return torch.Generator().manual_seed(seed_for(seed, "init", name))


def _normal(weight: Tensor, deviation: float, seed: int, name: str) -> None:
    weight.normal_(0.0, deviation, generator=_dice(seed, name))


def _uniform(weight: Tensor, bound: float, seed: int, name: str) -> None:
    if bound:
        weight.uniform_(-bound, bound, generator=_dice(seed, name))
    else:
        weight.zero_()
