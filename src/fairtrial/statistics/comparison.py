"""A variant's score on a test set, two variants compared on it, and the rules that turn a comparison into a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from fairtrial.errors import BadInput
from fairtrial.statistics.crossed import Crossed, Z, crossed_t, items_t, kish, over_items, summed, wilson
from fairtrial.statistics.multiplicity import holm
from fairtrial.statistics.outcomes import (
    CLEAN,
    LANGUAGE,
    METRICS,
    Metric,
    SetOutcomes,
    Sums,
    is_accuracy,
    measure,
    measure_by_class,
    pair,
    same_events,
)
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
    by_class = is_accuracy(metric) and "label" in outcomes.arrays and keep.any()
    sums = measure_by_class(outcomes, keep, clusters) if by_class else measure(metric, outcomes, keep, clusters)
    if not sums.values.size:  # documents without a single counted token
        return {"mean": None, "low": None, "high": None, "by_seed": [], "items": 0, "seeds": list(outcomes.seeds)}
    by_seed = sums.values.sum(1) / sums.weights.sum(1)
    low, high = _score_interval(metric, sums) or (None, None)
    shown = {"mean": float(by_seed.mean()), "low": low, "high": high, "by_seed": by_seed.tolist()}
    shown["items"] = int(keep.sum())
    if metric == "perplexity":
        shown |= {key: exp(shown[key]) for key in ("mean", "low", "high")}
        shown["by_seed"] = [exp(value) for value in by_seed]
    return {**shown, **(_beside(outcomes, keep) if "tokens" in outcomes.arrays else {}), "seeds": list(outcomes.seeds)}


def _beside(outcomes: SetOutcomes, keep: np.ndarray) -> dict[str, Any]:
    """What stands beside a language model's score: every byte counted, and words that it knows only."""
    kept = {name: array[:, keep] for name, array in outcomes.arrays.items()}
    bits = measure("bits per byte", outcomes, keep)
    shown = {"bits_per_byte": float((bits.values.sum(1) / bits.weights.sum(1)).mean())}
    shown["unknown_share"] = float(kept["unknown"].sum() / kept["tokens"].sum())
    known = (kept["tokens"] - kept["unknown"]).sum(1)
    if "unknown_nll" in kept and known.all():
        nats = (kept["nll"] - kept["unknown_nll"]).sum(1)
        shown["perplexity_without_unknown"] = math.exp(min(700.0, float((nats / known).mean())))
    return shown


def score_interval(arrays: Mapping[str, np.ndarray]) -> tuple[float, float] | None:
    """95% interval of one trial's accuracy (a share) or perplexity, over test items, from the outcomes of each [item]:
    the one that `score` gives. None where there are too few items."""
    metric = "accuracy" if "guess" in arrays else "perplexity"
    one_seed = SetOutcomes((0,), {name: array[None] for name, array in arrays.items()})
    shown = score(metric, one_seed, np.ones(one_seed.items, bool), arrays.get("group"))
    if shown["low"] is None:
        return None
    return (shown["low"] / 100, shown["high"] / 100) if metric == "accuracy" else (shown["low"], shown["high"])


def _score_interval(metric: str, sums: Sums) -> tuple[float, float] | None:
    """Over seeds and items; with a single seed over items only."""
    seeds, units = sums.values.shape
    if units < FEWEST_UNITS:  # it would reach from 0 to millions
        return None
    values = sums.linearised()
    mean = float(values.mean())
    if seeds == 1:
        variance, df = over_items(values[0], sums.sizes, sums.strata)
    else:
        test = crossed_t(values, sums.sizes, sums.strata)
        variance, df = test.variance, test.df
    variance, t = variance + sums.unseen, float(stdtrit(df, 0.975))
    if is_accuracy(metric):
        share, spread = mean / 100, variance / 100**2
        if share < 1e-9 or share > 1 - 1e-9:  # t would claim certainty
            low, high = wilson(round(share), kish(sums.sizes))
            return 100 * low, 100 * high
        if seeds == 1:  # as many independent items as vary as much
            low, high = wilson(share, share * (1 - share) / spread * (Z / t) ** 2)
            return 100 * low, 100 * high
    half = t * math.sqrt(variance)
    low, high = mean - half, mean + half
    return (max(0.0, low), min(100.0, high)) if is_accuracy(metric) or metric == "macro-F1" else (low, high)


def exp(value: float | None) -> float | None:
    return None if value is None else math.exp(max(-700.0, min(700.0, value)))


@dataclass(frozen=True, eq=False)  # a key by identity: arrays have no hash
class Comparison:
    """`variant` minus `against`. With one seed or one item there is no `test`, only a difference; with `checkpoints`,
    one trained network of each, the test is about new items only."""

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
    sizes: np.ndarray | None = None  # how much of the difference each unit is [unit]
    level: float | None = None  # score of `against`
    checkpoints: bool = False
    not_comparable_because: tuple[str, ...] = ()

    @property
    def gain(self) -> float:
        """The difference, with the sign that makes more better."""
        assert self.difference is not None
        return self.difference if self.metric.higher_is_better else -self.difference


