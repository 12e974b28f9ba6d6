"""From a study's outcomes to its verdict: every number of it. The sentences are made last, by `results.sentences`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from fairtrial.errors import BadInput
from fairtrial.results.sentences import study_sentences
from fairtrial.results.values import (
    AuditSummary,
    BestOf,
    Comparison,
    InterimLook,
    Interval,
    Question,
    Reason,
    ReasonCode,
    Score,
    Speedup,
    TaskVerdict,
    Unlearned,
    Verdict,
    VerdictKind,
)
from fairtrial.statistics.comparison import (
    Contrast,
    Decision,
    Scored,
    compare,
    compare_runs,
    compare_values,
    decide,
    margin_for,
    may_be_judged,
    p_equivalent,
    share_seed_variance,
)
from fairtrial.statistics.crossed import Array, Counts, Mask, wilson
from fairtrial.statistics.multiplicity import ALPHA, Look, Terms, benjamini_hochberg, expected_bias, holm, next_look
from fairtrial.statistics.outcomes import (
    LEAST,
    SetOutcomes,
    TaskOutcomes,
    describe_set,
    is_extreme,
    last_digit,
    metric_named,
    not_learned,
    numbers_of,
    run_values,
    scores_by_subset,
    subsets,
)
from fairtrial.statistics.speedup import compare_costs

# further metrics that are never judged, and the array that each is made of
EXPLORED = {"accuracy": {"macro-F1": "guess", "log loss": "log_p"}}
CLAIMS = (VerdictKind.BETTER, VerdictKind.WORSE, VerdictKind.EQUIVALENT)
Masks = dict[str, dict[str, Mask]]  # test set -> subset -> which items count


def judge_study(
    name: str,
    tasks: Mapping[str, TaskOutcomes],
    *,
    look: Look | None = None,
    before: Sequence[tuple[Look, Mapping[str, TaskOutcomes]]] = (),
    open_ended: bool = False,
    family: int = 0,
    earlier: str = "",
) -> Verdict:
    """The whole verdict. One question per variant and task is judged, and all of them are corrected together.

    Args:
        look: the planned interim look that these seeds are
        before: the looks before it, each with the outcomes of its seeds
        open_ended: judged after any seed, again and again
        family: comparisons that were ever judged together with these, if more
        earlier: what was judged before and is not corrected for; then nothing is claimed
    """
    posed = [TaskComparisons(replace(task, look=look, open_ended=open_ended)) for task in tasks.values()]
    looks = [[TaskComparisons(replace(task, look=at)) for task in own.values()] for at, own in before]
    decided = judge_looks([*looks, posed], max(0, family - sum(len(task.contrasts) for task in posed)))
    if earlier:
        decided = as_exploratory(decided, earlier)
    judged = {title: task_verdict(*both) for title, both in zip(tasks, zip(posed, decided, strict=True), strict=True)}
    following = None if look is None else next_look(look)
    return Verdict(
        name=name,
        baseline=next(iter(judged.values())).baseline,
        tasks=judged,
        sentences=study_sentences(judged),
        until_clear=look is not None,
        open_ended=open_ended,
        look=None
        if look is None
        else InterimLook(look.seeds, look.alpha, None if following is None else following.seeds),
    )


class TaskComparisons:
    """A task's claims before any is decided: what is compared on which items."""

    def __init__(self, task: TaskOutcomes) -> None:
        if task.baseline not in task.variants:
            known = ", ".join(task.variants)
            raise BadInput(f"the baseline '{task.baseline}' has no outcomes", f"variants with outcomes: {known}")
        self.task = task
        if task.endpoint is not None and task.endpoint not in task.sets:
            raise BadInput(f"no test set is called {task.endpoint!r}", f"test sets: {', '.join(task.sets)}")
        counts = {name: task.variants[task.baseline][name].items for name in task.sets}
        runs = task.question == Question.NEW_RUNS_SAME_ITEMS
        self.sets = {
            name: describe_set(task.status.get(name), 0 if runs else items, task.contexts.get(name))
            for name, items in counts.items()
        }
        self.decisive = {name: test_set.subset for name, test_set in self.sets.items()}
        self.masks: Masks = {name: subsets(task.status.get(name), items) for name, items in counts.items()}
        self.unlearned = _unlearned(task)
        self.compared = [self.primary(variant) for variant in task.others if self.sets_of(variant)]
        if task.threshold is not None:
            self.compared = [self.versus_threshold(variant, *task.threshold) for variant in task.variants]
        self.contrasts = self.compared if task.primary else []

    def sets_of(self, variant: str) -> list[str]:
        """The test sets that decide on a variant."""
        chosen = [self.task.endpoint] if self.task.endpoint is not None else self.task.sets
        return [name for name in chosen if name in self.task.variants[variant]]

    @property
    def margins(self) -> list[float]:
        """The smallest difference of interest of each contrast."""
        own, least = self.task.variants[self.task.baseline], self.task.least_difference
        return [
            float(np.mean([margin_for(each.metric.name, least, own[name]) for name in self.sets_of(each.variant)]))
            for each in self.contrasts
        ]

    def primary(self, variant: str) -> Contrast:
        """The one question that is judged: the mean over test sets, or the chosen one."""
        names = self.sets_of(variant)
        title = names[0] if len(names) == 1 else f"average over {len(names)} test sets"
        subset = next((self.decisive[name] for name in names if self.decisive[name] != "all"), "all")
        contrast = self._compared(variant, title, subset, names)
        unlearned = [side for side in (variant, self.task.baseline) if self.mostly_unlearned(side, names)]
        if len(unlearned) == 2:
            contrast = contrast.but(ReasonCode.NEITHER_LEARNED, "neither model has learned the task")
        if variant in self.task.about_attention and {variant, self.task.baseline} <= set(self.task.idle):
            contrast = contrast.but(ReasonCode.ATTENTION_UNUSED, "attention is not used by these models")
        return replace(contrast, open_ended=self.task.open_ended)

    def versus_threshold(self, variant: str, title: str, threshold: float) -> Contrast:
        names = self.sets_of(variant)
        own = [self.task.variants[variant][name] for name in names]
        values, resolution = np.mean([each["value"][:, 0] for each in own], axis=0), own[0]["resolution"][0, 0]
        test_set = names[0] if len(names) == 1 else f"mean of {len(names)} test sets"
        contrast = Contrast(
            variant, title, test_set, "all", self.task.kind, 0, 0, False, threshold=True, level=threshold
        )
        return compare_runs(contrast, values, values[:0], ((), ()), float(resolution))

    def contrast(self, variant: str, test_set: str, subset: str, metric: str = "") -> Contrast:
        return self._compared(variant, test_set, subset, [test_set], metric)

    def _compared(self, variant: str, title: str, subset: str, names: Sequence[str], metric: str = "") -> Contrast:
        """With the baseline variant. A red finding that was not accepted makes the two incomparable. Of several test
        sets, each counts with the items that verdicts are on."""
        task, ours, theirs = self.task, self.task.variants[variant], self.task.variants[self.task.baseline]
        sets = [
            Scored(
                *(ours[name], theirs[name]),
                self.masks[name][self.decisive[name] if len(names) > 1 else subset],
                task.clusters.get(name),
            )
            for name in names
        ]
        contrast = compare((variant, task.baseline, title, subset), metric or task.metric, sets, question=task.question)
        red = [reason for side in (variant, task.baseline) if (reason := audit_reason(side, task.audits.get(side)))]
        return replace(contrast, not_comparable=(*red, *contrast.not_comparable))

    def mostly_unlearned(self, variant: str, test_sets: Sequence[str]) -> bool:
        """Whether at least half of a variant's seeds learned nothing, on every one of these test sets."""
        seeds = {name: len(self.task.variants[variant][name].seeds) for name in test_sets}
        bad = dict.fromkeys(test_sets, 0)
        for each in self.unlearned:
            if each.variant == variant and each.test_set in bad:
                bad[each.test_set] += len(each.seeds)
        return all(2 * bad[name] >= seeds[name] for name in test_sets)


