"""The one figure that a score is known by.

What the judge is given: the outcome of every item for every seed, as plain arrays.

Metrics: how the outcomes of items become numbers that can be compared.

Which test items a verdict rests on: clean ones, where too many stand in train.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.statistics.crossed import linearised, macro_f1_values, summed
from fairtrial.statistics.multiplicity import Look

HEADLINES = {"accuracy": 1, "window_perplexity": -1, "masked_perplexity": -1}  # figure -> whether more is better


def headline(score: Mapping[str, Any]) -> tuple[str, int]:
    """(the figure's name, 1 where more is better and -1 where less is)"""
    return next((name, sign) for name, sign in HEADLINES.items() if name in score)


CLEAN, EXACT, NEAR = 0, 1, 2  # status of a test item: not in train, in train word for word, nearly in train


@dataclass(frozen=True)
class SetOutcomes:
    """One test set: arrays [seed item], named as in a record (`guess`, `label`, `log_p`; `nll`, `tokens`, `bytes`,
    `unknown`)."""

    seeds: tuple[int, ...]
    arrays: dict[str, np.ndarray]

    @property
    def items(self) -> int:
        return int(next(iter(self.arrays.values())).shape[1])

    def __getitem__(self, what: str) -> np.ndarray:
        return self.arrays[what]

    def rows(self, seeds: tuple[int, ...]) -> SetOutcomes:
        """Only these seeds, in this order."""
        places = [self.seeds.index(seed) for seed in seeds]
        return SetOutcomes(seeds, {name: array[places] for name, array in self.arrays.items()})


def stack_outcomes(by_seed: Mapping[int, Mapping[str, np.ndarray]], where: str = "outcomes") -> SetOutcomes:
    """The outcomes of one test set out of several records: `{seed: {"guess": ..., "label": ..., "log_p": ...}}`."""
    seeds = tuple(sorted(by_seed))
    if not seeds:
        raise BadInput(f"{where}: no seed has outcomes", "run the trials first")
    names = list(by_seed[seeds[0]])
    arrays = {}
    for name in names:
        rows = [np.asarray(by_seed[seed][name]) for seed in seeds]
        if len({row.shape for row in rows}) > 1:
            counts = ", ".join(f"seed {seed}: {len(row)}" for seed, row in zip(seeds, rows, strict=True))
            raise BadInput(
                f"{where}: the seeds were not scored on the same items ({counts})", "use one data set for all"
            )
        arrays[name] = np.stack(rows)
    if "label" in arrays and (arrays["label"] != arrays["label"][0]).any():
        raise BadInput(f"{where}: the seeds were not scored on the same items", "use one data.split_seed for all")
    return SetOutcomes(seeds, arrays)


Outcomes = dict[str, dict[str, SetOutcomes]]  # name -> test set -> outcomes


@dataclass(frozen=True, kw_only=True)
class TaskOutcomes:
    """Everything that a verdict on one task depends on. Only the first four are needed."""

    task: str  # its name; what is measured shows in the arrays
    baseline: str  # the variant that the others are compared with
    least_difference: float  # points of accuracy, or nats per token (0.01 is 1% of perplexity)
    variants: Outcomes
    baselines: Outcomes = field(default_factory=dict)  # what a transformer must beat; one row of outcomes is enough
    labels: tuple[str, ...] = ()
    status: dict[str, np.ndarray] = field(default_factory=dict)  # test set -> CLEAN, EXACT or NEAR of each item
    clusters: dict[str, np.ndarray] = field(default_factory=dict)  # test set -> the speech or block of each item
    passports: dict[str, dict[str, Any]] = field(default_factory=dict)  # variant -> level, failed, accepted
    unsound: tuple[str, ...] = ()  # red audits of the data that a clean subset does not repair
    look: Look | None = None  # a look of several; None: the number of seeds was fixed in advance
    # carried through to the verdict file as they are
    cost: dict[str, Any] = field(default_factory=dict)
    peeks: dict[str, Any] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    contamination: dict[str, Any] | None = None
    search: dict[str, Any] | None = None

    @property
    def metric(self) -> str:
        first = next(iter(self.variants[self.baseline].values()))
        return "accuracy" if "guess" in first.arrays else "perplexity"

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(self.variants[self.baseline])

    def stamp(self, variant: str) -> str | None:
        """The red audit of a variant that nobody accepted."""
        passport = self.passports.get(variant, {})
        if passport.get("level") != "red" or passport.get("accepted"):
            return None
        return f"{variant} failed its passport ({', '.join(passport.get('failed', [])) or 'see there'})"

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(name for name in self.variants if name != self.baseline)


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    higher_is_better: bool


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "points", True),
        Metric("macro-F1", "points", True),
        Metric("log loss", "nats per item", False),
        Metric("perplexity", "nats per token", False),
        Metric("bits per byte", "bits per byte", False),
    )
}


