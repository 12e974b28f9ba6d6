"""Where a trial is computed, and how precisely. First weights, batches and dropout are drawn on the CPU by name and
moved, so that a trial starts from the same weights on every device."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from fairtrial.errors import BadInput

# `auto`: weights x tokens of a batch from which a GPU is taken. Below, a step is a few milliseconds on one core, and
# starting kernels costs as much. Reasoned, not measured: no GPU was at hand.
WORTH_A_GPU = 5e9


def choose_device(wanted: str, weights: int, tokens: int) -> torch.device:
    """What `training.device` means on this machine, for a network of so many weights and batches of so many tokens."""
    if wanted == "auto":
        there = next((name for name in ("cuda", "mps") if is_there(name)), "cpu")
        wanted = there if weights * tokens >= WORTH_A_GPU else "cpu"
    device = torch.device(wanted)
    if device.type != "cpu" and not is_there(wanted):
        raise BadInput(f"this machine has no device {wanted!r}", "--set training.device=cpu, or auto")
    return device


def is_there(name: str) -> bool:
    if name.startswith("cuda"):
        return torch.cuda.is_available() and (torch.device(name).index or 0) < torch.cuda.device_count()
    return torch.backends.mps.is_available()


def device_of(network: nn.Module) -> torch.device:
    return next((each.device for each in network.parameters()), torch.device("cpu"))


def computing(network: nn.Module) -> AbstractContextManager[Any]:
    """Forward passes at the network's precision: `network.precision`, which a task sets."""
    if getattr(network, "precision", "float32") == "float32":
        return nullcontext()
    return torch.autocast(device_of(network).type, torch.bfloat16)


@contextmanager
def deterministic(device: torch.device) -> Iterator[set[str]]:
    """Ask a GPU for algorithms that give the same bits again; yields what it could not promise. A CPU does anyway."""
    lost: set[str] = set()
    if device.type == "cpu":
        yield lost
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what cuBLAS needs for it
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield lost
        lost |= {str(each.message).split(".")[0] for each in caught if "deterministic" in str(each.message)}
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
