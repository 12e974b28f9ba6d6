"""What the trials of a study say, as arrays and plain values. Knows no torch.

A number of every seed -> its mean and a 95 % interval for new seeds, the test items being what they are.

The comparisons that decide claims: all test sets together, the family corrected as a whole.

The honest twin of a report's study: a part of the training text is held back, the weights are those that do best on
it, and the test sets are scored once. The reports' recipes hold nothing back, so that nothing could be chosen.

Are ours built and trained as published? Parameters counted as a report counts them, and settings field by field.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import mean, stdev
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from fairtrial.analysis import Ledger, ledger
from fairtrial.apps.reports.published import FINE_TUNING, Claim, Count, claims, figures
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record
from fairtrial.statistics import (
    ALPHA,
    Comparison,
    SetOutcomes,
    TaskOutcomes,
    Verdict,
    compare,
    decide,
    describe_set,
    holm,
    least_for,
    may_be_judged,
)
from fairtrial.statistics import describe_difference as in_words
from fairtrial.study import Plan, Settings, Study, gather

ALSO_CALLED = {"obama": "Obama", "wbush": "W. Bush", "hbush": "H. W. Bush"}  # test sets of the embedded corpus
EVERY = "all test sets"


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

    def place(self, name: str) -> str | None:
        """A test set by the name that the reports give it."""
        return next((each for each in (name, ALSO_CALLED.get(name, name)) if each in self.outcomes.sets), None)

    def results(self, variant: str) -> list[dict[str, Any]]:
        return [record.result for record in self.records[variant].values()]

    def findings(self, variant: str) -> list[dict[str, Any]]:
        """What the passport found, check by check."""
        found: list[dict[str, Any]] = self.plan.home.read(self.plan.home.passport(self.task, variant)).get(
            "findings", []
        )
        return found

    def status(self) -> np.ndarray | None:
        """Of all items of all test sets, in order."""
        known = [self.outcomes.status.get(place) for place in self.outcomes.sets]
        if any(each is None for each in known):
            return None
        return np.concatenate([each for each in known if each is not None])

    def basis(self) -> dict[str, Any]:
        """Which items verdicts are on, and how many stand in train."""
        return describe_set(self.status(), self.pooled(self.outcomes.baseline).items)

    def pooled(self, variant: str) -> SetOutcomes:
        """All test sets as one: a claim about speeches is not a claim about one speaker."""
        sets = [self.outcomes.variants[variant][place] for place in self.outcomes.sets]
        arrays = {name: np.concatenate([each[name] for each in sets], axis=1) for name in sets[0].arrays}
        return SetOutcomes(sets[0].seeds, arrays)

    def clusters(self) -> np.ndarray | None:
        """Groups of items that belong together, over all test sets."""
        if not self.outcomes.clusters:
            return None
        found, start = [], 0
        for place in self.outcomes.sets:
            items = self.outcomes.variants[self.outcomes.baseline][place].items
            own = self.outcomes.clusters.get(place, np.arange(items))
            found.append(own + start)
            start += int(own.max()) + 1
        return np.concatenate(found)

    def marks(self, variant: str) -> dict[str, str]:
        """Fingerprints of a variant's recipe and of all its trained weights."""
        records = self.records[variant].values()
        weights = hashlib.sha256("".join(record.result["model_sha256"] for record in records).encode()).hexdigest()
        codes = sorted({record.trial["code"] for record in records})
        return {
            "recipe": fingerprint(self.plan.recipes[self.task][variant]),
            "weights": weights[:16],
            "code": ", ".join(codes),
        }


def collect(plan: Plan) -> Evidence:
    """The evidence of a study of one task that has been run."""
    (task,) = plan.recipes
    return Evidence(plan, task, gather(plan, task), plan.finished(task))


FEWEST = 5


class Mean(NamedTuple):
    value: float
    low: float
    high: float
    seeds: int

    def says(self, smaller: float, *, trifle: float = 0.0) -> str:
        """`holds` if the mean is clearly below `smaller`; `does not hold` if clearly above, or apart by a trifle."""
        if self.seeds < FEWEST or math.isnan(self.low):
            return "cannot be told"
        if self.high < smaller:
            return "holds"
        if self.low > smaller or (smaller - trifle < self.low and self.high < smaller + trifle):
            return "does not hold"
        return "cannot be told"


def mean_of(values: Sequence[float]) -> Mean:
    count = len(values)
    if count < 2:
        return Mean(mean(values) if values else math.nan, math.nan, math.nan, count)
    half = float(stdtrit(count - 1, 0.975)) * stdev(values) / math.sqrt(count)
    return Mean(mean(values), mean(values) - half, mean(values) + half, count)


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
        if comparison.test is None:
            return None
        values = (comparison.test.difference, *comparison.test.interval())
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
    return replace(found, not_comparable_because=(*(stamp for stamp in stamps if stamp), *found.not_comparable_because))


