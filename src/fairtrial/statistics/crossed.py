"""The crossed t-test: would the difference also hold for a new seed and a new test item of the same kind?

Every seed scores every item, so a difference [seed item] is mean + seed effect + item effect + residual. A two-way
analysis of variance estimates how much each contributes; Satterthwaite's degrees of freedom make the t interval valid
for few seeds. Weighted means (tokens per document) enter through the ratio estimator, macro-F1 by jackknife values.

Below it the intervals of a single trial's scores, over test items only: a verdict needs several seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit  # scipy.stats takes most of a second to import


@dataclass(frozen=True)
class Shares:
    """Variance components of one seed's outcome on one item."""

    seed: float
    item: float
    rest: float


@dataclass(frozen=True)
class Crossed:
    """A mean over seeds and items, and its uncertainty."""

    difference: float
    variance: float  # of the difference
    df: float
    shares: Shares
    seed_square: float  # mean square of seeds, with seeds - 1 degrees of freedom
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
        """Two-sided."""
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
    """Variance of the grand mean and its degrees of freedom, from mean squares. A source with a mean square no larger
    than the residual's is taken as not varying, else its negative estimate would shrink the interval."""
    count = seeds * items
    if seed <= rest and item <= rest:
        return rest / count, (seeds - 1) * (items - 1)
    if seed <= rest:
        return item / count, items - 1
    if item <= rest:
        return seed / count, seeds - 1
    total = seed + item - rest
    squares = seed**2 / (seeds - 1) + item**2 / (items - 1) + rest**2 / ((seeds - 1) * (items - 1))
    return total / count, total**2 / squares


def linearised(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values whose plain mean is the ratio (sum of `sums` over sum of `weights`, then the mean over seeds) and whose
    spread is that of the ratio estimator. Both [seed item]; with weights of 1 nothing changes."""
    ratio = float((sums.sum(1) / weights.sum(1)).mean())
    return ratio + (sums - ratio * weights) / weights.mean(1, keepdims=True)


def summed(values: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """[seed item] -> [seed cluster]"""
    if clusters is None:
        return values
    indices = np.unique(clusters, return_inverse=True)[1]
    return np.stack([np.bincount(indices, weights=row) for row in values])


def contiguous_blocks(tokens: np.ndarray, length: int) -> np.ndarray:
    """Clusters for running text: neighbouring documents [document] are joined until a block has max(8 x `length`, 256)
    tokens, because neighbours share context and subject."""
    least = max(8 * length, 256)
    blocks = np.zeros(len(tokens), np.int64)
    block = filled = 0
    for document, count in enumerate(tokens):
        if filled >= least:
            block, filled = block + 1, 0
        blocks[document] = block
        filled += int(count)
    if block and filled < least:  # a short last block joins the one before it
        blocks[blocks == block] = block - 1
    return blocks


def macro_f1_values(
    labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None = None
) -> np.ndarray:
    """[seed item] -> [seed unit]: jackknife values of macro-F1, where a unit is an item or a cluster of items. Their
    mean is the macro-F1 itself."""
    return np.stack([_jackknife_f1(*rows, classes, clusters) for rows in zip(labels, guesses, strict=True)])


def _jackknife_f1(labels: np.ndarray, guesses: np.ndarray, classes: int, clusters: np.ndarray | None) -> np.ndarray:
    unit = np.arange(len(labels)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    units = int(unit.max()) + 1
    right, seen = np.zeros((units, classes)), np.zeros((units, classes))
    np.add.at(right, (unit, labels), labels == guesses)
    np.add.at(seen, (unit, labels), 1)
    np.add.at(seen, (unit, guesses), 1)
    total = _macro_f1(right.sum(0), seen.sum(0))
    without = _macro_f1(right.sum(0) - right, seen.sum(0) - seen)
    influence = (units - 1) * (total - without)
    return total + influence - influence.mean()


def _macro_f1(right: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """From counts [... class] of right answers and of true plus guessed; a class that never occurs counts as 0."""
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


def perplexity_interval(nll: np.ndarray, tokens: np.ndarray, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of exp(total nll / total tokens) over documents, by the ratio estimator."""
    counted = tokens > 0
    nll, tokens = nll[counted].astype(float), tokens[counted].astype(float)
    if len(nll) < 2:
        return None  # one document says nothing about others
    mean = nll.sum() / tokens.sum()
    spread = (nll - mean * tokens) / tokens.mean()
    half = float(stdtrit(len(nll) - 1, 0.5 + level / 2)) * spread.std(ddof=1) / math.sqrt(len(nll))
    return float(np.exp(mean - half)), float(np.exp(mean + half))


def paired_change(gained: int, lost: int, items: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of (gained - lost) / items, the change of a share when the same items are scored twice. Half an item is
    added to each of the four cells (Agresti and Min 2005, https://doi.org/10.1002/sim.1781), so that no change among
    few items does not look certain."""
    z = float(ndtri(0.5 + level / 2))
    gains, losses, count = gained + 0.5, lost + 0.5, items + 2
    centre = (gains - losses) / count
    half = z * math.sqrt(gains + losses - (gains - losses) ** 2 / count) / count
    return max(-1.0, centre - half), min(1.0, centre + half)
