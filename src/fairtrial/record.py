"""One trial on disk. Readable without torch.

recipe.toml            the resolved recipe
trial.json             seed, fingerprints of data and code, environment, tokenizer facts, notes
events.jsonl           what happened, step by step; the same for the same recipe and seed
clock.jsonl            when it happened; differs from run to run
result.json            scores, written last: a record that has it is complete
outcomes.safetensors   what became of every test item
baseline.json          scores of a simple model on the same items, where one was asked for
tokenizer.json, model.safetensors
parts/                 sources of parts that were written in a notebook or script; kept, never run by themselves
checkpoints/           only while training
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.disk import (
    append_line,
    disk_errors,
    lock_beside,
    locked,
    preparing,
    sha256_of,
    sweep_lock,
    whole_folder,
    write_bytes,
    write_text,
)
from fairtrial.errors import BadInput, Busy, DiskTrouble
from fairtrial.events import Logged, Scored, event_json, read_event
from fairtrial.recipe import FOLDER_NAME, Recipe, fingerprint, load_recipe, write_recipe
from fairtrial.stored import (
    BaselineScores,
    ClockEntry,
    TrialInfo,
    TrialResult,
    read_arrays,
    read_clock,
    read_document,
    read_lines,
    to_line,
    write_document,
)

if TYPE_CHECKING:
    import numpy as np

    from fairtrial.data.tokenizer import Tokenizer

RESULT = "result.json"


@dataclass(frozen=True)
class Record:
    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Record:
        """A record that exists, complete or not."""
        hint = "a record is a folder that `fairtrial train` wrote"
        try:
            if not (folder / "trial.json").is_file():
                found = "is not a record (it has no trial.json)" if folder.is_dir() else "does not exist"
                if (folder / "study.toml").is_file():
                    found, hint = (
                        "is a study, not a record",
                        f"its records are in {folder / 'trials'}; ft.Study opens it",
                    )
                raise BadInput(f"{folder} {found}", hint)
            for path in folder.rglob("*"):  # a link could lead a reader, or a resumed trial's pen, out of the record
                if not is_plain(path):
                    raise BadInput(f"{path} is a link or a device; a record holds plain files only", hint)
        except OSError as error:
            raise BadInput(f"{folder} cannot be read ({error.strerror})", hint) from error
        return cls(folder)

    @classmethod
    @contextmanager
    def create(
        cls, folder: Path, recipe: Recipe, trial: TrialInfo, tokenizer_json: str, parts: Mapping[str, str] = {}
    ) -> Iterator[Record]:
        """A new record, held for writing. It is prepared next door, so that a refused trial leaves nothing behind.
        `parts`: sources of parts from a notebook, by file."""
        ensure_free(folder)
        with disk_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            with preparing(folder):
                check_not_taken(folder)  # another process may have been faster
                with whole_folder(folder) as beside:
                    write_text(beside / "recipe.toml", write_recipe(recipe))
                    write_text(beside / "tokenizer.json", tokenizer_json)
                    for name, source in parts.items():
                        (beside / "parts").mkdir(exist_ok=True)
                        write_text(beside / "parts" / name, source)
                    sums = {"tokenizer.json": hashlib.sha256(tokenizer_json.encode()).hexdigest()}
                    write_document(beside / "trial.json", replace(trial, sha256=sums))
                record = cls(folder)
                held.enter_context(record.hold())
            yield record

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the record for writing; a second writer is refused."""
        try:
            with locked(self.folder / "run.lock"):
                yield
        except DiskTrouble as error:
            hint = f"what was saved is intact: make room, then continue with: fairtrial train --resume {self.folder}"
            raise DiskTrouble(error.what, hint) from error

    def checked(self, name: str) -> Path:
        """The path of a file, once its content is what the trial wrote: trial.json keeps the checksum of the tokenizer,
        result.json those of the rest."""
        path, kept = self.folder / name, {}
        if name == "tokenizer.json":
            kept = self.trial.sha256
        elif self.complete or name.endswith(".safetensors"):
            kept = {"model.safetensors": self.result.model_sha256} | self.result.sha256
        try:
            if name in kept and sha256_of(path) != kept[name]:
                raise BadInput("was changed after the trial wrote it (its checksum differs)", path=path)
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", path=path) from error
        return path

    def check_unchanged(self, *, weights: bool = True) -> None:
        """Of a finished record: every file that is there is what the trial wrote. `weights`: also the large one."""
        names = ("events.jsonl", "outcomes.safetensors", "tokenizer.json", *(["model.safetensors"] if weights else []))
        for name in names if self.complete else ():
            if (self.folder / name).exists():
                self.checked(name)
        _ = self.recipe

    def check_unedited(self) -> None:
        """Before a trial is resumed: refuse files that are not what it began with, as it would be another trial."""
        begun = [entry.trial for entry in self.clock() if entry.trial]
        path = self.folder / "trial.json"
        if begun and begun[-1] != sha256_of(path):
            raise BadInput("was changed since the trial began", "restore it, or train a new record", path=path)
        self.checked("tokenizer.json")
        _ = self.recipe

    def note_changes(self, changed: Sequence[str]) -> Record:
        """Of a trial that is resumed elsewhere: its record says so, as its bits are no longer those of one machine."""
        new = [each for each in changed if each not in self.trial.changed]
        if not new:
            return self
        write_document(self.folder / "trial.json", replace(self.trial, changed=(*self.trial.changed, *new)))
        self.add_time(0, "changed", trial=sha256_of(self.folder / "trial.json"))
        return Record(self.folder)

    @cached_property
    def recipe(self) -> Recipe:
        """Data that were moved may be named anew; whatever else decides the trial is as it was."""
        path = self.folder / "recipe.toml"
        recipe = load_recipe(path)
        if fingerprint(recipe) != self.trial.recipe:
            raise BadInput("was changed after the trial wrote it (its checksum differs)", path=path)
        return recipe

    def class_names(self, given: Sequence[str] | None = None) -> tuple[str, ...]:
        """What to call each label: by these names, by those of the data, or the labels themselves."""
        labels = self.trial.labels
        if given is None:
            known = self.trial.class_names
            return known if len(known) == len(labels) else labels
        if len(given) != len(labels) or not all(given):
            raise BadInput(f"{len(given)} names for {len(labels)} labels", f"name them in order: {', '.join(labels)}")
        if len(set(given)) < len(given):
            raise BadInput(f"a name is given twice: {','.join(given)}", "two classes need two different names")
        return tuple(given)

    @cached_property
    def trial(self) -> TrialInfo:
        return read_document(self.checked("trial.json"), TrialInfo)

    def tokenizer(self) -> Tokenizer:
        from fairtrial.data.tokenizer import Tokenizer

        return Tokenizer.load(self.checked("tokenizer.json"), self.trial.tokenizer)

    def weights(self) -> bytes:
        """The trained weights as a safetensors file's bytes."""
        return self.checked("model.safetensors").read_bytes()

    @property
    def complete(self) -> bool:
        return (self.folder / "result.json").is_file()

    @cached_property
    def result(self) -> TrialResult:
        if not self.complete:
            raise BadInput(f"{self.folder} is not finished", f"continue with: fairtrial train --resume {self.folder}")
        return read_document(self.folder / "result.json", TrialResult, "train it again")

    def write_result(self, result: TrialResult) -> None:
        """Last of all, with the checksums of what it belongs to."""
        names = ("trial.json", "events.jsonl", "outcomes.safetensors", "model.safetensors")
        sums = {name: sha256_of(self.folder / name) for name in names if (self.folder / name).is_file()}
        if self.log.size and sums.get("events.jsonl") != self.log.sha256:
            hint = f"rewrite it with: fairtrial train --resume {self.folder}"
            raise BadInput("was changed while the trial was writing it", hint, path=self.log.path)
        write_document(self.folder / "result.json", replace(result, sha256=sums))

    def write_baseline(self, scores: BaselineScores) -> None:
        """After the result: what is shown beside it belongs to these outcomes."""
        outcomes = sha256_of(self.folder / "outcomes.safetensors")
        write_document(self.folder / "baseline.json", replace(scores, outcomes=outcomes))

    @property
    def baseline(self) -> BaselineScores | None:
        """A simple model's scores beside the trial's own; None where none were made."""
        path, hint = self.folder / "baseline.json", "remove it; `fairtrial data baseline` scores the same data"
        if not self.complete or not path.exists():
            return None
        scores = read_document(path, BaselineScores, hint)
        if scores.outcomes != sha256_of(self.checked("outcomes.safetensors")):
            raise BadInput("belongs to other outcomes than those in this folder", hint, path=path)
        return scores

    @cached_property
    def log(self) -> EventLog:
        return EventLog(self.folder / "events.jsonl")

    def add_time(self, step: int, what: str, **more: Any) -> None:
        """`more`: further fields of `ClockEntry`."""
        entry = ClockEntry(step=step, time=round(time.time(), 3), what=what, **more)
        append_line(self.folder / "clock.jsonl", to_line(entry))

    def events(self) -> list[Logged]:
        return read_lines(self.checked("events.jsonl"), read_event)

    def curve(self, split: str) -> list[tuple[int, float]]:
        """(step, loss) wherever this split was scored while training."""

        def read(row: dict[str, object]) -> Logged | None:  # a training has many steps and few scores
            return read_event(row) if row.get("event") == Scored.kind and row.get("split") == split else None

        scores = read_lines(self.checked("events.jsonl"), read)
        return [(event.step, event.metrics.loss) for event in scores if isinstance(event, Scored)]

    def clock(self) -> list[ClockEntry]:
        return read_lines(self.folder / "clock.jsonl", read_clock)

    def tidy(self) -> None:
        """Of a finished record: drop what kill -9 left in its last moments. One that another process holds is left to
        that process."""
        if self.complete and self._leftovers():
            with suppress(Busy), self.hold():
                self.drop_leftovers()

    def drop_leftovers(self) -> None:
        """Of a finished record that is held, as every writer does: what only training needs, files that a killed
        process had not yet moved to their place, and its lock beside the record."""
        for path in self._leftovers():
            with disk_errors(path):
                if path == lock_beside(self.folder):
                    with suppress(Busy):
                        sweep_lock(self.folder)
                elif path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def _leftovers(self) -> list[Path]:
        found = [self.folder / "checkpoints", lock_beside(self.folder), *self.folder.glob("*.tmp")]
        return [path for path in found if path.exists()]

    def write_outcomes(self, outcomes: dict[str, np.ndarray]) -> None:
        from safetensors.numpy import save

        # in our own hands rather than by safetensors' save_file, whose errors do not tell a full disk from a bad one
        write_bytes(self.folder / "outcomes.safetensors", save(outcomes))

    def outcomes(self) -> dict[str, np.ndarray]:
        """Arrays by `test set/what`, one entry for each item."""
        return read_arrays(self.checked("outcomes.safetensors"), "train it again")


