"""What the trials of a study say, as arrays and plain values. Knows no torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairtrial.judge.basis import describe_set
from fairtrial.judge.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.recipe_file import fingerprint
from fairtrial.record import Record
from fairtrial.study.beside import passport_path, read_json
from fairtrial.study.gather import finished, gather
from fairtrial.study.plan import Plan

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
        return self.plan.folder.name

    def has(self, *variants: str) -> bool:
        return all(name in self.outcomes.variants for name in variants)

    def place(self, name: str) -> str | None:
        """A test set by the name that the reports give it."""
        return next((each for each in (name, ALSO_CALLED.get(name, name)) if each in self.outcomes.sets), None)

    def results(self, variant: str) -> list[dict[str, Any]]:
        return [record.result for record in self.records[variant].values()]

    def findings(self, variant: str) -> list[dict[str, Any]]:
        """What the passport found, check by check."""
        found: list[dict[str, Any]] = read_json(passport_path(self.plan, self.task, variant)).get("findings", [])
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
    return Evidence(plan, task, gather(plan, task), finished(plan, task))
