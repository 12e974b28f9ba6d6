"""A study's folder, read for showing. All but the verdict may be missing, but nothing may be of another type."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from fairtrial.errors import BadInput
from fairtrial.finding import Passport
from fairtrial.record import Record
from fairtrial.results.values import Verdict
from fairtrial.results.verdict_file import read_verdict
from fairtrial.stored import TrialInfo, read_document
from fairtrial.stored_study import DataAudits, ParameterRows, StoredPlan, read_parameters

T = TypeVar("T")

HINT = "a study is a folder that `fairtrial study` wrote"


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
    def data_audits(self) -> DataAudits:
        return self.read("contamination.json", DataAudits) or {}

    @cached_property
    def parameters(self) -> ParameterRows:
        if self.given is not None:
            return {}
        for name in ("parameters.json", "ledger.json"):
            self.inside(name)  # no symlink
        return read_parameters(self.folder, HINT)

    def passport(self, task: str, variant: str) -> Passport | None:
        """What the audit of one variant found; None where there was none."""
        return self.read(f"passports/{task}/{variant}.json", Passport)

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
        """What is told of a study rests on its trials: none may have been changed since. Weights, of which nothing is
        told, are checked where they are read."""
        for variants in self.records.values():
            for record in (one for found in variants.values() for one in found):
                record.check_unchanged(weights=False)

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
