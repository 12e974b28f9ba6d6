"""Was the report's own comparison sound? What no number of seeds would have repaired, and what makes it say little.

Optimizers compared twice: at one learning rate, as a report did it, and each at the rate of its own choice.

The rules: a claim and the records -> holds, does not hold, cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from fairtrial.apps.reports.evidence import DECIDED_BY_COMPARISON, Decided, Evidence, Mean, chosen_words, mean_of
from fairtrial.apps.reports.inside import Layers, Likeness
from fairtrial.apps.reports.published import Claim, Figure
from fairtrial.statistics import counted, listed, score, score_words
from fairtrial.statistics import describe_difference as in_words
from fairtrial.study import tries_of

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


HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "cannot be told", "not run"
SPEAKERS = {"0": "Obama", "1": "W. Bush", "2": "H. Bush"}  # the course's labels
TRIFLE_POINTS, TRIFLE_TIME = 1.0, math.log(1.02)  # too little to matter: a point, 2 % of time


@dataclass(frozen=True)
class Found:
    """All that claims are decided by."""

    evidences: Mapping[str, Evidence]
    decided: Mapping[tuple[str, str], Decided]  # claim id, study
    family: int  # comparisons that are corrected together
    layers: Layers | None
    likeness: Likeness | None
    twins: Mapping[str, Evidence] = field(default_factory=dict)  # the same studies with weights chosen on validation


@dataclass(frozen=True)
class AtOneRate:
    """What becomes of a claim about optimizers when all have one learning rate."""

    outcome: str
    because: str
    decided: Decided


@dataclass(frozen=True)
class Answer:
    claim: Claim
    outcome: str
    because: str
    unsound: tuple[str, ...] = ()  # what makes the report's own comparison worthless
    weak: tuple[str, ...] = ()  # what makes it say little
    decided: Decided | None = None
    at_one_rate: AtOneRate | None = None

    @property
    def headline(self) -> str:
        if self.at_one_rate is not None:
            own = f"each at its own best rate: {self.outcome}"
            return f"at one learning rate, as the report did it: {self.at_one_rate.outcome}; {own}"
        if self.unsound and self.outcome != NOT_RUN:
            return f"the comparison was unsound; retried soundly: {self.outcome}"
        return self.outcome


def answer(claim: Claim, found: Found, published: list[Figure]) -> Answer:
    at_one = at_one_rate(claim, found)
    before = f"{at_one.because} " if at_one else ""
    evidence = found.evidences.get(claim.study)
    if evidence is None or not evidence.has(*(name for name in (claim.variant, claim.against) if name)):
        because = f"{before}The trials that it needs were not run: see what was left out."
        return Answer(claim, NOT_RUN, because, at_one_rate=at_one)
    outcome, because = DECIDERS[claim.rule](claim, evidence, found)
    because = " ".join(filter(None, (because, chosen_words(claim, found.twins))))
    if claim.one_rate:
        own = f"{own_rate_words(claim, evidence)}: {levels(claim, evidence)}; {because}"
        told = [before.strip(), own, shared_words(claim, found.evidences), setting_words(claim, evidence)]
        because = " ".join(each for each in told if each)
    decided = found.decided.get((claim.id, claim.study))
    return Answer(claim, outcome, because, unsound(claim, evidence), weak(claim, published), decided, at_one)


def at_one_rate(claim: Claim, found: Found) -> AtOneRate | None:
    """What the report saw, over several seeds."""
    decided = found.decided.get((claim.id, claim.one_rate))
    if decided is None:
        return None
    evidence = found.evidences[claim.one_rate]
    outcome, because = by_comparison(claim, evidence, found)
    told = f"{one_rate_words(claim, evidence)}: {levels(claim, evidence)}; {because}"
    return AtOneRate(outcome, told, decided)


def by_comparison(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """What is claimed must be what is found; a trifle is no gain; too wide an interval tells nothing."""
    decided = found.decided[claim.id, evidence.folder]
    kind, comparison = decided.verdict.kind, decided.comparison
    if kind == "not_comparable":
        return OPEN, f"They cannot be compared: {'; '.join(comparison.not_comparable_because)}."
    told = f"{claim.variant} against {claim.against}: {in_words(comparison, decided.p_adjusted, found.family)}."
    if comparison.subset == "clean" and decided.on_all is not None:
        told += f" On all items, copies included: {in_words(decided.on_all)}."
    if kind == "undetected":
        told += f" {smallest_words(decided)}"
    if kind in ("undetected", "too_few_seeds"):
        return OPEN, told
    if kind == "same":
        told += " If they differ at all, then by less than matters (1 point, 1% of perplexity)."
    return (HOLDS if kind == claim.rule else FAILS), told


def smallest_words(decided: Decided) -> str:
    smallest = decided.verdict.smallest
    if smallest is None:
        return ""
    if decided.comparison.metric.name == "perplexity":
        return f"So many seeds and items show differences of {100 * math.expm1(smallest):.1f}% and more."
    return f"So many seeds and items show differences of {smallest:.1f} {decided.unit} and more."


def narrows(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """The gap between training accuracy and accuracy on clean test items, seed by seed."""
    one, other = gaps(evidence, claim.variant), gaps(evidence, claim.against)
    seeds = [seed for seed in one if seed in other]
    gap = mean_of([one[seed] - other[seed] for seed in seeds])
    levels = [mean_of([each[seed] for seed in seeds]).value for each in (one, other)]
    told = (
        f"The gap is {levels[0]:.1f} points with {claim.variant} and {levels[1]:.1f} with {claim.against}:"
        f" {spoken(gap, 'points')}."
    )
    return gap.says(0.0, trifle=TRIFLE_POINTS), told


def gaps(evidence: Evidence, variant: str) -> dict[int, float]:
    outcomes = evidence.pooled(variant)
    right = outcomes["guess"] == outcomes["label"]
    status = evidence.status()
    if status is not None and evidence.basis()["basis"] == "clean":
        right = right[:, status == 0]
    train = {seed: record.result["train"]["accuracy"] for seed, record in evidence.records[variant].items()}
    return {seed: 100 * (train[seed] - float(row.mean())) for seed, row in zip(outcomes.seeds, right, strict=True)}


def quicker(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """The median time of a step, seed by seed, on one machine in one study."""
    paces = {name: step_seconds(evidence, name) for name in (claim.variant, claim.against)}
    seeds = [seed for seed in paces[claim.variant] if seed in paces[claim.against]]
    ratio = mean_of([math.log(paces[claim.variant][seed] / paces[claim.against][seed]) for seed in seeds])
    if not seeds:
        return OPEN, "The records keep no time of a step."
    low, high = (f"{100 * math.expm1(each):+.1f}" for each in (ratio.low, ratio.high))
    sure = f"95% interval {low} to {high}%; " if len(seeds) > 1 else ""
    counts = [evidence.results(name)[0]["parameters"] for name in (claim.variant, claim.against)]
    told = (
        f"A step of {claim.variant} takes {100 * math.expm1(ratio.value):+.1f}% of time ({sure}"
        f"{counted(len(seeds), 'seed')}). It has {counts[0]:,} parameters against {counts[1]:,}."
    )
    return ratio.says(0.0, trifle=TRIFLE_TIME), told


def step_seconds(evidence: Evidence, variant: str) -> dict[int, float]:
    paces = {
        seed: [line["step_seconds"] for line in record.clock() if "step_seconds" in line]
        for seed, record in evidence.records[variant].items()
    }
    return {seed: median(each) for seed, each in paces.items() if each}


def concentrates(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """Entropy of the last layer against that of the first, seed by seed."""
    if found.layers is None:
        return NOT_RUN, "Attention was not measured."
    climb = mean_of(found.layers.climb)
    rows = zip(*found.layers.trained, strict=True)
    told = ", ".join(f"{mean_of(row).value:.2f}" for row in rows)
    return climb.says(0.0), (
        f"Entropy as a share of an even spread, from the first layer to the last: {told} (untrained:"
        f" {', '.join(f'{mean_of(row).value:.2f}' for row in zip(*found.layers.untrained, strict=True))})."
        f" Last minus first: {spoken(climb, '')}."
    )


def nearest(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    like = found.likeness
    if like is None:
        return NOT_RUN, "The test set is not there."
    told = "; ".join(
        f"{model} " + ", ".join(f"{place} {value:,.0f}" for place, value in sets.items())
        for model, sets in like.perplexity.items()
    )
    because = f"Exact perplexity by test set: {told}."
    if like.rows:
        rows = ", ".join(f"{SPEAKERS.get(label, label)} {count}" for label, count in like.rows.items())
        because += f" Training rows whose speaker the classifier's files tell: {rows}."
    return like.verdict(claim.label), because


DECIDERS = {
    **dict.fromkeys(DECIDED_BY_COMPARISON, by_comparison),
    "narrows": narrows,
    "quicker": quicker,
    "concentrates": concentrates,
    "nearest": nearest,
}


def spoken(found: Mean, unit: str) -> str:
    places = 1 if unit == "points" else 2
    figures = [f"{each:+.{places}f}" for each in (found.value, found.low, found.high)]
    sure = f"95% interval {figures[1]} to {figures[2]}; " if found.seeds > 1 else ""
    return f"{figures[0]}{unit and ' ' + unit} ({sure}{counted(found.seeds, 'seed')})"
