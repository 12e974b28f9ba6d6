"""Was the report's own comparison sound? What no number of seeds would have repaired, and what makes it say little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.facts import Figure
from fairtrial.replicate.library import Claim

ON_TEST_ITEMS = ("better", "worse", "same", "narrows")  # rules whose claims are about scores


def unsound(claim: Claim, evidence: Evidence) -> tuple[str, ...]:
    reasons = []
    if claim.as_coded and evidence.has(claim.as_coded) and evidence.outcomes.stamp(claim.as_coded):
        failed = [each["id"] for each in evidence.findings(claim.as_coded) if is_red(each)]
        code = "its code as we reconstruct it by its symptoms" if claim.reconstructed else "its own code, repeated,"
        reasons.append(f"{code} fails checks of the passport ({', '.join(failed)})")
    basis = evidence.basis()
    if basis["basis"] == "clean" and evidence.outcomes.metric == "accuracy" and claim.rule in ON_TEST_ITEMS:
        reasons.append(f"{basis['exact'] + basis['near']} of {basis['items']} test items stand in train, too")
    if claim.one_rate:
        reasons.append("one learning rate was given to optimizers that need different ones")
    return tuple(reasons)


def is_red(finding: Mapping[str, Any]) -> bool:
    return bool(finding["level"] == "red" and finding["verdict"] == "FAIL")


def weak(claim: Claim, published: list[Figure]) -> tuple[str, ...]:
    reasons = ["one run of each" if claim.against else "one run"]
    own = [each for each in published if (each.report, each.study, each.at) == (claim.report, claim.study, None)]
    ours, others = figures_of(claim.variant, own), figures_of(claim.against, own)
    if claim.against and any(picked for _, picked in (*ours, *others)):
        reasons.append("the epoch picked on the test set")
    if claim.rule == "better" and own and own[0].measure != "accuracy":
        higher = [place for (place, picked), value in ours.items() if value > others.get((place, picked), value)]
        if higher:
            reasons.append(f"its own perplexities are higher on {', '.join(higher)}")
    return tuple(reasons)


def figures_of(variant: str, figures: list[Figure]) -> dict[tuple[str, bool], float]:
    """(test set, picked on test) -> what is published of a variant."""
    return {(each.set, each.picked_on_test): each.value for each in figures if each.variant == variant}
