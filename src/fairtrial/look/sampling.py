"""How the next token is drawn from a model's logits: repetition penalty, temperature, top-k, top-p, in this order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairtrial.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Sampling:
    temperature: float = 1.0  # 0: always the most probable token
    top_k: int | None = None  # only so many most probable tokens
    top_p: float = 1.0  # only the fewest tokens whose shares reach this (Holtzman et al. 2019, arXiv 1904.09751)
    repetition_penalty: float = 1.0  # above 1: tokens that were said are less likely (Keskar et al. 2019, 1909.05858)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise BadInput(f"a temperature of {self.temperature} will not do", "0 is greedy, 1 the model's own shares")
        if self.top_k is not None and self.top_k < 1:
            raise BadInput(f"top-k of {self.top_k} leaves no token", "take at least 1")
        if not 0 < self.top_p <= 1:
            raise BadInput(f"top-p of {self.top_p} will not do", "take a share above 0 and up to 1")
        if not 0 < self.repetition_penalty < math.inf:
            raise BadInput(f"a repetition penalty of {self.repetition_penalty} will not do", "1 is none, 1.2 is usual")


def shares(logits: np.ndarray, sampling: Sampling, said: Iterable[int], never: Iterable[int] = ()) -> np.ndarray:
    """Logits [entry] -> the probability of each token to be drawn [entry], float64."""
    scores = logits.astype(np.float64, copy=True)
    places = np.unique(np.fromiter(said, dtype=np.int64))
    old = scores[places]
    scores[places] = np.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
    scores[np.fromiter(never, dtype=np.int64)] = -math.inf
    if not np.isfinite(scores.max()):
        raise BadInput("the model's answer is not a number", "it may have diverged in training")
    if sampling.temperature == 0:
        return np.eye(1, len(scores), int(scores.argmax()))[0]
    with np.errstate(over="ignore"):  # a tiny temperature is as good as none
        scores = (scores - scores.max()) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < len(scores):
        least = np.partition(scores, -sampling.top_k)[-sampling.top_k]
        scores[scores < least] = -math.inf
    found = np.exp(scores)
    found /= found.sum()
    if sampling.top_p < 1:
        order = np.argsort(-found, kind="stable")
        before = np.cumsum(found[order]) - found[order]  # what the more probable ones have already
        found[order[before >= sampling.top_p]] = 0.0
        found /= found.sum()
    return found


def draw(chances: np.ndarray, dice: np.random.Generator) -> int:
    """One token, by one throw: the same dice and the same shares give the same token."""
    ends = np.cumsum(chances)
    place = int(np.searchsorted(ends, dice.random() * ends[-1], side="right"))
    return min(place, int(np.flatnonzero(chances)[-1]))  # a throw at the very end must not leave the last share
