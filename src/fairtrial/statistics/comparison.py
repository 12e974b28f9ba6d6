"""A variant's score on a test set, two variants compared on it, and the rules that turn a comparison into a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from fairtrial.results.values import (
    FEWEST_SEEDS,
    Interval,
    Metric,
    MoreSeeds,
    Question,
    Reason,
    ReasonCode,
    Score,
    VerdictKind,
    is_accuracy,
)
from fairtrial.statistics.crossed import (
    Array,
    Counts,
    Crossed,
    Mask,
    Z,
    crossed_t,
    items_t,
    kish,
    over_items,
    summed,
    wilson,
)
from fairtrial.statistics.multiplicity import holm
from fairtrial.statistics.outcomes import (
    CLEAN,
    LANGUAGE,
    METRICS,
    SetOutcomes,
    Sums,
    measure,
    measure_by_class,
    pair,
    same_events,
)
from fairtrial.statistics.power import items_needed, more_seeds, seeds_needed, smallest_detectable

FEWEST_UNITS = 5  # items, or groups of them, for the interval of a score
BOOTSTRAP_DRAWS, FEWEST_DRAWS = 2000, 400
BOOTSTRAP_WORK = 20_000_000  # draws x items: with very many items there are fewer draws


def subsets(status: Array | None, items: int) -> dict[str, Mask]:
    """Masks [item] of all, clean and contaminated items; only all items where there are no copies."""
    every: dict[str, Mask] = {"all": np.ones(items, bool)}
    if status is None or not (status != CLEAN).any():
        return every
    return {**every, "clean": status == CLEAN, "contaminated": status != CLEAN}


def scores_by_subset(
    metric: str, outcomes: SetOutcomes, status: Array | None, clusters: Counts | None = None
) -> dict[str, Score]:
    """`{"all": score, "clean": score, "contaminated": score}`, without subsets that have no items."""
    masks = subsets(status, outcomes.items)
    return {subset: score(metric, outcomes, keep, clusters) for subset, keep in masks.items() if keep.any()}


def score(metric: str, outcomes: SetOutcomes, keep: Mask, clusters: Counts | None = None) -> Score:
    """Mean, interval and the value of each seed: accuracy in per cent; perplexities are averaged as logarithms."""
    by_class = is_accuracy(metric) and "label" in outcomes.arrays and keep.any()
    sums = measure_by_class(outcomes, keep, clusters) if by_class else measure(metric, outcomes, keep, clusters)
    if not sums.values.size:  # documents without a single counted token
        return Score(Interval(), (), outcomes.seeds, 0)
    by_seed = sums.values.sum(1) / sums.weights.sum(1)
    mean, (low, high) = float(by_seed.mean()), _score_interval(metric, sums) or (None, None)
    values = by_seed.tolist()
    if metric == "perplexity":
        values, mean = [_exp(value) for value in values], _exp(mean)
        low, high = (None if end is None else _exp(end) for end in (low, high))
    found = Score(Interval(mean, low, high), tuple(values), outcomes.seeds, int(keep.sum()))
    return _with_every_byte(found, outcomes, keep) if "tokens" in outcomes.arrays else found


def _with_every_byte(found: Score, outcomes: SetOutcomes, keep: Mask) -> Score:
    """Beside a language model's score: every byte counted, and words that it knows only."""
    kept = {name: array[:, keep] for name, array in outcomes.arrays.items()}
    bits = measure("bits per byte", outcomes, keep)
    known, known_only = (kept["tokens"] - kept["unknown"]).sum(1), None
    if "unknown_nll" in kept and known.all():
        nats = (kept["nll"] - kept["unknown_nll"]).sum(1)
        known_only = math.exp(min(700.0, float((nats / known).mean())))
    return replace(
        found,
        bits_per_byte=float((bits.values.sum(1) / bits.weights.sum(1)).mean()),
        unknown_share=float(kept["unknown"].sum() / kept["tokens"].sum()),
        perplexity_without_unknown=known_only,
    )


