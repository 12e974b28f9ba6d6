"""What a scored split is: figures for people, and the outcome of every item for statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Score:
    figures: dict[str, Any]
    merit: tuple[float, ...]  # to choose by: higher is better
    outcomes: dict[str, np.ndarray] = field(default_factory=dict)  # one entry for each item


@contextmanager
def scoring(network: nn.Module) -> Iterator[None]:
    """Score without gradients and without dropout, and leave the network as it was."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():  # not inference mode: what a part caches here may be used in training
            yield
    finally:
        network.train(was_training)
