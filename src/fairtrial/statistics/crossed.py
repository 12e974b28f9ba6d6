"""The crossed t-test: would the difference also hold for a new seed and a new test item of the same kind?

Every seed scores every item, so a difference [seed item] is mean + seed effect + item effect + residual. A two-way
analysis of variance estimates how much each contributes, and `spread` says how well they are known. Weighted means
(tokens per document) enter through the ratio estimator, macro-F1 by jackknife values. Units of unequal size (groups of
items, documents) count by their effective number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, stdtr

from fairtrial.results.values import VarianceComponents
from fairtrial.statistics.spread import Array, Source, Spread, combine

Z = float(ndtri(0.975))
FEWEST_PAIRS = 4  # fewer seeds that both sides have are taken as independent
FEWEST_IN_ORDER = 20  # units, to see whether neighbours are alike
FEWEST_BLOCKS, MOST_BLOCKS = 12, 64  # into which they are joined
HARDLY_ALIKE = 0.15  # correlation of neighbouring blocks
HIDDEN = 5  # correlation that so many blocks hide, times their number
LEAST_SQUARE = 0.1  # of the rest: few seeds on few items agree by chance
Common = tuple[Sequence[int], Sequence[int]]  # rows of both sides that have the same seed
Counts = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Strata:
    """Classes whose mix is part of the design of a test set, so that it does not vary."""

    within: Array  # [unit] the share of its class that a unit holds
    count: int


@dataclass(frozen=True, eq=False)
class Crossed:
    """A mean over seeds and units (items, or groups of items), and its uncertainty."""

    difference: float
    seed: Source | None  # None: one network, the question is about new items only
    item: Source | None  # None: one number per run, the question is about new runs only
    rest: float  # what seeds and items do not explain; `seed` and `item` both hold it
    by_seed: Array  # mean of each seed that both sides have
    seeds: float  # pairs of runs that would say as much
    items: int  # units
    effective: float  # units of equal weight that would say as much
    alike: float = 1.0  # neighbours that say as much as one
    least_p: float = 0.0  # that so few items allow
    paired: bool = True
    shared: tuple[Array, Array] | None = None  # what other comparisons of the study say of the seeds' variance

    @cached_property
    def spread(self) -> Spread:
        if self.seed is None or self.item is None:
            alone = self.seed or self.item
            assert alone is not None
            if self.shared is None:
                return Spread(np.array([alone.variance]), np.ones(1), alone.df)
            return Spread(*self.shared)
        return combine(self.shared or self.seed.nodes(), self.item, self.rest)

    @property
    def variance(self) -> float:
        return self.spread.variance

    @property
    def error(self) -> float:
        """Standard error of the difference."""
        return math.sqrt(self.variance)

    @property
    def varies(self) -> bool:
        """Whether anything varies at all; else nothing can be said of new seeds and items."""
        return any(source is not None and source.variance > 0 for source in (self.seed, self.item))

    @property
    def p(self) -> float:
        """Two-sided."""
        return min(1.0, max(self.least_p, 2 * self.spread.tail(abs(self.difference)))) if self.varies else 1.0

    def p_above(self, size: float) -> float:
        """One-sided: the chance of a mean above `size` where the truth is 0."""
        return self.spread.tail(size) if self.varies else 1.0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        half = self.spread.half_width(1 - level) if self.varies else 0.0
        return self.difference - half, self.difference + half

    def evidence(self, truth: float = 0.0) -> float:
        """Evidence against a difference of `truth`, which may be looked at after every seed: where it is true, it ever
        reaches 1 / alpha in at most a share of alpha of studies. A t-test's Bayes factor with a unit prior (Rouder and
        others 2009; Wang and Ramdas 2025), the items' variance added to that of the mean over seeds."""
        pairs, df, variance = self._of_seeds
        square = (self.difference - truth) ** 2 / variance if variance else 0.0
        ratio = math.log1p(square / df) - math.log1p(square / (df * (1 + pairs)))
        return math.exp(min(700.0, (df + 1) / 2 * ratio - math.log1p(pairs) / 2))

    def evidence_of_gain(self) -> float:
        """The same against "no more than zero": the prior is on gains alone. With S the two-sided evidence, that is S
        times twice the chance that the truth lies above zero, given the data."""
        pairs, df, variance = self._of_seeds
        if not variance:
            return 1.0  # identical differences say nothing of new ones
        ratio = self.difference / math.sqrt(variance)
        above = ratio * math.sqrt(pairs / (1 + pairs) * (df + 1) / df / (1 + ratio**2 / (df * (1 + pairs))))
        return self.evidence() * 2 * float(stdtr(df + 1, above))

    def lasting_interval(self, level: float = 0.95) -> tuple[float, float]:
        """The differences against which there is less evidence than 1 / (1 - level): it may be looked at after every
        seed. Without ends where there are too few seeds to rule anything out."""
        pairs, df, variance = self._of_seeds
        enough = math.exp(min(700.0, (math.log1p(pairs) - 2 * math.log(1 - level)) / (df + 1)))
        if enough >= 1 + pairs:
            return -math.inf, math.inf
        half = math.sqrt(variance * df * (enough - 1) / (1 - enough / (1 + pairs)))
        return self.difference - half, self.difference + half

    @property
    def _of_seeds(self) -> tuple[float, float, float]:
        """Pairs of runs, their degrees of freedom, and the variance of their mean on new items."""
        assert self.seed is not None
        items = 0.0 if self.item is None else max(0.0, self.item.variance - self.rest)
        return self.seeds, self.seed.df, self.seed.variance + items

    @property
    def components(self) -> VarianceComponents:
        """Of one seed's outcome on one item."""
        seed, item = (0.0 if source is None else source.variance for source in (self.seed, self.item))
        return VarianceComponents(
            seed=max(0.0, seed - self.rest) * self.seeds,
            item=max(0.0, item - self.rest) * self.effective,
            rest=self.rest * self.seeds * self.effective,
        )

    @property
    def variance_shares(self) -> dict[str, float]:
        """Where the variance of the difference comes from, as shares of one. More seeds shrink all but the items'."""
        own, seeds, items = self.components, self.seeds, self.effective
        parts = {"seed": own.seed / seeds, "item": own.item / items, "rest": own.rest / (seeds * items)}
        whole = sum(parts.values())
        return {name: part / whole if whole else 0.0 for name, part in parts.items()}