def audit_reason(variant: str, audit: AuditSummary | None) -> Reason | None:
    """Why a variant may not be rated: its leak audit failed, or there is none, and that was not accepted."""
    if audit is None or not audit.blocks:
        return None
    if audit.level == "unaudited":
        return Reason(ReasonCode.NOT_AUDITED, f"{variant} could not be audited")
    text = f"{variant} failed its leak audit ({', '.join(audit.failed) or 'see there'})"
    return Reason(ReasonCode.FAILED_AUDIT, text)


Claims = dict[tuple[int, str], Comparison]  # by task and variant


def judge_together(
    family: Sequence[TaskComparisons], more: int = 0, claims: Claims | None = None
) -> list[tuple[Comparison, ...]]:
    """The comparisons of each task, corrected over all variants and tasks. `more`: comparisons that count beside these;
    `claims`: those that were made at an earlier look, and stand."""
    claims = claims or {}
    posed = {
        (n, contrast.variant): (contrast, margin)
        for n, task in enumerate(family)
        for contrast, margin in zip(task.contrasts, task.margins, strict=True)
        if (n, contrast.variant) not in claims
    }
    audits = {name: audit for task in family for name, audit in task.task.audits.items()}
    alike = sum(each.verdict == VerdictKind.EQUIVALENT for each in claims.values())
    # a claim that was made leaves Holm's family of its kind, not the other one
    terms = Terms(family[0].task.alpha, more + alike, more + len(claims) - alike)
    shared = share_seed_variance([contrast for contrast, _ in posed.values()])
    judged = judge_contrasts(shared, [margin for _, margin in posed.values()], terms, audits)
    found = claims | dict(zip(posed, judged, strict=True))
    return [tuple(found[n, each.variant] for each in task.contrasts) for n, task in enumerate(family)]


