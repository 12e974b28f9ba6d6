"""Records and studies below one folder: found, listed, and named by paths that never leave it."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.errors import BadInput, FairtrialError
from fairtrial.finding import Passport, worst
from fairtrial.formatting import format_parts
from fairtrial.record import Record
from fairtrial.results.study import StudyFiles
from fairtrial.results.verdict_tables import comparison_numbers
from fairtrial.stored import Metrics, read_document

if TYPE_CHECKING:
    from fairtrial.run import Run

Row = dict[str, Any]
RUNNING_SECONDS = 120.0  # a trial that wrote nothing for so long is not running
NAME_BYTES = 255
OF_PATHS = '\\:*?"<>|' if os.name == "nt" else "/"  # what a name cannot hold
MOST_HEADLINES = 6  # comparisons of a study in the listing
MOST_STUDY_TRIALS = 2000


class NotThere(BadInput):
    """A name that is no record, no study, or not inside the folder."""


MOST_MODELS = 16


@dataclass(frozen=True)
class Model:
    """A network is watched and changed while it answers, so that one thread at a time may ask it."""

    run: Run
    lock: AbstractContextManager[object] = field(default_factory=threading.RLock, repr=False, compare=False)


@lru_cache(MOST_MODELS)
def load_model(folder: Path, untrained: bool, written: int) -> Model:
    """`written`: when its result was, so that another record in its place is loaded anew."""
    from fairtrial.api import load

    run = load(folder)
    return Model(replace(run, network=run.initial_network()) if untrained else run)


@dataclass
class Library:
    root: Path
    known: dict[str, tuple[float, Row]] = field(default_factory=dict)  # path -> when it changed, row

    def model(self, name: str, untrained: bool = False) -> Model:
        """The network of a record; `untrained`: with the weights that its training began with."""
        record = self.record(name)
        result = record.folder / "result.json"
        return load_model(record.folder, untrained, result.stat().st_mtime_ns if record.complete else 0)

    def place(self, name: str) -> Path:
        """The folder of this name below the root. No component is a link, so that none leads out."""
        if name == ".":  # the folder is itself a record or a study
            return self.root
        parts = name.split("/")
        if not name or any(not is_name(part) for part in parts):
            raise NotThere("folder not found")
        path = self.root
        for part in parts:
            path = path / part
            try:
                mode = path.lstat().st_mode
            except (OSError, ValueError) as error:
                raise NotThere("folder not found") from error
            if not stat.S_ISDIR(mode):
                raise NotThere("folder not found")
        return path

    def record(self, name: str) -> Record:
        path = self.place(name)
        if not (path / "trial.json").is_file():
            raise NotThere("this folder is not a record")
        return Record.open(path)

    def walk(self) -> Iterator[tuple[str, Path, str]]:
        """(name, folder, kind) of every record and study. Trials of a study are inside it and not listed."""
        for place, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            kind = "record" if "trial.json" in files else "study" if is_study([*folders, *files]) else ""
            name = Path(place).relative_to(self.root).as_posix()
            if kind:
                folders.clear()
            if kind and (name == "." or all(map(is_name, name.split("/")))):  # what is listed can be opened
                yield name, Path(place), kind

    def rows(self) -> list[Row]:
        """One for each. What has not changed is not read again."""
        before, self.known = self.known, {}
        for name, folder, kind in self.walk():
            changed = changed_at(folder)
            seen = before.get(name)
            if seen is None or seen[0] != changed or seen[1]["state"] == "running":
                seen = changed, read_row(name, folder, kind, changed)
            self.known[name] = seen
        return [row for _, row in self.known.values()]


def is_name(part: str) -> bool:
    """One component of a path, and nothing that means another place on any system."""
    if part in ("", ".", "..") or part.startswith("~") or len(part.encode("utf-8", "replace")) > NAME_BYTES:
        return False
    return not any(letter in OF_PATHS or ord(letter) < 32 or letter == "\x7f" for letter in part)


def is_study(names: list[str]) -> bool:
    return "study.toml" in names and ("trials" in names or "verdict.json" in names or "plan.json" in names)


def changed_at(folder: Path) -> float:
    """When a record, or one of its files, changed last; of a study also one of its trials."""
    latest = 0.0
    for place in (folder, *folder.glob("trials/*/*/*")):
        for path in (place, *place.iterdir()):
            with suppress(FileNotFoundError):  # a writer has just moved it
                latest = max(latest, path.lstat().st_mtime)
    return latest


def read_row(name: str, folder: Path, kind: str, changed: float) -> Row:
    row: Row = {"path": name, "kind": kind, "changed": changed}
    try:
        return row | (record_row(folder, changed) if kind == "record" else study_row(folder, changed))
    except FairtrialError as error:
        return row | {"state": "damaged", "problem": error.what}


def record_row(folder: Path, changed: float) -> Row:
    record = Record.open(folder)
    recipe = record.recipe
    row: Row = {
        "task": recipe.task,
        "parts": format_parts(recipe),
        "data": Path(recipe.data.source).name,
        "seeds": 1,
        "passport": level_of(folder / "passport.json"),
    }
    if record.complete:
        first = next(iter(record.result.tests.items()), None)
        return row | {"state": "finished", "headline": first and headline_of(*first)}
    step = max((event.step for event in record.events()), default=0)
    duration = recipe.training.duration
    return row | {
        "state": state_of(changed),
        "step": step,
        "steps": int(duration.count) if duration.unit == "steps" else None,
    }


def state_of(changed: float) -> str:
    return "running" if time.time() - changed < RUNNING_SECONDS else "unfinished"


def headline_of(test: str, score: Metrics) -> Row:
    shown = "perplexity" if score.perplexity is not None else score.headline
    low, high = score.interval or (None, None)
    return {"set": test, "metric": shown, "value": score.figure(shown), "low": low, "high": high}


def study_row(folder: Path, changed: float) -> Row:
    done = sorted((folder / "trials").glob("*/*/seed-*/result.json"))
    begun = sorted((folder / "trials").glob("*/*/seed-*/trial.json"))[:MOST_STUDY_TRIALS]
    variants = list(dict.fromkeys(path.parts[-3] for path in begun))
    tasks = list(dict.fromkeys(path.parts[-4] for path in begun))
    row: Row = {
        "task": ", ".join(tasks),
        "parts": ", ".join(variants),
        "state": "finished",
        "seeds": len({path.parts[-2] for path in begun}),
        "done": len(done),
    }
    if begun:
        row["data"] = Path(Record(begun[0].parent).recipe.data.source).name
    levels = [level_of(path) for path in (folder / "passports").glob("*/*.json")]
    row["passport"] = next((level for level in ("red", "amber", "pass") if level in levels), "")
    if (folder / "verdict.json").is_file():
        verdict = StudyFiles.open(folder).verdict
        row |= {"name": verdict.name, "sentence": next(iter(verdict.text), "")}
        row["first"] = done[0].parent.relative_to(folder).as_posix() if done else ""
        return row | {"headlines": [comparison_numbers(each) for each in verdict.comparisons[:MOST_HEADLINES]]}
    total = len(StudyFiles(folder).plan.trials) or None
    return row | {"state": state_of(changed), "total": total}


def level_of(path: Path) -> str:
    """Of a stored passport; empty where there is none."""
    if not path.is_file():
        return ""
    try:
        return worst(read_document(path, Passport).findings)
    except BadInput:
        return "damaged"
