"""The library: what the reports claim, and the studies that retry it, out of the package's files."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.names import near
from fairtrial.replicate.facts import figures
from fairtrial.study.design import Study, Variant
from fairtrial.study.file import load_study, study_from

HERE = Path(__file__).parent
REPORTS = ("r0", "r1", "r2", "r3", "r4")
FINE_TUNING = "sst2"  # takes about an hour on two cores, so it is run on request


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
    reconstructed: bool = False  # that code is not at hand; the variant shows the symptoms which the report tells of
    one_rate: str = ""  # the study in which all optimizers have one learning rate, as in the report
    setting: str = ""  # the report's own, where ours is another
    set: str = ""
    label: str = ""

    @property
    def studies(self) -> tuple[str, ...]:
        """Those in which it is decided: where optimizers are compared, at one learning rate, too."""
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
