"""What the trials of a study say, as arrays and plain values: outcomes, comparisons, parameter counts.

Knows no torch. Every study of a report has a sound counterpart: part of the training text is held back, the weights are
those that do best on it, and the test sets are scored once. The reports' recipes hold nothing back."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from fairtrial.analysis import ledger
from fairtrial.apps.reports.published import FINE_TUNING, Claim, claims, figures
from fairtrial.recipe import fingerprint
from fairtrial.record import Record
from fairtrial.statistics import (
    ALPHA,
    Comparison,
    SetOutcomes,
    TaskOutcomes,
    Verdict,
    compare,
    decide_family,
    describe_set,
    least_for,
)
from fairtrial.statistics import describe_difference as in_words
from fairtrial.study import Plan, Settings, Study, gather

ALSO_CALLED = {"obama": "Obama", "wbush": "W. Bush", "hbush": "H. W. Bush"}  # test sets of the embedded corpus
FEWEST_SEEDS = 5
DECIDED_BY_COMPARISON = ("better", "worse", "same")
CHOSEN = "-chosen"  # suffix of a study whose weights are chosen on validation
HOLD_BACK: Settings = {"data.validation": 0.1, "training.keep": "best", "scoring.watch_test": False}
# language models train for 500 steps, which is two and a half epochs
EVERY_FEW_STEPS: Settings = {"training.select_every": "50 steps"}


@dataclass(frozen=True)
class Evidence:
    plan: Plan
    task: str
    outcomes: TaskOutcomes
    records: Mapping[str, Mapping[int, Record]]  # variant -> seed -> record

    @property
    def folder(self) -> str:
        return self.plan.home.path.name

    def has(self, *variants: str) -> bool:
        return all(name in self.outcomes.variants for name in variants)

    def test_set(self, name: str) -> str | None:
        """A test set by the name that the reports give it."""
        return next((known for known in (name, ALSO_CALLED.get(name, name)) if known in self.outcomes.sets), None)

    def first(self, variant: str) -> Record:
        return next(iter(self.records[variant].values()))

    def results(self, variant: str) -> list[dict[str, Any]]:
        return [record.result for record in self.records[variant].values()]

    def red_checks(self, variant: str) -> list[str]:
        """The checks of the passport that failed and make a score worthless."""
        findings = self.plan.home.read_passport(self.task, variant).get("findings", [])
        return [each["id"] for each in findings if each["level"] == "red" and each["verdict"] == "FAIL"]

    def status(self) -> np.ndarray | None:
        """Which items are copies, over all test sets in order; None where that is not known of every set."""
        known = [status for name in self.outcomes.sets if (status := self.outcomes.status.get(name)) is not None]
        return np.concatenate(known) if len(known) == len(self.outcomes.sets) else None

    def keep(self) -> np.ndarray:
        """The items that verdicts are on: the clean ones where there are enough of them."""
        status, items = self.status(), self.pooled(self.outcomes.baseline).items
        return np.ones(items, bool) if status is None or self.subset == "all" else status == 0

    @property
    def subset(self) -> str:
        """all, or clean: which items verdicts are on."""
        return str(self.copies()["basis"])

    def copies(self) -> dict[str, Any]:
        """Which items verdicts are on, and how many also occur in the training set."""
        return describe_set(self.status(), self.pooled(self.outcomes.baseline).items)

    def pooled(self, variant: str) -> SetOutcomes:
        """All test sets as one: a claim about speeches is not a claim about one speaker."""
        sets = [self.outcomes.variants[variant][name] for name in self.outcomes.sets]
        arrays = {name: np.concatenate([each[name] for each in sets], axis=1) for name in sets[0].arrays}
        return SetOutcomes(sets[0].seeds, arrays)

    def clusters(self) -> np.ndarray | None:
        """Groups of items that belong together, over all test sets."""
        if not self.outcomes.clusters:
            return None
        found, start = [], 0
        for name in self.outcomes.sets:
            items = self.outcomes.variants[self.outcomes.baseline][name].items
            own = self.outcomes.clusters.get(name, np.arange(items))
            found.append(own + start)
            start += int(own.max()) + 1
        return np.concatenate(found)

    def fingerprints(self, variant: str) -> dict[str, str]:
        """Fingerprints of a variant's recipe and of all its trained weights."""
        records = self.records[variant].values()
        weights = hashlib.sha256("".join(record.result["model_sha256"] for record in records).encode()).hexdigest()
        code = ", ".join(sorted({record.trial["code"] for record in records}))
        return {"recipe": fingerprint(self.plan.recipes[self.task][variant]), "weights": weights[:16], "code": code}


def collect(plan: Plan) -> Evidence:
    """The evidence of a study of one task that has been run."""
    (task,) = plan.recipes
    return Evidence(plan, task, gather(plan, task), plan.finished(task))


class Mean(NamedTuple):
    """Over seeds, with a 95% interval for new seeds."""

    value: float
    low: float
    high: float
    seeds: int

    def is_negative(self, *, negligible: float = 0.0) -> str:
        """`holds` if clearly below zero; `does not hold` if clearly above, or closer to zero than matters."""
        if self.seeds < FEWEST_SEEDS or math.isnan(self.low):
            return "inconclusive"
        if self.high < 0:
            return "holds"
        if self.low > 0 or (-negligible < self.low and self.high < negligible):
            return "does not hold"
        return "inconclusive"


def mean_of(values: Sequence[float]) -> Mean:
    count = len(values)
    if count < 2:
        return Mean(mean(values) if values else math.nan, math.nan, math.nan, count)
    return Mean(mean(values), *t_interval(values, math.sqrt(1 / count)), count)


