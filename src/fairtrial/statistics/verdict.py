"""From a study's outcomes to its verdict: the plain values of verdict.json, which commands and the page show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairtrial.errors import BadInput
from fairtrial.statistics import sentences
from fairtrial.statistics.comparison import (
    Comparison,
    compare,
    compare_values,
    decide_family,
    exp,
    least_for,
    may_be_judged,
    multi_bootstrap,
    scores_by_subset,
    subsets,
)
from fairtrial.statistics.crossed import wilson
from fairtrial.statistics.multiplicity import ALPHA, Look, benjamini_hochberg, expected_bias, holm, next_look
from fairtrial.statistics.outcomes import (
    LEAST,
    METRICS,
    Metric,
    SetOutcomes,
    TaskOutcomes,
    describe_set,
    is_accuracy,
    not_learned,
)

# further metrics that are never judged, and the array that each is made of
EXPLORED = {"accuracy": {"macro-F1": "guess", "log loss": "log_p"}}
DECIDED = ("better", "worse", "same", "not_comparable")  # also of checkpoints
BASELINE_ROW = ("set", "basis", "metric", "unit", "seeds", "items", "groups", "difference", "low", "high", "p")
Unlearned = dict[str, dict[str, dict[str, list[int]]]]
Masks = dict[str, dict[str, np.ndarray]]  # test set -> subset -> which items count


def judge_study(
    name: str,
    tasks: Mapping[str, TaskOutcomes],
    *,
    until_clear: bool = False,
    look: Look | None = None,
    one_family: bool = False,
) -> dict[str, Any]:
    """The whole verdict file. `look` is the interim look of `until_clear` that these seeds are. `one_family`: the
    comparisons of all tasks are corrected together, where tasks are metrics of one question."""
    posed = [Posed(replace(task, look=look)) for task in tasks.values()]
    families = [posed] if one_family else [[each] for each in posed]
    rows = [row for family in families for row in judge_together(family)]
    judged = {title: task_entry(each, found) for title, each, found in zip(tasks, posed, rows, strict=True)}
    first, rest = [], []
    for title, entry in judged.items():
        lines = entry.pop("lines")
        lead = f"[{title}] " if len(judged) > 1 else ""
        first += [lead + line for line in lines["first"]]
        rest += [lead + line for line in lines["rest"]]
    following = None if look is None else next_look(look)
    baseline = next(iter(tasks.values())).baseline
    return {
        "name": name, "baseline": baseline, "until_clear": until_clear,
        "look": look and {"seeds": look.seeds, "alpha": look.alpha, "next": following and following.seeds},
        "sentences": first + rest, "tasks": judged,
    }  # fmt: skip


def is_clear(verdict: Mapping[str, Any]) -> bool:
    """Whether every comparison that can be judged is decided, so that no further look is needed."""
    return all(
        sentences.base(row["verdict"]) in DECIDED for task in verdict["tasks"].values() for row in task["comparisons"]
    )


class Posed:
    """A task's claims before any is decided: what is compared on which items."""

    def __init__(self, task: TaskOutcomes) -> None:
        if task.baseline not in task.variants:
            known = ", ".join(task.variants)
            raise BadInput(f"the baseline '{task.baseline}' has no outcomes", f"variants with outcomes: {known}")
        self.task = task
        counts = {name: task.variants[task.baseline][name].items for name in task.sets}
        self.sets = {
            name: describe_set(task.status.get(name), items)
            | ({"context": task.contexts[name]} if name in task.contexts else {})
            for name, items in counts.items()
        }
        self.decisive: dict[str, str] = {name: facts["basis"] for name, facts in self.sets.items()}
        self.masks: Masks = {name: subsets(task.status.get(name), items) for name, items in counts.items()}
        self.unlearned = _unlearned(task)
        self.claims = [
            _compare_variants(task, variant, name, self.decisive[name], self.masks, unlearned=self.unlearned)
            for variant in task.others
            for name in task.sets
            if name in task.variants[variant]
        ]

    @property
    def limits(self) -> list[float]:
        """The least difference of interest of each claim."""
        own = self.task.variants[self.task.baseline]
        return [least_for(claim.metric.name, self.task.least_difference, own[claim.set]) for claim in self.claims]


