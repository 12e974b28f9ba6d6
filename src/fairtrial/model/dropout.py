"""Dropout with named dice: what is dropped at a step is a pure function of seed, place and step.

torch's own dropout draws from one global generator, so one more draw anywhere would shift all that follow, and a
resumed run would need that generator's state. Here nothing needs to be remembered.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairtrial.streams import seed_for


class Dropout(nn.Module):
    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.generator = torch.Generator()

    @property
    def drops(self) -> bool:
        return self.training and self.share > 0

    def forward(self, x: Tensor) -> Tensor:
        if not self.drops:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.share, generator=self.generator)
        return x * kept.div_(1 - self.share) if self.share < 1 else x * kept


def dropouts_of(network: nn.Module) -> dict[str, Dropout]:
    """The places that drop something, by name."""
    found = {name: module for name, module in network.named_modules() if isinstance(module, Dropout)}
    return {name: module for name, module in found.items() if module.share}


def roll_dice(dropouts: dict[str, Dropout], seed: int, step: int) -> None:
    """Set the dice of every dropout for one optimizer step."""
    for name, dropout in dropouts.items():
        dropout.generator.manual_seed(seed_for(seed, "dropout", name, step))
