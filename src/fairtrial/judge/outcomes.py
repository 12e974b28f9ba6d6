"""What the judge is given: the outcome of every item for every seed, as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.judge.looks import Look

CLEAN, EXACT, NEAR = 0, 1, 2  # status of a test item: not in train, in train word for word, nearly in train


@dataclass(frozen=True)
class SetOutcomes:
    """One test set: arrays [seed item], named as in a record (`guess`, `label`, `log_p`; `nats`, `tokens`, `bytes`,
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
