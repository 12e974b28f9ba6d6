"""Worlds in which single items mislead: differences that only rare items show, and texts whose neighbours are alike.
All of them go through `ft.compare`, as a user's results do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

import fairtrial as ft
from fairtrial.results.values import Comparison, VerdictKind


@dataclass(frozen=True)
class RareWorld:
    """Ours is worse by a share of all items, always wrong where theirs is always right, and equal on all others."""

    share: float
    items: int
    seeds: int = 5
    noise: float = 0.0  # wrong answers on other items, on both sides
    luck: float = 0.0  # how much a seed's noise differs (log)
    groups: int | None = None  # items come in groups of unequal size, which are rare as a whole

    def studies(self, chance: np.random.Generator, runs: int) -> Iterator[Comparison]:
        """The margin is the true difference: to call the two equivalent is wrong."""
        for _ in range(runs):
            group = None
            rare = chance.random(self.items) < self.share
            if self.groups is not None:
                group = np.sort(chance.integers(self.groups, size=self.items))
                rare = (chance.random(self.groups) < self.share)[group]
            ours, theirs = self._right(chance), self._right(chance)
            ours[:, rare], theirs[:, rare] = False, True
            yield ft.compare(ours, theirs, group, margin=100 * self.share)

    def _right(self, chance: np.random.Generator) -> np.ndarray:
        rates = self.noise * np.exp(self.luck * chance.standard_normal((self.seeds, 1)))
        return chance.random((self.seeds, self.items)) >= np.minimum(0.5, rates)


RARE_WORLDS = [
    RareWorld(share, items, seeds, noise, luck)
    for share in (0.005, 0.01, 0.02)
    for items in (100, 300, 1000, 2000)
    for seeds in (5, 10)
    for noise, luck in ((0.0, 0.0), (0.02, 0.0), (0.05, 0.5))
] + [
    RareWorld(share, items, 5, noise, groups=groups)
    for share in (0.005, 0.01, 0.02)
    for items, groups in ((300, 60), (2000, 60), (2000, 300))
    for noise in (0.0, 0.05)
]


@dataclass(frozen=True)
class RunningWorld:
    """Two language models on a running text, none better. The difference of a document follows that of the last one
    (autoregression of order one), with white noise besides."""

    follows: float  # correlation with the next document
    white: float  # share of the documents' variance that follows nothing
    documents: int
    lengths: str = "equal"
    group: int = 1  # documents that are given as one group
    seeds: int = 5
    seed: float = 1.0  # deviation of a seed, in standard errors of white noise
    rest: float = 1.0  # deviation of a seed on one document

    def studies(self, chance: np.random.Generator, runs: int) -> Iterator[Comparison]:
        for _ in range(runs):
            shape = self.seeds, self.documents
            luck = self.seed / self.documents**0.5 * chance.standard_normal((self.seeds, 1))
            differences = self._documents(chance) + luck + self.rest * chance.standard_normal(shape)
            theirs = 4 + chance.standard_normal(self.documents) + 0.1 * chance.standard_normal(shape)
            groups = None if self.group == 1 else np.arange(self.documents) // self.group
            ours = theirs + 0.05 * differences
            yield ft.compare(ours, theirs, groups, self._weights(chance), metric="perplexity")

    def _documents(self, chance: np.random.Generator) -> np.ndarray:
        steps = (1 - self.follows**2) ** 0.5 * chance.standard_normal(self.documents)
        steps[0] = chance.standard_normal()
        values = lfilter([1.0], [1.0, -self.follows], steps)
        return (1 - self.white) ** 0.5 * values + self.white**0.5 * chance.standard_normal(self.documents)

    def _weights(self, chance: np.random.Generator) -> np.ndarray | None:
        """Tokens of each document."""
        return {
            "equal": lambda: None,
            "unequal": lambda: 1 + np.round(np.exp(chance.normal(4, 0.7, self.documents))),
            "Pareto": lambda: np.round(20 * (1 + chance.pareto(1.5, self.documents))),
        }[self.lengths]()


RUNNING_WORLDS = [
    RunningWorld(follows, white, documents, lengths)
    for follows in (0.0, 0.5, 0.8, 0.9, 0.95)
    for white, lengths in ((0.0, "equal"), (0.5, "equal"), (0.9, "equal"), (0.5, "unequal"), (0.5, "Pareto"))
    for documents in (100, 250, 1000, 4000)
    # Of few documents each of which resembles forty others, under much noise, hardly anything is known: 8%.
    if (follows, white, documents) != (0.95, 0.9, 100)
] + [RunningWorld(follows, 0.3, 4 * 250, group=4) for follows in (0.6, 0.9, 0.95)]
# beyond what is promised: so few, so much alike, that a warning is all that is left
FAR_WORLDS = [RunningWorld(0.99, 0.0, 250), RunningWorld(0.98, 0.5, 250), RunningWorld(0.95, 0.5, 100)]


def share_of(studies: Iterator[Comparison], *kinds: VerdictKind) -> float:
    return float(np.mean([each.verdict in kinds for each in studies]))
