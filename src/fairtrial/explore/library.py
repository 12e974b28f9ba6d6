"""Records and studies below one folder: found, listed, and named by paths that never leave it."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.errors import BadInput, FairtrialError
from fairtrial.finding import Passport, worst
from fairtrial.formatting import format_parts, vocabulary_of
from fairtrial.record import Record
from fairtrial.results.study import StudyFiles
from fairtrial.results.verdict_tables import comparison_numbers
from fairtrial.stored import Metrics, read_document

if TYPE_CHECKING:
    from fairtrial.run import Run

Row = dict[str, Any]
LIST_SECONDS = 0.25  # a listing takes no longer: what was not read by then follows with the next one
RUNNING_SECONDS = 120.0  # a trial that wrote nothing for so long is not running
NAME_BYTES = 255
OF_PATHS = '\\:*?"<>|' if os.name == "nt" else "/"  # what a name cannot hold
MOST_HEADLINES = 6  # comparisons of a study in the listing
MOST_STUDY_TRIALS = 2000
WATCHED = ("trial.json", "result.json", "events.jsonl", "passport.json", "study.toml", "plan.json", "verdict.json")


class NotThere(BadInput):
    """A name that is no record, no study, or not inside the folder."""


MOST_MODELS = 16


@dataclass(frozen=True)
class Model:
    """A network is watched and changed while it answers, so that one thread at a time may ask it."""

    run: Run
    name: str
    untrained: bool
    lock: AbstractContextManager[object] = field(default_factory=threading.RLock, repr=False, compare=False)


@dataclass
class Models:
    loaded: OrderedDict[tuple[str, bool, int], Model] = field(default_factory=OrderedDict)
    lock: AbstractContextManager[object] = field(default_factory=threading.RLock, repr=False)

    def get(self, library: Library, name: str, untrained: bool = False) -> Model:
        """The network of a record; `untrained`: with the weights that its training began with."""
        record = library.record(name)
        written = (record.folder / "result.json").stat().st_mtime_ns if record.complete else 0
        key = (name, untrained, written)
        with self.lock:
            if key not in self.loaded:
                self.loaded[key] = self.load(library, name, untrained)
            self.loaded.move_to_end(key)
            while len(self.loaded) > MOST_MODELS:
                self.loaded.popitem(last=False)
            return self.loaded[key]

    def load(self, library: Library, name: str, untrained: bool) -> Model:
        from fairtrial.api import load

        run = load(library.place(name))
        if untrained:
            run = replace(run, network=run.initial_network())
        return Model(run, name, untrained)


@dataclass
class Library:
    root: Path
    models: Models = field(default_factory=Models)
    known: dict[str, tuple[Any, Row]] = field(default_factory=dict)  # path -> signature, row

    def place(self, name: str) -> Path:
        """The folder of this name below the root. No component is a link, so that none leads out."""
        if name == ".":  # the folder is itself a record or a study
            return self.root
        parts = name.split("/")
        if not name or any(not is_name(part) for part in parts):
            raise NotThere("there is no such folder here")
        path = self.root
        for part in parts:
            path = path / part
            try:
                mode = path.lstat().st_mode
            except (OSError, ValueError) as error:
                raise NotThere("there is no such folder here") from error
            if not stat.S_ISDIR(mode):
                raise NotThere("there is no such folder here")
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
            if kind and all(map(is_name, name.split("/"))):  # what is listed can be opened
                yield name, Path(place), kind

    def rows(self, seconds: float = LIST_SECONDS) -> list[Row]:
        """One for each. What is not known yet is read until the time is up; the rest says `pending`."""
        ends, found, seen = time.monotonic() + seconds, [], set()
        for name, folder, kind in self.walk():
            seen.add(name)
            signature = signature_of(folder, kind)
            before = self.known.get(name)
            if before and before[0] == signature and before[1]["state"] != "running":
                found.append(before[1])
            elif time.monotonic() > ends:
                bare = {"path": name, "kind": kind, "changed": signature[0], "pending": True, "state": ""}
                found.append(before[1] if before else bare)
            else:
                row = read_row(name, folder, kind, signature[0])
                self.known[name] = signature, row
                found.append(row)
        for gone in set(self.known) - seen:
            del self.known[gone]
        return found


def is_name(part: str) -> bool:
    """One component of a path, and nothing that means another place on any system."""
    if part in ("", ".", "..") or part.startswith("~") or len(part.encode("utf-8", "replace")) > NAME_BYTES:
        return False
    return not any(letter in OF_PATHS or ord(letter) < 32 or letter == "\x7f" for letter in part)


def is_study(names: list[str]) -> bool:
    return "study.toml" in names and ("trials" in names or "verdict.json" in names or "plan.json" in names)


def signature_of(folder: Path, kind: str) -> tuple[float, ...]:
    """When it changed last, and what tells whether it did."""
    facts, place = [], str(folder)
    for name in WATCHED:  # of a thousand records, several thousand times: without making paths
        try:
            told = os.stat(f"{place}/{name}")
        except OSError:
            facts += [0.0, 0.0]
        else:
            facts += [told.st_mtime, float(told.st_size)]
    if kind == "study":
        facts += [float(len(list((folder / "trials").glob("*/*/seed-*/result.json")))), 0.0]
        facts += [max((path.stat().st_mtime for path in (folder / "trials").glob("*/*/*")), default=0.0), 0.0]
    return (max(facts[::2]), *facts)


def read_row(name: str, folder: Path, kind: str, changed: float) -> Row:
    row: Row = {"path": name, "kind": kind, "changed": changed}
    try:
        return row | (record_row(folder) if kind == "record" else study_row(folder))
    except FairtrialError as error:
        return row | {"state": "damaged", "problem": error.what}


def record_row(folder: Path) -> Row:
    record = Record.open(folder)
    recipe, trial = record.recipe, record.trial
    row: Row = {
        "task": recipe.task,
        "parts": format_parts(recipe),
        "data": Path(recipe.data.source).name,
        "seeds": 1,
        "seed": trial.seed,
        "bytes": size_of(folder),
        "passport": level_of(folder / "passport.json"),
    }
    if record.complete:
        result = record.result
        row |= {"parameters": result.parameters, "state": "finished"}
        for test, score in list(result.tests.items())[:1]:
            row["headline"] = headline_of(test, score)
            if score.bits_per_byte is not None:  # compares where vocabularies differ
                row |= {"bits_per_byte": score.bits_per_byte, "vocabulary": vocabulary_of(recipe)}
        return row
    return row | progress_of(record)


def headline_of(test: str, score: Metrics) -> Row:
    shown = "perplexity" if score.perplexity is not None else score.headline
    low, high = score.interval or (None, None)
    return {"set": test, "metric": shown, "value": score.figure(shown), "low": low, "high": high}


def progress_of(record: Record) -> Row:
    """Of an unfinished trial: how far it came."""
    step = max((event.step for event in record.events()), default=0)
    written = max((os.stat(record.folder / name).st_mtime for name in os.listdir(record.folder)), default=0.0)
    state = "running" if time.time() - written < RUNNING_SECONDS else "unfinished"
    duration = record.recipe.training.duration
    total = int(duration.count) if duration.unit == "steps" else None
    return {"state": state, "step": step, "steps": total}


def study_row(folder: Path) -> Row:
    done = sorted((folder / "trials").glob("*/*/seed-*/result.json"))
    begun = sorted((folder / "trials").glob("*/*/seed-*/trial.json"))[:MOST_STUDY_TRIALS]
    variants = list(dict.fromkeys(path.parts[-3] for path in begun))
    tasks = list(dict.fromkeys(path.parts[-4] for path in begun))
    row: Row = {
        "task": ", ".join(tasks),
        "parts": ", ".join(variants),
        "bytes": None,
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
        row["bytes"] = sum(size_of(path.parent) for path in done)
        return row | {"headlines": [comparison_numbers(each) for each in verdict.comparisons[:MOST_HEADLINES]]}
    total = len(StudyFiles(folder).plan.trials) or None
    written = max((path.stat().st_mtime for path in folder.glob("trials/*/*/*/*.jsonl")), default=0.0)
    written = max(written, folder.stat().st_mtime)
    state = "running" if time.time() - written < RUNNING_SECONDS else "unfinished"
    return row | {"state": state, "total": total}


def level_of(path: Path) -> str:
    """Of a stored passport; empty where there is none."""
    if not path.is_file():
        return ""
    try:
        return worst(read_document(path, Passport).findings)
    except BadInput:
        return "damaged"


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.iterdir() if not path.is_dir())
