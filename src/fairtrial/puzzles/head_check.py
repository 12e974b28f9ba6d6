"""Hand-made heads, tried on random sequences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairtrial.model.network import LanguageModel
from fairtrial.model.tap import watch
from fairtrial.puzzles.heads import DESIGNS, Design
from fairtrial.streams import dice

START = 0  # the number of ^
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Check:
    """What a head did on random sequences. Every token of every sequence counts."""

    tokens: int
    right_words: float  # share of tokens where the network's greatest logit is the word that the right place holds
    right_places: float  # share where the greatest weight of the last head is at the right place
    mean_weight: float  # that the right place gets
    least_weight: float

    @property
    def passed(self) -> bool:
        return min(self.right_words, self.right_places, self.mean_weight) >= 0.99


def random_words(design: Design, words: int, places: int, count: int, seed: int) -> Tensor:
    """Random sequences [sequence place]. Where ^ is used, it stands first and nowhere else."""
    drawn = dice(seed, "puzzle words", design.name).integers(1 if design.start_word else 0, words, size=(count, places))
    if design.start_word:
        drawn[:, 0] = START
    return torch.from_numpy(drawn)


@torch.no_grad()
def run(network: LanguageModel, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The words it predicts [sequence place], and each layer's map [sequence query key]."""
    with watch(network) as seen:
        predicted = network(ids).argmax(-1)
    maps = [seen[f"body.blocks.{layer}.attention.maps"][:, 0] for layer in range(network.body.shape.layers)]
    return predicted, maps


def check_head(name: str, network: LanguageModel, words: int, sequences: int = 200, seed: int = 0) -> Check:
    design, places = DESIGNS.find(name), network.body.shape.length
    ids = random_words(design, words, places, sequences, seed)
    predicted, maps = run(network, ids)
    right = np.array([[design.looks_at(row, place) for place in range(places)] for row in ids.tolist()])
    place = torch.from_numpy(right)  # sequence query
    weight = maps[-1].gather(-1, place[..., None])[..., 0]
    return Check(
        tokens=ids.numel(),
        right_words=float((predicted == ids.gather(1, place)).float().mean()),
        right_places=float((maps[-1].argmax(-1) == place).float().mean()),
        mean_weight=float(weight.mean()),
        least_weight=float(weight.min()),
    )


def spelled(design: Design, numbers: list[int]) -> list[str]:
    """Words as letters; more than there are get numbers."""
    first = ["^"] if design.start_word else []
    spare = [*LETTERS, *(f"w{number}" for number in range(len(LETTERS), max(numbers) + 1))]
    return [([*first, *spare])[number] for number in numbers]
