"""Optimizers and schedules by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adagrad, Adam, AdamW, Optimizer

from fairtrial.errors import BadInput
from fairtrial.model.external import ExternalModel, Groups, check_optimizer, optimizers
from fairtrial.model.loss import project
from fairtrial.recipe import OPTIMIZERS, Training
from fairtrial.training.device import device_of

FUSED = ("cpu", "cuda", "mps")  # devices that have one kernel for a whole step
DECAY_SHARE = 0.3  # of a `wsd` schedule, at its end (Haegele et al. 2024: 0.2 or more)
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


def own_groups(network: nn.Module, training: Training) -> Groups:
    """What a user's function is given."""
    return [{key: group[key] for key in ("params", "weight_decay")} for group in group_parameters(network, training)]


def own_optimizer(groups: Groups, training: Training) -> Optimizer:
    check_optimizer(training.optimizer)
    try:
        own = optimizers.find(training.optimizer)(groups, training.learning_rate)
    except Exception as error:  # of a user's code
        raise BadInput(f"optimizer {training.optimizer!r} raises {type(error).__name__}: {error}") from error
    return with_scale(own, f"optimizer {training.optimizer!r}", training)


def with_scale(own: object, name: str, training: Training) -> Optimizer:
    """The schedule scales the learning rates that an optimizer of the user's sets."""
    if not isinstance(own, Optimizer):
        raise BadInput(f"{name} gives {type(own).__name__}, not a torch optimizer")
    for group in own.param_groups:
        group["scale"] = float(group["lr"]) / training.learning_rate
    return own


def make_optimizer(network: nn.Module, training: Training) -> Optimizer:
    """Weight decay applies to matrices only, not to norms and biases. A user's network may bring an optimizer of its
    own; the schedule scales the learning rates that it sets."""
    if isinstance(network, ExternalModel) and network.declared.optimizer:
        own = getattr(network.model, network.declared.optimizer)(training.learning_rate, training.weight_decay)
        return with_scale(own, f"{network.name}: {network.declared.optimizer}", training)
    if training.optimizer not in OPTIMIZERS:
        return own_optimizer(own_groups(network, training), training)
    kinds = {"adam": Adam, "adamw": AdamW, "muon": AdamW, "adagrad": Adagrad, "sgd": SGD}
    make: Callable[..., Optimizer] = light(kinds[training.optimizer])
    groups = group_parameters(network, training)
    if any(group["muon"] for group in groups):
        make = with_muon(AdamW)
    return make(groups, lr=training.learning_rate, fused=device_of(network).type in FUSED)


def group_parameters(network: nn.Module, training: Training) -> Groups:
    """Parameters that share a weight decay: a group is one fused call. `scale` is its share of the schedule's rate."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    if not trained:
        raise BadInput("the network has no trainable weights")
    tables = {module.weight for module in network.modules() if isinstance(module, nn.Embedding)}
    inner = set(block_matrices(network)) if training.optimizer == "muon" else set()
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for parameter in trained:
        decay = training.weight_decay if parameter.ndim >= 2 else 0.0
        decay *= training.embedding_decay if parameter in tables else 1.0
        groups.setdefault((decay, parameter in inner), []).append(parameter)
    return [
        {"params": group, "weight_decay": decay, "scale": 1.0, "muon": muon} for (decay, muon), group in groups.items()
    ]


def block_matrices(network: nn.Module) -> list[nn.Parameter]:
    """The weights of linear layers inside the blocks: what Muon is for. Embeddings and the output layer read single
    words, and are AdamW's. Of a network of the user's own it is not known which is which: AdamW has all of it."""
    blocks = getattr(getattr(network, "body", None), "blocks", None)
    if blocks is None:
        return []
    return [cast(nn.Parameter, module.weight) for module in blocks.modules() if isinstance(module, nn.Linear)]


MUON_MOMENTUM = 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # Jordan et al. 2024: pulls singular values to about 1 in five steps
ONE_BY_ONE = 128  # rows and columns; smaller matrices are faster in a batch
MUON_RMS = 0.2  # of an update's entries, about that of AdamW's (Liu et al. 2025), so that both share a learning rate


@cache
def with_muon(adamw: type[Optimizer]) -> type[Optimizer]:
    """AdamW whose groups marked `muon` are moved along the orthogonalized momentum of their gradients instead. torch
    brings a Muon since 2.9, in bfloat16 and one matrix after another: half as fast for small networks on a CPU."""

    class Muon(light(adamw)):  # type: ignore[misc]
        param_groups: list[dict[str, Any]]

        @torch.no_grad()
        def step(self) -> None:
            every = self.param_groups
            self.param_groups = [group for group in every if not group["muon"]]
            super().step()
            self.param_groups = every
            for group in every:
                if group["muon"]:
                    self.orthogonal_step(group)

        def orthogonal_step(self, group: dict[str, Any]) -> None:
            alike: dict[tuple[int, ...], list[tuple[nn.Parameter, bool, Tensor]]] = {}
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                state.setdefault("step", torch.zeros(()))  # AdamW looks for one when a checkpoint is loaded
                momentum = state.setdefault("momentum", torch.zeros_like(parameter))
                momentum.lerp_(parameter.grad, 1 - MUON_MOMENTUM)
                update = parameter.grad.lerp(momentum, MUON_MOMENTUM)  # Nesterov
                tall = update.shape[0] > update.shape[1]
                wide = update.mT if tall else update  # so a layer and one of the transposed shape share a batch
                alike.setdefault(tuple(wide.shape), []).append((parameter, tall, wide))
            for shape, members in alike.items():
                updates = orthogonalized(torch.stack([wide for _, _, wide in members]))  # matrix row column
                size = MUON_RMS * max(shape) ** 0.5
                for (parameter, tall, _), update in zip(members, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update.mT if tall else update, alpha=-group["lr"] * size)

    return Muon


def orthogonalized(matrices: Tensor) -> Tensor:
    """The nearest matrices with singular values of about 1, by Newton and Schulz; fastest where they are wide.
    [matrix row column]"""
    x = matrices / (matrices.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = NEWTON_SCHULZ
    for _ in range(5):
        gram = products(x, x)
        x = products(products(gram, gram).mul_(c).add_(gram, alpha=b), x.mT).add_(x, alpha=a)
    return x


def products(x: Tensor, y: Tensor) -> Tensor:
    """x @ y.mT of each matrix [matrix row column]; large ones one by one, which takes oneDNN half as long"""
    if min(x.shape[1:]) < ONE_BY_ONE:
        return x @ y.mT
    return torch.stack([project(one, other, None) for one, other in zip(x, y, strict=True)])


def learning_rate(training: Training, step: int, steps: int) -> float:
    """The learning rate of one step (the first is 0) of `steps`."""
    if step < training.warmup_steps:
        return training.learning_rate * (step + 1) / training.warmup_steps
    done = (step - training.warmup_steps) / max(1, steps - training.warmup_steps)
    if training.schedule == "linear":
        return training.learning_rate * (1 - done)
    if training.schedule == "cosine":
        return training.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
    if training.schedule == "wsd":
        return training.learning_rate * min(1.0, (1 - done) / DECAY_SHARE)
    return training.learning_rate


def gradient_norm(network: nn.Module) -> float:
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    return float(torch.nn.utils.get_total_norm(gradients))