def score_interval(arrays: Mapping[str, Array]) -> tuple[float, float] | None:
    """95% interval of one trial's accuracy (a share) or perplexity, over test items, from the outcomes of each [item]:
    the one that `score` gives. None where there are too few items."""
    metric = "accuracy" if "guess" in arrays else "perplexity"
    one_seed = SetOutcomes((0,), {name: array[None] for name, array in arrays.items()})
    groups = np.asarray(arrays["group"], np.intp) if "group" in arrays else None
    mean = score(metric, one_seed, np.ones(one_seed.items, bool), groups).mean
    if mean.low is None or mean.high is None:
        return None
    return (mean.low / 100, mean.high / 100) if metric == "accuracy" else (mean.low, mean.high)


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


def _exp(value: float) -> float:
    return math.exp(max(-700.0, min(700.0, value)))


@dataclass(frozen=True, eq=False)  # a key by identity: arrays have no hash
class Contrast:
    """A variant minus its baseline, before anything is decided. With one seed or one item there is no `test`, only a
    difference; of checkpoints, one trained network of each, the test is about new items only."""

    variant: str
    baseline: str
    test_set: str
    subset: str  # all, clean or contaminated items
    metric: Metric
    seeds: int
    items: int
    paired: bool
    groups: int | None = None  # clusters that the items fall into, if they do
    difference: float | None = None
    test: Crossed | None = None
    differences: Array | None = None  # linearised [seed unit]
    sizes: Array | None = None  # how much of the difference each unit is [unit]
    level: float | None = None  # score of the baseline
    question: Question = Question.NEW_RUNS
    not_comparable: tuple[Reason, ...] = ()

    @property
    def gain(self) -> float:
        """The difference, with the sign that makes more better."""
        assert self.difference is not None
        return self.difference if self.metric.higher_is_better else -self.difference

    def but(self, code: ReasonCode, text: str) -> Contrast:
        """The same with one more reason not to compare."""
        return replace(self, not_comparable=(*self.not_comparable, Reason(code, text)))


def compare(
    names: tuple[str, str, str, str],
    metric: str,
    outcomes: tuple[SetOutcomes, SetOutcomes],
    keep: Mask,
    clusters: Counts | None = None,
    *,
    question: Question = Question.NEW_RUNS,
) -> Contrast:
    """`names`: variant, baseline, test set, subset. `outcomes`: of the variant, of the baseline."""
    one, other, paired = pair(*outcomes)
    kind = one.metric or METRICS[metric]
    contrast = Contrast(*names, kind, len(one.seeds), int(keep.sum()), paired, question=question)
    if one.items != other.items:
        text = f"they were scored on different items ({one.items:,} and {other.items:,})"
        return contrast.but(ReasonCode.DIFFERENT_ITEMS, text)
    if metric in LANGUAGE and one.metric is not None and not np.array_equal(one["weight"], other["weight"]):
        counted = "tokens" if metric == "perplexity" else "bytes"
        text = f"their items have different numbers of {counted} (weight), so they do not predict the same {counted}"
        contrast = contrast.but(ReasonCode.DIFFERENT_TOKENS, text)
    elif metric in LANGUAGE and one.metric is None:
        common, reasons = _common_measure(one, other)
        metric = metric if common == "perplexity" else common
        contrast = replace(contrast, metric=METRICS[metric], not_comparable=reasons)
    ours, theirs = (measure(metric, side, keep, clusters) for side in (one, other))
    return _compare_sums(contrast, ours, theirs, clusters)


def compare_values(
    names: tuple[str, str],
    metric: Metric,
    ours: Array,
    theirs: Array,
    clusters: Counts | None = None,
    weights: Array | None = None,
) -> Contrast:
    """Any score of items [seed item], by the test that judges a study; `weights` [item] or [seed item]."""
    counts = np.ones(ours.shape) if weights is None else np.broadcast_to(np.asarray(weights, float), ours.shape)
    sizes = summed(counts, clusters)
    counted = sizes.sum(0) > 0
    sums = [summed(np.where(counts > 0, values, 0.0) * counts, clusters)[:, counted] for values in (ours, theirs)]
    contrast = Contrast(*names, "", "all", metric, len(ours), ours.shape[1], paired=True)
    one, other = (Sums(side, sizes[:, counted]) for side in sums)
    return _compare_sums(contrast, one, other, clusters)