def judge_looks(looks: Sequence[Sequence[TaskComparisons]], more: int = 0) -> list[tuple[Comparison, ...]]:
    """Look after look: a claim stands, and what is undecided is judged again with more seeds. The first false claim of
    a look is one of Holm's procedure at the level of that look, and the levels sum to 5%."""
    claims, judged = Claims(), list[tuple[Comparison, ...]]()
    for family in looks:
        judged = judge_together(family, more, claims)
        claims |= {(n, each.variant): each for n, own in enumerate(judged) for each in own if each.verdict in CLAIMS}
    return judged


def as_exploratory(judged: Sequence[tuple[Comparison, ...]], earlier: str) -> list[tuple[Comparison, ...]]:
    """Nothing is claimed of what was judged before on other data or by another question; q-values instead."""
    q = iter(benjamini_hochberg([each.p or 0.0 for own in judged for each in own if each.p_adjusted is not None]))
    nothing = Decision(VerdictKind.UNDECIDED, (Reason(ReasonCode.EARLIER_LOOK, earlier),))
    return [
        tuple(each if each.p_adjusted is None else replace(with_decision(each, nothing), q=next(q)) for each in own)
        for own in judged
    ]


def judge_task(task: TaskOutcomes) -> TaskVerdict:
    """One task, a family of its own."""
    posed = TaskComparisons(task)
    return task_verdict(posed, *judge_together([posed]))