def judge_together(family: Sequence[Posed]) -> list[list[dict[str, Any]]]:
    """The rows of each task, corrected over all claims: all variants, all test sets, the one metric of each task."""
    claims = [claim for posed in family for claim in posed.claims]
    limits = [limit for posed in family for limit in posed.limits]
    passports = {name: facts for posed in family for name, facts in posed.task.passports.items()}
    rows = iter(judged_rows(claims, limits, family[0].task.alpha, passports))
    return [list(islice(rows, len(posed.claims))) for posed in family]


def judge_task(task: TaskOutcomes) -> dict[str, Any]:
    """One entry of the verdict file's tasks, a family of its own."""
    posed = Posed(task)
    return task_entry(posed, *judge_together([posed]))


def task_entry(posed: Posed, comparisons: list[dict[str, Any]]) -> dict[str, Any]:
    """`comparisons`: its claims, decided. `lines` are its sentences, `first` those that must come first."""
    task, sets, decisive, masks, unlearned = posed.task, posed.sets, posed.decisive, posed.masks, posed.unlearned
    scores = {variant: _scores(task, outcomes) for variant, outcomes in task.variants.items()}
    baseline_rows = _versus_baselines(task, masks, decisive)
    losses, wins = sentences.baseline_lines(baseline_rows, decisive)
    best_of = _best_of(task, posed.claims)
    return {
        "metric": task.metric,
        "metric_why": sentences.VOCABULARIES_DIFFER if task.vocabularies_differ else "",
        "unit": task.kind.unit,
        "higher_is_better": task.kind.higher_is_better,
        "least_difference": least_for(task.metric, task.least_difference, task.variants[task.baseline][task.sets[0]]),
        "labels": list(task.labels),
        "seeds": sorted({seed for sets in task.variants.values() for found in sets.values() for seed in found.seeds}),
        "sets": sets,
        "scores": scores,
        "comparisons": comparisons,
        "exploratory": _explored(task, decisive, masks),
        "baselines": {name: _scores(task, outcomes) for name, outcomes in task.baselines.items()},
        "against_baselines": baseline_rows,
        "learning": {
            "not_learned": unlearned,
            "training": {
                name: {str(seed): asdict(end) for seed, end in ends.items()} for name, ends in task.training.items()
            },
        },
        "peeks": task.test_reuse,
        "cost": task.cost,
        "passports": task.passports,
        "contamination": task.contamination,
        "failures": task.failures,
        "search": task.search,
        "best_of": best_of,
        "lines": {
            "first": [
                *sentences.learning_lines(unlearned, task),
                *([sentences.VOCABULARIES_DIFFER] if task.vocabularies_differ else []),
                *losses,
                *sentences.verdict_lines(comparisons),
            ],
            "rest": [
                *sentences.passport_lines(task.passports),
                *sentences.contamination_lines(task, sets, scores),
                *wins,
                *sentences.reuse_lines(task.test_reuse, task.metric),
                *sentences.failure_lines(task.failures),
                *([best_of["sentence"]] if best_of else []),
            ],
        },
    }


def judge_arrays(
    ours: Any, theirs: Any, groups: Any = None, weights: Any = None, metric: str | None = None,
    higher_is_better: bool | None = None, least: float | None = None, names: tuple[str, str] = ("ours", "theirs"),
) -> dict[str, Any]:  # fmt: skip
    """One comparison of arrays [seed item] from anywhere, by the rules of a study: a row of the verdict file."""
    one, other = (np.atleast_2d(np.asarray(each)) for each in (ours, theirs))
    if one.ndim != 2 or one.shape != other.shape:
        what = f"{names[0]} has the shape {one.shape} and {names[1]} {other.shape}; both must be [seed item]"
        raise BadInput(what, "score the same items with the same number of seeds")
    right = all(
        each.dtype == bool or (each.dtype.kind in "iu" and np.isin(each, (0, 1)).all()) for each in (one, other)
    )
    metric = metric or ("accuracy" if right else "score")
    if metric == "accuracy" and not right:
        raise BadInput(
            "accuracy is judged from right and wrong answers", "give arrays of True and False, or of 0 and 1"
        )
    known = METRICS.get(metric)
    if higher_is_better is None:
        higher_is_better = known is None or known.higher_is_better
    kind = Metric(metric, known.unit if known else metric, higher_is_better)
    one, other = (each.astype(float) * (100 if metric == "accuracy" else 1) for each in (one, other))
    clusters = None if groups is None else np.asarray(groups)
    sizes = None if weights is None else np.asarray(weights, float)
    check_odd(one, other, clusters, sizes)
    found = compare_values(names, kind, one, other, clusters, sizes)
    limit = LEAST.get(metric, 0.0) if least is None else least
    (row,) = judged_rows([found], [limit], ALPHA, {})
    return row


