"""The rules: a claim and the records -> holds, does not hold, inconclusive; and whether the report's own comparison was
sound: what no number of seeds would have repaired, and what makes it say little."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from scipy.special import stdtrit

from fairtrial.apps.reports.evidence import DECIDED_BY_COMPARISON, Decided, Evidence, Mean, describe_validated, mean_of
from fairtrial.apps.reports.measures import Layers
from fairtrial.apps.reports.published import Claim, Figure, figures
from fairtrial.data import Document, find_format, read, text_key
from fairtrial.statistics import SetOutcomes, counted, listed, score, score_words
from fairtrial.statistics import describe_difference as in_words
from fairtrial.study import tries_of

HOLDS, FAILS, OPEN, NOT_RUN = "holds", "does not hold", "inconclusive", "not run"
SPEAKERS = {"0": "Obama", "1": "W. Bush", "2": "H. Bush"}  # labels of the classifier's files
NEGLIGIBLE_POINTS, NEGLIGIBLE_TIME = 1.0, math.log(1.02)  # too little to matter: a point, 2% of time
RATE = "training.learning_rate"
ON_TEST_ITEMS = ("better", "worse", "same", "narrows")  # rules whose claims are about scores


@dataclass(frozen=True)
class Found:
    """All that claims are decided by."""

    evidences: Mapping[str, Evidence]  # of the reports' own studies
    validated: Mapping[str, Evidence]  # the same with weights chosen on validation, by the same names
    decided: Mapping[tuple[str, str], Decided]  # claim id, study
    layers: Layers | None

    @property
    def family(self) -> int:
        """Comparisons that are corrected together."""
        return sum(each.p_adjusted is not None for each in self.decided.values())


@dataclass(frozen=True)
class Answer:
    claim: Claim
    outcome: str
    because: str
    unsound: tuple[str, ...] = ()  # what makes the report's own comparison worthless
    weak: tuple[str, ...] = ()  # what makes it say little
    decided: Decided | None = None
    at_one_rate: Answer | None = None  # the same claim about optimizers, when all have one learning rate

    @property
    def headline(self) -> str:
        if self.at_one_rate is not None:
            own = f"each at its own best rate: {self.outcome}"
            return f"at one learning rate, as the report did it: {self.at_one_rate.outcome}; {own}"
        if self.unsound and self.outcome != NOT_RUN:
            return f"the comparison was unsound; retried soundly: {self.outcome}"
        return self.outcome


def answer(claim: Claim, found: Found) -> Answer:
    at_one = at_one_rate(claim, found)
    before = f"{at_one.because} " if at_one else ""
    evidence = found.evidences.get(claim.study)
    if evidence is None or not evidence.has(*(name for name in (claim.variant, claim.against) if name)):
        because = f"{before}The trials that it needs were not run: see what was left out."
        return Answer(claim, NOT_RUN, because, at_one_rate=at_one)
    outcome, because = DECIDERS[claim.rule](claim, evidence, found)
    because = " ".join(filter(None, (because, describe_validated(claim, found.validated))))
    if claim.one_rate:
        own = f"{own_rate_words(claim, evidence)}: {levels(claim, evidence)}; {because}"
        parts = [before.strip(), own, shared_words(claim, found.evidences), setting_words(claim, evidence)]
        because = " ".join(filter(None, parts))
    decided = found.decided.get((claim.id, claim.study))
    return Answer(claim, outcome, because, unsound(claim, evidence), weak(claim), decided, at_one)


def at_one_rate(claim: Claim, found: Found) -> Answer | None:
    """What the report saw, over several seeds."""
    decided = found.decided.get((claim.id, claim.one_rate))
    if decided is None:
        return None
    evidence = found.evidences[claim.one_rate]
    outcome, because = by_comparison(claim, evidence, found)
    rates = sorted({rate_of(evidence, name) for name in (claim.variant, claim.against)})
    with_rates = f"With one learning rate for all ({listed([f'{rate:g}' for rate in rates])}), as in the report"
    return Answer(claim, outcome, f"{with_rates}: {levels(claim, evidence)}; {because}", decided=decided)


def by_comparison(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """The claim holds if the verdict is what it says; a negligible difference is no gain."""
    decided = found.decided[claim.id, evidence.folder]
    kind, comparison = decided.verdict.kind, decided.comparison
    if kind == "not_comparable":
        return OPEN, f"They cannot be compared: {'; '.join(comparison.not_comparable_because)}."
    text = f"{claim.variant} against {claim.against}: {in_words(comparison, decided.p_adjusted, found.family)}."
    if comparison.subset == "clean" and decided.on_all is not None:
        text += f" On all items, copies included: {in_words(decided.on_all)}."
    smallest = decided.verdict.smallest
    if kind == "undetected" and smallest is not None:
        percent = decided.comparison.metric.name == "perplexity"
        least = f"{100 * math.expm1(smallest):.1f}%" if percent else f"{smallest:.1f}{decided.unit}"
        among = f" After correction for {found.family} comparisons, this" if found.family > 1 else " This"
        text += f"{among} many seeds and items detect differences of {least} and more in 4 of 5 cases."
    if kind in ("undetected", "too_few_seeds"):
        return OPEN, text
    if kind == "same":
        text += " If they differ at all, then by less than matters (1 point, 1% of perplexity)."
    return (HOLDS if kind == claim.rule else FAILS), text


def narrows(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """The gap between training accuracy and accuracy on clean test items, seed by seed."""
    one, other = gaps(evidence, claim.variant), gaps(evidence, claim.against)
    seeds = [seed for seed in one if seed in other]
    gap = mean_of([one[seed] - other[seed] for seed in seeds])
    levels = [mean_of([each[seed] for seed in seeds]).value for each in (one, other)]
    return gap.is_negative(negligible=NEGLIGIBLE_POINTS), (
        f"The gap is {levels[0]:.1f} points with {claim.variant} and {levels[1]:.1f} with {claim.against}:"
        f" {describe_mean(gap, 'points')}."
    )


def gaps(evidence: Evidence, variant: str) -> dict[int, float]:
    outcomes = evidence.pooled(variant)
    right = (outcomes["guess"] == outcomes["label"])[:, evidence.keep()]
    train = {seed: record.result["train"]["accuracy"] for seed, record in evidence.records[variant].items()}
    return {seed: 100 * (train[seed] - float(row.mean())) for seed, row in zip(outcomes.seeds, right, strict=True)}


def quicker(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """The median time of a step, seed by seed, on one machine in one study."""
    one, other = step_seconds(evidence, claim.variant), step_seconds(evidence, claim.against)
    seeds = [seed for seed in one if seed in other]
    ratio = mean_of([math.log(one[seed] / other[seed]) for seed in seeds])
    if not seeds:
        return OPEN, "The records store no time per step."
    low, high = (f"{100 * math.expm1(each):+.1f}" for each in (ratio.low, ratio.high))
    sure = f"95% interval {low} to {high}%; " if len(seeds) > 1 else ""
    counts = [evidence.results(name)[0]["parameters"] for name in (claim.variant, claim.against)]
    return ratio.is_negative(negligible=NEGLIGIBLE_TIME), (
        f"The time per step of {claim.variant} differs by {100 * math.expm1(ratio.value):+.1f}% ({sure}"
        f"{counted(len(seeds), 'seed')}). It has {counts[0]:,} parameters against {counts[1]:,}."
    )


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
    change = mean_of([row[-1] - row[0] for row in found.layers["trained"]])
    trained, untrained = (
        ", ".join(f"{mean_of(layer).value:.2f}" for layer in zip(*rows, strict=True))
        for rows in (found.layers["trained"], found.layers["untrained"])
    )
    return change.is_negative(), (
        f"Entropy as a share of a uniform distribution's, from the first layer to the last: {trained} (untrained:"
        f" {untrained}). Last minus first: {describe_mean(change, '')}."
    )


def nearest(claim: Claim, evidence: Evidence, found: Found) -> tuple[str, str]:
    """Whose speeches is the training text like? A low perplexity alone does not say: a text may be easy to predict for
    anyone. So three things count: whether the set is the easiest for the trained model, whether it is for models that
    only count words, and how many training rows are known to be that speaker's."""
    claimed = evidence.test_set(claim.set)
    if claimed is None:
        return NOT_RUN, "These data have no such test set."
    models = {claim.variant: evidence.outcomes.variants[claim.variant]}
    models |= {name: sets for name, sets in evidence.outcomes.baselines.items() if name != "bigram"}
    levels = "; ".join(
        f"{model} " + ", ".join(f"{name} {math.exp(min(700.0, mean_nll(each))):,.0f}" for name, each in sets.items())
        for model, sets in models.items()
    )
    because, rows = f"Exact perplexity by test set: {levels}.", known_rows(evidence)
    if rows:
        known = ", ".join(f"{SPEAKERS.get(label, label)} {count}" for label, count in rows.items())
        because += f" Training rows whose speaker the classifier's files name: {known}."
    leads = [
        [welch_interval(sets[other], sets[claimed]) for other in sets if other != claimed] for sets in models.values()
    ]
    return likeness(leads, rows, claim.label), because


