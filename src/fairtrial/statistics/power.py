"""Statistical power: the smallest difference that a study can detect, and the seeds or items that would detect less.

`alpha` is the level that decides: that of the look, divided by the comparisons of the family (Holm's first step)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import nctdtrinc, ndtri, stdtrit

from fairtrial.errors import BadInput
from fairtrial.results.sentences import change_range
from fairtrial.results.values import Comparison, MoreSeeds, VarianceComponents
from fairtrial.statistics.crossed import Crossed
from fairtrial.statistics.multiplicity import ALPHA
from fairtrial.statistics.spread import EQUALLY_NOISY, Source, Spread, combine

POWER = 0.80
STEPS = (5, 10, 20, 40, 80)  # seeds to add
MOST_SEEDS, MOST_ITEMS = 1_000_000, 1_000_000_000
PLANNED_SEEDS = (5, 10, 20, 40)
CAUTIOUS = 0.8  # the upper end of what is stated: variances are as large as this share of what they may be


def reach(spread: Spread, alpha: float, variance: float | None = None) -> float:
    """The smallest difference that 80% of studies find, if the variance is `variance`; else as it is estimated."""
    error = math.sqrt(spread.variance)
    if not error:
        return 0.0
    limit = spread.half_width(alpha) / error
    return noncentrality(limit, alpha) * (error if variance is None else math.sqrt(variance))


@lru_cache(maxsize=4096)
def noncentrality(limit: float, alpha: float) -> float:
    """How many standard errors it is from zero, where a claim takes `limit` of them: by the noncentral t distribution
    with the degrees of freedom whose limit it is."""
    if limit <= float(stdtrit(10_000, 1 - alpha / 2)):
        return limit + float(ndtri(POWER))
    low, high = 0.0, math.log(10_000)  # log of the degrees of freedom
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if stdtrit(math.exp(middle), 1 - alpha / 2) > limit else (low, middle)
    return float(nctdtrinc(math.exp(high), 1 - POWER, limit))


def detectable_range(test: Crossed, alpha: float) -> tuple[float, float]:
    """The smallest difference that a study like this one finds in 80% of cases: if the variances are small, and if they
    are large, given what was measured."""
    low, high = (test.spread.quantile(share) for share in (1 - CAUTIOUS, CAUTIOUS))
    return reach(test.spread, alpha, low), reach(test.spread, alpha, high)


def planned_spread(components: VarianceComponents, seeds: int, items: float, family: int = 1) -> Spread:
    """What a study of so many seeds and items will know of its variance; comparisons share that of seeds."""
    rest = components.rest / (seeds * items)
    independent = 1 / (1 / family + (1 - 1 / family) * EQUALLY_NOISY)
    seed = Source(components.seed / seeds + rest, (seeds - 1) * independent)
    return combine(seed.nodes(), Source(components.item / items + rest, max(1.0, items - 1)), rest)


def reach_of(components: VarianceComponents, seeds: int, items: float, alpha: float, family: int = 1) -> float:
    """`reach` for a number of seeds and items. `alpha`: of the whole family."""
    return reach(planned_spread(components, seeds, items, family), alpha / family)


def seeds_needed(
    components: VarianceComponents, items: float, least: float, alpha: float, family: int = 1
) -> int | None:
    """Total seeds that detect a difference of `least`; None where no number is enough."""
    return _fewest(lambda seeds: reach_of(components, seeds, items, alpha, family) <= least, 2, MOST_SEEDS, least)


def items_needed(components: VarianceComponents, seeds: int, least: float, alpha: float, family: int = 1) -> int | None:
    """Test items that detect a difference of `least` with so many seeds; None where no number is enough."""
    return _fewest(lambda items: reach_of(components, seeds, items, alpha, family) <= least, 6, MOST_ITEMS, least)


def _fewest(enough: Callable[[int], bool], fewest: int, most: int, least: float) -> int | None:
    """The smallest number that is enough, by doubling and bisection."""
    if least <= 0 or not enough(most):
        return None
    high = fewest
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(fewest, high)


def more_seeds(test: Crossed, least: float, alpha: float, family: int = 1) -> MoreSeeds | None:
    """Seeds to add until `least` is detected, if seeds vary little and if they vary much; None where more seeds cannot
    help, or are not needed."""
    if test.seed is None or test.item is None:
        return None
    seeds, (values, weights) = math.floor(test.seeds), test.shared or test.seed.nodes()
    middle = seeds_needed(test.components, test.effective, least, alpha, family)
    if middle is None or middle <= seeds:
        return None
    over_seeds, bounds = Spread(values, weights), list[int | None]()
    for share in (0.1, 0.9):
        own = max(0.0, over_seeds.quantile(share) - test.rest) * test.seeds
        needed = seeds_needed(replace(test.components, seed=own), test.effective, least, alpha, family) or math.inf
        bounds.append(next((step for step in STEPS if needed - seeds <= step), None))
    return MoreSeeds(*bounds)


# Variances of differences between variants of small transformers, (standard deviation)^2 of seeds, items and residual.
# Accuracy in points: rotary against learned positions, and a task whose seeds differ four times as much. Perplexity in
# nats per token, sentences as items: variants that resemble one another, and variants that do not.
LOW_VARIANCE = {
    "accuracy": VarianceComponents(0.7**2, 7.0**2, 34.0**2),
    "perplexity": VarianceComponents(0.008**2, 0.06**2, 0.09**2),
}
HIGH_VARIANCE = {
    "accuracy": VarianceComponents(2.9**2, 7.0**2, 34.0**2),
    "perplexity": VarianceComponents(0.02**2, 0.15**2, 0.17**2),
}


# how much larger the variance over seeds is where first weights are not shared: measured, 8 to 25 times as many seeds
GROUP_SPREADS = (2.5, 5.0)  # points that the groups of test items (sections of a speech) differ by, little and much
UNPAIRED = {"perplexity": (8.0, 25.0)}


@dataclass(frozen=True)
class Expected:
    """The smallest detectable difference, if seeds differ little and if they differ much."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        return change_range(self.metric, self.low, self.high)


