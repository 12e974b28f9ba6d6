"""Statistical power: the smallest difference that a study can detect, and the seeds or items that would detect less.

`alpha` is the level that decides: that of the look, divided by the comparisons of the family (Holm's first step)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import chdtri, gammaln, nctdtrinc, ndtri, stdtrit

from fairtrial.errors import BadInput
from fairtrial.results.sentences import change_range
from fairtrial.results.values import Comparison, MoreSeeds, VarianceComponents
from fairtrial.statistics.crossed import Crossed, pooled
from fairtrial.statistics.multiplicity import ALPHA

POWER = 0.80
STEPS = (5, 10, 20, 40, 80)  # seeds to add
MOST_SEEDS = 1_000_000


def reach(variance: float, df: float, alpha: float) -> float:
    """The smallest difference that 80% of studies find."""
    return noncentrality(df, alpha) * math.sqrt(variance)


def noncentrality(df: float, alpha: float) -> float:
    """How many standard errors it is from zero: that of the noncentral t distribution."""
    if df > 10_000:
        return float(ndtri(1 - alpha / 2) + ndtri(POWER))
    return float(nctdtrinc(df, 1 - POWER, stdtrit(df, 1 - alpha / 2)))


def smallest_detectable(test: Crossed, alpha: float) -> float:
    """`reach` from an estimated variance. Its root is too small on average, by `root`; once more that factor makes up
    for studies that by chance see too little variance: their power is still above 75%."""
    half = test.df / 2
    root = math.exp(gammaln(half + 0.5) - gammaln(half)) / math.sqrt(half)
    return reach(test.variance, test.df, alpha) / root**2


def reach_of(components: VarianceComponents, seeds: int, items: float, alpha: float) -> float:
    """`reach` for another number of seeds and items."""
    seed = items * components.seed + components.rest
    item = seeds * components.item + components.rest
    return reach(*pooled(seed, item, components.rest, seeds, items), alpha)


def seeds_needed(components: VarianceComponents, items: float, least: float, alpha: float) -> int | None:
    """Total seeds that detect a difference of `least`; None where no number is enough."""
    if least <= 0 or components.item / items >= (least / noncentrality(items - 1, alpha)) ** 2:
        return None
    high = 2
    while reach_of(components, high, items, alpha) > least:
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reach_of(components, middle, items, alpha) > least else (low, middle)
    return max(2, high)


def items_needed(components: VarianceComponents, least: float, alpha: float) -> int | None:
    """Test items without which no number of seeds detects a difference of `least`."""
    return math.ceil(components.item / (least / noncentrality(math.inf, alpha)) ** 2) if least > 0 else None


def more_seeds(test: Crossed, least: float, alpha: float) -> MoreSeeds | None:
    """Seeds to add until `least` is detected, from the 80% chi-square interval of the seeds' mean square; None where
    more seeds cannot help, or are not needed."""
    middle = seeds_needed(test.components, test.effective, least, alpha)
    if middle is None or middle <= test.seeds:
        return None
    df = test.seeds - 1
    bounds: list[int | None] = []
    for tail in (0.1, 0.9):
        square = df / float(chdtri(df, tail)) * test.seed_square
        components = replace(test.components, seed=max(0.0, (square - test.components.rest) / test.effective))
        needed = seeds_needed(components, test.effective, least, alpha) or math.inf
        bounds.append(next((step for step in STEPS if needed - test.seeds <= step), None))
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
) -> Expected | None:
    """`task` is 'classify' (accuracy, points) or 'lm' (perplexity, nats per token); None for a single seed or item.
    `alpha` of the first look, `family`: comparisons that will be judged together; `components`: variances, if known.
    `paired`: whether the two sides share their first weights at each seed."""
    if seeds < 2 or items < 2:
        return None
    metric, level = {"classify": "accuracy", "lm": "perplexity"}.get(task, task), alpha / max(1, family)
    assumed = components or [table[metric] for table in (LOW_VARIANCE, HIGH_VARIANCE)]
    if not paired and not components and metric in UNPAIRED:
        assumed = [replace(each, seed=each.seed * more) for each, more in zip(assumed, UNPAIRED[metric], strict=True)]
    reached = [reach_of(each, seeds, items, level) for each in assumed]
    return Expected(metric, min(reached), max(reached))


def components_of_spread(task: str, spread: Sequence[float]) -> list[VarianceComponents]:
    """Standard deviations of a difference: over seeds, over items and of what is left; or over seeds only, the others
    as in small transformers."""
    if len(spread) not in (1, 3) or not all(math.isfinite(each) and each >= 0 for each in spread):
        what = f"a spread is one standard deviation (over seeds) or three (seeds, items, rest), got {list(spread)}"
        raise BadInput(what, "in points of accuracy, or nats per token: 0.7 or 0.7,7,34")
    if len(spread) == 3:
        return [VarianceComponents(*(each**2 for each in spread))]
    metric = "perplexity" if task == "lm" else "accuracy"
    return list(dict.fromkeys(replace(table[metric], seed=spread[0] ** 2) for table in (LOW_VARIANCE, HIGH_VARIANCE)))


def components_of_pilot(comparisons: Sequence[Comparison]) -> tuple[str, list[VarianceComponents]]:
    """The metric of a pilot's first comparison, and the variances of all that share it."""
    known = [(each.metric.name, each.components) for each in comparisons if each.components and each.seeds > 1]
    if not known:
        raise BadInput("the pilot has no variance over seeds", "it takes at least 2 training seeds of 2 variants")
    metric = known[0][0]
    return metric, [components for name, components in known if name == metric]
