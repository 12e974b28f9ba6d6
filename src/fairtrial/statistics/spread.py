"""How uncertain a difference is: a distribution over its variance, instead of one estimate with degrees of freedom.

Few seeds estimate their own variance badly, and the far tail, where families of comparisons are decided, depends on how
badly. So the p-value is averaged over what the variance may be, given the data: for one source of variance this is
exactly Student's t; for seeds and items together it is the generalised p-value (Tsui and Weerahandi 1989), which does
not promise degrees of freedom that a lucky sample lacks. Comparisons of one study share what they know of the seeds'
variance, as in limma (Smyth 2004), but every variant may be an exception, and how alike variants are is itself averaged
over what the data allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri, digamma, ndtr, ndtri, stdtr, stdtrit  # scipy.stats takes most of a second to import

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

STEP = 0.08  # of a grid of log variances
BINS = 256  # into which a distribution is gathered
CERTAIN = 400  # degrees of freedom from which a variance is taken as known
# what the seeds' variances of a study may be like: an inverse chi-square with so many degrees of freedom, a scale
# relative to their geometric mean (log; many comparisons know it well, so steps are small near it), and a share of
# variants that are exceptions, with a much wider spread (log)
ALIKE = np.array([0.2, 0.5, 1, 2, 3, 4.5, 7, 11, 18, 30, 60, 1000])
SCALES = np.array([-1.6, -1.1, -0.7, -0.4, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.1, 1.5, 1.9, 2.4])
EXCEPTIONS = np.array([0.03, 0.12, 0.35])
EXCEPTION_SPREAD = 1.8
EQUALLY_NOISY = 0.25  # squared correlation of two contrasts with one baseline, if all three are equally noisy


@dataclass(frozen=True)
class Source:
    """What seeds, or items, add to the variance of a difference, and the degrees of freedom of that estimate."""

    variance: float
    df: float

    def nodes(self) -> tuple[Array, Array]:
        """What the true variance may be, and weights that sum to one: an inverse chi-square."""
        if self.df >= CERTAIN or self.variance == 0:
            return np.array([self.variance]), np.ones(1)
        deviation = math.sqrt(2 / self.df)
        x = np.arange(-5 * deviation, 8 * deviation + 14 / self.df, min(STEP, deviation / 5))
        weights = np.exp(self.df / 2 * (1 - x - np.exp(-x)))
        return self.variance * np.exp(x), weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Spread:
    """What the variance of a difference may be [node], with weights. With `df` it is Student's t of one variance."""

    variances: Array
    weights: Array
    df: float | None = None

    @cached_property
    def variance(self) -> float:
        """One estimate: the harmonic mean, which for one source is its mean square."""
        return 1 / float(self.weights @ (1 / self.variances)) if self.variances.all() else 0.0

    def quantile(self, share: float) -> float:
        if self.df is not None:
            return float(self.variances[0]) * self.df / float(chdtri(self.df, share))
        order = np.argsort(self.variances)
        reached = np.cumsum(self.weights[order])
        return float(self.variances[order][min(len(order) - 1, int(np.searchsorted(reached, share)))])

    def tail(self, size: float) -> float:
        """The chance that an estimate lies more than `size` above the truth."""
        if self.df is not None:
            return float(stdtr(self.df, -size / math.sqrt(self.variances[0])))
        return float(self.weights @ ndtr(-size / np.sqrt(self.variances)))

    def half_width(self, alpha: float) -> float:
        """Of the interval that misses the truth with probability `alpha`."""
        if self.df is not None:
            return float(stdtrit(self.df, 1 - alpha / 2)) * math.sqrt(self.variances[0])
        low, high = 0.0, float(ndtri(1 - alpha / 2)) * math.sqrt(float(self.variances.max()))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if 2 * self.tail(middle) > alpha else (low, middle)
        return high