def check_odd(one: np.ndarray, other: np.ndarray, clusters: np.ndarray | None, weights: np.ndarray | None) -> None:
    items = one.shape[1]
    if clusters is not None and clusters.shape != (items,):
        raise BadInput(f"groups has the shape {clusters.shape}", f"give one group for each of the {items:,} items")
    if weights is not None:
        if weights.shape not in ((items,), one.shape):
            raise BadInput(f"weights has the shape {weights.shape}", f"give one weight for each of the {items:,} items")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and np.atleast_2d(weights).any(1).all()):
            raise BadInput("weights must be finite, not negative, and not all zero")
    counted = np.ones(one.shape, bool) if weights is None else np.broadcast_to(weights > 0, one.shape)
    if not all(np.isfinite(each[counted]).all() for each in (one, other)):
        raise BadInput(
            "some values are missing or infinite", "leave such items out on both sides, or give them weight 0"
        )


def _unlearned(task: TaskOutcomes) -> Unlearned:
    """Variant -> test set -> what seeds do that learned nothing -> which. Without variants that learned."""
    unigram = task.baselines.get("unigram", {})
    found = {
        variant: {name: bad for name, outcomes in by_set.items() if (bad := not_learned(outcomes, unigram.get(name)))}
        for variant, by_set in task.variants.items()
    }
    return {variant: by_set for variant, by_set in found.items() if by_set}


def _mostly(unlearned: Unlearned, task: TaskOutcomes, variant: str, test_set: str) -> bool:
    """Whether at least half of a variant's seeds learned nothing."""
    bad = unlearned.get(variant, {}).get(test_set, {})
    return 2 * sum(map(len, bad.values())) >= len(task.variants[variant][test_set].seeds)


def _scores(task: TaskOutcomes, outcomes: Mapping[str, SetOutcomes]) -> dict[str, Any]:
    return {
        name: scores_by_subset(task.metric, found, task.status.get(name), task.clusters.get(name))
        for name, found in outcomes.items()
    }


def _compare_variants(
    task: TaskOutcomes,
    variant: str,
    test_set: str,
    subset: str,
    masks: Masks,
    metric: str = "",
    unlearned: Unlearned | None = None,
) -> Comparison:
    """With the baseline variant. A red finding that was not accepted makes the two incomparable, and so does equal
    ignorance."""
    names = (variant, task.baseline, test_set, subset)
    outcomes = (task.variants[variant][test_set], task.variants[task.baseline][test_set])
    keep, clusters = masks[test_set][subset], task.clusters.get(test_set)
    found = compare(names, metric or task.metric, outcomes, keep, clusters, checkpoints=task.checkpoints)
    red = [f"the data is unsound ({finding})" for finding in task.unsound]
    red += [stamp for stamp in map(task.stamp, (variant, task.baseline)) if stamp]
    if unlearned and all(_mostly(unlearned, task, side, test_set) for side in (variant, task.baseline)):
        red.append("neither has learned its task, so that they do not differ says nothing")
    return replace(found, not_comparable_because=(*red, *found.not_comparable_because))


