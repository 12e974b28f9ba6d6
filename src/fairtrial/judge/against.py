"""The variants against what a transformer must beat: majority class, n-grams."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from fairtrial.judge.compare import Comparison, compare
from fairtrial.judge.family import holm
from fairtrial.judge.measure import METRICS
from fairtrial.judge.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.judge.words import figures, listed, score_words


def against_baselines(task: TaskOutcomes, kept: dict[str, dict[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Every variant against every baseline; `kept`: test set -> basis -> items that count. Holm over all of a basis."""
    rows = []
    for place, by_basis in kept.items():
        for basis, keep in by_basis.items():
            for baseline, outcomes in task.baselines.items():
                for variant in task.variants:
                    if place in outcomes and place in task.variants[variant]:
                        rows.append(_row(task, (variant, baseline, place, basis), keep, outcomes[place]))
    for basis in {row["basis"] for row in rows}:
        tested = [row for row in rows if row["basis"] == basis and row["p"] is not None]
        for row, adjusted in zip(tested, holm([row["p"] for row in tested]), strict=True):
            row["p_adjusted"] = adjusted
            if adjusted < 0.05:
                row["verdict"] = "beats" if row["verdict"] == "above" else "loses"
    for row in rows:
        row["sentence"] = _sentence(row, task.metric)
    return rows


def _row(task: TaskOutcomes, names: tuple[str, str, str, str], keep: np.ndarray, theirs: SetOutcomes) -> dict[str, Any]:
    ours = task.variants[names[0]][names[2]]
    if len(theirs.seeds) == 1:  # fitted once: the same answers for every seed
        theirs = SetOutcomes(
            ours.seeds, {key: np.repeat(each, len(ours.seeds), 0) for key, each in theirs.arrays.items()}
        )
    found = compare(names, task.metric, (ours, theirs), keep, task.clusters.get(names[2]))
    row: dict[str, Any] = {"variant": names[0], "baseline": names[1], "set": names[2], "basis": names[3]}
    row |= {"metric": found.metric.name, "unit": found.metric.unit, "seeds": found.seeds, "items": found.items}
    row |= {"difference": found.difference, "low": None, "high": None, "p": None, "p_adjusted": None}
    if found.found is not None:
        row["low"], row["high"] = found.found.interval()
        row["p"] = found.found.p
    row["verdict"] = "not_comparable" if found.hurdles or found.difference is None else _side(found)
    row["figures"] = figures(found)
    row["ours"], row["theirs"] = _scores(found)
    return row


def _side(found: Comparison) -> str:
    return "above" if found.gain > 0 else "below"


def _scores(found: Comparison) -> tuple[float | None, float | None]:
    if found.level is None or found.difference is None:
        return None, None
    ours, theirs = found.level + found.difference, found.level
    if found.metric.name == "perplexity":
        return float(np.exp(min(700.0, ours))), float(np.exp(min(700.0, theirs)))
    return ours, theirs


def _sentence(row: dict[str, Any], metric: str) -> str:
    one, other, place = row["variant"], row["baseline"], row["set"]
    told = row.pop("figures")
    if row["verdict"] == "not_comparable":
        return f"{one} cannot be compared with {other} on {place}."
    verb = {
        "beats": "beats",
        "loses": "loses to",
        "above": "scores better than, but does not clearly beat,",
        "below": "scores worse than, but does not clearly lose to,",
    }
    ours, theirs = (score_words(row["metric"], row[key]) for key in ("ours", "theirs"))
    return f"{one} {verb[row['verdict']]} {other} on {place}: {ours} against {theirs}; {told}."


def headlines(rows: list[dict[str, Any]], basis: dict[str, str]) -> tuple[list[str], list[str]]:
    """What a reader must hear first (losses), and what can wait: each variant against the strongest baseline of each
    test set, on the items that verdicts are on. Test sets with the same story share a sentence."""
    stories: defaultdict[tuple[str, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for place, chosen in basis.items():
        here = [row for row in rows if row["set"] == place and row["basis"] == chosen and row["theirs"] is not None]
        if not here:
            continue
        sign = 1 if METRICS[here[0]["metric"]].higher_is_better else -1
        strongest = max(here, key=lambda row: sign * row["theirs"])["baseline"]
        met = [row for row in here if row["baseline"] == strongest]
        best = max(met, key=lambda row: sign * row["ours"])
        told = [score_words(best["metric"], best[key]) for key in ("ours", "theirs")]
        on = place if chosen == "all" else f"{place} ({chosen} items)"
        for kind, verdicts in (("loses", ("loses",)), ("open", ("above", "below")), ("beats", ("beats",))):
            names = tuple(row["variant"] for row in met if row["verdict"] in verdicts)
            if names:
                whole = ("every variant",) if len(names) == len(met) and len(met) > 1 else names
                figure = (
                    f"{told[1]}; {best['variant']}, the best variant: {told[0]}" if len(met) > 1 else " to ".join(told)
                )
                stories[kind, strongest, whole].append(f"{on}: {figure}")
    first: list[str] = []
    later: list[str] = []
    for (kind, strongest, names), places in stories.items():
        one = len(names) == 1
        verb = {"loses": "loses to" if one else "lose to", "beats": "beats" if one else "beat"}.get(kind)
        if verb is None:
            verb = "is neither clearly above nor below" if one else "are neither clearly above nor below"
        line = f"{listed(names)} {verb} {strongest}, which needs no network ({'. '.join(places)})."
        (first if kind == "loses" else later).append(line)
    return first, later
