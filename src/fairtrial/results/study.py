"""A study's folder: its verdict as JSON, its files read for showing, and the finished study of the API."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fairtrial.description import Description, Result
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput, FairtrialError
from fairtrial.recipe import PROBES
from fairtrial.record import RESULT, Record
from fairtrial.results.records import plan_lines
from fairtrial.results.values import Verdict
from fairtrial.stored import (
    PlanSummary,
    StoredPlan,
    TrialInfo,
    read_document,
    read_plain,
    write_document,
)
from fairtrial.typed import WrongValue, structure, unstructure

if TYPE_CHECKING:
    from fairtrial.results.outcomes import Outcomes
    from fairtrial.run import Run

T = TypeVar("T")
VERSION = 3  # of what verdict.json holds
AGAIN = "write it again with `fairtrial study STUDY`"
HINT = "a study is a folder that `fairtrial study` wrote"


def to_json(verdict: Verdict) -> dict[str, object]:
    """Plain values, as verdict.json holds them."""
    plain = unstructure(verdict)
    assert isinstance(plain, dict)
    return {"version": VERSION, **plain}


def from_json(plain: Mapping[str, object], where: Path | str = "the verdict") -> Verdict:
    """Refused where a value is missing, unknown or of another type."""
    from fairtrial.legacy import verdict_of_0_2

    known = {name: value for name, value in plain.items() if name not in ("version", "format")}
    try:
        if "version" not in plain:
            return verdict_of_0_2(known)
        if plain["version"] != VERSION:
            raise BadInput(
                f"{where} has version {plain['version']!r}; this fairtrial reads {VERSION}", "update fairtrial"
            )
        return structure(Verdict, _finite(known))
    except WrongValue as error:
        raise BadInput(f"{where} is damaged at {error}", AGAIN) from error


def _finite(value: object) -> object:
    """NaN and infinities mean unknown, as null does: they must not reach a sentence or a page."""
    if isinstance(value, dict):
        return {name: _finite(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_verdict(path: Path) -> Verdict:
    return from_json(read_plain(path, AGAIN), path)


def is_of_0_2(path: Path) -> bool:
    """Whether a file was written by version 0.2.0, which stored less."""
    return "version" not in read_plain(path, AGAIN)


def write_verdict(path: Path, verdict: Verdict) -> None:
    write_document(path, to_json(verdict))


@dataclass(frozen=True)
class StudyFiles:
    folder: Path
    given: Verdict | None = None  # a verdict on results from elsewhere, which have no folder

    @classmethod
    def open(cls, folder: Path) -> StudyFiles:
        if not folder.is_dir():
            raise BadInput(f"{folder} {'is not a folder' if folder.exists() else 'does not exist'}", HINT)
        if (folder / "trial.json").is_file() and not (folder / "verdict.json").exists():
            hint = f"look at it with: fairtrial show {folder}"
            raise BadInput(f"{folder} is the record of one trial, not a study", hint)
        if not (folder / "verdict.json").is_file():
            unfinished = (folder / "plan.json").is_file() or (folder / "study.toml").is_file()
            what = "has no verdict yet" if unfinished else "is not a study (it has no verdict.json)"
            raise BadInput(f"{folder} {what}", f"continue with: fairtrial study {folder}" if unfinished else HINT)
        return cls(folder)

    @cached_property
    def verdict(self) -> Verdict:
        return read_verdict(self.inside("verdict.json")) if self.given is None else self.given

    @cached_property
    def plan(self) -> StoredPlan:
        return self.read("plan.json", StoredPlan) or StoredPlan()

    @cached_property
    def study_text(self) -> str:
        if self.given is not None:
            return ""
        path = self.inside("study.toml")
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    @cached_property
    def records(self) -> dict[str, dict[str, list[Record]]]:
        """Records by task and variant, in the order of seeds; folders that are not records yet are left out."""
        found: dict[str, dict[str, list[Record]]] = {}
        if self.given is not None:
            return found
        try:
            for path in [place := self.inside("trials"), *place.glob("*"), *place.glob("*/*")]:
                if path.is_dir():
                    os.listdir(path)  # glob takes a folder that may not be read for an empty one
        except OSError as error:
            raise BadInput(f"{error.filename} cannot be read ({error.strerror})") from error
        for path in sorted(place.glob("*/*/seed-*"), key=seed_in):
            if (path / "trial.json").is_file():
                task, variant = path.parts[-3:-1]
                record = Record.open(self.inside(path.relative_to(self.folder).as_posix()))
                found.setdefault(task, {}).setdefault(variant, []).append(record)
        return found

    def check_unchanged(self) -> None:
        """What is told of a study rests on its trials: none may have been changed, moved, exchanged or removed since.
        Weights, of which nothing is told, are checked where they are read."""
        again = f"restore it, or judge again: fairtrial study {self.folder}"
        for task, variants in self.records.items():
            for record in (one for found in variants.values() for one in found):
                record.check_unchanged(weights=False)
                if (record.recipe.task, f"seed-{record.trial.seed}") != (PROBES.get(task, task), record.folder.name):
                    own = f"the record of {record.recipe.task}, seed {record.trial.seed}"
                    raise BadInput(f"{record.folder} holds {own}", again)
        if self.records and not self.inside("plan.json").is_file():
            raise BadInput(f"{self.folder / 'plan.json'} is missing", again)
        # of its plan only this: one of version 0.2 has another form, and no such list
        judged = read_plain(self.inside("plan.json"), HINT).get("records", {}) if self.records else {}
        if not isinstance(judged, dict):
            raise BadInput(f"{self.folder / 'plan.json'} is damaged at records", again)
        for name, digest in judged.items():
            path = self.inside(name) / RESULT
            if not path.is_file() or sha256_of(path) != digest:
                problem = "is not the result that was judged here" if path.is_file() else "is missing"
                raise BadInput(f"{path} {problem}", again)

    def trials(self) -> Iterator[TrialInfo]:
        """The facts of every trial."""
        return (one.trial for variants in self.records.values() for found in variants.values() for one in found)

    def inside(self, name: str) -> Path:
        """A path below the folder; a symlink could lead out of it."""
        path = self.folder
        for part in Path(name).parts:
            path = path / part
            if part == ".." or path.is_symlink():
                raise BadInput(f"{path} is a symlink; a study holds plain files only", HINT)
        return path

    def read(self, name: str, kind: type[T]) -> T | None:
        """None where there is no such file."""
        if self.given is not None:
            return None
        path = self.inside(name)
        return read_document(path, kind, HINT) if path.exists() else None


def seed_in(path: Path) -> tuple[str, int, str]:
    number = path.name.removeprefix("seed-")
    return str(path.parent), int(number) if number.isdecimal() else 0, path.name


@dataclass(frozen=True, repr=False)
class Study(Result):
    """A finished study: its folder, its verdict, its trials.

    >>> finished.run("learned", seed=3).seed
    3
    """

    folder: Path
    plan: PlanSummary | None = field(default=None, repr=False)  # what was about to be run, if it just was
    notices: tuple[str, ...] = ()  # what a user should know of how it went
    judged: Verdict | None = field(default=None, repr=False)  # the verdict, if it was just given
    jobs: tuple[str, ...] = field(default=(), repr=False)  # commands of missing trials, if they were asked for

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))  # a user may give it as text

    @cached_property
    def files(self) -> StudyFiles:
        return StudyFiles.open(self.folder)

    @cached_property
    def verdict(self) -> Verdict:
        """What it found."""
        if self.judged is not None:
            return self.judged
        self.files.check_unchanged()
        return self.files.verdict

    @cached_property
    def outcomes(self) -> Outcomes:
        """The outcome of every test item of every finished trial, to be stored or judged in other ways."""
        from fairtrial.api import gather_outcomes

        return gather_outcomes(self)

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.folder / "report.html"

    def run(self, variant: str, seed: int = 0, task: str | None = None, *, plugins: Sequence[str | Path] = ()) -> Run:
        """One trial of the study with its trained network. `plugins`: the file of a part of your own, in a process that
        does not know it yet (the study keeps it in its folder `parts`).

        >>> finished.run("learned", seed=1).metrics["test"].items
        48
        """
        from fairtrial.api import load

        chosen = task or next(iter(self.verdict.tasks))
        return load(self.folder / "trials" / chosen / variant / f"seed-{seed}", plugins=plugins)

    def write_page(self, page: str | Path | None = None) -> Path:
        """Write `report.html` again, or another page."""
        from fairtrial.report.page import write_study_page

        return write_study_page(self.folder, None if page is None else Path(page))

    def describe(self) -> Description:
        """As its verdict; the plan, or the reason, where there is none. Showing a result never fails."""
        without = self._without_verdict()
        return Description(without) if without else self.verdict.describe()

    def rows(self) -> list[dict[str, object]]:
        return self.verdict.rows()

    def _without_verdict(self) -> list[str]:
        if self.plan is not None and self.planned:
            return plan_lines(self.plan)
        try:
            self.verdict  # noqa: B018
        except FairtrialError as error:
            return [error.what, *([error.hint] if error.hint else [])]
        return []

    @property
    def planned(self) -> bool:
        """Whether nothing was run yet: what can be shown is the plan."""
        return self.plan is not None and not (self.folder / "verdict.json").is_file()