def _compare_sums(contrast: Contrast, ours: Sums, theirs: Sums, clusters: Counts | None) -> Contrast:
    seeds, units = ours.values.shape
    contrast = replace(contrast, groups=None if clusters is None else units)
    if theirs.values.shape[1] != units or (effective := kish(ours.sizes) if units else 0.0) < 2:
        kind = "test items" if clusters is None else "groups of test items"
        uneven = f" of very unequal size, which count as {effective:.1f}" if units > 2 else ""
        return contrast.but(ReasonCode.TOO_FEW_ITEMS, f"too few {kind} to compare on ({units}{uneven})")
    only_items = contrast.question == Question.CHECKPOINTS
    values = ours.linearised() - theirs.linearised()  # each with its own weights: tokenizers may count other bytes
    return replace(
        contrast,
        difference=float(values.mean()),
        test=crossed_t(values, ours.sizes) if seeds > 1 else items_t(values[0], ours.sizes) if only_items else None,
        differences=values,
        sizes=ours.sizes,
        level=float((theirs.values.sum(1) / theirs.weights.sum(1)).mean()),
    )


def _common_measure(one: SetOutcomes, other: SetOutcomes) -> tuple[str, tuple[Reason, ...]]:
    """Perplexities compare only where both sides predict the same events. Else bits per byte do, if they count every
    byte of the same text."""
    ours, theirs = one.vocabulary, other.vocabulary
    if ours and theirs and ours.normalisation != theirs.normalisation:
        which = " and ".join(side.normalisation or "the text as it is" for side in (ours, theirs))
        text = f"they predict different texts ({which}), and what one leaves out it need not predict"
        return "bits per byte", (Reason(ReasonCode.DIFFERENT_TEXTS, text),)
    if same_events(one, other):
        return "perplexity", ()
    hidden = [side["unknown"].any() and "spelling" not in side.arrays for side in (one, other)]
    if not any(hidden):
        return "bits per byte", ()
    shares = [f"{float(side['unknown'].sum() / side['tokens'].sum()):.1%}" for side in (one, other)]
    text = f"their vocabularies differ and hide different words (unknown: {shares[0]} and {shares[1]})"
    return "bits per byte", (Reason(ReasonCode.DIFFERENT_VOCABULARIES, text),)


def margin_for(metric: str, margin: float, outcomes: SetOutcomes) -> float:
    """The smallest difference of interest in the metric's unit: nats per token are worth fewer bits per byte."""
    if metric != "bits per byte" or "tokens" not in outcomes.arrays:
        return margin
    return margin * float(outcomes["tokens"].sum() / outcomes["bytes"].sum()) / math.log(2)


@dataclass(frozen=True)
class Decision:
    """What a contrast shows, and what goes with it."""

    kind: VerdictKind
    reasons: tuple[Reason, ...] = ()
    detectable: float | None = None  # difference that this study finds in 80% of cases, at the level that decides
    more_seeds: MoreSeeds | None = None  # to add to detect the margin
    more_items: int | None = None  # test items without which no number of seeds detects it


def may_be_judged(contrast: Contrast) -> bool:
    """Whether it belongs to the family of claims."""
    enough = contrast.question == Question.CHECKPOINTS or contrast.seeds >= FEWEST_SEEDS
    return not contrast.not_comparable and enough


def p_equivalent(contrast: Contrast, margin: float) -> float:
    """Two one-sided tests (Schuirmann 1987): the p-value of "the difference is larger than the margin"."""
    test = contrast.test
    assert test is not None
    if test.variance == 0 and contrast.metric.is_accuracy:  # looks like certainty, but is not
        return (1 - min(1.0, margin / 100)) ** test.effective
    return test.p_above(margin - abs(test.difference))


