"""A study's folder: the one object that knows where things are kept, what is there, and how it is read and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fairtrial.disk import append_line, disk_errors, locked, write_text
from fairtrial.errors import BadInput
from fairtrial.finding import Passport
from fairtrial.record import Record
from fairtrial.stored import DataAudits, FailedTrial, StoredPlan, read_document, read_lines, to_line, write_document
from fairtrial.typed import structure

T = TypeVar("T")
FAILURES, FAILED_TRIES = "failures.jsonl", "failed-tries.jsonl"


@dataclass
class StudyFolder:
    path: Path
    _finished: dict[Path, Record] = field(default_factory=dict)  # each is opened and checked once

    def trial(self, task: str, variant: str, seed: int) -> Path:
        return self.path / "trials" / task / variant / f"seed-{seed}"

    def search_trial(self, task: str, variant: str, name: str, seed: int) -> Path:
        return self.path / "search" / task / variant / f"try-{name}" / f"seed-{seed}"

    def baselines(self, task: str, seed: int) -> Path:
        """Without its ending: arrays (.safetensors) and what is said of them (.json) are side by side."""
        return self.path / "baselines" / task / f"seed-{seed}"

    def name_of(self, path: Path | str) -> str:
        return Path(path).relative_to(self.path).as_posix()

    def record(self, folder: Path) -> Record | None:
        """The record of a trial, finished or not; None where there is none."""
        if folder in self._finished:
            return self._finished[folder]
        if not (folder / "trial.json").is_file():
            return None
        record = Record.open(folder)
        if record.complete:
            record.check_unchanged(weights=False)
            self._finished[folder] = record
        return record

    def finished(self, folder: Path) -> Record | None:
        record = self.record(folder)
        return record if record is not None and record.complete else None

    def read(self, name: str, kind: type[T]) -> T | None:
        """What a file of this name holds; None where it is missing or damaged: it is made again."""
        try:
            return read_document(self.path / name, kind)
        except BadInput:
            return None

    def write(self, name: str, value: object) -> None:
        with disk_errors(self.path):
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        write_document(self.path / name, value)

    def read_passport(self, task: str, variant: str) -> Passport | None:
        return self.read(f"passports/{task}/{variant}.json", Passport)

    def read_data_audits(self) -> DataAudits:
        return self.read("contamination.json", DataAudits) or {}

    def read_plan(self) -> StoredPlan:
        """plan.json, empty where there is none; a damaged one is refused, since it says which verdicts were given."""
        path = self.path / "plan.json"
        hint = "remove it; finished trials are found without it"
        return read_document(path, StoredPlan, hint) if path.exists() else StoredPlan()

    def failures(self, name: str = FAILURES) -> list[FailedTrial]:
        return read_lines(self.path / name, lambda row: structure(FailedTrial, row))

    def add_failure(self, failed: FailedTrial, name: str = FAILURES) -> None:
        append_line(self.path / name, to_line(failed))

    def failed(self, row: FailedTrial) -> Path:
        """The folder of the trial or try that a failure is about."""
        return self.path / row.folder if row.folder else self.trial(row.task, row.variant, row.seed)

    def forget_failures(self, folders: Collection[Path], name: str = FAILURES) -> None:
        """Of the trials with these folders: they are run again."""
        rows = [row for row in self.failures(name) if self.failed(row) not in folders]
        write_text(self.path / name, "".join(f"{to_line(row)}\n" for row in rows))

    def keep_parts(self, sources: Mapping[str, str]) -> dict[str, Path]:
        """Write the sources of parts from a notebook, by file; another version of one that is there is refused."""
        paths = {name: self.path / "parts" / name for name in sources}
        for name, path in paths.items():
            if path.is_file() and path.read_text(encoding="utf-8") != sources[name]:
                hint = f"keep {self.path} as it is and write the new study elsewhere with --out"
                raise BadInput(f"{name.removesuffix('.py')!r} has changed since {self.path} was started", hint)
            with disk_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, sources[name])
        return paths

    def hold(self) -> AbstractContextManager[None]:
        """Hold the folder for writing; a second `fairtrial study` on it is refused."""
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        return locked(self.path / "study.lock", "running this study", "choose another --out")

    def check_own_folder(self) -> None:
        """A folder that holds something else is not turned into a study."""
        if self.path.exists() and not self.path.is_dir():
            raise BadInput(f"{self.path} is a file", "choose another folder with --out")
        if (self.path / "study.toml").is_file() or not self.path.is_dir():
            return
        if any(path.name not in ("study.lock", "parts") for path in self.path.iterdir()):
            raise BadInput(f"{self.path} is not empty and holds no study", "choose another folder with --out")
