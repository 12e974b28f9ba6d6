"""Worlds in which the truth is known: two variants, many seeds, many items, and a real difference that we choose.

A classifier is right on an item if its latent value is above 0: difficulty of the item (shared by both variants) + the
variant's own liking for the item + the seed's luck + noise. The four settings differ in how much of the difference
between two variants comes from seeds, items and the rest (standard deviations in points, of real small transformers).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(101)


def over_normal(values: np.ndarray) -> float:
    """The mean of a function of a standard normal number, from its values at POINTS."""
    return float((values * WEIGHTS).sum() / WEIGHTS.sum())


@dataclass(frozen=True)
class World:
    """Wanted standard deviations of a difference in points; the latent ones are solved for."""

    seed: float
    item: float
    rest: float
    items: int
    accuracy: float

    @cached_property
    def spread(self) -> float:
        """Latent standard deviation of items, from what is left to noise: 2 E[p (1 - p)]."""
        wanted = (self.rest / 100) ** 2 / 2

        def left(spread: float) -> float:
            p = ndtr(self._middle(spread) + spread * POINTS)
            return over_normal(p * (1 - p)) - wanted

        return float(brentq(left, 1e-3, 30))

    def _middle(self, spread: float) -> float:
        return float(ndtri(self.accuracy)) * float(np.sqrt(1 + spread**2))

    @cached_property
    def liking(self) -> float:
        """The part of `spread` that is each variant's own, from the items' share."""
        middle, whole = self._middle(self.spread), self.spread
        squared = over_normal(ndtr(middle + whole * POINTS) ** 2)

        def left(own: float) -> float:
            shared = np.sqrt(whole**2 - own**2)
            expected = ndtr((middle + shared * POINTS) / np.sqrt(1 + own**2))
            return 2 * (squared - over_normal(expected**2)) - (self.item / 100) ** 2

        return float(brentq(left, 1e-4, whole * (1 - 1e-9)))

    @cached_property
    def luck(self) -> float:
        """Latent standard deviation of a seed, through the slope of accuracy."""
        width = np.sqrt(1 + self.spread**2)
        slope = np.exp(-(float(ndtri(self.accuracy)) ** 2) / 2) / np.sqrt(2 * np.pi) / width
        return self.seed / 100 / np.sqrt(2) / float(slope)

    def shift(self, points: float) -> float:
        """What to add to the latent value of a variant that is right so many points more often."""
        width = np.sqrt(1 + self.spread**2 + self.luck**2)
        middle = self._middle(self.spread)
        return float(width * ndtri(ndtr(middle / width) + points / 100) - middle)

    def differences(
        self, chance: np.random.Generator, seeds: int, runs: int, points: float = 0.0, variants: int = 1
    ) -> Iterator[np.ndarray]:
        """Differences in points [seed item] of each run, the variant less the baseline; with more `variants` that share
        the baseline [variant seed item]."""
        shared = float(np.sqrt(self.spread**2 - self.liking**2))
        shifts = np.array([0.0] + [self.shift(points)] * variants, np.float32)[:, None, None]
        count = variants + 1
        for _ in range(runs):
            difficulty = self._middle(self.spread) + shared * chance.standard_normal(self.items)
            likings = self.liking * chance.standard_normal((count, 1, self.items))
            lucks = self.luck * chance.standard_normal((count, seeds, 1))
            noise = chance.standard_normal((count, seeds, self.items), dtype=np.float32)
            fixed = (difficulty + likings).astype(np.float32) + lucks.astype(np.float32) + shifts
            right = (fixed + noise > 0).astype(float)
            found = 100 * (right[1:] - right[0])
            yield found[0] if variants == 1 else found


WORLDS = {
    "A": World(0.7, 7, 34, 750, 0.85),  # rotary against learned positions
    "B": World(2.9, 7, 34, 750, 0.85),  # seeds differ much
    "C": World(3.9, 12, 57, 199, 0.50),  # the clean items only
    "D": World(1.4, 25, 34, 750, 0.85),  # variants that like different items
}


@dataclass(frozen=True)
class TextWorld:
    """Differences of summed nats of two language models: documents of unequal length, noise with heavy tails.
    Standard deviations in nats per token."""

    seed: float
    item: float
    rest: float
    documents: int
    pareto: bool = False  # a few documents hold most of the text

    def differences(
        self, chance: np.random.Generator, seeds: int, runs: int, truth: float = 0.0
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Sums [seed document] and tokens [seed document]. Longer documents vary less per token."""
        for _ in range(runs):
            if self.pareto:
                tokens = np.clip(np.round(20 * (1 + chance.pareto(1.2, self.documents))), 1, 20_000)
            else:
                tokens = np.clip(np.round(np.exp(chance.normal(2.8, 0.6, self.documents))), 1, 120)
            quiet = np.sqrt(tokens.mean() / tokens)
            luck = self.seed * chance.standard_normal((seeds, 1))
            liking = self.item * quiet * heavy(chance, (1, self.documents))
            noise = self.rest * quiet * heavy(chance, (seeds, self.documents))
            sums = tokens * (truth + luck + liking + noise)
            yield sums, np.broadcast_to(tokens, sums.shape)


def heavy(chance: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """t with 4 degrees of freedom, scaled to a standard deviation of 1"""
    return chance.standard_t(4, shape) / np.sqrt(2)


TEXT_WORLDS = {
    "even": TextWorld(0.008, 0.08, 0.15, 250),
    "seed-heavy": TextWorld(0.03, 0.05, 0.10, 250),
    "40 documents": TextWorld(0.008, 0.08, 0.15, 40),
    "Pareto documents": TextWorld(0.008, 0.08, 0.15, 100, pareto=True),
}


@dataclass(frozen=True)
class GroupWorld:
    """Differences in points of items that fall into groups of unequal size: groups differ, and so do their items.
    Standard deviations as in `World`; `group` is that of a group's mean."""

    sizes: str
    seed: float = 0.7
    group: float = 5.0
    item: float = 7.0
    rest: float = 34.0

    def draw_sizes(self, chance: np.random.Generator) -> np.ndarray:
        return {
            "equal": lambda: np.full(34, 22.0),
            "1 to 120": lambda: np.round(np.linspace(1, 120, 34)),
            "Zipf": lambda: np.maximum(1, np.round(250 / np.arange(1, 35))),
            "five large": lambda: np.repeat([100.0, 6.0], [5, 29]),
            "one of 120": lambda: np.repeat([120.0, 5.0], [1, 33]),
            "Pareto": lambda: np.clip(np.round(5 * (1 + chance.pareto(1.2, 34))), 1, 2000),
        }[self.sizes]()

    def differences(
        self, chance: np.random.Generator, seeds: int, runs: int, truth: float = 0.0
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Sums [seed group] and items [seed group]."""
        for _ in range(runs):
            sizes = self.draw_sizes(chance)
            root = np.sqrt(sizes)
            likings = self.group * chance.standard_normal((1, len(sizes)))
            likings = likings + self.item / root * chance.standard_normal((1, len(sizes)))
            luck = self.seed * chance.standard_normal((seeds, 1))
            noise = self.rest / root * chance.standard_normal((seeds, len(sizes)))
            sums = sizes * (truth + likings + luck + noise)
            yield sums, np.broadcast_to(sizes, sums.shape)


GROUP_WORLDS = {name: GroupWorld(name) for name in ("equal", "1 to 120", "Zipf", "five large", "one of 120", "Pareto")}