def task_verdict(posed: TaskComparisons, comparisons: tuple[Comparison, ...]) -> TaskVerdict:
    """`comparisons`: its contrasts, decided."""
    task = posed.task
    seeds = {seed for by_set in task.variants.values() for outcomes in by_set.values() for seed in outcomes.seeds}
    return TaskVerdict(
        baseline=task.baseline if task.threshold is None else task.threshold[0],
        metric=task.kind,
        margin=margin_for(task.metric, task.least_difference, task.variants[task.baseline][task.sets[0]]),
        seeds=tuple(sorted(seeds)),
        sets=posed.sets,
        scores={variant: _scores(task, outcomes) for variant, outcomes in task.variants.items()},
        comparisons=(*comparisons, *_not_trained(task)),
        exploratory=_explored(posed),
        baseline_scores={name: _scores(task, outcomes) for name, outcomes in task.baselines.items()},
        baseline_comparisons=_versus_baselines(posed),
        labels=task.labels,
        vocabularies_differ=task.vocabularies_differ,
        unlearned=posed.unlearned,
        training=task.training,
        test_reuse=task.test_reuse,
        cost=task.cost,
        attention_unused=task.idle if task.about_attention else (),
        audits=task.audits,
        data_findings=task.data_findings,
        failures=task.failures,
        search=task.search,
        best_of=_best_of(posed),
        speedups=_speedups(task, comparisons),
    )


def _speedups(task: TaskOutcomes, comparisons: Sequence[Comparison]) -> tuple[Speedup, ...]:
    """Of language models that predict the same tokens and may be compared at all."""
    if task.metric != "perplexity" or task.baseline not in task.curves:
        return ()
    sound = [each.variant for each in comparisons if each.verdict != VerdictKind.NOT_COMPARABLE]
    return tuple(compare_costs(task.curves, name, task.baseline) for name in sound if name in task.curves)


def _not_trained(task: TaskOutcomes) -> list[Comparison]:
    """Variants that failed their leak audit and were not trained for that."""
    reasons = {name: audit_reason(name, audit) for name, audit in task.audits.items() if name not in task.variants}
    return [
        Comparison(
            variant=name,
            baseline=task.baseline,
            test_set="",
            subset="all",
            metric=task.kind,
            seeds=0,
            items=0,
            verdict=VerdictKind.NOT_COMPARABLE,
            reasons=(reason,),
        )
        for name, reason in reasons.items()
        if reason is not None and reason.code == ReasonCode.FAILED_AUDIT
    ]


def judge_arrays(
    ours: ArrayLike,
    theirs: ArrayLike,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    metric: str | None = None,
    higher_is_better: bool | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("ours", "theirs"),
) -> Comparison:
    """One comparison of arrays [seed item] from anywhere, by the rules of a study."""
    one, other = (numbers_of(side, name) for side, name in zip((ours, theirs), names, strict=True))
    if one.ndim == 1 and other.ndim == 1:
        hint = "for one score per run use ft.compare_runs(ours, theirs); a single seed is [[...]]"
        raise BadInput("a flat list does not say whether its numbers are seeds or items", hint)
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1]:
        message = f"{names[0]} has the shape {one.shape} and {names[1]} {other.shape}; both must be [seed item]"
        raise BadInput(message, "score the same items on both sides")
    right = all(
        side.dtype == bool or (side.dtype.kind in "iu" and np.isin(side, (0, 1)).all()) for side in (one, other)
    )
    metric = metric or ("accuracy" if right else "score")
    if metric == "accuracy" and not right:
        raise BadInput(
            "accuracy is judged from right and wrong answers", "give arrays of True and False, or of 0 and 1"
        )
    kind = metric_named(metric, higher_is_better)
    one, other = (side.astype(float) * (100 if metric == "accuracy" else 1) for side in (one, other))
    clusters = None if groups is None else np.asarray(groups)
    sizes = None if weights is None else numbers_of(weights, "weights").astype(float)
    check_arrays(one, other, clusters, sizes)
    contrast = compare_values(names, kind, one, other, clusters, sizes)
    return judge_one(contrast, margin)


