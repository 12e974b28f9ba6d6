"""The comparisons that decide claims: all test sets together, the family corrected as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairtrial.judge.compare import Comparison, compare, least_for
from fairtrial.judge.family import holm
from fairtrial.judge.looks import ALPHA
from fairtrial.judge.verdict import Verdict, decide, may_be_judged
from fairtrial.replicate.evidence import EVERY, Evidence
from fairtrial.replicate.library import Claim

DECIDED_BY_COMPARISON = ("better", "worse", "same")


@dataclass(frozen=True)
class Decided:
    comparison: Comparison  # on the items that verdicts are on
    verdict: Verdict
    p_adjusted: float | None
    on_all: Comparison | None  # on all items, where verdicts are on clean ones

    @property
    def unit(self) -> str:
        return self.comparison.metric.unit

    def shown(self, comparison: Comparison | None = None) -> tuple[float, float, float] | None:
        """Difference and interval: points, or the change of perplexity in per cent."""
        comparison = comparison or self.comparison
        if comparison.found is None:
            return None
        values = (comparison.found.difference, *comparison.found.interval())
        if comparison.metric.name != "perplexity":
            return values
        first, low, high = (100 * math.expm1(min(700.0, value)) for value in values)
        return first, low, high

    @property
    def shown_unit(self) -> str:
        return "% perplexity" if self.comparison.metric.name == "perplexity" else self.unit


def compare_two(evidence: Evidence, variant: str, against: str, basis: str) -> Comparison:
    items = evidence.pooled(variant).items
    status = evidence.status()
    keep = np.ones(items, bool) if basis == "all" or status is None else status == 0
    outcomes = (evidence.pooled(variant), evidence.pooled(against))
    names = (variant, against, EVERY, basis)
    found = compare(names, evidence.outcomes.metric, outcomes, keep, evidence.clusters())
    stamps = [evidence.outcomes.stamp(name) for name in (variant, against)]
    return replace(found, hurdles=(*(stamp for stamp in stamps if stamp), *found.hurdles))


def decide_all(claims: Sequence[Claim], evidences: Mapping[str, Evidence]) -> dict[tuple[str, str], Decided]:
    """Claim id and study -> what the comparison says. Holm's correction is over all comparisons of the page."""
    made: dict[tuple[str, str], Comparison] = {}
    for claim in claims:
        for study in claim.studies if claim.rule in DECIDED_BY_COMPARISON else ():
            evidence = evidences.get(study)
            if evidence and evidence.has(claim.variant, claim.against):
                made[claim.id, study] = compare_two(evidence, claim.variant, claim.against, evidence.basis()["basis"])
    family = {key: each.found.p for key, each in made.items() if may_be_judged(each) and each.found is not None}
    adjusted = dict(zip(family, holm(list(family.values())), strict=True))
    decided = {}
    for (name, study), comparison in made.items():
        evidence = evidences[study]
        least = least_for(comparison, evidence.outcomes.least_difference, evidence.pooled(comparison.against))
        on_all = None
        if comparison.basis != "all":
            on_all = compare_two(evidence, comparison.variant, comparison.against, "all")
        p = adjusted.get((name, study))
        decided[name, study] = Decided(comparison, decide(comparison, p, ALPHA, least), p, on_all)
    return decided
