"""A variant's score on a test set, two variants compared on it, and the rules that turn a comparison into a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairtrial.statistics.crossed import Crossed, crossed_t, wilson
from fairtrial.statistics.outcomes import CLEAN, METRICS, Metric, SetOutcomes, Sums, measure
from fairtrial.statistics.power import MoreSeeds, items_needed, more_seeds, seeds_needed, smallest_detectable

FEWEST_SEEDS = 5  # for a verdict
FEWEST_UNITS = 5  # items, or groups of them, for the interval of a score
BOOTSTRAP_DRAWS, FEWEST_DRAWS = 2000, 400
BOOTSTRAP_WORK = 20_000_000  # draws x items: with very many items there are fewer draws


def subsets(status: np.ndarray | None, items: int) -> dict[str, np.ndarray]:
    """Masks [item] of all, clean and contaminated items; only all items where there are no copies."""
    every = {"all": np.ones(items, bool)}
    if status is None or not (status != CLEAN).any():
        return every
    return {**every, "clean": status == CLEAN, "contaminated": status != CLEAN}


def scores_by_subset(
    metric: str, outcomes: SetOutcomes, status: np.ndarray | None, clusters: np.ndarray | None = None
) -> dict[str, Any]:
    """`{"all": score, "clean": score, "contaminated": score}`, without subsets that have no items."""
    masks = subsets(status, outcomes.items)
    return {subset: score(metric, outcomes, keep, clusters) for subset, keep in masks.items() if keep.any()}


def score(metric: str, outcomes: SetOutcomes, keep: np.ndarray, clusters: np.ndarray | None = None) -> dict[str, Any]:
    """Mean, interval and the value of each seed: accuracy in per cent; perplexities are averaged as logarithms."""
    sums = measure(metric, outcomes, keep, clusters)
    if not sums.values.size:  # documents without a single counted token
        return {"mean": None, "low": None, "high": None, "by_seed": [], "items": 0, "seeds": list(outcomes.seeds)}
    by_seed = sums.values.sum(1) / sums.weights.sum(1)
    low, high = _score_interval(metric, sums) or (None, None)
    shown = {"mean": float(by_seed.mean()), "low": low, "high": high, "by_seed": by_seed.tolist()}
    shown["items"] = int(keep.sum())
    if metric == "perplexity":
        shown |= {key: _exp(shown[key]) for key in ("mean", "low", "high")}
        shown["by_seed"] = [_exp(value) for value in by_seed]
        bits = measure("bits per byte", outcomes, keep, clusters)
        shown["bits_per_byte"] = float((bits.values.sum(1) / bits.weights.sum(1)).mean())
        shown["unknown_share"] = float(outcomes["unknown"][:, keep].sum() / outcomes["tokens"][:, keep].sum())
    return {**shown, "seeds": list(outcomes.seeds)}


def _score_interval(metric: str, sums: Sums) -> tuple[float, float] | None:
    """Over seeds and items; with a single seed over items only."""
    seeds, units = sums.values.shape
    if units < FEWEST_UNITS:  # it would reach from 0 to millions
        return None
    values = sums.linearised()
    if metric == "accuracy" and (values.mean() in (0.0, 100.0) or (seeds == 1 and units == sums.weights.sum())):
        low, high = wilson(float(values[0].sum()) / 100, units)  # without any variance t would claim certainty
        return 100 * low, 100 * high
    if seeds == 1:
        half = float(stdtrit(units - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(units)
        low, high = float(values.mean()) - half, float(values.mean()) + half
    else:
        low, high = crossed_t(values).interval()
    return (max(0.0, low), min(100.0, high)) if metric in ("accuracy", "macro-F1") else (low, high)


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(min(700.0, value))


@dataclass(frozen=True)
class Comparison:
    """`variant` minus `against`. With one seed or one item there is no `test`, only a difference."""

    variant: str
    against: str
    set: str
    subset: str  # all, clean or contaminated items
    metric: Metric
    seeds: int
    items: int
    paired: bool
    groups: int | None = None  # clusters that the items fall into, if they do
    difference: float | None = None
    test: Crossed | None = None
    differences: np.ndarray | None = None  # linearised [seed unit]
    level: float | None = None  # score of `against`
    not_comparable_because: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """The difference, with the sign that makes more better."""
        assert self.difference is not None
        return self.difference if self.metric.higher_is_better else -self.difference


def pair(one: SetOutcomes, other: SetOutcomes) -> tuple[SetOutcomes, SetOutcomes, bool]:
    """Rows that belong together: the seeds that both have; if they share none, paired by order."""
    shared = tuple(seed for seed in one.seeds if seed in other.seeds)
    if shared:
        return one.rows(shared), other.rows(shared), True
    count = min(len(one.seeds), len(other.seeds))
    return one.rows(one.seeds[:count]), other.rows(other.seeds[:count]), False


def compare(
    names: tuple[str, str, str, str],
    metric: str,
    outcomes: tuple[SetOutcomes, SetOutcomes],
    keep: np.ndarray,
    clusters: np.ndarray | None = None,
) -> Comparison:
    """`names`: variant, against, test set, subset. `outcomes`: of the variant, of the other."""
    one, other, paired = pair(*outcomes)
    found = Comparison(*names, METRICS[metric], len(one.seeds), int(keep.sum()), paired)
    if one.items != other.items:
        why = f"they were scored on different items ({one.items:,} and {other.items:,})"
        return replace(found, not_comparable_because=(why,))
    if metric == "perplexity":
        metric, reasons = _common_measure(one, other, paired)
        found = replace(found, metric=METRICS[metric], not_comparable_because=reasons)
    ours, theirs = measure(metric, one, keep, clusters), measure(metric, other, keep, clusters)
    seeds, units = ours.values.shape
    found = replace(found, groups=None if clusters is None else units)
    if units < 2 or theirs.values.shape[1] != units:
        what = "test items" if clusters is None else "groups of test items"
        why = f"too few {what} to compare on ({units})"
        return replace(found, not_comparable_because=(*found.not_comparable_because, why))
    values = ours.linearised() - theirs.linearised()  # each with its own weights: tokenizers may count other bytes
    return replace(
        found,
        difference=float(values.mean()),
        test=crossed_t(values) if seeds > 1 else None,
        differences=values,
        level=float((theirs.values.sum(1) / theirs.weights.sum(1)).mean()),
    )


def _common_measure(one: SetOutcomes, other: SetOutcomes, paired: bool) -> tuple[str, tuple[str, ...]]:
    """Perplexity only compares texts cut into the same tokens; else bits per byte, if no word is unknown."""
    same_tokens = np.array_equal(one["tokens"], other["tokens"])
    # with seeds of their own, two variants split off different validation sets, so vocabularies differ by chance
    same_unknown = not paired or np.array_equal(one["unknown"], other["unknown"])
    if same_tokens and same_unknown:
        return "perplexity", ()
    if not (one["unknown"].any() or other["unknown"].any()):
        return "bits per byte", ()
    shares = [f"{float(side['unknown'].sum() / side['tokens'].sum()):.1%}" for side in (one, other)]
    why = f"their vocabularies differ and hide different words (unknown: {shares[0]} and {shares[1]})"
    return "bits per byte", (why,)


def least_for(comparison: Comparison, least: float, outcomes: SetOutcomes) -> float:
    """The least difference of interest in the comparison's unit: nats per token are worth fewer bits per byte."""
    if comparison.metric.name != "bits per byte":
        return least
    return least * float(outcomes["tokens"].sum() / outcomes["bytes"].sum()) / math.log(2)


