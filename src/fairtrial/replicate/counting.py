"""What models that only count words reach on the same items: the table that no report has."""

from __future__ import annotations

from typing import Any

from fairtrial.judge.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.judge.scores import three_ways
from fairtrial.replicate.doubts import is_red
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.page_tables import table
from fairtrial.replicate.page_words import COUNTING
from fairtrial.replicate.run import Replication
from fairtrial.report.rounding import with_interval

TITLES = {"all": "all {}", "clean": "{} clean", "contaminated": "{} that stand in train"}
FEWEST = 30  # items of a column


def beside_counting(found: Replication) -> list[str]:
    """A table for each study that has baselines, the best first."""
    told = []
    for evidence in found.evidences.values():
        if evidence.outcomes.baselines:
            told += [f"{evidence.folder}, {evidence.outcomes.metric}:", "", *counting_table(evidence), ""]
    return ["## Beside counting", "", COUNTING, "", *told] if told else []


def counting_table(evidence: Evidence) -> list[str]:
    """Models in rows, the best first, those that count in bold."""
    outcomes = evidence.outcomes
    honest = {name: sets for name, sets in outcomes.variants.items() if not any(map(is_red, evidence.findings(name)))}
    scores = {
        name: columns({place: measured(outcomes, place, sets[place]) for place in sets})
        for name, sets in (honest | outcomes.baselines).items()
    }
    names = list(scores[outcomes.baseline])
    first = next((name for name in names if name.endswith("clean")), names[0])
    order = sorted(scores, key=lambda name: scores[name][first]["mean"], reverse=outcomes.metric == "accuracy")
    return table(
        ["model", *names],
        [
            [f"**{name}**" if name in outcomes.baselines else name, *(figure(scores[name][each]) for each in names)]
            for name in order
        ],
    )


def measured(outcomes: TaskOutcomes, place: str, found: SetOutcomes) -> dict[str, Any]:
    return three_ways(outcomes.metric, found, outcomes.status.get(place), outcomes.clusters.get(place))


def columns(ways: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of one test set its parts; of several each as a whole."""
    if len(ways) == 1:
        parts = next(iter(ways.values()))
        many = {basis: score for basis, score in parts.items() if score["items"] >= FEWEST}
        return {TITLES[basis].format(f"{score['items']:,}"): score for basis, score in (many or parts).items()}
    return {place: parts["all"] for place, parts in ways.items()}


def figure(score: dict[str, Any]) -> str:
    return with_interval(score["mean"], score["low"], score["high"])