def judge_runs(
    ours: ArrayLike,
    theirs: ArrayLike,
    seeds: tuple[Sequence[object] | None, Sequence[object] | None] = (None, None),
    metric: str = "score",
    higher_is_better: bool | None = None,
    margin: float | None = None,
    names: tuple[str, str] = ("ours", "theirs"),
    alpha: float = ALPHA,
) -> Comparison:
    """Two groups of runs, one number per run. Runs of the same seed are paired."""
    sides = [numbers_of(side, name).astype(float) for side, name in zip((ours, theirs), names, strict=True)]
    for side, name, own in zip(sides, names, seeds, strict=True):
        if side.ndim != 1 or not np.isfinite(side).all() or is_extreme(side).any():
            hint = "for one score per test item use ft.compare"
            raise BadInput(f"{name} must be a flat list of finite numbers, one per run", hint)
        if own is not None and (len(own) != len(side) or len(set(own)) < len(own)):
            raise BadInput(f"{name} has {len(side)} runs, so it takes as many seeds, each of them once")
    kind, every = metric_named(metric, higher_is_better, points=True), np.concatenate(sides)
    digit = min(last_digit(repr(score)) for score in every.tolist())
    one, other = (run_values(kind, side, digit, every)[0] for side in sides)
    first, second = (list(own or ()) for own in seeds)
    both = [seed for seed in first if seed in second]
    common = [first.index(seed) for seed in both], [second.index(seed) for seed in both]
    contrast = Contrast(*names, "", "all", kind, 0, 0, False, tuple(range(len(both))))
    return judge_one(compare_runs(contrast, one, other, common, run_values(kind, one, digit, every)[1]), margin, alpha)


def judge_one(contrast: Contrast, margin: float | None, alpha: float = ALPHA) -> Comparison:
    if margin is None:
        margin = LEAST.get("accuracy" if contrast.metric.is_accuracy else contrast.metric.name, 0.0)
    (judged,) = judge_contrasts([contrast], [margin], Terms(alpha), {})
    return judged


def check_arrays(one: Array, other: Array, clusters: Counts | None, weights: Array | None) -> None:
    items = one.shape[1]
    if clusters is not None and clusters.shape != (items,):
        raise BadInput(f"groups has the shape {clusters.shape}", f"give one group for each of the {items:,} items")
    if weights is not None:
        if weights.shape not in ((items,), one.shape) or (weights.ndim == 2 and one.shape != other.shape):
            raise BadInput(f"weights has the shape {weights.shape}", f"give one weight for each of the {items:,} items")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and np.atleast_2d(weights).any(1).all()):
            raise BadInput("weights must be finite, not negative, and not all zero")
    counted = np.True_ if weights is None else weights > 0
    used = [side[np.broadcast_to(counted, side.shape)] for side in (one, other)]
    if not all(np.isfinite(side).all() and not is_extreme(side).any() for side in used):
        raise BadInput(
            "some values are missing or infinite, or too extreme to compute with",
            "leave such items out on both sides, or give them weight 0",
        )


def _unlearned(task: TaskOutcomes) -> tuple[Unlearned, ...]:
    unigram = task.baselines.get("unigram", {})
    return tuple(
        Unlearned(variant, name, kind, seeds, len(outcomes.seeds))
        for variant, by_set in task.variants.items()
        for name, outcomes in by_set.items()
        for kind, seeds in not_learned(outcomes, unigram.get(name)).items()
    )


def _scores(task: TaskOutcomes, outcomes: Mapping[str, SetOutcomes]) -> dict[str, dict[str, Score]]:
    return {
        name: scores_by_subset(task.metric, own, task.status.get(name), task.clusters.get(name))
        for name, own in outcomes.items()
    }