def crossed_t(values: Array, weights: Array | None = None, strata: Strata | None = None) -> Crossed:
    """`values` [seed unit], at least 2 x 2, `linearised`: their plain mean is the estimate. `weights` [unit]: how much
    of the estimate each unit is. With equal weights this is the two-way analysis of variance."""
    return compare_seeds(values, values[:0], ((), ()), weights, strata)


def compare_seeds(
    ours: Array,
    theirs: Array,
    common: Common,
    weights: Array | None = None,
    strata: Strata | None = None,
    running: bool = False,
) -> Crossed:
    """The mean of all seeds of `ours` [seed unit] less that of all seeds of `theirs` (none: the mean of `ours`).
    `running`: units are in the order of a text, so neighbours may be alike."""
    units = ours.shape[1]
    shares = np.full(units, 1 / units) if weights is None else weights / weights.sum()
    leverage, _ = leverage_of(shares, strata)
    groups, pairs, paired = _groups(ours, theirs, common)
    variances = [_over_seeds(every, shares, leverage) for every, _ in groups]
    counts = [len(rows) for _, rows in groups]
    seed = _summed(
        [
            Source(count * variance, len(every) - 1)
            for count, (variance, _), (every, _) in zip(counts, variances, groups, strict=True)
        ]
    )
    rest = sum(count * own for count, (_, own) in zip(counts, variances, strict=True))
    by_unit = np.sum([rows.sum(0) for _, rows in groups], axis=0)
    item, effective, alike = over_items(by_unit, shares, strata, running)
    return Crossed(
        difference=float(by_unit.mean()),
        seed=Source(max(LEAST_SQUARE * rest, seed.variance), seed.df),
        item=item,
        rest=rest,
        by_seed=_by_seed(ours, theirs, common),
        seeds=pairs,
        items=units,
        effective=effective,
        alike=alike,
        paired=paired,
    )


def _groups(ours: Array, theirs: Array, common: Common) -> tuple[list[tuple[Array, Array]], float, bool]:
    """Independent groups of runs, scaled so that the difference is the sum over all: rows that estimate a variance and
    rows that add to the difference [seed unit]. Runs of the same seed are paired, all others are independent of one
    another, so their order and names do not matter. Also: pairs of runs that would say as much, and whether any are
    paired."""
    if not len(theirs):
        return [(ours / len(ours), ours / len(ours))], len(ours), True
    one, other = ours / len(ours), -theirs / len(theirs)
    first, second = (np.asarray(rows, int) for rows in common)
    paired = len(first) >= FEWEST_PAIRS
    if not paired:
        first, second = first[:0], second[:0]
    both = one[first] + other[second]
    kinds = (both, both), (one, np.delete(one, first, 0)), (other, np.delete(other, second, 0))
    pairs = 2 / (1 / len(ours) + 1 / len(theirs))
    return [(every, rows) for every, rows in kinds if len(rows)], pairs, paired