class EventLog:
    """events.jsonl while a trial writes it. Its checksum is that of what was written, each byte hashed once, so that a
    checkpoint can tell the log it belongs to from one that was damaged since."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, self._written = path, 0, hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._written.hexdigest()

    def add(self, event: Logged) -> None:
        line = json.dumps(event_json(event), ensure_ascii=False)
        append_line(self.path, line)
        content = (line + "\n").encode()
        self._written.update(content)
        self.size += len(content)

    def sync(self) -> tuple[int, str]:
        """Force the events to the disk, as a checkpoint must not be ahead of them after a power cut; their size and
        sha256."""
        with disk_errors(self.path), self.path.open("ab") as file:
            os.fsync(file.fileno())
        return self.size, self.sha256

    def sha256_at(self, size: int) -> str | None:
        """Of the first bytes on the disk; None where there are fewer."""
        content = self._first(size)
        return hashlib.sha256(content).hexdigest() if len(content) == size else None

    def cut(self, size: int) -> None:
        """Go on after so many bytes, if there are as many: what happened after them will happen again."""
        content = self._first(size)
        self.size, self._written = len(content), hashlib.sha256(content)
        with disk_errors(self.path):
            if self.path.exists() and self.path.stat().st_size > self.size:
                with self.path.open("rb+") as file:
                    file.truncate(self.size)

    def _first(self, size: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(size)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", path=self.path) from error


@dataclass(frozen=True)
class Listed:
    """A record of many: whether it is finished, and what is wrong with it, if anything is."""

    record: Record
    problem: str = ""

    @property
    def state(self) -> str:
        return "damaged" if self.problem else "finished" if self.record.complete else "unfinished"


def records_of(folders: Sequence[Path]) -> Iterator[Listed]:
    """Records, and all below a folder; one that holds none is refused."""
    for folder in folders:
        found = list_records(folder)
        yield next(found, None) or Listed(Record.open(folder))
        yield from found


def list_records(folder: Path) -> Iterator[Listed]:
    """Every record below a folder, in the order of their paths. What can be read of each has been read and checked."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))  # .x.new: one that is being prepared
        if "trial.json" not in files:
            continue
        folders.clear()
        record = Record(Path(place))
        try:
            Record.open(record.folder)
            _ = record.trial, record.recipe, record.complete and record.result
        except BadInput as error:
            yield Listed(record, error.what)
        else:
            yield Listed(record)


