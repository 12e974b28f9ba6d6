"""One comparison as plain values, for the verdict file.

The variants against what a transformer must beat: majority class, n-grams.

A study's outcomes -> its verdict file: plain values that the command line and the page read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairtrial.errors import BadInput
from fairtrial.statistics.comparison import (
    Comparison,
    Verdict,
    bases,
    compare,
    decide,
    least_for,
    may_be_judged,
    multi_bootstrap,
    three_ways,
)
from fairtrial.statistics.crossed import Crossed, wilson
from fairtrial.statistics.multiplicity import ALPHA, Look, benjamini_hochberg, expected_bias, holm, next_look
from fairtrial.statistics.outcomes import METRICS, SetOutcomes, TaskOutcomes, contamination_lines, describe_set
from fairtrial.statistics.sentences import (
    ONE,
    baseline_lines,
    best_of_line,
    failure_lines,
    figures,
    passport_lines,
    peek_lines,
    remarks,
    score_words,
    sentence,
    verdict_lines,
)


def comparison_row(comparison: Comparison) -> dict[str, Any]:
    """What holds of a comparison before anything is decided."""
    found, metric = comparison.found, comparison.metric
    row: dict[str, Any] = {
        "variant": comparison.variant, "against": comparison.against, "set": comparison.set, "basis": comparison.basis,
        "metric": metric.name, "unit": metric.unit, "higher_is_better": metric.higher_is_better,
        "seeds": comparison.seeds, "items": comparison.items, "groups": comparison.groups, "paired": comparison.paired,
        "difference": comparison.difference, "low": None, "high": None, "p": None, "df": None,
    }  # fmt: skip
    if found is not None:
        row["low"], row["high"] = found.interval()
        row |= {"p": found.p, "df": found.df}
    if metric.name == "perplexity":
        row |= {name: _exp(row[key]) for name, key in RATIOS.items()}
    return row


RATIOS = {"ratio": "difference", "ratio_low": "low", "ratio_high": "high"}


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.kind,
        "why": list(verdict.why),
        "smallest_detectable": verdict.smallest,
        "more_seeds": None if verdict.more is None else str(verdict.more),
        "more_seeds_range": None if verdict.more is None else [verdict.more.low, verdict.more.high],  # null: over 100
        "more_seeds_for_observed": None if verdict.more_for_observed is None else str(verdict.more_for_observed),
        "more_items": verdict.more_items,
    }


def detail_row(comparison: Comparison) -> dict[str, Any]:
    """Printed beside the verdict, never deciding it: other questions, effect sizes, where the variation comes from."""
    found = comparison.found
    if found is None or comparison.differences is None:
        return {}
    gains = found.by_seed if comparison.metric.higher_is_better else -found.by_seed
    better = float((gains > 0).sum() + (gains == 0).sum() / 2)
    low, high = wilson(better, len(gains))
    total = found.shares.seed + found.shares.item + found.shares.rest
    shares = {key: getattr(found.shares, key) / total if total else 0.0 for key in ("seed", "item", "rest")}
    second = multi_bootstrap(comparison.differences)
    spread = float(found.by_seed.std(ddof=1))
    return {
        "by_seed": found.by_seed.tolist(),
        "on_these_items": _seeds_only(found),
        "share_of_seeds_better": {"share": better / len(gains), "low": low, "high": high},
        "effect_size": found.difference / spread if spread else None,  # in standard deviations over seeds
        "relative_error_change": _relative_error(comparison),
        "variance_shares": shares,
        "second_opinion": {"method": "Multi-Bootstrap, conservative", "low": second[0], "high": second[1]},
    }


def _seeds_only(found: Crossed) -> dict[str, float]:
    """The paired t interval over seed means: narrower, for it asks about these test items only."""
    error = float(found.by_seed.std(ddof=1)) / math.sqrt(found.seeds)
    half = float(stdtrit(found.seeds - 1, 0.975)) * error
    return {"low": found.difference - half, "high": found.difference + half}


def _relative_error(comparison: Comparison) -> float | None:
    """Change of the error rate as a share of the other's: -0.1 is a tenth fewer mistakes."""
    if comparison.metric.name != "accuracy" or comparison.level is None or comparison.difference is None:
        return None
    return -comparison.difference / (100 - comparison.level) if comparison.level < 100 else None


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(max(-700.0, min(700.0, value)))