def decide(
    contrast: Contrast,
    p_adjusted: float | None,
    alpha: float,
    margin: float,
    *,
    family: int = 1,
    p_equivalent_adjusted: float | None = None,
) -> Decision:
    """The first rule that applies. p-values over the family of so many comparisons; `alpha` of this look; `margin` in
    the contrast's unit."""
    if contrast.not_comparable:
        return Decision(VerdictKind.NOT_COMPARABLE, contrast.not_comparable)
    test, level = contrast.test, alpha / max(1, family)
    never_differed = test is not None and test.variance == 0 and contrast.metric.is_accuracy
    if test is None:
        detectable = None
    elif never_differed:  # up to so many points of all such items may still differ
        detectable = 100 * (1 - level ** (1 / test.effective))
    else:
        detectable = smallest_detectable(test, level)
    undecided = Decision(VerdictKind.UNDECIDED, detectable=detectable)
    if not may_be_judged(contrast) or test is None or p_adjusted is None:
        return replace(undecided, reasons=(Reason(ReasonCode.TOO_FEW_SEEDS, f"a verdict needs {FEWEST_SEEDS} seeds"),))
    if p_adjusted < alpha:
        return replace(undecided, kind=VerdictKind.BETTER if contrast.gain > 0 else VerdictKind.WORSE)
    if (p_equivalent(contrast, margin) if p_equivalent_adjusted is None else p_equivalent_adjusted) < alpha:
        return replace(undecided, kind=VerdictKind.EQUIVALENT)
    of_such_sizes = test.items / test.effective
    if never_differed:
        needed = math.log(level) / math.log1p(-margin / 100) * of_such_sizes if margin else 0
        return replace(undecided, more_items=math.ceil(needed) if margin else None)
    seeds_help = seeds_needed(test.components, test.effective, margin, level) is not None
    if contrast.question == Question.NEW_RUNS and seeds_help:
        return replace(undecided, more_seeds=more_seeds(test, margin, level))
    items = items_needed(test.components, margin, level)
    return replace(undecided, more_items=items and math.ceil(items * of_such_sizes))


class Judged(NamedTuple):
    decision: Decision
    p_adjusted: float | None
    p_equivalent: float | None  # adjusted, too
    family: int  # contrasts that are corrected together


def decide_family(contrasts: Sequence[Contrast], margins: Sequence[float], alpha: float) -> list[Judged]:
    """A decision on each, with Holm's correction over all that may be judged."""
    tests = {n: each.test for n, each in enumerate(contrasts) if may_be_judged(each) and each.test is not None}
    adjusted = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    equivalent = dict(zip(tests, holm([p_equivalent(contrasts[n], margins[n]) for n in tests]), strict=True))
    judged = []
    for n, contrast in enumerate(contrasts):
        p, also = adjusted.get(n), equivalent.get(n)
        decision = decide(contrast, p, alpha, margins[n], family=len(tests), p_equivalent_adjusted=also)
        judged.append(Judged(decision, p, also, len(tests)))
    return judged


def multi_bootstrap(differences: Array, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of the mean of `differences` [seed item], resampling seeds and items (Multi-Bootstrap, Sellam
    and others 2022), always with the same random numbers. It counts the residual about three times (Owen 2007), so it
    is conservative where items dominate, and too narrow with few seeds where seeds do: it never decides a verdict."""
    rng = np.random.default_rng(20_220_301)
    seeds, items = differences.shape
    draws = min(BOOTSTRAP_DRAWS, max(FEWEST_DRAWS, BOOTSTRAP_WORK // items))
    sums = [_resample(rng, seeds) @ differences @ _resample(rng, items) for _ in range(draws)]
    low, high = np.quantile(sums, [(1 - level) / 2, (1 + level) / 2]) / (seeds * items)
    return float(low), float(high)


def _resample(rng: np.random.Generator, size: int) -> Counts:
    """How often each of `size` things is drawn in `size` draws with replacement."""
    return np.bincount(rng.integers(0, size, size), minlength=size)