def t_interval(values: Sequence[float], factor: float) -> tuple[float, float]:
    """Mean -+ t x standard deviation x factor (95%)."""
    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) * factor
    return mean(values) - half, mean(values) + half


@dataclass(frozen=True)
class Decided:
    comparison: Comparison  # on the items that verdicts are on
    verdict: Verdict
    p_adjusted: float | None
    on_all: Comparison | None  # on all items, where verdicts are on clean ones

    @property
    def unit(self) -> str:
        return "% perplexity" if self.comparison.metric.name == "perplexity" else f" {self.comparison.metric.unit}"

    def shown(self) -> tuple[float, float, float] | None:
        """Difference and interval: points, or the change of perplexity in per cent."""
        comparison = self.comparison
        if comparison.test is None:
            return None
        values = (comparison.test.difference, *comparison.test.interval())
        if comparison.metric.name != "perplexity":
            return values
        first, low, high = (100 * math.expm1(min(700.0, value)) for value in values)
        return first, low, high


def compare_two(evidence: Evidence, variant: str, against: str, subset: str) -> Comparison:
    outcomes = (evidence.pooled(variant), evidence.pooled(against))
    keep = np.ones(outcomes[0].items, bool) if subset == "all" else evidence.keep()
    names = (variant, against, "all test sets", subset)
    found = compare(names, evidence.outcomes.metric, outcomes, keep, evidence.clusters())
    stamps = [evidence.outcomes.stamp(name) for name in (variant, against)]
    return replace(found, not_comparable_because=(*(stamp for stamp in stamps if stamp), *found.not_comparable_because))


def decide_all(claims: Sequence[Claim], evidences: Mapping[str, Evidence]) -> dict[tuple[str, str], Decided]:
    """Claim id and study -> what the comparison says. Holm's correction is over all comparisons of the page."""
    made: dict[tuple[str, str], Comparison] = {}
    for claim in claims:
        for study in claim.studies if claim.rule in DECIDED_BY_COMPARISON else ():
            evidence = evidences.get(study)
            if evidence and evidence.has(claim.variant, claim.against):
                made[claim.id, study] = compare_two(evidence, claim.variant, claim.against, evidence.subset)
    limits = [
        least_for(each.metric.name, evidences[study].outcomes.least_difference, evidences[study].pooled(each.against))
        for (_, study), each in made.items()
    ]
    decided = {}
    for key, judged in zip(made, decide_family(list(made.values()), limits, ALPHA), strict=True):
        comparison = made[key]
        variant, against = comparison.variant, comparison.against
        on_all = None if comparison.subset == "all" else compare_two(evidences[key[1]], variant, against, "all")
        decided[key] = Decided(comparison, judged.verdict, judged.p_adjusted, on_all)
    return decided


def with_validated(studies: Mapping[str, Study]) -> dict[str, Study]:
    """Each study and, where it holds nothing back, the same with weights chosen on validation; that without the
    reports' faulty code, whose figures mean nothing however they are measured."""
    found, flawed = dict(studies), {claim.as_coded for claim in claims()}
    for key, study in studies.items():
        if key.startswith(FINE_TUNING):  # these data have a validation set
            continue
        needed = {name for claim in claims() for other, name in claim.needs if other == key} | {study.baseline}
        needed |= {figure.variant for figure in figures() if figure.study == key}
        settings = {**study.settings, **HOLD_BACK, **(EVERY_FEW_STEPS if "lm" in study.tasks else {})}
        variants = tuple(variant for variant in study.variants if variant.name in needed - flawed)
        found[key + CHOSEN] = replace(study, name=key + CHOSEN, settings=settings, variants=variants)
    return found


def describe_validated(claim: Claim, validated: Mapping[str, Evidence]) -> str:
    """What weights chosen on validation say about a comparison: one more look, not corrected for."""
    evidence = validated.get(claim.study)
    if claim.rule not in DECIDED_BY_COMPARISON or not (evidence and evidence.has(claim.variant, claim.against)):
        return ""
    found = compare_two(evidence, claim.variant, claim.against, evidence.subset)
    return f"With a tenth of the training text held back and the weights chosen on it: {in_words(found)}."


def our_setting(name: str, evidence: Evidence) -> Any:
    """A recipe's field by its dotted name, or a fact from the records."""
    record = evidence.first(evidence.outcomes.baseline)
    trial = record.trial
    facts = {"vocabulary": trial["vocabulary"], "classes": len(trial["labels"])}
    facts |= {"training sentences": trial["documents"]["train"]}
    return facts[name] if name in facts else reduce(getattr, name.split("."), record.recipe)


def our_counts(evidence: Evidence) -> dict[str, int]:
    """Parameters of the study's baseline, in each way that a report counts."""
    record = evidence.first(evidence.outcomes.baseline)
    book = ledger(record.recipe, record.trial["vocabulary"], len(record.trial["labels"]))

    def matrices(component: str) -> int:
        """Of all components whose names begin so."""
        return sum(row.bias_free for row in book.rows if row.component.startswith(component))

    return {
        "everything": book.total,
        "matrices": book.bias_free,
        "token embedding": matrices("token embedding"),
        "attention matrices of one layer": matrices("attention") // record.recipe.shape.layers,
        "feed-forward matrices of one layer": matrices("feed-forward") // record.recipe.shape.layers,
        "all but the classifier": sum(row.count for row in book.rows if row.component != "classifier"),
    }
