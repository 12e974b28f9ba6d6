"""The variants against what a transformer must beat: majority class, n-grams."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairtrial.judge.compare import Comparison, compare
from fairtrial.judge.family import holm
from fairtrial.judge.first_lines import ONE
from fairtrial.judge.looks import ALPHA
from fairtrial.judge.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.judge.words import figures, score_words


def against_baselines(task: TaskOutcomes, kept: dict[str, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Every variant against every baseline; `kept`: test set -> basis -> items that count. Holm over all of a basis."""
    found = [
        _compare(task, (variant, baseline, place, basis), keep)
        for place, by_basis in kept.items()
        for basis, keep in by_basis.items()
        for baseline in task.baselines
        for variant in task.variants
        if place in task.baselines[baseline] and place in task.variants[variant]
    ]
    adjusted: dict[int, float] = {}
    for basis in {each.basis for each in found}:
        tested = [each for each in found if each.basis == basis and each.found is not None and not each.hurdles]
        adjusted |= zip(map(id, tested), holm([each.found.p for each in tested if each.found]), strict=True)
    return [_row(task, each, adjusted.get(id(each))) for each in found]


def _compare(task: TaskOutcomes, names: tuple[str, str, str, str], keep: np.ndarray) -> Comparison:
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
    if each.hurdles or each.difference is None:
        return "not_comparable"
    if p_adjusted is not None and p_adjusted < ALPHA:
        return "beats" if each.gain > 0 else "loses"
    return "above" if each.gain > 0 else "below" if each.gain < 0 else "equal"


def _shown(each: Comparison, value: float) -> float:
    return float(np.exp(min(700.0, value))) if each.metric.name == "perplexity" else value


def _sentence(each: Comparison, row: dict[str, Any], stamp: str | None) -> str:
    if row["verdict"] == "not_comparable":
        why = "; ".join([*each.hurdles, *([stamp] if stamp else [])])
        return f"{each.variant} cannot be compared with {each.against} on {each.set}: {why}."
    ours, theirs = (score_words(each.metric.name, row[key]) for key in ("ours", "theirs"))
    who = f"{each.variant} {ONE[row['verdict']]} {each.against} on {each.set}"
    return f"{who}: {ours} against {theirs}; {figures(each, row['p_adjusted'])}."