def judged_rows(
    claims: Sequence[Comparison], limits: Sequence[float], alpha: float, passports: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """A family of claims, each with its verdict and its sentence. `limits`: least differences of interest."""
    rows = []
    for claim, least, judged in zip(claims, limits, decide_family(claims, limits, alpha), strict=True):
        verdict, p, p_same, family = judged
        also, more = sentences.remarks(claim, verdict, least, passports), verdict.more
        line = sentences.sentence(claim, verdict, least=least, alpha=alpha, p_adjusted=p, family=family, remarks=also)
        decided = {
            "p_adjusted": p, "p_same": p_same, "family": family, "least_difference": least,
            "verdict": verdict.kind, "why": list(verdict.why), "smallest_detectable": verdict.smallest,
            "more_seeds": more and str(more), "more_seeds_range": more and [more.low, more.high],  # null: over 100
            "more_seeds_for_observed": verdict.more_for_observed and str(verdict.more_for_observed),
            "more_items": verdict.more_items,
            "sentence": line, "remarks": also, "level": alpha / max(1, family),
        }  # fmt: skip
        rows.append(_difference_row(claim) | decided | _detail_row(claim))
    return rows


def _explored(task: TaskOutcomes, decisive: dict[str, str], masks: Masks) -> list[dict[str, Any]]:
    """Other subsets and other metrics: for ideas, not for claims; q-values over all of them."""
    found = []
    for variant in task.others:
        for name in task.variants[variant]:
            chosen = decisive[name]
            ways = [(subset, "") for subset, keep in masks[name].items() if subset != chosen and keep.any()]
            if masks[name][chosen].any():
                known = task.variants[variant][name].arrays
                ways += [(chosen, metric) for metric, needs in EXPLORED.get(task.metric, {}).items() if needs in known]
            found += [_compare_variants(task, variant, name, subset, masks, metric) for subset, metric in ways]
    p = {one: one.test.p for one in found if one.test and not one.not_comparable_because}
    q = dict(zip(p, benjamini_hochberg(list(p.values())), strict=True))
    return [_difference_row(one) | {"q": q.get(one), "why": list(one.not_comparable_because)} for one in found]


def _best_of(task: TaskOutcomes, claims: list[Comparison]) -> dict[str, Any] | None:
    """Expected lead of the luckiest variant, on the first test set."""
    first = task.sets[0]
    tests = [claim.test for claim in claims if claim.test and claim.set == first and not claim.not_comparable_because]
    variants = len(tests) + 1
    bias = expected_bias(tests, variants)
    if bias is None or not math.isfinite(bias):
        return None
    lead = sentences.change(task.metric, bias, signed=False)
    line = f"Picking the best of {variants} variants on {first} gains about {lead} by luck alone."
    return {"variants": variants, "set": first, "expected_bias": bias, "sentence": line}


def _difference_row(comparison: Comparison) -> dict[str, Any]:
    """What holds of a comparison before anything is decided."""
    test, metric = comparison.test, comparison.metric
    low, high = (None, None) if test is None else test.interval()
    row: dict[str, Any] = {
        "variant": comparison.variant, "against": comparison.against, "set": comparison.set, "basis": comparison.subset,
        "metric": metric.name, "unit": metric.unit, "higher_is_better": metric.higher_is_better,
        "seeds": comparison.seeds, "items": comparison.items, "groups": comparison.groups, "paired": comparison.paired,
        "effective": test and test.effective,
        "difference": comparison.difference, "low": low, "high": high, "p": test and test.p, "df": test and test.df,
    }  # fmt: skip
    if metric.name == "perplexity":
        row |= {"ratio": exp(comparison.difference), "ratio_low": exp(low), "ratio_high": exp(high)}
    return row


def _detail_row(comparison: Comparison) -> dict[str, Any]:
    """Printed beside the verdict, never deciding it: other questions, effect sizes, where the variance comes from."""
    test = comparison.test
    if test is None or comparison.differences is None or comparison.level is None:
        return {}
    if test.seeds < 2:  # checkpoints: nothing varies but the items
        return {"by_seed": test.by_seed.tolist(), "shares": vars(test.shares)}
    wrong = 100 - comparison.level if is_accuracy(comparison.metric.name) else 0.0  # the other's error rate
    gains = test.by_seed if comparison.metric.higher_is_better else -test.by_seed
    better = float((gains > 0).sum() + (gains == 0).sum() / 2)
    low, high = wilson(better / len(gains), len(gains))
    bootstrap = multi_bootstrap(comparison.differences)
    deviation = float(test.by_seed.std(ddof=1))
    # the paired t interval over seed means: narrower, because it is about these test items only
    half = float(stdtrit(test.seeds - 1, 0.975)) * (deviation / math.sqrt(test.seeds))
    return {
        "by_seed": test.by_seed.tolist(),
        "on_these_items": {"low": test.difference - half, "high": test.difference + half},
        "share_of_seeds_better": {"share": better / len(gains), "low": low, "high": high},
        "effect_size": test.difference / deviation if deviation else None,  # in standard deviations over seeds
        "relative_error_change": -test.difference / wrong if wrong > 0 else None,  # -0.1: a tenth fewer mistakes
        "shares": vars(test.shares),
        "variance_shares": test.sources,
        "second_opinion": {"method": "Multi-Bootstrap, conservative", "low": bootstrap[0], "high": bootstrap[1]},
    }


def _versus_baselines(task: TaskOutcomes, masks: Masks, decisive: dict[str, str]) -> list[dict[str, Any]]:
    """Every variant against every baseline (majority class, n-grams ...) on all items and on the decisive subset. Holm
    over all comparisons on one subset."""
    found = [
        _compare_to_baseline(task, (variant, baseline, name, subset), keep)
        for name, by_subset in masks.items()
        for subset, keep in by_subset.items()
        if subset in ("all", decisive[name])
        for baseline in task.baselines
        for variant in task.variants
        if name in task.baselines[baseline] and name in task.variants[variant]
    ]
    adjusted: dict[Comparison, float] = {}
    for subset in {one.subset for one in found}:
        p = {one: one.test.p for one in found if one.subset == subset and one.test and may_be_judged(one)}
        adjusted |= zip(p, holm(list(p.values())), strict=True)
    return [_baseline_row(task, one, adjusted.get(one)) for one in found]


def _compare_to_baseline(task: TaskOutcomes, names: tuple[str, str, str, str], keep: np.ndarray) -> Comparison:
    variant, baseline, test_set, _ = names
    ours, theirs = task.variants[variant][test_set], task.baselines[baseline][test_set]
    if len(theirs.seeds) == 1:  # fitted once: the same answers for every seed
        repeated = {name: np.repeat(array, len(ours.seeds), 0) for name, array in theirs.arrays.items()}
        theirs = SetOutcomes(ours.seeds, repeated)
    return compare(names, task.metric, (ours, theirs), keep, task.clusters.get(test_set))


def _baseline_row(task: TaskOutcomes, comparison: Comparison, p_adjusted: float | None) -> dict[str, Any]:
    row, metric, stamp = _difference_row(comparison), comparison.metric.name, task.stamp(comparison.variant)
    ours = theirs = None
    if comparison.level is not None and comparison.difference is not None:
        levels = (comparison.level + comparison.difference, comparison.level)
        ours, theirs = (float(np.exp(min(700.0, level))) if metric == "perplexity" else level for level in levels)
    verdict = _baseline_verdict(comparison, p_adjusted, task.alpha)
    if stamp and verdict in ("beats", "above"):  # a variant that cheats beats nothing
        verdict = "not_comparable"
    row = {"variant": row["variant"], "baseline": row["against"]} | {key: row[key] for key in BASELINE_ROW}
    row |= {"p_adjusted": p_adjusted, "ours": ours, "theirs": theirs, "verdict": verdict}
    if verdict == "not_comparable" or ours is None or theirs is None:
        why = "; ".join([*comparison.not_comparable_because, *([stamp] if stamp else [])])
        said = f"{comparison.variant} cannot be compared with {comparison.against}: {why}."
    else:
        levels_said = " against ".join(sentences.score_words(metric, level) for level in (ours, theirs))
        said = f"{comparison.variant} {sentences.VERBS[verdict][0]} {comparison.against}: {levels_said}"
        said += f"; {sentences.describe_difference(comparison, p_adjusted)}."
    return {**row, "sentence": f"On {comparison.set}, {said}"}


def _baseline_verdict(comparison: Comparison, p_adjusted: float | None, alpha: float) -> str:
    """By the rules for variants: with too few seeds nothing is beaten."""
    if comparison.not_comparable_because or comparison.difference is None:
        return "not_comparable"
    if p_adjusted is not None and p_adjusted < alpha:
        return "beats" if comparison.gain > 0 else "loses"
    return "above" if comparison.gain > 0 else "below" if comparison.gain < 0 else "equal"
