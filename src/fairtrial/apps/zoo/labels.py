"""What people found of each FAIL: a fault of the library, or by design. Kept in labels.toml, for one version."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fairtrial.apps.zoo.run import Row, Zoo
from fairtrial.finding import Finding

FAULT, DESIGN, OPEN = "fault", "by design", "not looked at"


@dataclass(frozen=True)
class Label:
    kind: str
    classes: tuple[str, ...]
    checks: tuple[str, ...]
    why: str
    title: str = ""  # of a fault
    script: str = ""  # of a fault: docs/zoo/SCRIPT.py

    def fits(self, row: Row, finding: Finding) -> bool:
        return row.species.name in self.classes and finding.id in self.checks


@cache
def labels() -> tuple[Label, ...]:
    table = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
    lists = ("classes", "checks")
    return tuple(Label(**{**each, **{name: tuple(each[name]) for name in lists}}) for each in table["label"])


@cache
def labelled_version() -> str:
    """Of the library that was looked at."""
    text = Path(__file__).with_name("labels.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["version"])


def kind_of(row: Row, finding: Finding) -> str:
    """Of a finding that failed; a fault is worse than what is by design."""
    return next((each.kind for each in labels() if each.fits(row, finding)), OPEN)


def kinds_of(row: Row) -> set[str]:
    return {kind_of(row, each) for each in row.failed}


def summary(zoo: Zoo) -> str:
    """`290 classes of 214 families of transformers 5.22.2: 240 pass; ...`"""
    asked = [row for row in zoo.rows if not row.reason]
    families = {family for row in asked for family in row.species.families}
    passed = sum(not row.failed for row in asked)
    parts = [f"{passed} pass"]
    for kind, words in (
        (FAULT, "have a fault"),
        (DESIGN, "differ by design only"),
        (OPEN, "fail and were not looked at"),
    ):
        number = len([row for row in asked if row.failed and worst_kind(kinds_of(row)) == kind])
        parts += [f"{number} {words}"] if number else []
    left = len(zoo.rows) - len(asked)
    parts += [f"{left} could not be audited"] if left else []
    return f"{len(asked)} classes of {len(families)} families of {zoo.library} {zoo.version}: {', '.join(parts)}"


def worst_kind(kinds: set[str]) -> str:
    return next(kind for kind in (OPEN, FAULT, DESIGN) if kind in kinds)


def is_clean(rows: Sequence[Row]) -> bool:
    """Whether nothing failed, or by design only."""
    return all(kinds_of(row) <= {DESIGN} for row in rows)


def verdict(row: Row) -> str:
    """`PASS`; `FAIL: K2 padding on the left (by design)`; why it could not be audited"""
    if row.reason:
        return f"not audited: {row.reason}"
    failed = [f"{each.id} {each.name} ({kind_of(row, each)})" for each in row.failed]
    return f"FAIL: {', '.join(failed)}" if failed else "PASS"