def decide_all(claims: Sequence[Claim], evidences: Mapping[str, Evidence]) -> dict[tuple[str, str], Decided]:
    """Claim id and study -> what the comparison says. Holm's correction is over all comparisons of the page."""
    made: dict[tuple[str, str], Comparison] = {}
    for claim in claims:
        for study in claim.studies if claim.rule in DECIDED_BY_COMPARISON else ():
            evidence = evidences.get(study)
            if evidence and evidence.has(claim.variant, claim.against):
                made[claim.id, study] = compare_two(evidence, claim.variant, claim.against, evidence.basis()["basis"])
    family = {key: each.test.p for key, each in made.items() if may_be_judged(each) and each.test is not None}
    adjusted = dict(zip(family, holm(list(family.values())), strict=True))
    decided = {}
    for (name, study), comparison in made.items():
        evidence = evidences[study]
        least = least_for(comparison, evidence.outcomes.least_difference, evidence.pooled(comparison.against))
        on_all = None
        if comparison.subset != "all":
            on_all = compare_two(evidence, comparison.variant, comparison.against, "all")
        p = adjusted.get((name, study))
        decided[name, study] = Decided(comparison, decide(comparison, p, ALPHA, least), p, on_all)
    return decided


CHOSEN = "-chosen"  # behind the name of the study whose twin it is
HOLD_BACK: Settings = {"data.validation": 0.1, "training.keep": "best", "scoring.watch_test": False}
# the course's language models train for 500 steps, which are two epochs and a half
EVERY_FEW_STEPS: Settings = {"training.select_every": "50 steps"}


def with_twins(studies: Mapping[str, Study]) -> dict[str, Study]:
    """Each study and, where it holds nothing back, its twin."""
    found = dict(studies)
    for key, study in studies.items():
        if not key.startswith(FINE_TUNING):  # these data bring a validation set
            found[key + CHOSEN] = twin(key, study)
    return found


def twin(key: str, study: Study) -> Study:
    """Without the reports' faulty code: a cheat has no honest figure."""
    flawed = {claim.as_coded for claim in claims()}
    asked = {name for claim in claims() for each, name in claim.needs if each == key}
    asked |= {figure.variant for figure in figures() if figure.study == key} | {study.baseline}
    return replace(
        study,
        name=key + CHOSEN,
        settings={**study.settings, **HOLD_BACK, **(EVERY_FEW_STEPS if "lm" in study.tasks else {})},
        variants=tuple(each for each in study.variants if each.name in asked - flawed),
    )


def apart(evidences: Mapping[str, Evidence]) -> tuple[dict[str, Evidence], dict[str, Evidence]]:
    """The reports' own studies, and their twins by the same names."""
    own = {key: each for key, each in evidences.items() if not key.endswith(CHOSEN)}
    return own, {key.removesuffix(CHOSEN): each for key, each in evidences.items() if key.endswith(CHOSEN)}


def chosen_words(claim: Claim, twins: Mapping[str, Evidence]) -> str:
    """What the twin says of a comparison, beside the verdict: it is one more look, and is not corrected for."""
    evidence = twins.get(claim.study)
    if claim.rule not in DECIDED_BY_COMPARISON or not (evidence and evidence.has(claim.variant, claim.against)):
        return ""
    found = compare_two(evidence, claim.variant, claim.against, evidence.basis()["basis"])
    return f"With a tenth of the training text held back and the weights chosen on it: {in_words(found)}."


KNOWN_BY_RECORDS: dict[str, Callable[[dict[str, Any]], int]] = {
    "vocabulary": lambda trial: int(trial["vocabulary"]),
    "classes": lambda trial: len(trial["labels"]),
    "training sentences": lambda trial: int(trial["documents"]["train"]),
}


def our_setting(name: str, evidence: Evidence) -> Any:
    """A recipe's field by its dotted name, or what the records tell."""
    record = next(iter(evidence.records[evidence.outcomes.baseline].values()))
    if name in KNOWN_BY_RECORDS:
        return KNOWN_BY_RECORDS[name](record.trial)
    return reduce(getattr, name.split("."), record.recipe)


def our_count(count: Count, evidence: Evidence) -> int:
    """Parameters of the study's baseline, counted as the report does."""
    record = next(iter(evidence.records[evidence.outcomes.baseline].values()))
    trial = record.trial
    return WAYS[count.counted](ledger(record.recipe, trial["vocabulary"], len(trial["labels"])), record.recipe)


def of(book: Ledger, component: str) -> int:
    """Matrices of all components whose names begin so."""
    return sum(row.bias_free for row in book.rows if row.component.startswith(component))


WAYS: dict[str, Callable[[Ledger, Recipe], int]] = {
    "everything": lambda book, recipe: book.total,
    "matrices": lambda book, recipe: book.bias_free,
    "token embedding": lambda book, recipe: of(book, "token embedding"),
    "attention matrices of one layer": lambda book, recipe: of(book, "attention") // recipe.shape.layers,
    "feed-forward matrices of one layer": lambda book, recipe: of(book, "feed-forward") // recipe.shape.layers,
    "all but the classifier": lambda book, recipe: (
        book.total - sum(row.count for row in book.rows if row.component == "classifier")
    ),
}
