"""A variant's score on a test set, two variants compared on it, and the rules that turn a comparison into a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairtrial.results.values import (
    FEWEST_SEEDS,
    Metric,
    MoreSeeds,
    Question,
    Reason,
    ReasonCode,
    VerdictKind,
)
from fairtrial.statistics.crossed import (
    Array,
    Common,
    Counts,
    Crossed,
    Mask,
    Strata,
    compare_seeds,
    items_t,
    kish,
    runs_t,
    summed,
)
from fairtrial.statistics.outcomes import (
    LANGUAGE,
    METRICS,
    SetOutcomes,
    Sums,
    measure,
    same_events,
)
from fairtrial.statistics.power import MOST_SEEDS, detectable_range, items_needed, more_seeds, seeds_needed
from fairtrial.statistics.spread import Source, dependence_of, share_variance

FEWEST_UNITS = 6  # items, or groups of them, for a verdict
BETS = np.array([0.03, 0.08, 0.2, 0.5, 0.98])  # shares of the largest bet that cannot go broke
STAKES = np.array([0.15, 0.15, 0.15, 0.15, 0.4])  # how the capital is spread over them


@dataclass(frozen=True, eq=False)  # a key by identity: arrays have no hash
class Contrast:
    """A variant minus its baseline, before anything is decided. With one seed or one item there is no `test`, only a
    difference; of checkpoints, one trained network of each, the test is about new items only."""

    variant: str
    baseline: str
    test_set: str
    subset: str  # all, clean or contaminated items
    metric: Metric
    seeds: int  # of the side that has fewer
    items: int
    paired: bool
    common: tuple[int, ...] = ()  # seeds that both have
    groups: int | None = None  # clusters that the items fall into, if they do
    runs: tuple[int, int] | None = None  # of one number per run: those of both sides
    threshold: bool = False  # the baseline is a score, which the variant's mean must beat: a one-sided question
    difference: float | None = None
    test: Crossed | None = None
    by_unit: Array | None = None  # the difference of each item or group, which counts by its size [unit]
    sizes: Array | None = None  # shares of the difference [unit]
    level: float | None = None  # score of the baseline
    question: Question = Question.NEW_RUNS
    not_comparable: tuple[Reason, ...] = ()
    open_ended: bool = False  # it is judged after any seed

    @property
    def p(self) -> float | None:
        """Of "there is no difference"."""
        if self.test is None:
            return None
        if self.threshold:
            return self.test.p_above(self.gain)
        return min(1.0, 1 / self.test.evidence()) if self.open_ended else self.test.p

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """95%, of the difference."""
        if self.test is None:
            return None, None
        low, high = self.test.lasting_interval() if self.open_ended else self.test.interval()
        return (low, high) if math.isfinite(low) else (None, None)

    @property
    def gain(self) -> float:
        """The difference, with the sign that makes more better."""
        assert self.difference is not None
        return self.difference if self.metric.higher_is_better else -self.difference

    def but(self, code: ReasonCode, text: str) -> Contrast:
        """The same with one more reason not to compare."""
        return replace(self, not_comparable=(*self.not_comparable, Reason(code, text)))


@dataclass(frozen=True)
class Scored:
    """Both sides on one test set, and the items of it that count."""

    ours: SetOutcomes
    theirs: SetOutcomes
    keep: Mask
    clusters: Counts | None = None


def compare(
    names: tuple[str, str, str, str],
    metric: str,
    sets: Sequence[Scored],
    *,
    question: Question = Question.NEW_RUNS,
) -> Contrast:
    """`names`: variant, baseline, test set, subset. Of several test sets, the mean of their differences."""
    kind = sets[0].ours.metric or METRICS[metric]
    one, other = sets[0].ours.seeds, sets[0].theirs.seeds
    both = tuple(seed for seed in one if seed in other)
    counted, fewer = sum(int(each.keep.sum()) for each in sets), min(len(one), len(other))
    contrast = Contrast(*names, kind, fewer, counted, bool(both), both, question=question)
    common = [one.index(seed) for seed in both], [other.index(seed) for seed in both]
    if question == Question.NEW_RUNS_SAME_ITEMS:
        resolution = float(np.mean([each.ours["resolution"][0, 0] for each in sets]))
        ours, theirs = (
            np.mean([side["value"][:, 0] for side in sides], axis=0)
            for sides in ([each.ours for each in sets], [each.theirs for each in sets])
        )
        return compare_runs(contrast, ours, theirs, common, resolution)
    for each in sets:
        contrast, metric = _check_same_question(contrast, metric, each)
        if contrast.not_comparable and each.ours.items != each.theirs.items:
            return contrast
    sums = [
        (measure(metric, each.ours, each.keep, each.clusters), measure(metric, each.theirs, each.keep, each.clusters))
        for each in sets
    ]
    return _compare_sums(contrast, sums, common, any(each.clusters is not None for each in sets))


def compare_runs(contrast: Contrast, ours: Array, theirs: Array, common: Common, resolution: float) -> Contrast:
    """One number per run [run]. Where there are no others, the mean of ours is compared with `contrast.level`."""
    counts = len(ours), len(theirs)
    level = float(theirs.mean()) if len(theirs) else contrast.level or 0.0
    test = None
    if min(counts) > 1 or (contrast.threshold and len(ours) > 1):
        test = runs_t(ours if len(theirs) else ours - level, theirs, common, resolution)
    return replace(
        contrast,
        seeds=min(count for count in counts if count),
        items=0,
        paired=test is not None and test.paired,
        runs=counts,
        question=Question.NEW_RUNS_SAME_ITEMS,
        difference=float(ours.mean()) - level,
        test=test,
        level=level,
    )


def _check_same_question(contrast: Contrast, metric: str, scored: Scored) -> tuple[Contrast, str]:
    """Whether both sides predict the same things, and the metric in which they can be compared."""
    one, other = scored.ours, scored.theirs
    if one.items != other.items:
        text = f"they were scored on different items ({one.items:,} and {other.items:,})"
        return contrast.but(ReasonCode.DIFFERENT_ITEMS, text), metric
    if metric in LANGUAGE and one.metric is not None and not np.array_equal(one["weight"][0], other["weight"][0]):
        unit = "tokens" if metric == "perplexity" else "bytes"
        text = f"their items have different numbers of {unit} (weight), so they do not predict the same {unit}"
        return contrast.but(ReasonCode.DIFFERENT_TOKENS, text), metric
    if metric in LANGUAGE and one.metric is None:
        common, reasons = _common_measure(one, other)
        metric = metric if common == "perplexity" else common
        reasons = tuple(reason for reason in reasons if reason not in contrast.not_comparable)
        return replace(contrast, metric=METRICS[metric], not_comparable=(*contrast.not_comparable, *reasons)), metric
    return contrast, metric


def compare_values(
    names: tuple[str, str],
    metric: Metric,
    ours: Array,
    theirs: Array,
    clusters: Counts | None = None,
    weights: Array | None = None,
) -> Contrast:
    """Any score of items [seed item], by the test that judges a study; `weights` [item] or [seed item]. Rows of the
    same number are pairs."""
    sides = []
    for values in (ours, theirs):
        counts = np.ones(values.shape) if weights is None else np.broadcast_to(np.asarray(weights, float), values.shape)
        sizes = summed(counts, clusters)
        counted = sizes.sum(0) > 0
        sides.append(Sums(summed(np.where(counts > 0, values, 0.0) * counts, clusters)[:, counted], sizes[:, counted]))
    rows = tuple(range(min(len(ours), len(theirs))))
    contrast = Contrast(*names, "", "all", metric, len(rows), ours.shape[1], paired=True, common=rows)
    return _compare_sums(contrast, [(sides[0], sides[1])], (rows, rows), clusters is not None)


def _compare_sums(contrast: Contrast, sums: Sequence[tuple[Sums, Sums]], common: Common, grouped: bool) -> Contrast:
    units = sum(ours.values.shape[1] for ours, _ in sums)
    contrast = replace(contrast, groups=units if grouped else None)
    fewest = min(kish(ours.sizes) if ours.values.size else 0.0 for ours, _ in sums)
    if any(ours.values.shape[1] != theirs.values.shape[1] for ours, theirs in sums) or fewest < 2:
        kind = "groups of test items" if grouped else "test items"
        uneven = f" of very unequal size, which count as {fewest:.1f}" if units > 2 else ""
        return contrast.but(ReasonCode.TOO_FEW_ITEMS, f"too few {kind} to compare on ({units}{uneven})")
    ours, theirs = (_endpoint([pair[side] for pair in sums]) for side in (0, 1))
    sizes = np.concatenate([pair[0].sizes / pair[0].sizes.sum() for pair in sums]) / len(sums)
    strata = None if len(sums) == 1 else Strata(sizes * len(sums), len(sums))
    running = not contrast.metric.in_points  # right and wrong answers are in any order, often sorted by class
    by_unit = ours.mean(0) - theirs.mean(0)
    test = None
    if contrast.question == Question.CHECKPOINTS:
        test = items_t(by_unit, sizes, strata, running)
    elif contrast.seeds > 1:
        test = compare_seeds(ours, theirs, common, sizes, strata, running)
    levels = [theirs.values.sum(1) / theirs.weights.sum(1) for _, theirs in sums]
    return replace(
        contrast,
        paired=contrast.paired if test is None else test.paired,
        difference=float(by_unit.mean()),
        test=_with_doubt(test, contrast) if test else None,
        by_unit=by_unit,
        sizes=sizes,
        level=float(np.mean([each.mean() for each in levels])),
    )


def _endpoint(sums: Sequence[Sums]) -> Array:
    """Values [seed unit] whose plain mean is the mean over test sets; that test sets differ is no chance."""
    if len(sums) == 1:
        return sums[0].linearised()
    values = [each.linearised() for each in sums]
    mean = float(np.mean([own.mean() for own in values]))
    units = sum(own.shape[1] for own in values)
    return np.concatenate([mean + units / (len(sums) * own.shape[1]) * (own - own.mean()) for own in values], axis=1)


def _with_doubt(test: Crossed, contrast: Contrast) -> Crossed:
    """Right and wrong answers that never vary look like certainty: they vary at least as if one more item had differed
    (one of n + 2; one more group if none ever did), and p is at least what a sign test says where all units differ."""
    if not contrast.metric.is_accuracy or test.item is None:
        return test
    count = 2 + (contrast.items if test.item.variance else test.effective)
    least = 100**2 * (1 / count) * (1 - 1 / count) / count
    item = replace(test.item, variance=max(least, test.item.variance))
    return replace(test, item=item, least_p=2 * 0.5**test.effective)


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

    verdict: VerdictKind
    reasons: tuple[Reason, ...] = ()
    detectable: tuple[float, float] | None = None  # difference that this study finds in 80% of cases, a range
    more_seeds: MoreSeeds | None = None  # to add to detect the margin
    more_items: int | None = None  # test items without which no number of seeds detects it


def may_be_judged(contrast: Contrast) -> bool:
    """Whether it belongs to the family of claims."""
    return not contrast.not_comparable and not _too_little(contrast)


def p_equivalent(contrast: Contrast, margin: float) -> float:
    """The p-value of "the difference is larger than the margin": two one-sided tests (Schuirmann 1987). Right and wrong
    answers also need enough items to have seen rare ones."""
    test = contrast.test
    assert test is not None
    if contrast.threshold:
        return 1.0
    p = test.p_above(margin - abs(test.difference))
    if contrast.open_ended:
        p = 1.0
        if abs(test.difference) < margin:
            p = min(1.0, 1 / min(test.evidence(end) for end in (-margin, margin)))
    if contrast.metric.is_accuracy and contrast.by_unit is not None and contrast.sizes is not None:
        p = max(p, p_bounded(contrast.by_unit, 100 * len(contrast.sizes) * float(contrast.sizes.max()), margin))
    return p


def p_bounded(values: Array, limit: float, margin: float) -> float:
    """Of "the mean is at least `margin` away from zero", for independent values between -`limit` and `limit`, whatever
    their distribution: bets against it that cannot win on average (Waudby-Smith and Ramdas 2024)."""
    evidence = []
    for values_ in (values, -values):
        room = 1 - margin / limit  # between the margin and the limit
        if room <= 0:
            return 1.0
        steps = 1 - BETS[:, None] / room * (values_ - margin) / limit
        evidence.append(float(STAKES @ np.exp(np.minimum(600.0, np.log(np.maximum(steps, 1e-12)).sum(1)))))
    return min(1.0, 1 / max(1e-300, min(evidence)))


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
    test, family = contrast.test, max(1, family)
    planned = test is not None and test.varies and not (contrast.open_ended or contrast.threshold)
    detectable = detectable_range(test, alpha / family) if test is not None and planned else None
    if detectable is not None and contrast.metric.is_accuracy:
        detectable = (detectable[0], min(100.0, detectable[1])) if detectable[0] < 100 else None
    undecided = Decision(VerdictKind.UNDECIDED, detectable=detectable)
    if reasons := _too_little(contrast):
        return replace(undecided, reasons=reasons)
    assert test is not None
    if p_adjusted is not None and p_adjusted < alpha:
        return replace(undecided, verdict=VerdictKind.BETTER if contrast.gain > 0 else VerdictKind.WORSE)
    if p_equivalent_adjusted is not None and p_equivalent_adjusted < alpha:
        return replace(undecided, verdict=VerdictKind.EQUIVALENT)
    if test.item is None or contrast.open_ended:
        return undecided
    seeds_help = seeds_needed(test.components, test.effective, margin, alpha, family) is not None
    if contrast.question == Question.NEW_RUNS and seeds_help:
        return replace(undecided, more_seeds=more_seeds(test, margin, alpha, family))
    items = items_needed(test.components, MOST_SEEDS, margin, alpha, family)
    return replace(undecided, more_items=items and math.ceil(items * test.items / test.effective))


def _too_little(contrast: Contrast) -> tuple[Reason, ...]:
    """Why nothing may be claimed, whatever the p-value."""
    test = contrast.test
    fewest = 2 if contrast.open_ended or contrast.threshold else FEWEST_SEEDS
    if contrast.question != Question.CHECKPOINTS and contrast.seeds < fewest:
        return (Reason(ReasonCode.TOO_FEW_SEEDS, f"a verdict needs {fewest} seeds"),)
    if test is None or (test.item is not None and test.effective < FEWEST_UNITS - 0.5):
        kind = "test items" if contrast.groups is None else "groups of test items"
        counts = "" if test is None else f"; these {test.items:,} count as {test.effective:.1f}"
        if test is not None and test.effective > test.items - 0.5:
            counts = f", and there are {test.items}"
        text = f"a verdict needs {FEWEST_UNITS} independent {kind}{counts}"
        return (Reason(ReasonCode.TOO_FEW_ITEMS, text),)
    if not test.varies:
        text = "every seed and every item gives the same difference, so nothing is known about new ones"
        return (Reason(ReasonCode.NO_VARIATION, text),)
    return ()


def share_seed_variance(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Comparisons in one metric learn from one another how much seeds vary."""
    shared = dict[int, Contrast](enumerate(contrasts))
    for metric in dict.fromkeys(each.metric.name for each in contrasts):
        own = {n: each for n, each in shared.items() if each.metric.name == metric}
        tests = {n: each.test for n, each in own.items() if each.test and each.test.seed and each.test.seed.variance}
        tests = {n: test for n, test in tests.items() if not own[n].threshold}
        if len(tests) < 2:
            continue
        aligned = len({own[n].common for n in tests}) == 1
        rows = [test.by_seed if aligned and len(test.by_seed) == test.seeds else None for test in tests.values()]
        sources = [Source(test.seed.variance * test.seeds, test.seed.df) for test in tests.values() if test.seed]
        for n, (values, weights) in zip(tests, share_variance(sources, dependence_of(rows)), strict=True):
            test = replace(tests[n], shared=(values / tests[n].seeds, weights))
            shared[n] = replace(own[n], test=test)
    return list(shared.values())