def _by_seed(ours: Array, theirs: Array, common: Common) -> Array:
    """The difference of each seed that both have."""
    if not len(theirs):
        return ours.mean(1)
    first, second = (list(rows) for rows in common)
    return ours[first].mean(1) - theirs[second].mean(1)


def _over_seeds(values: Array, shares: Array, leverage: Array) -> tuple[float, float]:
    """Variance of a seed's mean, and what of it is left without the seeds' own effect."""
    seeds, units = values.shape
    if seeds < 2:
        return 0.0, 0.0
    by_seed = values.mean(1)
    rest = values - values.mean(0) - units * shares * (by_seed[:, None] - by_seed.mean())
    return float(by_seed.var(ddof=1)), float((rest**2 / leverage).sum()) / units**2 / (seeds - 1)


def _summed(sources: Sequence[Source]) -> Source:
    """Of independent groups, by Satterthwaite's degrees of freedom."""
    if len(sources) == 1:
        return sources[0]
    whole = sum(each.variance for each in sources)
    squares = sum(each.variance**2 / max(1, each.df) for each in sources)
    return Source(whole, whole**2 / squares if squares else float(sum(each.df for each in sources)))


def leverage_of(shares: Array, strata: Strata | None = None) -> tuple[Array, float]:
    """What is left of a unit's variance in its squared deviation from a mean that it is part of [unit], and the number
    of units of equal weight that would say as much, one more than the degrees of freedom.

    Large units pull the mean to themselves. CR2 (Bell and McCaffrey 2002) divides by 1 - share, CR3, the jackknife, by
    its square. In simulations CR2 gives up to 7.8% of false alarms with five large groups, CR3 only 1.3% with one that
    holds 40% of the items; the exponent 1.5 keeps all between 2.6 and 7%, nearly all between 3 and 6.5%."""
    within, taken = (shares, 1) if strata is None else (strata.within, strata.count)
    leverage = np.maximum(1e-9, 1 - within) ** 1.5 / math.sqrt(1 - taken / len(shares))
    return leverage, 1 + max(1.0, kish(shares) - taken)


def kish(weights: Array) -> float:
    """The number of equal weights whose sum varies as much (Kish's effective sample size)."""
    return float(weights.sum()) ** 2 / float((weights**2).sum())


def over_items(
    values: Array, weights: Array, strata: Strata | None = None, running: bool = False
) -> tuple[Source, float, float]:
    """What the items add to the variance of the mean of one network's `linearised` values [unit]; the number of units
    of equal weight that would say as much; and how many neighbours say as much as one."""
    leverage, effective = leverage_of(weights / weights.sum(), strata)
    variance = float(((values - values.mean()) ** 2 / leverage).sum()) / len(values) ** 2
    if not running:
        return Source(variance, effective - 1), effective, 1.0
    alike, blocks = neighbours_alike(values)
    effective = max(2.0, effective / alike)
    return Source(variance * alike, max(1.0, min(effective, blocks) - 1)), effective, alike


def neighbours_alike(values: Array) -> tuple[float, float]:
    """How many times as large the variance of the mean of values in running order [unit] is, because neighbours are
    alike, and the number of independent blocks that this is seen by.

    Units alike over long stretches hardly show in neighbours if there is noise, but they add up. So neighbours are
    joined to few blocks at once, and to fewer until blocks are hardly alike. The rest is corrected for as in a series
    in which each block follows the last (with Kendall's correction of its bias), and so is what chance may hide, the
    more the fewer blocks there were. Units that are alike over a large part of the text cannot be told from few units,
    so they count as few."""
    units, deviations = len(values), values - values.mean()
    alone = float(deviations @ deviations) / (units - 1) * units
    if not alone or units < FEWEST_IN_ORDER:
        return 1.0, units
    count = min(MOST_BLOCKS, max(FEWEST_IN_ORDER, round(2 * math.sqrt(units))))
    hidden = HIDDEN / count
    while True:
        sums = np.add.reduceat(deviations, np.linspace(0, units, count + 1).astype(int)[:-1])
        together = float(sums @ sums)
        correlation = float(sums[1:] @ sums[:-1]) / max(1e-300, together)
        correlation += (1 + 3 * max(0.0, correlation)) / count
        if correlation < max(HARDLY_ALIKE, 1.3 / math.sqrt(count)) or count < 2 * FEWEST_BLOCKS:
            break
        count //= 2
    correlation = min(0.98, max(0.0, correlation + hidden))
    follows = (1 + correlation) / (1 - correlation)
    return max(1.0, together * count / (count - 1) * follows / alone), count / follows