@dataclass(frozen=True)
class Verdict:
    """`better`, `worse`, `same`, `undetected`, `too_few_seeds` or `not_comparable`, and what goes with it."""

    kind: str
    why: tuple[str, ...] = ()  # of not_comparable
    smallest: float | None = None  # difference that this study finds in 80% of cases
    more: MoreSeeds | None = None  # seeds to add to see the least difference of interest
    more_for_observed: MoreSeeds | None = None  # seeds to add to see a difference as large as the observed one
    more_items: int | None = None  # test items without which no number of seeds shows it


def may_be_judged(comparison: Comparison) -> bool:
    """Whether the comparison belongs to the family of claims."""
    return not comparison.not_comparable_because and comparison.seeds >= FEWEST_SEEDS


def decide(comparison: Comparison, p_adjusted: float | None, alpha: float, least: float) -> Verdict:
    """The first rule that applies. `p_adjusted` over the family; `alpha` of this look; `least` in the comparison's
    unit."""
    if comparison.not_comparable_because:
        return Verdict("not_comparable", why=comparison.not_comparable_because)
    test = comparison.test
    smallest = None if test is None else smallest_detectable(test)
    if comparison.seeds < FEWEST_SEEDS or test is None or p_adjusted is None:
        return Verdict("too_few_seeds", smallest=smallest)
    if p_adjusted < alpha:
        return Verdict("better" if comparison.gain > 0 else "worse", smallest=smallest)
    if test.variance == 0 and comparison.metric.name == "accuracy":
        return _never_differed(test.items, alpha, least)
    low, high = test.interval(1 - 2 * alpha)  # two one-sided tests: at a single look the 90% interval
    if -least < low and high < least:
        return Verdict("same", smallest=smallest)
    observed = more_seeds(test, abs(test.difference))
    if seeds_needed(test.shares, test.items, least) is not None:
        return Verdict("undetected", (), smallest, more_seeds(test, least), observed)
    return Verdict("undetected", (), smallest, None, observed, items_needed(test.shares, least))


def _never_differed(items: int, alpha: float, least: float) -> Verdict:
    """No variance looks like certainty, but up to `unseen` points of all such items may still differ."""
    unseen = 100 * (1 - alpha ** (1 / items))
    if unseen < least:
        return Verdict("same", smallest=unseen)
    return Verdict("undetected", smallest=unseen, more_items=math.ceil(math.log(alpha) / math.log1p(-least / 100)))


def multi_bootstrap(differences: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of the mean of `differences` [seed item], resampling seeds and items (Multi-Bootstrap, Sellam
    and others 2022), always with the same random numbers. It counts the residual about three times (Owen 2007), so it
    is conservative where items dominate, and too narrow with few seeds where seeds do: it never decides a verdict."""
    rng = np.random.default_rng(20_220_301)
    seeds, items = differences.shape
    draws = min(BOOTSTRAP_DRAWS, max(FEWEST_DRAWS, BOOTSTRAP_WORK // items))
    sums = [_resample(rng, seeds) @ differences @ _resample(rng, items) for _ in range(draws)]
    low, high = np.quantile(sums, [(1 - level) / 2, (1 + level) / 2]) / (seeds * items)
    return float(low), float(high)


def _resample(rng: np.random.Generator, size: int) -> np.ndarray:
    """How often each of `size` things is drawn in `size` draws with replacement."""
    return np.bincount(rng.integers(0, size, size), minlength=size)
