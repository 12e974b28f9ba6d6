"""Optimizers compared twice: at one learning rate, as a report did it, and each at the rate of its own choice."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairtrial.judge.scores import score
from fairtrial.judge.words import counted, listed, score_words
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.library import Claim
from fairtrial.study.search import tries_of

RATE = "training.learning_rate"


def levels(claim: Claim, evidence: Evidence) -> str:
    """`adamw 80.5%, sgd 49.9%`, on all items."""
    found = []
    for name in (claim.variant, claim.against):
        outcomes = evidence.pooled(name)
        shown = score(evidence.outcomes.metric, outcomes, np.ones(outcomes.items, bool), evidence.clusters())
        found.append(f"{name} {score_words(evidence.outcomes.metric, shown['mean'])}")
    return ", ".join(found)


def rate_of(evidence: Evidence, variant: str) -> float:
    return evidence.plan.recipes[evidence.task][variant].training.learning_rate


def one_rate_words(claim: Claim, evidence: Evidence) -> str:
    rates = sorted({rate_of(evidence, name) for name in (claim.variant, claim.against)})
    return f"With one learning rate for all ({listed([f'{rate:g}' for rate in rates])}), as in the report"


def own_rate_words(claim: Claim, evidence: Evidence) -> str:
    search = evidence.plan.study.search
    tries = [] if search is None else [each[RATE] for each in tries_of(search)]
    told = []
    for name in (claim.variant, claim.against):
        rate = rate_of(evidence, name)
        edge = {min(tries): ", the smallest tried", max(tries): ", the largest tried"}.get(rate, "") if tries else ""
        told.append(f"{name} {rate:g}{edge}")
    return f"With each at its own, the best of {len(tries)} on validation ({'; '.join(told)})"


def setting_words(claim: Claim, evidence: Evidence) -> str:
    """What ours are trained with, beside what the report has."""
    record = next(iter(evidence.records[claim.variant].values()))
    encoder = {"minilm": "MiniLM"}.get(record.recipe.encoder.source, "another encoder")
    return (
        f"Ours fine-tune {encoder} with"
        f" {record.trial['documents']['train']:,} sentences in {counted(record.result['steps'], 'step')};"
        f" {claim.setting}."
    )


def shared_words(claim: Claim, evidences: Mapping[str, Evidence]) -> str:
    """Trials that stand in both comparisons, told by the fingerprints of recipe and weights."""
    one, own = evidences.get(claim.one_rate), evidences.get(claim.study)
    if one is None or own is None:
        return ""
    names = [name for name in (claim.variant, claim.against) if one.has(name) and own.has(name)]
    marks = {name: (one.marks(name), own.marks(name)) for name in names}
    shared = [name for name, (a, b) in marks.items() if (a["recipe"], a["weights"]) == (b["recipe"], b["weights"])]
    if not shared:
        return ""
    seeds = len(own.records[shared[0]])
    return (
        f"The {counted(seeds, 'trial')} of {listed(shared)} are the same in both comparisons: their recipes and trained"
        " weights have the same fingerprints."
    )
