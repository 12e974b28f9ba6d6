"""The facts: every number that the reports publish, what they claim, and the studies that retry it, from the package's
files. And whether a printed accuracy is possible at all (Brown and Heathers 2017,
https://doi.org/10.1177/1948550616673876)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.recipe import Duration
from fairtrial.registry import did_you_mean
from fairtrial.study import Study, load_study, study_from

HERE = Path(__file__).parent
REPORTS = ("r0", "r1", "r2", "r3", "r4")
FINE_TUNING = "sst2"  # takes about an hour on two cores, so it is run on request
MEASURES = ("accuracy", "window_perplexity", "sentence_perplexity", "sentence_loss")


@dataclass(frozen=True)
class Figure:
    """One published number, and what we train for it."""

    report: str
    study: str
    variant: str
    set: str  # a test set, or `train`
    measure: str
    value: float
    picked_on_test: bool = False
    other_data: bool = False  # the report's own data are not available
    note: str = ""  # what the report says about this run alone
    at: Duration | None = None  # how far training had come; None: at its end, or at the best moment on test
    in_curve: bool = False  # one point of several


@dataclass(frozen=True)
class Count:
    """A published number of parameters."""

    report: str
    study: str
    counted: str  # which of them
    value: int
    why: str = ""  # why ours differ


@dataclass(frozen=True)
class Published:
    """Published settings of a study's models and their training."""

    report: str
    study: str
    values: Mapping[str, Any]  # a field of a recipe or a fact of our records -> number
    why: Mapping[str, str] = field(default_factory=dict)  # why ours differ


@dataclass(frozen=True)
class Aside:
    """Published, and not retried."""

    report: str
    what: str
    values: Mapping[str, Any]
    why: str
    beside: list[str] | None = None  # study and variant of another model that may stand beside it


@cache
def published() -> dict[str, Any]:
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def figures() -> list[Figure]:
    return [*_single(), *_curves()]


def _single() -> list[Figure]:
    """Each number; and once more beside the report's own code, where that is another variant."""
    found, as_coded = [], published()["as_coded"]
    for measure in MEASURES:
        for row in published()[measure]:
            for name, value in row["values"].items():
                facts = {field: row[field] for field in ("picked_on_test", "other_data", "note") if field in row}
                at = Duration.read(row["at"]) if "at" in row else None
                what = (row.get("variant", name), row.get("set", name), measure.replace("_", " "), value)
                found.append(Figure(row["report"], row["study"], *what, at=at, **facts))
                if coded := as_coded.get(row["report"], {}).get(found[-1].variant):
                    found.append(replace(found[-1], variant=coded))
    return found


def _curves() -> list[Figure]:
    found = []
    for row in published()["curves"]:
        every = Duration.read(row["every"])
        for place, values in row["values"].items():
            for number, value in enumerate(values, row["first"]):
                at = Duration(number * every.count, every.unit)
                what = (row["report"], row["study"], row["variant"], place, row["measure"], value)
                found.append(Figure(*what, at=at, in_curve=True))
    return found


def counts() -> list[Count]:
    return [Count(**row) for row in published()["parameters"]]


def settings() -> list[Published]:
    return [Published(**row) for row in published()["settings"]]


def asides() -> list[Aside]:
    return [Aside(**row) for row in published()["not_retried"]]


def nearest_right(printed: str, items: int) -> tuple[int, str] | None:
    """The number of right answers that prints as this percentage, rounded or cut off. None: no number does."""
    value = Decimal(printed)
    step = Decimal(1).scaleb(int(value.as_tuple().exponent))
    about = float(value) * items / 100
    for right in (math.floor(about), math.ceil(about)):
        exact = Decimal(100) * right / items
        for way, how in ((ROUND_HALF_UP, "rounded"), (ROUND_DOWN, "cut off")):
            if exact.quantize(step, way) == value:
                return right, how
    return None


def explain_accuracy(printed: str, items: int) -> str:
    found = nearest_right(printed, items)
    if found is None:
        below = math.floor(float(printed) * items / 100)
        near = " and ".join(f"{100 * right / items:.3f}" for right in (below, below + 1))
        return f"impossible with {items} items; the nearest are {near}"
    right, how = found
    return f"{right} of {items}, {how}"


@dataclass(frozen=True)
class Claim:
    id: str
    report: str
    says: str
    rule: str
    study: str
    variant: str
    against: str = ""
    as_coded: str = ""  # the variant that repeats the report's own code
    reconstructed: bool = False  # that code is not available; the variant shows the symptoms that the report describes
    one_rate: str = ""  # the study in which all optimizers share one learning rate, as in the report
    setting: str = ""  # the report's own, where ours is another
    set: str = ""
    label: str = ""

    @property
    def studies(self) -> tuple[str, ...]:
        """Those that decide it; optimizers are also compared at one learning rate."""
        return (self.study, self.one_rate) if self.one_rate else (self.study,)

    @property
    def needs(self) -> list[tuple[str, str]]:
        """(study, variant) of all that decides it."""
        names = (self.variant, self.against, self.as_coded)
        return [(study, name) for study in self.studies for name in names if name]


@cache
def claims() -> tuple[Claim, ...]:
    table = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    return tuple(Claim(**row) for row in table["claims"])


def chosen_reports(names: list[str]) -> tuple[str, ...]:
    for name in names:
        if name not in REPORTS:
            what = f"no report is called {name!r}{did_you_mean(name, list(REPORTS))}"
            raise BadInput(what, f"the reports are {', '.join(REPORTS)}")
    return tuple(name for name in REPORTS if name in names) or REPORTS


@cache
def studies_in(path: Path) -> dict[str, Study]:
    """A file's studies, one for each task, named by data and task; `-tuned` where learning rates are searched."""
    table = load_study(path)
    source = Path(table.pop("data")).name
    both = study_from(table)
    names = {task: f"{source}-{task}" + ("-tuned" if both.search else "") for task in both.tasks}
    return {name: replace(both, name=name, tasks=(task,)) for task, name in names.items()}


@cache
def all_studies() -> dict[str, Study]:
    """The reports' studies, joined where they share a setting, so that no trial is run twice."""
    found: dict[str, Study] = {}
    for path in sorted((HERE / "studies").glob("r*.toml")):
        for key, study in studies_in(path).items():
            before = found.get(key, study)
            variants = {variant.name: variant for variant in (*before.variants, *study.variants)}
            found[key] = replace(before, variants=tuple(variants.values()))
    return found


def studies_of(reports: tuple[str, ...]) -> dict[str, Study]:
    """What these reports need: the variants of their own study files, and those of their figures and claims."""
    needs = [need for claim in claims() if claim.report in reports for need in claim.needs]
    needs += [(figure.study, figure.variant) for figure in figures() if figure.report in reports]
    for path in [path for report in reports for path in (HERE / "studies").glob(f"{report}*.toml")]:
        needs += [(key, variant.name) for key, study in studies_in(path).items() for variant in study.variants]
    found = {}
    for key, study in all_studies().items():
        names = {name for other, name in needs if other == key}
        if names:
            chosen = tuple(each for each in study.variants if each.name in names | {study.baseline})
            found[key] = replace(study, variants=chosen)
    return found
