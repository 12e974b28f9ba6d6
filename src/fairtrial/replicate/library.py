"""The library: what the reports publish and claim, and the studies that retry it, out of the package's files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.names import near
from fairtrial.study.design import Study, Variant
from fairtrial.study.file import load_study, study_from

HERE = Path(__file__).parent
REPORTS = ("r0", "r1", "r2", "r3", "r4")
FINE_TUNING = "sst2"  # takes about an hour on two cores, so it is run on request


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
    other_data: bool = False  # the report's own are not at hand


@dataclass(frozen=True)
class Count:
    """A published number of parameters."""

    report: str
    study: str
    value: int
    counts: str


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
    one_rate: str = ""  # the study in which all optimizers have one learning rate, as in the report
    set: str = ""
    label: str = ""

    @property
    def needs(self) -> list[tuple[str, str]]:
        """(study, variant) of all that decides it."""
        found = [(self.study, self.variant), (self.study, self.against), (self.study, self.as_coded)]
        if self.one_rate:
            found += [(self.one_rate, self.variant), (self.one_rate, self.against)]
        return [(study, name) for study, name in found if name]


@cache
def published() -> dict[str, Any]:
    return tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))


def figures() -> list[Figure]:
    facts = published()
    found = []
    for measure in ("accuracy", "window_perplexity", "sentence_perplexity"):
        for row in facts[measure]:
            for name, value in row["values"].items():
                found.append(
                    Figure(
                        row["report"],
                        row["study"],
                        row.get("variant", name),
                        row.get("set", name),
                        measure.replace("_", " "),
                        value,
                        row.get("picked_on_test", False),
                        row.get("other_data", False),
                    )
                )
    return found


def counts() -> list[Count]:
    return [Count(**row) for row in published()["parameters"]]


@cache
def claims() -> tuple[Claim, ...]:
    table = tomllib.loads((HERE / "claims.toml").read_text(encoding="utf-8"))
    return tuple(Claim(**row) for row in table["claims"])


def chosen_reports(names: list[str]) -> tuple[str, ...]:
    for name in names:
        if name not in REPORTS:
            raise BadInput(
                f"no report is called {name!r}{near(name, list(REPORTS))}", f"there is: {', '.join(REPORTS)}"
            )
    return tuple(name for name in REPORTS if name in names) or REPORTS


@cache
def all_studies() -> dict[str, Study]:
    """The reports' study files, those of one setting as one study, so that no trial is run twice. Named by data and
    task; `-tuned` where each variant searches its learning rate."""
    found: dict[str, Study] = {}
    for path in sorted((HERE / "reports").glob("r*.toml")):
        table = load_study(path)
        source = table.pop("data")
        whole = study_from(table, path)
        for task in whole.tasks:
            key = f"{Path(source).name}-{task}" + ("-tuned" if whole.search else "")
            study = replace(whole, name=key, tasks=(task,))
            found[key] = joined(found[key], study) if key in found else study
    return found


def joined(one: Study, other: Study) -> Study:
    """Two studies of one setting as one."""
    for name in ("tasks", "recipes", "settings", "task_settings", "baseline", "search", "seeds"):
        if getattr(one, name) != getattr(other, name):
            raise BadInput(f"the reports' studies {one.name!r} differ in {name!r}", "give them one setting")
    variants: dict[str, Variant] = {}
    for variant in (*one.variants, *other.variants):
        if variants.setdefault(variant.name, variant) != variant:
            raise BadInput(f"the reports' studies {one.name!r} differ in the variant {variant.name!r}")
    return replace(one, variants=tuple(variants.values()))


def studies_of(reports: tuple[str, ...]) -> dict[str, Study]:
    """What these reports need: the variants of their own study files, and those of their figures and claims."""
    wanted: dict[str, set[str]] = {}
    for report in reports:
        for path in (HERE / "reports").glob(f"{report}*.toml"):
            for study, names in variants_in(path).items():
                wanted.setdefault(study, set()).update(names)
    needs = [need for claim in claims() if claim.report in reports for need in claim.needs]
    needs += [(figure.study, figure.variant) for figure in figures() if figure.report in reports]
    for study, name in needs:
        wanted.setdefault(study, set()).add(name)
    found = {}
    for key, whole in all_studies().items():
        if key in wanted:
            kept = wanted[key] | {whole.baseline}
            found[key] = replace(whole, variants=tuple(each for each in whole.variants if each.name in kept))
    return found


def variants_in(path: Path) -> Mapping[str, list[str]]:
    table = load_study(path)
    tuned = "-tuned" if "search" in table else ""
    return {f"{Path(table['data']).name}-{task}{tuned}": list(table["variants"]) for task in table["tasks"]}
