"""A study's outcomes -> its verdict file: plain values that the command line and the page read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.judge.against import against_baselines
from fairtrial.judge.basis import contamination_lines, describe_set
from fairtrial.judge.best_of import expected_bias
from fairtrial.judge.compare import Comparison, compare, least_for
from fairtrial.judge.family import benjamini_hochberg, holm
from fairtrial.judge.first_lines import baseline_lines, verdict_lines
from fairtrial.judge.looks import ALPHA, Look, next_look
from fairtrial.judge.measure import METRICS
from fairtrial.judge.outcomes import TaskOutcomes
from fairtrial.judge.rows import comparison_row, detail_row, verdict_row
from fairtrial.judge.scores import bases, three_ways
from fairtrial.judge.verdict import decide, may_be_judged
from fairtrial.judge.words import best_of_line, failure_lines, passport_lines, peek_lines, remarks, sentence

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
    return replace(found, hurdles=(*_red(task, name), *found.hurdles))


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
    tested = [each for each in found if each.found is not None and not each.hurdles]
    q = dict(zip(map(id, tested), benjamini_hochberg([each.found.p for each in tested if each.found]), strict=True))
    return [comparison_row(each) | {"q": q.get(id(each)), "why": list(each.hurdles)} for each in found]


def _best_of(task: TaskOutcomes, claims: list[Comparison]) -> dict[str, Any] | None:
    """Expected lead of the luckiest variant, on the first test set."""
    here = [each.found for each in claims if each.found is not None and each.set == task.sets[0] and not each.hurdles]
    bias = expected_bias(here, len(here) + 1)
    if bias is None or not math.isfinite(bias):
        return None
    told = best_of_line(task.metric, len(here) + 1, bias, task.sets[0])
    return {"variants": len(here) + 1, "set": task.sets[0], "expected_bias": bias, "sentence": told}