def is_plain(path: Path) -> bool:
    """A file or a folder; also one that a writer has just moved into its place."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def default_folder(recipe: Recipe, seed: int) -> Path:
    """`runs/<task>-<recipe>-<data>-<mark>-seed<n>`: other settings, or data elsewhere, give another mark."""
    source, name = Path(recipe.data.source), recipe.name or "recipe"
    if not FOLDER_NAME.fullmatch(name):
        raise BadInput(f"a recipe called {name!r} cannot name a folder", "change `name`, or choose a folder with --out")
    mark = hashlib.sha256(f"{fingerprint(recipe)} {source.resolve()}".encode()).hexdigest()[:6]
    return Path("runs") / f"{recipe.task}-{name}-{source.stem}-{mark}-seed{seed}"


def sibling(record: Path, suffix: str) -> Path:
    """`runs/mine` -> `runs/mine-look`, also where the record is given as `.`"""
    home = record.resolve()
    return (home.parent if record.name in ("", "..") else record.parent) / f"{home.name}-{suffix}"


def ensure_free(folder: Path) -> None:
    """Refuse a folder that holds something, before any work is done."""
    if folder.name in ("", ".."):
        hint = "give the record a folder of its own, such as --out runs/mine"
        raise BadInput(f"{folder} cannot become a record", hint)
    with disk_errors(folder):
        sweep_lock(folder)  # refused as busy where another process is about to write it
        check_not_taken(folder)


def check_not_taken(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if (folder / "run.lock").is_file():
        with locked(folder / "run.lock"):  # refused as busy where another process writes it
            pass
    hint = "choose another folder with --out"
    if (folder / "trial.json").is_file():
        hint += f"; see the record there: fairtrial show {folder} ; continue it: fairtrial train --resume {folder}"
    raise BadInput(f"{folder} exists already", hint)
