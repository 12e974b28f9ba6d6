"""A study's folder, read for showing. All but the verdict may be missing, but nothing may be of another type."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtrial.disk import load_json
from fairtrial.errors import BadInput
from fairtrial.record import Record

FORMAT = 1
NUMBER = (int, float)
ANY = object

ESTIMATE = {"mean": NUMBER, "low": NUMBER, "high": NUMBER, "by_seed": [NUMBER]}
FINDING = dict.fromkeys(("id", "name", "where", "shown", "limit", "verdict", "meaning"), str)
COST = dict.fromkeys(("parameters", "flops_per_step", "seconds_per_step", "seconds_ratio", "peak_memory_mb"), NUMBER)
SCORES = {str: {str: {str: ESTIMATE}}}  # variant, test set, all | clean | contaminated
COMPARISON = {
    "variant": str, "against": str, "baseline": str, "set": str, "basis": str, "metric": str, "verdict": str,
    "sentence": str, "seeds": NUMBER, "items": NUMBER, "difference": NUMBER, "low": NUMBER, "high": NUMBER,
    "ratio": NUMBER, "ratio_low": NUMBER, "ratio_high": NUMBER, "p": NUMBER, "p_adjusted": NUMBER, "q": NUMBER,
    "smallest_detectable": NUMBER, "more_seeds": ANY, "more_items": ANY,
    "share_of_seeds_better": {"share": NUMBER, "low": NUMBER, "high": NUMBER},
    "variance_shares": {str: NUMBER}, "on_these_items": {"low": NUMBER, "high": NUMBER},
}  # fmt: skip
TASK = {
    "metric": str, "unit": str, "least_difference": NUMBER, "seeds": [NUMBER],
    "sets": {str: {"items": NUMBER, "exact": NUMBER, "near": NUMBER, "clean": NUMBER, "basis": str, "basis_why": str}},
    "scores": SCORES,
    "comparisons": [COMPARISON],
    "exploratory": [COMPARISON],
    "baselines": SCORES,
    "against_baselines": [COMPARISON],
    "peeks": {str: {str: {"reads": NUMBER, "watched": bool, "picked_on_test": NUMBER, "honest": NUMBER}}},
    "cost": {str: COST},
    "passports": {str: {"level": str, "failed": [str], "accepted": bool}},
    "contamination": {"level": str, "findings": [FINDING], "notes": [str]},
    "failures": [{"variant": str, "seed": ANY, "error": str}],
    "search": {"tries": NUMBER, "variants": {str: {"tries": NUMBER, "best": {str: ANY}, "validation": NUMBER}}},
    "best_of": {"variants": NUMBER, "expected_bias": NUMBER, "sentence": str},
}  # fmt: skip
VERDICT = {
    "format": NUMBER, "name": str, "baseline": str, "sentences": [str], "tasks": {str: TASK},
    "look": {"seeds": NUMBER, "alpha": NUMBER, "next": NUMBER},
}  # fmt: skip


def check_verdict(value: Any, path: object) -> dict[str, Any]:
    """The same value without nulls, or a refusal that says what is wrong where."""
    clean = without_nulls(value) or {}
    if isinstance(clean, dict) and clean.get("format", FORMAT) != FORMAT:
        raise BadInput(f"{path} has format {clean['format']!r}, this fairtrial reads {FORMAT}", "update fairtrial")
    if wrong := first_wrong(clean, VERDICT, ""):
        raise BadInput(f"{path} is damaged at {wrong}", "write it again with `fairtrial study STUDY`")
    return clean


def without_nulls(value: Any) -> Any:
    """Null, NaN and infinities mean unknown and are left out, except in a list of numbers, where positions count."""
    if isinstance(value, dict):
        named = ((key, without_nulls(inner)) for key, inner in value.items())
        return {key: inner for key, inner in named if inner is not None}
    if isinstance(value, list):
        known = [without_nulls(inner) for inner in value]
        numbers = any(isinstance(inner, NUMBER) for inner in known)
        return known if numbers else [inner for inner in known if inner is not None]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def first_wrong(value: Any, shape: Any, path: str) -> str:
    """The path of the first value that does not have the type in `shape`; empty if there is none."""
    kind: Any = type(shape) if isinstance(shape, dict | list) else shape
    if not isinstance(value, kind) or (shape is NUMBER and isinstance(value, bool)):
        return path or "its top"
    inside: list[tuple[Any, Any, str]] = []
    if isinstance(shape, dict):
        lead = f"{path}." if path else ""
        inside = [(inner, shape.get(str, shape.get(key, ANY)), f"{lead}{key}") for key, inner in value.items()]
    elif isinstance(shape, list):
        inside = [(inner, shape[0], f"{path}[{at}]") for at, inner in enumerate(value) if inner is not None]
    return next(filter(None, (first_wrong(*each) for each in inside)), "")


MAPS = {
    "sentence": str,
    "words": [str],
    "words_of": {str: {str: [str]}},  # task, variant: a part may put a prefix before a sentence
    "variants": {str: {str: [[[[NUMBER]]]]}},
}
LEDGER = {str: {str: [{"component": str, "formula": str, "count": NUMBER, "bias_free": NUMBER}]}}
PASSPORT = {"findings": [{"id": str, "name": str, "level": str, "verdict": str, "meaning": str, "limit": str}]}
HINT = "a study is a folder that `fairtrial study` wrote"


@dataclass(frozen=True)
class StudyFiles:
    folder: Path

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
        """Records by task and variant, in the order of seeds; folders that are not records yet are left out."""
        found: dict[str, dict[str, list[Record]]] = {}
        for path in sorted(self.inside("trials").glob("*/*/seed-*"), key=seed_in):
            if (path / "trial.json").is_file():
                task, variant = path.parts[-3:-1]
                record = Record.open(self.inside(path.relative_to(self.folder).as_posix()))
                found.setdefault(task, {}).setdefault(variant, []).append(record)
        return found

    def trials(self) -> Iterator[dict[str, Any]]:
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

    def read(self, name: str) -> Any:
        path = self.inside(name)
        return load_json(path, HINT) if path.exists() else {}

    def shaped(self, name: str, shape: Any) -> dict[str, Any]:
        value = self.read(name)
        if wrong := first_wrong(value, shape, ""):
            raise BadInput(f"{self.folder / name} is damaged at {wrong}", HINT)
        return dict(value)


def seed_in(path: Path) -> tuple[str, int, str]:
    number = path.name.removeprefix("seed-")
    return str(path.parent), int(number) if number.isdecimal() else 0, path.name