DECIDERS = dict.fromkeys(DECIDED_BY_COMPARISON, by_comparison)
DECIDERS |= {"narrows": narrows, "quicker": quicker, "concentrates": concentrates, "nearest": nearest}


def describe_mean(found: Mean, unit: str) -> str:
    digits = 1 if unit == "points" else 2
    value, low, high = (f"{number:+.{digits}f}" for number in (found.value, found.low, found.high))
    sure = f"95% interval {low} to {high}; " if found.seeds > 1 else ""
    return f"{value}{unit and ' ' + unit} ({sure}{counted(found.seeds, 'seed')})"


def unsound(claim: Claim, evidence: Evidence) -> tuple[str, ...]:
    reasons = []
    if claim.as_coded and evidence.has(claim.as_coded) and evidence.outcomes.stamp(claim.as_coded):
        code = "its code as we reconstruct it from its symptoms" if claim.reconstructed else "its own code, repeated,"
        reasons.append(f"{code} fails checks of the passport ({', '.join(evidence.red_checks(claim.as_coded))})")
    if evidence.subset == "clean" and evidence.outcomes.metric == "accuracy" and claim.rule in ON_TEST_ITEMS:
        copies = evidence.copies()
        number = copies["exact"] + copies["near"]
        reasons.append(f"{number} of {copies['items']} test items also occur in the training set")
    if claim.one_rate:
        reasons.append("optimizers that need different learning rates shared one")
    return tuple(reasons)