def compare(
    names: tuple[str, str, str, str],
    metric: str,
    outcomes: tuple[SetOutcomes, SetOutcomes],
    keep: np.ndarray,
    clusters: np.ndarray | None = None,
    *,
    checkpoints: bool = False,
) -> Comparison:
    """`names`: variant, against, test set, subset. `outcomes`: of the variant, of the other."""
    one, other, paired = pair(*outcomes)
    kind = one.metric or METRICS[metric]
    found = Comparison(*names, kind, len(one.seeds), int(keep.sum()), paired, checkpoints=checkpoints)
    if one.items != other.items:
        why = f"they were scored on different items ({one.items:,} and {other.items:,})"
        return replace(found, not_comparable_because=(why,))
    if metric in LANGUAGE and one.metric is not None and not np.array_equal(one["weight"], other["weight"]):
        counted = "tokens" if metric == "perplexity" else "bytes"
        why = f"their items have different numbers of {counted} (weight), so they do not predict the same {counted}"
        found = replace(found, not_comparable_because=(why,))
    elif metric in LANGUAGE and one.metric is None:
        common, reasons = _common_measure(one, other)
        metric = metric if common == "perplexity" else common
        found = replace(found, metric=METRICS[metric], not_comparable_because=reasons)
    return _compare_sums(found, measure(metric, one, keep, clusters), measure(metric, other, keep, clusters), clusters)