@dataclass(frozen=True)
class Sums:
    """What each unit (an item, or a cluster of items) adds to a metric, and its weight: both [seed unit]."""

    values: np.ndarray
    weights: np.ndarray

    def linearised(self) -> np.ndarray:
        return linearised(self.values, self.weights)


def measure(metric: str, outcomes: SetOutcomes, keep: np.ndarray, clusters: np.ndarray | None = None) -> Sums:
    """The kept items of a test set; `keep` [item]. Units without weight (documents of no token) are left out."""
    kept = {name: array[:, keep] for name, array in outcomes.arrays.items()}
    groups = None if clusters is None else clusters[keep]
    if metric == "macro-F1":
        classes = 1 + max(int(outcomes[what].max()) for what in ("label", "guess"))  # the same for all seeds and items
        values = 100 * macro_f1_values(kept["label"], kept["guess"], classes, groups)
        return Sums(values, np.ones_like(values))
    items, weights = _per_item(metric, kept)
    values, weights = summed(items, groups), summed(weights, groups)
    counted = weights.sum(0) > 0
    return Sums(values[:, counted], weights[:, counted])


def _per_item(metric: str, kept: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    if metric == "accuracy":
        right = 100.0 * (kept["guess"] == kept["label"])
        return right, np.ones_like(right)
    if metric == "log loss":
        return -kept["log_p"], np.ones_like(kept["log_p"])
    if metric == "perplexity":
        return kept["nll"], kept["tokens"].astype(float)
    if metric == "bits per byte":
        return kept["nll"] / math.log(2), kept["bytes"].astype(float)
    raise ValueError(f"no metric is called {metric!r}")


TOLERATED = 0.01  # share of contaminated items up to which all items count


def describe_set(status: np.ndarray | None, items: int) -> dict[str, Any]:
    """Counts, the basis of verdicts, and why."""
    if status is None:
        why = "copies in train were not looked for"
        return {"items": items, "exact": None, "near": None, "clean": None, "basis": "all", "basis_why": why}
    exact, near, clean = (int((status == kind).sum()) for kind in (EXACT, NEAR, CLEAN))
    share = (exact + near) / max(1, items)
    basis = "clean" if share > TOLERATED else "all"
    if basis == "clean":
        why = f"{share:.1%} of the test items stand in train, too: the verdict is on the clean ones"
    elif share:
        why = f"{share:.1%} of the test items stand in train, too: few enough to count all"
    else:
        why = "no test item stands in train"
    return {"items": items, "exact": exact, "near": near, "clean": clean, "basis": basis, "basis_why": why}


def contamination_lines(task: TaskOutcomes, sets: dict[str, dict[str, Any]], scores: dict[str, Any]) -> list[str]:
    """Test sets that verdicts do not take whole, and what the copies are worth to the baseline variant."""
    lines = []
    for place, facts in sets.items():
        if facts["basis"] != "clean":
            continue
        copies = facts["exact"] + facts["near"]
        near = f" ({facts['near']} of them nearly)" if facts["near"] else ""
        line = f"on {place}, {copies:,} of {facts['items']:,} items stand in train, too{near}; "
        line += f"verdicts are on the {facts['clean']:,} clean ones"
        shown = scores[task.baseline][place]
        if "clean" in shown and "contaminated" in shown:
            unit = "%" if task.metric == "accuracy" else ""
            told = [f"{shown[basis]['mean']:.1f}{unit}" for basis in ("contaminated", "clean")]
            line += f". {task.baseline} has {task.metric} {told[0]} on the copies and {told[1]} on clean items"
        lines.append(line + ".")
    return lines
