"""One trial on disk. Readable without torch.

    recipe.toml            the resolved recipe
    trial.json             seed, fingerprints of data and code, environment, tokenizer facts, notes
    events.jsonl           what happened, step by step; the same for the same recipe and seed
    clock.jsonl            when it happened; differs from run to run
    result.json            scores, written last: a record that has it is complete
    outcomes.safetensors   what became of every test item
    tokenizer.json, model.safetensors
    checkpoints/           only while training
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairtrial.disk import append_line, disk_errors, locked, write_text, write_whole
from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe
from fairtrial.recipe_file import load_recipe, write_recipe


@dataclass(frozen=True)
class Record:
    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Record:
        """A record that exists, complete or not."""
        if not (folder / "trial.json").is_file():
            found = "is not a record (it has no trial.json)" if folder.is_dir() else "is not there"
            raise BadInput(f"{folder} {found}", "a record is a folder that `fairtrial train` wrote")
        return cls(folder)

    @classmethod
    @contextmanager
    def create(cls, folder: Path, recipe: Recipe, trial: dict[str, Any], tokenizer_json: str) -> Iterator[Record]:
        """A new record, held for writing. It is prepared next door, so that a refused trial leaves nothing behind."""
        with disk_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        ensure_free(folder)
        beside = folder.with_name(f".{folder.name}.new")
        with locked(beside.with_name(beside.name + ".lock")):
            shutil.rmtree(beside, ignore_errors=True)
            with disk_errors(beside):
                beside.mkdir()
            record = cls(beside)
            write_text(beside / "recipe.toml", write_recipe(recipe))
            write_text(beside / "tokenizer.json", tokenizer_json)
            record.write_json("trial.json", trial)
            with disk_errors(folder):
                beside.rename(folder)
        beside.with_name(beside.name + ".lock").unlink(missing_ok=True)
        record = cls(folder)
        with record.hold():
            yield record

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the record for writing; a second writer is refused."""
        with locked(self.folder / "run.lock"):
            yield

    @property
    def recipe(self) -> Recipe:
        return load_recipe(self.folder / "recipe.toml")

    @property
    def trial(self) -> dict[str, Any]:
        return self.read_json("trial.json")

    @property
    def complete(self) -> bool:
        return (self.folder / "result.json").is_file()

    @property
    def result(self) -> dict[str, Any]:
        if not self.complete:
            raise BadInput(f"{self.folder} is not finished", f"go on with: fairtrial resume {self.folder}")
        return self.read_json("result.json")

    def read_json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise BadInput(f"{path} is missing") from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is damaged: {error}") from error
        if not isinstance(value, dict):
            raise BadInput(f"{path} is damaged: not a JSON object")
        return value

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        write_text(self.folder / name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def add_event(self, event: dict[str, Any]) -> None:
        append_line(self.folder / "events.jsonl", json.dumps(event, ensure_ascii=False))

    def add_time(self, step: int, **facts: Any) -> None:
        append_line(self.folder / "clock.jsonl", json.dumps({"step": step, "time": round(time.time(), 3), **facts}))

    def events(self) -> list[dict[str, Any]]:
        return _read_lines(self.folder / "events.jsonl")

    def clock(self) -> list[dict[str, Any]]:
        return _read_lines(self.folder / "clock.jsonl")

    def events_size(self) -> int:
        path = self.folder / "events.jsonl"
        return path.stat().st_size if path.exists() else 0

    def cut_events(self, size: int) -> None:
        """Forget what happened after a checkpoint: it will happen again."""
        path = self.folder / "events.jsonl"
        if path.exists():
            with disk_errors(path), path.open("rb+") as file:
                file.truncate(size)

    def write_outcomes(self, outcomes: dict[str, np.ndarray]) -> None:
        from safetensors.numpy import save_file

        write_whole(self.folder / "outcomes.safetensors", lambda path: save_file(outcomes, path))

    def outcomes(self) -> dict[str, np.ndarray]:
        """Arrays by `test set/what`, one entry for each item."""
        from safetensors.numpy import load_file

        return load_file(self.folder / "outcomes.safetensors")


def ensure_free(folder: Path) -> None:
    """Refuse a folder that holds something, before any work is done."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if (folder / "run.lock").is_file():
        with locked(folder / "run.lock"):  # refused as busy where another process writes it
            pass
    raise BadInput(f"{folder} exists already{_state(folder)}", "choose another folder with --out")


def _state(folder: Path) -> str:
    if (folder / "result.json").is_file():
        return f", a finished record (see: fairtrial show {folder})"
    if (folder / "trial.json").is_file():
        return f", an unfinished record (go on with: fairtrial resume {folder})"
    return " and is not empty"


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a log; a torn last line is dropped."""
    if not path.exists():
        return []
    rows = []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line end is torn or empty
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise BadInput(f"damaged line: {error}", path=path, line=number) from error
    return rows