def expected_smallest(
    task: str,
    seeds: int,
    items: float,
    alpha: float = ALPHA,
    family: int = 1,
    components: Sequence[VarianceComponents] | None = None,
    *,
    paired: bool = True,
    in_group: float = 1.0,
) -> Expected | None:
    """`task` is 'classify' (accuracy, points) or 'lm' (perplexity, nats per token); None for a single seed or item.
    `alpha` of the first look, `family`: comparisons that will be judged together; `components`: variances, if known.
    `paired`: whether the two sides share their first weights at each seed. `in_group`: of accuracy, test items in each
    of the groups that `items` then counts."""
    if seeds < 2 or items < 2:
        return None
    metric = {"classify": "accuracy", "lm": "perplexity"}.get(task, task)
    assumed = components or usual_components(task)
    if not paired and not components and metric in UNPAIRED:
        assumed = [replace(each, seed=each.seed * more) for each, more in zip(assumed, UNPAIRED[metric], strict=True)]
    if in_group > 1 and metric == "accuracy":
        assumed = [
            replace(each, item=each.item / in_group + own**2, rest=each.rest / in_group)
            for each, own in zip(assumed, GROUP_SPREADS, strict=False)
        ]
    reached = [reach_of(each, seeds, items, alpha, max(1, family)) for each in assumed]
    return Expected(metric, min(reached), max(reached))


def usual_components(task: str) -> list[VarianceComponents]:
    """Of small transformers: variants whose seeds differ little, and much."""
    metric = "perplexity" if task in ("lm", "perplexity") else "accuracy"
    return [table[metric] for table in (LOW_VARIANCE, HIGH_VARIANCE)]


def components_of_spread(task: str, spread: Sequence[float]) -> list[VarianceComponents]:
    """Standard deviations of a difference: over seeds, over items and of what is left; or over seeds only, the others
    as in small transformers."""
    if len(spread) not in (1, 3) or not all(math.isfinite(each) and each >= 0 for each in spread):
        what = f"a spread is one standard deviation (over seeds) or three (seeds, items, rest), got {list(spread)}"
        raise BadInput(what, "in points of accuracy, or nats per token: 0.7 or 0.7,7,34")
    if len(spread) == 3:
        return [VarianceComponents(*(each**2 for each in spread))]
    return list(dict.fromkeys(replace(each, seed=spread[0] ** 2) for each in usual_components(task)))


def components_of_pilot(comparisons: Sequence[Comparison]) -> tuple[str, list[VarianceComponents]]:
    """The metric of a pilot's first comparison, and the variances of all that share it."""
    known = [(each, each.components) for each in comparisons if each.components and each.seeds > 1]
    if not known:
        raise BadInput("the pilot has no variance over seeds", "it takes at least 2 training seeds of 2 variants")
    metric = known[0][0].metric.name
    return metric, [
        cautious(components, each.seeds, each.effective_items or each.items)
        for each, components in known
        if each.metric.name == metric
    ]


def cautious(components: VarianceComponents, seeds: int, items: float) -> VarianceComponents:
    """Variances as large as so many seeds and items allow them to be (upper 80% limits): a pilot that was lucky must
    not promise too much."""
    rest = components.rest / (seeds * items)

    def limit(own: float, count: float) -> float:
        mean_square = Source(own / count + rest, max(1.0, count - 1))
        spread = Spread(np.array([mean_square.variance]), np.ones(1), mean_square.df)
        return max(own, (spread.quantile(CAUTIOUS) - rest) * count)

    return replace(components, seed=limit(components.seed, seeds), item=limit(components.item, items))


@dataclass(frozen=True)
class Need:
    """Test items that detect a difference with so many seeds, if variances are small and if they are large; None: no
    number of items is enough."""

    seeds: int
    low: int | None
    high: int | None


def needs(least: float, assumed: Sequence[VarianceComponents], family: int = 1) -> tuple[Need, ...]:
    """For usual numbers of seeds."""
    found = []
    for seeds in PLANNED_SEEDS:
        items = [items_needed(each, seeds, least, ALPHA, family) for each in assumed]
        enough = sorted(each for each in items if each is not None)
        found.append(Need(seeds, enough[0] if enough else None, enough[-1] if len(enough) == len(items) else None))
    return tuple(found)