def compare_values(
    names: tuple[str, str],
    metric: Metric,
    ours: np.ndarray,
    theirs: np.ndarray,
    clusters: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Comparison:
    """Any score of items [seed item], by the test that judges a study; `weights` [item] or [seed item]."""
    counts = np.ones(ours.shape) if weights is None else np.broadcast_to(np.asarray(weights, float), ours.shape)
    sizes = summed(counts, clusters)
    counted = sizes.sum(0) > 0
    sums = [summed(np.where(counts > 0, values, 0.0) * counts, clusters)[:, counted] for values in (ours, theirs)]
    found = Comparison(*names, "", "all", metric, len(ours), ours.shape[1], paired=True)
    one, other = (Sums(each, sizes[:, counted]) for each in sums)
    return _compare_sums(found, one, other, clusters)


def _compare_sums(found: Comparison, ours: Sums, theirs: Sums, clusters: np.ndarray | None) -> Comparison:
    seeds, units = ours.values.shape
    found = replace(found, groups=None if clusters is None else units)
    if theirs.values.shape[1] != units or (effective := kish(ours.sizes) if units else 0.0) < 2:
        what = "test items" if clusters is None else "groups of test items"
        uneven = f" of very unequal size, which count as {effective:.1f}" if units > 2 else ""
        why = f"too few {what} to compare on ({units}{uneven})"
        return replace(found, not_comparable_because=(*found.not_comparable_because, why))
    only_items = found.checkpoints
    values = ours.linearised() - theirs.linearised()  # each with its own weights: tokenizers may count other bytes
    return replace(
        found,
        difference=float(values.mean()),
        test=crossed_t(values, ours.sizes) if seeds > 1 else items_t(values[0], ours.sizes) if only_items else None,
        differences=values,
        sizes=ours.sizes,
        level=float((theirs.values.sum(1) / theirs.weights.sum(1)).mean()),
    )


def trends(comparisons: Sequence[Comparison], sizes: Sequence[Sequence[float]]) -> list[Crossed]:
    """How a difference changes with each of several sizes, the others held: slopes of least squares over comparisons of
    the same seeds and items. Seed by seed and item by item a slope is one weighted sum of them, so what they share
    falls out of its interval. `sizes`: those of each comparison."""
    design = np.column_stack([np.ones(len(comparisons)), np.asarray(sizes, float)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise BadInput("a trend needs at least two values of each size that do not move together")
    values = np.stack([each.differences for each in comparisons if each.differences is not None])
    return [crossed_t(slope, comparisons[0].sizes) for slope in np.tensordot(np.linalg.pinv(design)[1:], values, 1)]


def _common_measure(one: SetOutcomes, other: SetOutcomes) -> tuple[str, tuple[str, ...]]:
    """Perplexities compare only where both sides predict the same events. Else bits per byte do, if they count every
    byte of the same text."""
    ours, theirs = one.vocabulary, other.vocabulary
    if ours and theirs and ours.normalisation != theirs.normalisation:
        which = " and ".join(side.normalisation or "the text as it is" for side in (ours, theirs))
        why = f"they predict different texts ({which}), and what one leaves out it need not predict"
        return "bits per byte", (why,)
    if same_events(one, other):
        return "perplexity", ()
    hidden = [side["unknown"].any() and "spelling" not in side.arrays for side in (one, other)]
    if not any(hidden):
        return "bits per byte", ()
    shares = [f"{float(side['unknown'].sum() / side['tokens'].sum()):.1%}" for side in (one, other)]
    why = f"their vocabularies differ and hide different words (unknown: {shares[0]} and {shares[1]})"
    return "bits per byte", (why,)


def least_for(metric: str, least: float, outcomes: SetOutcomes) -> float:
    """The least difference of interest in the metric's unit: nats per token are worth fewer bits per byte."""
    if metric != "bits per byte" or "tokens" not in outcomes.arrays:
        return least
    return least * float(outcomes["tokens"].sum() / outcomes["bytes"].sum()) / math.log(2)


@dataclass(frozen=True)
class Verdict:
    """`better`, `worse`, `same`, `undetected`, `too_few_seeds` or `not_comparable`, and what goes with it. Of two
    checkpoints `checkpoint_better` and so on, which says nothing of new trainings."""

    kind: str
    why: tuple[str, ...] = ()  # of not_comparable
    smallest: float | None = None  # difference that this study finds in 80% of cases, at the level that decides
    more: MoreSeeds | None = None  # seeds to add to see the least difference of interest
    more_for_observed: MoreSeeds | None = None  # seeds to add to see a difference as large as the observed one
    more_items: int | None = None  # test items without which no number of seeds shows it


def may_be_judged(comparison: Comparison) -> bool:
    """Whether the comparison belongs to the family of claims."""
    return not comparison.not_comparable_because and (comparison.checkpoints or comparison.seeds >= FEWEST_SEEDS)


def p_same(comparison: Comparison, least: float) -> float:
    """Two one-sided tests (Schuirmann 1987): the p-value of `the difference is larger than `least``."""
    test = comparison.test
    assert test is not None
    if test.variance == 0 and is_accuracy(comparison.metric.name):  # looks like certainty, but is not
        return (1 - min(1.0, least / 100)) ** test.effective
    return test.p_above(least - abs(test.difference))


def decide(
    comparison: Comparison,
    p_adjusted: float | None,
    alpha: float,
    least: float,
    *,
    family: int = 1,
    p_same_adjusted: float | None = None,
) -> Verdict:
    """The first rule that applies. p-values over the family of so many comparisons; `alpha` of this look; `least` in
    the comparison's unit."""
    if comparison.not_comparable_because:
        return Verdict("not_comparable", why=comparison.not_comparable_because)
    test, level = comparison.test, alpha / max(1, family)
    never_differed = test is not None and test.variance == 0 and is_accuracy(comparison.metric.name)
    of = "checkpoint_" * comparison.checkpoints
    if test is None:
        smallest = None
    elif never_differed:  # up to so many points of all such items may still differ
        smallest = 100 * (1 - level ** (1 / test.effective))
    else:
        smallest = smallest_detectable(test, level)
    if not may_be_judged(comparison) or test is None or p_adjusted is None:
        return Verdict("too_few_seeds", smallest=smallest)
    if p_adjusted < alpha:
        return Verdict(of + ("better" if comparison.gain > 0 else "worse"), smallest=smallest)
    if (p_same(comparison, least) if p_same_adjusted is None else p_same_adjusted) < alpha:
        return Verdict(f"{of}same", smallest=smallest)
    of_such_sizes = test.items / test.effective
    if never_differed:
        needed = math.log(level) / math.log1p(-least / 100) * of_such_sizes if least else 0
        return Verdict(f"{of}undetected", smallest=smallest, more_items=math.ceil(needed) if least else None)
    if comparison.checkpoints:
        items = items_needed(test.shares, least, level)
        return Verdict(f"{of}undetected", (), smallest, None, None, items and math.ceil(items * of_such_sizes))
    observed = more_seeds(test, abs(test.difference), level)
    if seeds_needed(test.shares, test.effective, least, level) is not None:
        return Verdict("undetected", (), smallest, more_seeds(test, least, level), observed)
    items = items_needed(test.shares, least, level)
    return Verdict("undetected", (), smallest, None, observed, items and math.ceil(items * of_such_sizes))


class Judged(NamedTuple):
    verdict: Verdict
    p_adjusted: float | None
    p_same: float | None  # adjusted, too
    family: int  # comparisons that are corrected together


def decide_family(comparisons: Sequence[Comparison], least: Sequence[float], alpha: float) -> list[Judged]:
    """A verdict on each, with Holm's correction over all that may be judged."""
    tests = {n: each.test for n, each in enumerate(comparisons) if may_be_judged(each) and each.test is not None}
    adjusted = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    same = dict(zip(tests, holm([p_same(comparisons[n], least[n]) for n in tests]), strict=True))
    judged = []
    for n, comparison in enumerate(comparisons):
        p, also = adjusted.get(n), same.get(n)
        verdict = decide(comparison, p, alpha, least[n], family=len(tests), p_same_adjusted=also)
        judged.append(Judged(verdict, p, also, len(tests)))
    return judged


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