def judge_contrasts(
    contrasts: Sequence[Contrast], margins: Sequence[float], terms: Terms, audits: Mapping[str, AuditSummary]
) -> list[Comparison]:
    """A family of claims, each with its verdict, with Holm's correction over all that may be judged."""
    p = {n: each.p for n, each in enumerate(contrasts) if may_be_judged(each) and each.p is not None}
    adjusted = dict(zip(p, holm(list(p.values()), terms.more_differences), strict=True))
    alike = holm([p_equivalent(contrasts[n], margins[n]) for n in p], terms.more_equivalences)
    equivalent, family = dict(zip(p, alike, strict=True)), len(p) + terms.more_differences
    comparisons = []
    for n, (contrast, margin) in enumerate(zip(contrasts, margins, strict=True)):
        own, also = adjusted.get(n), equivalent.get(n)
        decision = decide(contrast, own, terms.alpha, margin, family=family, p_equivalent_adjusted=also)
        sides = (contrast.variant, contrast.baseline)
        accepted = {side: audits[side] for side in sides if side in audits and audits[side].accepted}
        comparisons.append(
            replace(
                with_decision(with_details(as_comparison(contrast), contrast), decision),
                p_adjusted=own,
                p_equivalent=also,
                family=family,
                alpha=terms.alpha,
                margin=margin,
                accepted_failures={side: audit.failed for side, audit in accepted.items() if audit.level == "red"},
            )
        )
    return comparisons


def with_decision(comparison: Comparison, decision: Decision) -> Comparison:
    """Without p-values of claims."""
    return replace(comparison, **vars(decision), p_adjusted=None, p_equivalent=None)


def as_comparison(contrast: Contrast) -> Comparison:
    """What holds of a contrast before anything is decided."""
    test, difference = contrast.test, contrast.difference
    low, high = contrast.interval
    if contrast.metric.is_accuracy and low is not None and high is not None:
        low, high = max(-100.0, low), min(100.0, high)
    scores = None
    if contrast.level is not None and difference is not None:
        ours, theirs = contrast.level + difference, contrast.level
        if contrast.metric.in_percent:
            ours, theirs = (math.exp(min(700.0, level)) for level in (ours, theirs))
        scores = (ours, theirs)
    return Comparison(
        variant=contrast.variant,
        baseline=contrast.baseline,
        test_set=contrast.test_set,
        subset=contrast.subset,
        metric=contrast.metric,
        seeds=contrast.seeds,
        items=contrast.items,
        paired=contrast.paired,
        groups=contrast.groups,
        question=contrast.question,
        reasons=contrast.not_comparable,
        difference=Interval(difference, low, high),
        p=contrast.p,
        runs=contrast.runs,
        effective_items=None if test is None else test.effective,
        alike=1.0 if test is None else test.alike,
        scores=scores,
    )


def with_details(comparison: Comparison, contrast: Contrast) -> Comparison:
    """Printed beside the verdict, never deciding it: other questions, effect sizes, where the variance comes from."""
    test = contrast.test
    if test is None or contrast.level is None:
        return comparison
    comparison = replace(comparison, by_seed=tuple(test.by_seed.tolist()), components=test.components)
    if len(test.by_seed) < 2 or len(test.by_seed) < test.seeds:  # checkpoints, or runs that are not all paired
        return replace(comparison, variance_shares=test.variance_shares) if test.seed else comparison
    wrong = 100 - contrast.level if contrast.metric.is_accuracy else 0.0  # the baseline's error rate
    gains = test.by_seed if contrast.metric.higher_is_better else -test.by_seed
    better = float((gains > 0).sum() + (gains == 0).sum() / 2)
    deviation = float(test.by_seed.std(ddof=1))
    half = float(stdtrit(len(gains) - 1, 0.975)) * (deviation / math.sqrt(len(gains)))
    return replace(
        comparison,
        on_these_items=Interval(test.difference, test.difference - half, test.difference + half),
        share_of_seeds_better=Interval(better / len(gains), *wilson(better / len(gains), len(gains))),
        effect_size=test.difference / deviation if deviation else None,
        relative_error_change=-test.difference / wrong if wrong > 0 else None,
        variance_shares=test.variance_shares,
    )


