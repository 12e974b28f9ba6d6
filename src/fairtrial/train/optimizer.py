"""Optimizers and schedules by name."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer

from fairtrial.recipe import Training


def make_optimizer(network: nn.Module, training: Training) -> Optimizer:
    """Weight decay pulls matrices only: on norms and biases it does harm and no good."""
    everything = list(network.parameters())
    groups: list[dict[str, Any]] = [{"params": everything, "weight_decay": 0.0}]  # one group is one fused call
    if training.weight_decay:
        matrices = [parameter for parameter in everything if parameter.ndim >= 2]
        others = [parameter for parameter in everything if parameter.ndim < 2]
        groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": others, "weight_decay": 0.0}]
    rate = training.learning_rate
    if training.optimizer == "adam":
        return Adam(groups, lr=rate, fused=True)
    if training.optimizer == "adamw":
        return AdamW(groups, lr=rate, fused=True)
    if training.optimizer == "adagrad":
        return Adagrad(groups, lr=rate, fused=True)
    return SGD(groups, lr=rate, momentum=training.momentum, fused=True)


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
