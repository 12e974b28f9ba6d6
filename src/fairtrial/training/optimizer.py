"""Optimizers and schedules by name."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
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
    more = {"momentum": training.momentum} if training.optimizer == "sgd" else {}
    groups = list(group_parameters(network, training))
    fused = device_of(network).type in FUSED
    return make(groups, lr=training.learning_rate, fused=fused, **more)


def group_parameters(network: nn.Module, training: Training) -> Iterator[dict[str, Any]]:
    """Parameters that share a weight decay and a learning rate; `scale` is their share of the schedule's rate."""
    found: dict[tuple[float, float], list[nn.Parameter]] = {}
    depths, layers = block_depths(network), training.frozen_layers
    if not depths:
        raise BadInput("the network has no weights: there is nothing to train")
    if layers >= max(depths.values()):
        raise BadInput(f"training.frozen_layers is {layers}; the network has {max(depths.values()) - 1} blocks")
    for name, parameter in network.named_parameters():
        if layers:  # the lowest blocks and all below them stay as they are
            parameter.requires_grad_(depths[name] > layers)
        if parameter.requires_grad:
            decay = training.weight_decay if parameter.ndim >= 2 else 0.0
            scale = training.layer_decay ** (max(depths.values()) - depths[name])
            found.setdefault((decay, scale), []).append(parameter)
    if not found:
        raise BadInput("every weight is frozen, so there is nothing to train", "lower training.frozen_layers")
    for (decay, scale), parameters in found.items():  # a group is one fused call
        yield {"params": parameters, "weight_decay": decay, "scale": scale}


def block_depths(network: nn.Module) -> dict[str, int]:
    """The depth of each parameter: 0 for embeddings and parts, b + 1 for block b, one more for what follows."""
    body: Any = getattr(network, "body", None)
    top = len(getattr(body, "blocks", ())) + 1
    depths = {}
    for name, _ in network.named_parameters():
        block = re.match(r"body\.blocks\.(\d+)\.", name)
        follows = not name.startswith("body.") or (name.startswith("body.norm.") and body.shape.norm_place != "post")
        depths[name] = int(block[1]) + 1 if block else top if follows else 0
    return depths


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
