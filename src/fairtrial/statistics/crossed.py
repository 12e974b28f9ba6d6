"""The crossed t-test: is there a difference for a new seed and a new item of the same kind?

Every seed meets every item, so a difference [seed item] is delta + seed + item + rest. A two-way analysis of variance
tells how much each contributes; Satterthwaite's degrees of freedom make the t interval right for few seeds.

Items of unequal weight: documents of many and few tokens, clusters of many and few items.

Metrics that are no mean over items: their jackknife values are, so that the crossed t-test serves them too.

Intervals of one trial's scores over its test items. They say nothing of other seeds: a verdict needs several.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import (  # scipy.stats takes most of a second to import
    ndtri,
    stdtr,
    stdtrit,
)


@dataclass(frozen=True)
class Shares:
    """How much seeds, items and the rest vary: variances of one answer of one seed."""

    seed: float
    item: float
    rest: float


@dataclass(frozen=True)
class Crossed:
    """A mean over seeds and items, and how far it may be off."""

    difference: float
    variance: float  # of the difference
    df: float
    shares: Shares
    seed_square: float  # mean square of seeds; its own chance has seeds - 1 degrees of freedom
    by_seed: np.ndarray  # mean of each seed
    items: int

    @property
    def seeds(self) -> int:
        return len(self.by_seed)

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(self.variance)

    @property
    def p(self) -> float:
        """Two-sided; without any variation the answer is certain."""
        if self.variance == 0:
            return 1.0 if self.difference == 0 else 0.0
        return float(2 * stdtr(self.df, -abs(self.difference) / self.error))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        half = float(stdtrit(self.df, 0.5 + level / 2)) * self.error
        return self.difference - half, self.difference + half


def crossed_t(differences: np.ndarray) -> Crossed:
    """`differences` [seed item], at least 2 x 2."""
    seeds, items = differences.shape
    mean, by_seed, by_item = float(differences.mean()), differences.mean(1), differences.mean(0)
    rest = differences - by_seed[:, None] - by_item[None, :] + mean
    seed_square = items * float(by_seed.var(ddof=1))
    item_square = seeds * float(by_item.var(ddof=1))
    rest_square = float((rest**2).sum()) / ((seeds - 1) * (items - 1))
    variance, df = pooled(seed_square, item_square, rest_square, seeds, items)
    shares = Shares(
        seed=max(0.0, (seed_square - rest_square) / items),
        item=max(0.0, (item_square - rest_square) / seeds),
        rest=rest_square,
    )
    return Crossed(mean, variance, df, shares, seed_square, by_seed, items)


def pooled(seed: float, item: float, rest: float, seeds: int, items: int) -> tuple[float, float]:
    """Variance of the grand mean and its degrees of freedom, from mean squares. A source that varies no more than the
    rest is taken as not varying at all, else its negative estimate would shrink the interval."""
    answers = seeds * items
    if seed <= rest and item <= rest:
        return rest / answers, (seeds - 1) * (items - 1)
    if seed <= rest:
        return item / answers, items - 1
    if item <= rest:
        return seed / answers, seeds - 1
    total = seed + item - rest
    spread = seed**2 / (seeds - 1) + item**2 / (items - 1) + rest**2 / ((seeds - 1) * (items - 1))
    return total / answers, total**2 / spread


def linearised(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values whose plain mean is the ratio (sum of `sums` over sum of `weights`, then the mean over seeds) and whose
    spread is that of the ratio estimator. Both [seed item]; with weights of 1 nothing changes."""
    ratio = float((sums.sum(1) / weights.sum(1)).mean())
    return ratio + (sums - ratio * weights) / weights.mean(1, keepdims=True)


def summed(values: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """[seed item] -> [seed cluster]"""
    if clusters is None:
        return values
    names, places = np.unique(clusters, return_inverse=True)
    totals = np.zeros((values.shape[0], len(names)))
    for seed, row in enumerate(values):
        totals[seed] = np.bincount(places, weights=row, minlength=totals.shape[1])
    return totals


def contiguous_blocks(tokens: np.ndarray, length: int) -> np.ndarray:
    """Clusters for running text: neighbouring documents [document] joined until a block has max(8 x `length`, 256)
    tokens, because neighbours share their context and their subject."""
    least = max(8 * length, 256)
    blocks = np.zeros(len(tokens), np.int64)
    block = filled = 0
    for place, count in enumerate(tokens):
        if filled >= least:
            block, filled = block + 1, 0
        blocks[place] = block
        filled += int(count)
    if block and filled < least:  # a short end belongs to the block before it
        blocks[blocks == block] = block - 1
    return blocks


def macro_f1_values(
    labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None = None
) -> np.ndarray:
    """[seed item] -> [seed unit]: the seed's macro-F1 plus what each unit (item, or cluster of items) contributes to
    it. The mean over units is the macro-F1 itself."""
    return np.stack([_one_seed(row, guess, classes, clusters) for row, guess in zip(labels, guesses, strict=True)])


def _one_seed(labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None) -> np.ndarray:
    places = np.arange(len(labels)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    units = int(places.max()) + 1
    right, seen = np.zeros((units, classes)), np.zeros((units, classes))
    np.add.at(right, (places, labels), labels == guesses)
    np.add.at(seen, (places, labels), 1)
    np.add.at(seen, (places, guesses), 1)
    whole = _from_counts(right.sum(0), seen.sum(0))
    without = _from_counts(right.sum(0) - right, seen.sum(0) - seen)
    influence = (units - 1) * (whole - without)
    return whole + influence - influence.mean()


def _from_counts(right: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Counts [... class] of right answers, and of true plus guessed; a class that never occurs counts as 0."""
    return np.divide(2 * right, seen, out=np.zeros(seen.shape), where=seen > 0).mean(-1)


def wilson(right: float, items: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    if items == 0:
        return 0.0, 1.0
    z = float(ndtri(0.5 + level / 2))
    share = right / items
    centre = (share + z * z / (2 * items)) / (1 + z * z / items)
    half = z / (1 + z * z / items) * math.sqrt(share * (1 - share) / items + z * z / (4 * items * items))
    return max(0.0, centre - half), min(1.0, centre + half)


def perplexity_interval(nats: np.ndarray, tokens: np.ndarray, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of exp(total nats / total tokens) over documents, by the ratio estimator."""
    counted = tokens > 0
    nats, tokens = nats[counted].astype(float), tokens[counted].astype(float)
    if len(nats) < 2:
        return None  # one document tells nothing of others
    mean = nats.sum() / tokens.sum()
    spread = (nats - mean * tokens) / tokens.mean()
    half = float(stdtrit(len(nats) - 1, 0.5 + level / 2)) * spread.std(ddof=1) / math.sqrt(len(nats))
    return float(np.exp(mean - half)), float(np.exp(mean + half))


def paired_change(gained: int, lost: int, items: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of (gained - lost) / items, the change of a share when the same items are judged twice: half an item is
    added to each of the four cells (Agresti and Min 2005, https://doi.org/10.1002/sim.1781), so that no change among a
    few items does not count as none among all."""
    z = float(ndtri(0.5 + level / 2))
    gains, losses, count = gained + 0.5, lost + 0.5, items + 2
    centre = (gains - losses) / count
    half = z * math.sqrt(gains + losses - (gains - losses) ** 2 / count) / count
    return max(-1.0, centre - half), min(1.0, centre + half)