def weak(claim: Claim) -> tuple[str, ...]:
    reasons = ["one run of each" if claim.against else "one run"]
    own = [each for each in figures() if (each.report, each.study, each.at) == (claim.report, claim.study, None)]
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


def own_rate_words(claim: Claim, evidence: Evidence) -> str:
    search = evidence.plan.study.search
    tries = [] if search is None else [each[RATE] for each in tries_of(search)]
    rates = []
    for name in (claim.variant, claim.against):
        rate = rate_of(evidence, name)
        edge = {min(tries): ", the smallest tried", max(tries): ", the largest tried"}.get(rate, "") if tries else ""
        rates.append(f"{name} {rate:g}{edge}")
    return f"With each at its own, the best of {len(tries)} on validation ({'; '.join(rates)})"


def setting_words(claim: Claim, evidence: Evidence) -> str:
    """What ours are trained with, beside what the report has."""
    record = evidence.first(claim.variant)
    encoder = {"minilm": "MiniLM"}.get(record.recipe.encoder.source, "another encoder")
    sentences, steps = record.trial["documents"]["train"], counted(record.result["steps"], "step")
    return f"Ours fine-tune {encoder} with {sentences:,} sentences in {steps}; {claim.setting}."


def shared_words(claim: Claim, evidences: Mapping[str, Evidence]) -> str:
    """Trials that both comparisons share, by the fingerprints of recipe and weights."""
    one, own = evidences.get(claim.one_rate), evidences.get(claim.study)
    if one is None or own is None:
        return ""
    names = [name for name in (claim.variant, claim.against) if one.has(name) and own.has(name)]
    marks = {name: (one.fingerprints(name), own.fingerprints(name)) for name in names}
    shared = [name for name, (a, b) in marks.items() if (a["recipe"], a["weights"]) == (b["recipe"], b["weights"])]
    if not shared:
        return ""
    trials = f"The {counted(len(own.records[shared[0]]), 'trial')} of {listed(shared)} are the same in both comparisons"
    return f"{trials}: their recipes and trained weights have the same fingerprints."


def likeness(leads: Sequence[Sequence[tuple[float, float]]], rows: Mapping[str, int], label: str) -> str:
    """Perplexity must agree, with and without a transformer; and the speakers of rows, where they are known. `leads`:
    of each model, the intervals of the other sets' nll above the claimed set's."""
    most = max(rows.values(), default=0)
    by_rows = not most or rows.get(label, 0) == most
    if by_rows and all(low > 0 for others in leads for low, _ in others):  # clearly the easiest for every model
        return HOLDS
    return FAILS if not by_rows or any(all(high < 0 for _, high in others) for others in leads) else OPEN


def mean_nll(outcomes: SetOutcomes) -> float:
    return float(outcomes["nll"].sum() / outcomes["tokens"].sum())


def welch_interval(one: SetOutcomes, other: SetOutcomes) -> tuple[float, float]:
    """95% interval of the difference in nll per token. Two sets are different texts, so nothing is paired (Welch)."""
    ones, others = ratio_variance(one), ratio_variance(other)
    variance = ones[0] + others[0]
    df = variance**2 / (ones[0] ** 2 / ones[1] + others[0] ** 2 / others[1])
    half = float(stdtrit(df, 0.975)) * math.sqrt(variance)
    difference = mean_nll(one) - mean_nll(other)
    return difference - half, difference + half


def ratio_variance(outcomes: SetOutcomes) -> tuple[float, int]:
    """Variance of a ratio over documents, and its degrees of freedom; seeds are averaged first."""
    nll, tokens = outcomes["nll"].mean(0), outcomes["tokens"].mean(0)
    counted = tokens > 0
    nll, tokens = nll[counted], tokens[counted]
    residual = (nll - nll.sum() / tokens.sum() * tokens) / tokens.mean()
    return float(residual.var(ddof=1) / len(residual)), len(residual) - 1


def known_rows(evidence: Evidence) -> dict[str, int]:
    """Rows of the language model's training text that also occur in the classifier's files, by their label there. Only
    the folder of the reports' speeches has both."""
    data = evidence.plan.recipes[evidence.task][evidence.outcomes.baseline].data
    if find_format(data) != "course":
        return {}
    labelled = read(data, "classify")
    rows: list[Document] = [*labelled.train, *(each for test in labelled.tests.values() for each in test)]
    speakers = {text_key(row.text): row.label for row in rows}
    found = Counter(speakers[text_key(row.text)] for row in read(data, "lm").train if text_key(row.text) in speakers)
    return {str(label): found[label] for label in sorted(set(speakers.values()))}