def against_baselines(task: TaskOutcomes, kept: dict[str, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Every variant against every baseline; `kept`: test set -> basis -> items that count. Holm over all of a basis."""
    found = [
        _compare_to_baseline(task, (variant, baseline, place, basis), keep)
        for place, by_basis in kept.items()
        for basis, keep in by_basis.items()
        for baseline in task.baselines
        for variant in task.variants
        if place in task.baselines[baseline] and place in task.variants[variant]
    ]
    adjusted: dict[int, float] = {}
    for basis in {each.basis for each in found}:
        tested = [
            each for each in found if each.basis == basis and each.found is not None and not each.not_comparable_because
        ]
        adjusted |= zip(map(id, tested), holm([each.found.p for each in tested if each.found]), strict=True)
    return [_row(task, each, adjusted.get(id(each))) for each in found]


def _compare_to_baseline(task: TaskOutcomes, names: tuple[str, str, str, str], keep: np.ndarray) -> Comparison:
    variant, baseline, place, _ = names
    ours, theirs = task.variants[variant][place], task.baselines[baseline][place]
    if len(theirs.seeds) == 1:  # fitted once: the same answers for every seed
        repeated = {key: np.repeat(each, len(ours.seeds), 0) for key, each in theirs.arrays.items()}
        theirs = SetOutcomes(ours.seeds, repeated)
    return compare(names, task.metric, (ours, theirs), keep, task.clusters.get(place))


def _row(task: TaskOutcomes, each: Comparison, p_adjusted: float | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "variant": each.variant, "baseline": each.against, "set": each.set, "basis": each.basis,
        "metric": each.metric.name, "unit": each.metric.unit,
        "seeds": each.seeds, "items": each.items, "groups": each.groups,
        "difference": each.difference, "low": None, "high": None, "p": None, "p_adjusted": p_adjusted,
        "ours": None, "theirs": None,
    }  # fmt: skip
    if each.found is not None:
        row["low"], row["high"] = each.found.interval()
        row["p"] = each.found.p
    if each.level is not None and each.difference is not None:
        row["ours"], row["theirs"] = (_shown(each, value) for value in (each.level + each.difference, each.level))
    row["verdict"] = _verdict(each, p_adjusted)
    stamp = task.stamp(each.variant)
    if stamp and row["verdict"] in ("beats", "above"):  # what cheats beats nothing
        row["verdict"] = "not_comparable"
    row["sentence"] = _sentence(each, row, stamp)
    return row


def _verdict(each: Comparison, p_adjusted: float | None) -> str:
    if each.not_comparable_because or each.difference is None:
        return "not_comparable"
    if p_adjusted is not None and p_adjusted < ALPHA:
        return "beats" if each.gain > 0 else "loses"
    return "above" if each.gain > 0 else "below" if each.gain < 0 else "equal"


def _shown(each: Comparison, value: float) -> float:
    return float(np.exp(min(700.0, value))) if each.metric.name == "perplexity" else value


def _sentence(each: Comparison, row: dict[str, Any], stamp: str | None) -> str:
    if row["verdict"] == "not_comparable":
        why = "; ".join([*each.not_comparable_because, *([stamp] if stamp else [])])
        return f"{each.variant} cannot be compared with {each.against} on {each.set}: {why}."
    ours, theirs = (score_words(each.metric.name, row[key]) for key in ("ours", "theirs"))
    who = f"{each.variant} {ONE[row['verdict']]} {each.against} on {each.set}"
    return f"{who}: {ours} against {theirs}; {figures(each, row['p_adjusted'])}."


ALSO = {"accuracy": ("macro-F1", "log loss"), "perplexity": ()}  # metrics that are explored, not judged


def judge_study(
    name: str, tasks: Mapping[str, TaskOutcomes], *, until_clear: bool = False, look: Look | None = None
) -> dict[str, Any]:
    """The whole verdict file. `look` is the look of `until_clear` that these seeds are."""
    judged = {title: judge_task(replace(task, look=look)) for title, task in tasks.items()}
    first, rest = [], []
    for title, entry in judged.items():
        lines = entry.pop("lines")
        lead = f"{title}: " if len(judged) > 1 else ""
        first += [lead + line for line in lines["first"]]
        rest += [lead + line for line in lines["rest"]]
    following = None if look is None else next_look(look)
    looked = look and {"seeds": look.seeds, "alpha": look.alpha, "next": following and following.seeds}
    baseline = next(iter(tasks.values())).baseline
    return {
        "format": 1, "name": name, "baseline": baseline, "until_clear": until_clear, "look": looked,
        "sentences": first + rest, "tasks": judged,
    }  # fmt: skip


def is_clear(verdict: Mapping[str, Any]) -> bool:
    """Whether a further look is needless: every comparison that can be judged has been decided."""
    rows = [row for task in verdict["tasks"].values() for row in task["comparisons"]]
    return all(row["verdict"] in ("better", "worse", "same", "not_comparable") for row in rows)


def judge_task(task: TaskOutcomes) -> dict[str, Any]:
    """One entry of the verdict file's tasks; `lines` are its sentences, `first` those that must come first."""
    if task.baseline not in task.variants:
        known = ", ".join(task.variants)
        raise BadInput(f"the baseline '{task.baseline}' has no outcomes", f"variants with outcomes: {known}")
    sets = {place: describe_set(task.status.get(place), _items(task, place)) for place in task.sets}
    basis = {place: facts["basis"] for place, facts in sets.items()}
    kept = {place: bases(task.status.get(place), _items(task, place)) for place in task.sets}
    scores = {name: _scores(task, outcomes) for name, outcomes in task.variants.items()}
    claims = [_compare(task, name, place, basis[place], kept) for name in task.others for place in task.sets
              if place in task.variants[name]]  # fmt: skip
    comparisons = _judged(task, claims)
    baseline_rows = against_baselines(task, {place: _both(ways, basis[place]) for place, ways in kept.items()})
    losses, others = baseline_lines(baseline_rows, basis)
    best_of = _best_of(task, claims)
    return {
        "metric": task.metric,
        "unit": METRICS[task.metric].unit,
        "least_difference": task.least_difference,
        "labels": list(task.labels),
        "seeds": sorted(
            {seed for outcomes in task.variants.values() for each in outcomes.values() for seed in each.seeds}
        ),
        "sets": sets,
        "scores": scores,
        "comparisons": comparisons,
        "exploratory": _explored(task, basis, kept),
        "baselines": {name: _scores(task, outcomes) for name, outcomes in task.baselines.items()},
        "against_baselines": baseline_rows,
        "peeks": task.peeks,
        "cost": task.cost,
        "passports": task.passports,
        "contamination": task.contamination,
        "failures": task.failures,
        "search": task.search,
        "best_of": best_of,
        "lines": {
            "first": [*losses, *verdict_lines(comparisons)],
            "rest": [
                *passport_lines(task.passports),
                *contamination_lines(task, sets, scores),
                *others,
                *peek_lines(task.peeks, task.metric),
                *failure_lines(task.failures),
                *([best_of["sentence"]] if best_of else []),
            ],
        },
    }


def _items(task: TaskOutcomes, place: str) -> int:
    return task.variants[task.baseline][place].items


def _scores(task: TaskOutcomes, outcomes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        place: three_ways(task.metric, each, task.status.get(place), task.clusters.get(place))
        for place, each in outcomes.items()
    }


def _both(ways: dict[str, np.ndarray], basis: str) -> dict[str, np.ndarray]:
    return {name: keep for name, keep in ways.items() if name in ("all", basis)}


def _compare(
    task: TaskOutcomes,
    name: str,
    place: str,
    basis: str,
    kept: dict[str, dict[str, np.ndarray]],
    metric: str | None = None,
) -> Comparison:
    names = (name, task.baseline, place, basis)
    outcomes = (task.variants[name][place], task.variants[task.baseline][place])
    found = compare(names, metric or task.metric, outcomes, kept[place][basis], task.clusters.get(place))
    return replace(found, not_comparable_because=(*_red(task, name), *found.not_comparable_because))


def _red(task: TaskOutcomes, variant: str) -> tuple[str, ...]:
    """Red audits that nobody accepted."""
    stamps = [task.stamp(name) for name in (variant, task.baseline)]
    return (*(f"the data is unsound ({audit})" for audit in task.unsound), *(stamp for stamp in stamps if stamp))


def _judged(task: TaskOutcomes, claims: list[Comparison]) -> list[dict[str, Any]]:
    """Rows with verdicts. The family is every claim of this task: all variants, all test sets, the one metric."""
    alpha = ALPHA if task.look is None else task.look.alpha
    family = [claim for claim in claims if may_be_judged(claim) and claim.found is not None]
    adjusted = dict(zip(map(id, family), holm([claim.found.p for claim in family if claim.found]), strict=True))
    rows = []
    for claim in claims:
        p_adjusted = adjusted.get(id(claim))
        least = least_for(claim, task.least_difference, task.variants[task.baseline][claim.set])
        verdict = decide(claim, p_adjusted, alpha, least)
        also = remarks(claim, verdict, least, task.passports)
        told = sentence(
            claim, verdict, least=least, alpha=alpha, p_adjusted=p_adjusted, family=len(family), remarks=also
        )
        rows.append(
            comparison_row(claim)
            | {"p_adjusted": p_adjusted, "family": len(family), "least_difference": least}
            | verdict_row(verdict)
            | {"sentence": told, "remarks": also}
            | detail_row(claim)
        )
    return rows


def _explored(
    task: TaskOutcomes, basis: dict[str, str], kept: dict[str, dict[str, np.ndarray]]
) -> list[dict[str, Any]]:
    """Other items and other metrics: for ideas, not for claims; q-values over all of them."""
    found = []
    for name in task.others:
        for place in task.variants[name]:
            ways = [(way, task.metric) for way, keep in kept[place].items() if way != basis[place] and keep.any()]
            if kept[place][basis[place]].any():
                ways += [(basis[place], metric) for metric in ALSO[task.metric]]
            found += [_compare(task, name, place, way, kept, metric) for way, metric in ways]
    tested = [each for each in found if each.found is not None and not each.not_comparable_because]
    q = dict(zip(map(id, tested), benjamini_hochberg([each.found.p for each in tested if each.found]), strict=True))
    return [comparison_row(each) | {"q": q.get(id(each)), "why": list(each.not_comparable_because)} for each in found]


def _best_of(task: TaskOutcomes, claims: list[Comparison]) -> dict[str, Any] | None:
    """Expected lead of the luckiest variant, on the first test set."""
    here = [
        each.found
        for each in claims
        if each.found is not None and each.set == task.sets[0] and not each.not_comparable_because
    ]
    bias = expected_bias(here, len(here) + 1)
    if bias is None or not math.isfinite(bias):
        return None
    told = best_of_line(task.metric, len(here) + 1, bias, task.sets[0])
    return {"variants": len(here) + 1, "set": task.sets[0], "expected_bias": bias, "sentence": told}
