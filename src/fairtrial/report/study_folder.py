"""A study's folder, read for showing: every file but the verdict may be missing. Knows no torch, runs nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.record import Record
from fairtrial.report.verdict_shape import check_verdict, first_wrong

NUMBER = (int, float)
MAPS = {
    "sentence": str,
    "words": [str],
    "words_of": {str: {str: [str]}},  # task, variant: a part may set vectors of its own before a sentence
    "variants": {str: {str: [[[[NUMBER]]]]}},
}
LEDGER = {str: {str: [{"component": str, "formula": str, "count": NUMBER, "bias_free": NUMBER}]}}
PASSPORT = {"findings": [{"id": str, "name": str, "level": str, "verdict": str, "meaning": str, "limit": str}]}
HINT = "a study is a folder that `fairtrial study` wrote"


@dataclass(frozen=True)
class StudyFolder:
    folder: Path

    @classmethod
    def open(cls, folder: Path) -> StudyFolder:
        if not folder.is_dir():
            raise BadInput(f"{folder} is {'not a folder' if folder.exists() else 'not there'}", HINT)
        if (folder / "trial.json").is_file() and not (folder / "verdict.json").exists():
            raise BadInput(
                f"{folder} is the record of one trial, not a study", f"look at it with: fairtrial show {folder}"
            )
        if not (folder / "verdict.json").is_file():
            unfinished = (folder / "plan.json").is_file() or (folder / "study.toml").is_file()
            what = "has no verdict yet" if unfinished else "is not a study (it has no verdict.json)"
            raise BadInput(f"{folder} {what}", f"go on with: fairtrial study {folder}" if unfinished else HINT)
        return cls(folder)

    @cached_property
    def verdict(self) -> dict[str, Any]:
        return check_verdict(self.read("verdict.json"), self.folder / "verdict.json")

    @cached_property
    def maps(self) -> dict[str, Any]:
        return self.shaped("maps.json", MAPS)

    @cached_property
    def ledger(self) -> dict[str, Any]:
        return self.shaped("ledger.json", LEDGER)

    def passport(self, task: str, variant: str) -> dict[str, Any]:
        """What the audit of one variant found; empty where there was none."""
        return self.shaped(f"passports/{task}/{variant}.json", PASSPORT)

    @cached_property
    def study_text(self) -> str:
        path = self.inside("study.toml")
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    @cached_property
    def records(self) -> dict[str, dict[str, list[Record]]]:
        """Records by task and variant, in the order of seeds; what is no record yet is left out."""
        found: dict[str, dict[str, list[Record]]] = {}
        for path in sorted(self.inside("trials").glob("*/*/seed-*"), key=seed_in):
            if (path / "trial.json").is_file():
                task, variant = path.parts[-3:-1]
                record = Record.open(self.inside(path.relative_to(self.folder).as_posix()))
                found.setdefault(task, {}).setdefault(variant, []).append(record)
        return found

    def inside(self, name: str) -> Path:
        """A path below the folder; a link could lead a reader out of it."""
        path = self.folder
        for part in Path(name).parts:
            path = path / part
            if part == ".." or path.is_symlink():
                raise BadInput(f"{path} is a link; a study holds plain files only", HINT)
        return path

    def read(self, name: str) -> Any:
        path = self.inside(name)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BadInput(f"{path} cannot be read ({error.strerror})") from error
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path} is damaged: {error}", HINT) from error

    def shaped(self, name: str, shape: Any) -> dict[str, Any]:
        value = self.read(name)
        if wrong := first_wrong(value, shape, ""):
            raise BadInput(f"{self.folder / name} is damaged at {wrong}", HINT)
        return dict(value)


def seed_in(path: Path) -> tuple[str, int, str]:
    number = path.name.removeprefix("seed-")
    return str(path.parent), int(number) if number.isdecimal() else 0, path.name