def _explored(posed: TaskComparisons) -> tuple[Comparison, ...]:
    """Each test set by itself, other subsets and other metrics: for ideas, not for claims; q-values over all."""
    task, contrasts = posed.task, list[Contrast]() if posed.task.primary else [*posed.compared]
    for variant in task.others if task.threshold is None else ():
        primary = posed.sets_of(variant)
        for name in task.variants[variant]:
            chosen, masks = posed.decisive[name], posed.masks[name]
            ways = [(subset, "") for subset, keep in masks.items() if keep.any()]
            ways = [way for way in ways if way[0] != chosen or primary != [name]]
            if masks[chosen].any():
                known = task.variants[variant][name].arrays
                ways += [(chosen, metric) for metric, needs in EXPLORED.get(task.metric, {}).items() if needs in known]
            contrasts += [posed.contrast(variant, name, *way) for way in ways]
    p = {each: each.p or 0.0 for each in contrasts if each.test and not each.not_comparable}
    q = dict(zip(p, benjamini_hochberg(list(p.values())), strict=True))
    return tuple(replace(as_comparison(each), q=q.get(each)) for each in contrasts)


def _best_of(posed: TaskComparisons) -> BestOf | None:
    """Expected lead of the luckiest variant."""
    tests = [each.test for each in posed.contrasts if each.test and not each.not_comparable]
    bias = None if posed.task.threshold else expected_bias(tests, len(tests) + 1)
    if bias is None or not math.isfinite(bias):
        return None
    return BestOf(len(tests) + 1, posed.contrasts[0].test_set, bias)


def _versus_baselines(posed: TaskComparisons) -> tuple[Comparison, ...]:
    """Every variant against every baseline (majority class, n-grams ...) on all items and on the decisive subset. Holm
    over all comparisons on one subset."""
    task = posed.task
    contrasts = [
        _contrast_with_baseline(task, (variant, baseline, name, subset), keep)
        for name, by_subset in posed.masks.items()
        for subset, keep in by_subset.items()
        if subset in ("all", posed.decisive[name])
        for baseline in task.baselines
        for variant in task.variants
        if name in task.baselines[baseline] and name in task.variants[variant]
    ]
    adjusted: dict[Contrast, float] = {}
    for subset in {each.subset for each in contrasts}:
        p = {each: each.p for each in contrasts if each.subset == subset and each.p is not None and may_be_judged(each)}
        adjusted |= zip(p, holm(list(p.values())), strict=True)
    return tuple(_versus_baseline(task, each, adjusted.get(each)) for each in contrasts)


def _contrast_with_baseline(task: TaskOutcomes, names: tuple[str, str, str, str], keep: Mask) -> Contrast:
    variant, baseline, test_set, _ = names
    ours, theirs = task.variants[variant][test_set], task.baselines[baseline][test_set]
    if len(theirs.seeds) == 1:  # fitted once: the same answers for every seed
        repeated = {name: np.repeat(array, len(ours.seeds), 0) for name, array in theirs.arrays.items()}
        theirs = SetOutcomes(ours.seeds, repeated)
    contrast = compare(names, task.metric, [Scored(ours, theirs, keep, task.clusters.get(test_set))])
    return replace(contrast, open_ended=task.open_ended)


def _versus_baseline(task: TaskOutcomes, contrast: Contrast, p_adjusted: float | None) -> Comparison:
    """By the rules for variants: with too few seeds nothing is better, and a variant that cheats beats nothing."""
    comparison = replace(as_comparison(contrast), p_adjusted=p_adjusted, alpha=task.alpha)
    reasons, kind = contrast.not_comparable, VerdictKind.UNDECIDED
    if p_adjusted is not None and p_adjusted < task.alpha:
        kind = VerdictKind.BETTER if contrast.gain > 0 else VerdictKind.WORSE
    blocked = audit_reason(contrast.variant, task.audits.get(contrast.variant))
    if blocked and contrast.difference is not None and contrast.gain > 0:
        reasons = (*reasons, blocked)
    if reasons or contrast.difference is None:
        kind = VerdictKind.NOT_COMPARABLE
    return replace(comparison, verdict=kind, reasons=reasons)