def items_t(values: Array, weights: Array, strata: Strata | None = None, running: bool = False) -> Crossed:
    """One trained network: would the mean of its `linearised` values [unit] also hold for new items? New trainings are
    another question."""
    (item, effective, alike), mean = over_items(values, weights, strata, running), float(values.mean())
    return Crossed(mean, None, item, 0.0, np.array([mean]), 1, len(values), effective, alike)


def runs_t(ours: Array, theirs: Array, common: Common, resolution: float = 0.0) -> Crossed:
    """One number per run [seed]: would the difference of the means also hold for new runs on this test set? Paired t
    where both sides have the same seeds, Welch's otherwise. `resolution`: of the last digit that is told."""
    groups, pairs, paired = _groups(ours[:, None], theirs[:, None], common)
    seed = _summed(
        [Source(len(rows) * float(every.var(ddof=1)), len(every) - 1) for every, rows in groups if len(every) > 1]
    )
    least = (1 / len(ours) + (1 / len(theirs) if len(theirs) else 0.0)) * resolution**2 / 12
    return Crossed(
        difference=float(sum(rows.sum() for _, rows in groups)),
        seed=Source(max(least, seed.variance), seed.df),
        item=None,
        rest=0.0,
        by_seed=_by_seed(ours[:, None], theirs[:, None], common),
        seeds=pairs,
        items=1,
        effective=1.0,
        paired=paired,
    )


def linearised(sums: Array, weights: Array) -> Array:
    """Values whose plain mean is the ratio (sum of `sums` over sum of `weights`, then the mean over seeds) and whose
    spread is that of the ratio estimator. Both [seed item]; with weights of 1 nothing changes."""
    ratio = float((sums.sum(1) / weights.sum(1)).mean())
    return ratio + (sums - ratio * weights) / weights.mean(1, keepdims=True)


def summed(values: Array, clusters: Counts | None) -> Array:
    """[seed item] -> [seed cluster]"""
    if clusters is None:
        return values
    indices = np.unique(clusters, return_inverse=True)[1]
    return np.stack([np.bincount(indices, weights=row) for row in values])


def macro_f1_values(labels: Array, guesses: Array, classes: int, clusters: Counts | None = None) -> Array:
    """[seed item] -> [seed unit]: jackknife values of macro-F1, where a unit is an item or a cluster of items. Their
    mean is the macro-F1 itself."""
    unit = np.arange(labels.shape[1]) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return np.stack([_jackknife_f1(*rows, classes, unit) for rows in zip(labels, guesses, strict=True)])


def _jackknife_f1(labels: Counts, guesses: Counts, classes: int, unit: Counts) -> Array:
    units = int(unit.max()) + 1
    right, seen = np.zeros((units, classes)), np.zeros((units, classes))
    np.add.at(right, (unit, labels), labels == guesses)
    np.add.at(seen, (unit, labels), 1)
    np.add.at(seen, (unit, guesses), 1)
    total = _macro_f1(right.sum(0), seen.sum(0))
    without = _macro_f1(right.sum(0) - right, seen.sum(0) - seen)
    influence = (units - 1) * (total - without)
    return total + influence - influence.mean()


def _macro_f1(right: Array, seen: Array) -> Array:
    """From counts [... class] of right answers and of true plus guessed; a class that never occurs counts as 0."""
    return np.divide(2 * right, seen, out=np.zeros(seen.shape), where=seen > 0).mean(-1)


def wilson(share: float, items: float) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    if items == 0:
        return 0.0, 1.0
    centre = (share + Z * Z / (2 * items)) / (1 + Z * Z / items)
    half = Z / (1 + Z * Z / items) * math.sqrt(share * (1 - share) / items + Z * Z / (4 * items * items))
    return max(0.0, centre - half), min(1.0, centre + half)
