"""Optimizers and schedules by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer

from fairtrial.errors import BadInput
from fairtrial.model.external import ExternalModel
from fairtrial.recipe import Training
from fairtrial.training.device import device_of

FUSED = ("cpu", "cuda", "mps")  # devices that have one kernel for a whole step
KEPT_OUT = (
    "add_param_group",
    "zero_grad",
    "state_dict",
    "load_state_dict",
)  # methods that torch keeps its compiler from


@cache
def light(kind: type[Optimizer]) -> type[Optimizer]:
    """The same optimizer, whose first use does not import torch's compiler (a second of a start): torch wraps these
    methods to keep the compiler out of them, and loads it for that. Here none is compiled."""
    inner: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in KEPT_OUT}
    return type(kind.__name__, (kind,), inner | {"step": torch.no_grad()(inspect.unwrap(kind.step))})


def make_optimizer(network: nn.Module, training: Training) -> Optimizer:
    """Weight decay applies to matrices only, not to norms and biases. A user's network may bring an optimizer of its
    own; the schedule scales the learning rates that it sets."""
    if isinstance(network, ExternalModel) and network.declared.optimizer:
        own = getattr(network.model, network.declared.optimizer)(training.learning_rate, training.weight_decay)
        if not isinstance(own, Optimizer):
            what = f"{network.name}: {network.declared.optimizer} gives {type(own).__name__}, not a torch optimizer"
            raise BadInput(what)
        for group in own.param_groups:
            group["scale"] = group["lr"] / training.learning_rate
        return own
    kinds = {"adam": Adam, "adamw": AdamW, "adagrad": Adagrad, "sgd": SGD}
    make: Callable[..., Optimizer] = light(kinds[training.optimizer])
    groups = group_parameters(network, training.weight_decay)
    return make(groups, lr=training.learning_rate, fused=device_of(network).type in FUSED)


def group_parameters(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters that share a weight decay: a group is one fused call. `scale` is its share of the schedule's rate."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    if not trained:
        raise BadInput("the network has no weights that are trained")
    by_decay: dict[float, list[nn.Parameter]] = {}
    for parameter in trained:
        by_decay.setdefault(weight_decay if parameter.ndim >= 2 else 0.0, []).append(parameter)
    return [{"params": group, "weight_decay": decay, "scale": 1.0} for decay, group in by_decay.items()]


def learning_rate(training: Training, step: int, steps: int) -> float:
    """The learning rate of one step (the first is 0) of `steps`."""
    if step < training.warmup_steps:
        return training.learning_rate * (step + 1) / training.warmup_steps
    done = (step - training.warmup_steps) / max(1, steps - training.warmup_steps)
    if training.schedule == "linear":
        return training.learning_rate * (1 - done)
    if training.schedule == "cosine":
        return training.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
    return training.learning_rate


def gradient_norm(network: nn.Module) -> float:
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients))