def combine(seeds: tuple[Array, Array], items: Source | None, rest: float) -> Spread:
    """Seeds and items vary independently; `rest`, which both hold, counts once. A source that seems smaller than the
    rest does not make the whole smaller."""
    if items is None:
        return Spread(*seeds)
    (ours, our_weights), (theirs, their_weights) = seeds, items.nodes()
    first, second = ours[:, None], theirs[None]
    totals = np.maximum(np.maximum(first, second), first + second - rest).ravel()
    return _gathered(totals, np.outer(our_weights, their_weights).ravel())


def _gathered(values: Array, weights: Array) -> Spread:
    """The same distribution with few nodes."""
    logs = np.log(values)
    width = max(1e-12, float(np.ptp(logs)) / BINS)
    bins = ((logs - logs.min()) / width).astype(int)
    mass = np.bincount(bins, weights).astype(np.float64)
    kept = mass > 0
    return Spread(np.exp(np.bincount(bins, weights * logs)[kept] / mass[kept]), mass[kept])


def share_variance(sources: Sequence[Source], dependence: float) -> list[tuple[Array, Array]]:
    """What each comparison's variance over seeds may be, given those of all. `dependence`: mean squared correlation of
    the comparisons over seeds; what they have in common, such as a lucky baseline, is seen only once."""
    if len(sources) == 1:
        return [sources[0].nodes()]
    squares, df = np.array([each.variance for each in sources]), np.array([each.df for each in sources])
    low, high = math.log(squares.min() / 30), math.log(squares.max() * 2000)
    x = np.linspace(low, high, math.ceil((high - low) / min(STEP, 0.3 / math.sqrt(df.max()))))
    above = np.log(squares)[:, None] - x
    likelihood = np.exp(df[:, None] / 2 * (above + 1 - np.exp(above)))
    centre = float((np.log(squares) - digamma(df / 2) + np.log(df / 2)).mean())
    near = np.exp(-(((x - centre) / EXCEPTION_SPREAD) ** 2) / 2)
    anywhere = 0.3 / len(x) + 0.7 * near / near.sum()
    below = (centre + digamma(ALIKE / 2) - np.log(ALIKE / 2))[:, None, None] + SCALES[:, None] - x
    regular = np.exp(ALIKE[:, None, None] / 2 * (below + 1 - np.exp(below)))
    regular /= regular.sum(2, keepdims=True)
    share = EXCEPTIONS[None, :, None, None]
    priors = (1 - share) * regular[:, None] + share * anywhere  # alike exception scale x
    evidence = np.maximum(priors @ likelihood.T, 1e-300)  # alike exception scale comparison
    fit = np.log(evidence).sum(3)
    best = fit.max(2, keepdims=True)
    count = len(sources)
    independent = 1 / (1 / count + (1 - 1 / count) * dependence)
    belief = best * (1 - dependence) + (fit - best) * (independent / count) + np.log(np.gradient(SCALES))
    belief = np.exp(belief - belief.max())
    belief /= belief.sum()
    mixed = np.einsum("aesc,aesx->cx", belief[..., None] / evidence, priors, optimize=True) * likelihood
    return [(np.exp(x), row / row.sum()) for row in mixed]


def dependence_of(deviations: Sequence[Array | None]) -> float:
    """Mean squared correlation over seeds of comparisons, from the difference at each seed; as with a common baseline
    and equally noisy networks where the comparisons do not have the same seeds."""
    rows = [row - row.mean() for row in deviations if row is not None]
    if len(rows) < len(deviations) or len({len(row) for row in rows}) > 1 or len(rows[0]) < 3:
        return EQUALLY_NOISY
    units = np.stack([row / (math.sqrt(float(row @ row)) or 1.0) for row in rows])
    count, seeds = units.shape
    observed = (float(((units.T @ units) ** 2).sum()) - count) / (count * (count - 1))
    by_chance = 1 / (seeds - 1)
    return min(1.0, max(0.0, (observed - by_chance) / (1 - by_chance)))
