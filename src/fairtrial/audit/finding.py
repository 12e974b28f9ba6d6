"""What a check found: a measured value, its limit, a verdict, and what it means in one plain sentence.

A passport as text: a table for the terminal, a row for a Markdown page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairtrial.environment import code_fingerprint

PASS, FAIL, REPORT = "PASS", "FAIL", "REPORT"


@dataclass(frozen=True)
class Measured:
    """What a check measured, before it has a name. `passed` None: there is nothing to pass, only to know."""

    value: float
    limit: str
    passed: bool | None
    meaning: str


@dataclass(frozen=True)
class Finding:
    id: str
    name: str
    task: str  # classify (encoder) or lm (decoder)
    level: str  # red blocks the verdict on a variant; amber is printed beside it
    value: float
    limit: str
    verdict: str
    meaning: str

    @property
    def blocks(self) -> bool:
        return self.level == "red" and self.verdict == FAIL

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows no infinity: a value that is not a finite number is null."""
        return asdict(self) | {"value": self.value if math.isfinite(self.value) else None}


def as_passport(what: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The passport as it is kept."""
    return {
        "format": 1,
        "what": what,
        "code": code_fingerprint(),
        "passed": not any(finding.verdict == FAIL for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
    }


def at_most(value: float, limit: float, good: str, bad: str) -> Measured:
    """Passes up to the limit; a value that is not a number fails."""
    passed = value <= limit
    return Measured(value, f"{limit:.0e}" if limit else "0", passed, good if passed else bad)


def more_than(value: float, limit: float, good: str, bad: str) -> Measured:
    passed = value > limit
    return Measured(value, f"> {limit:.0e}", passed, good if passed else bad)


KINDS = {"classify": "encoder", "lm": "decoder"}
HEADER = "| part | in | verdict | what it does wrong |\n|---|---|---|---|"


def table_lines(findings: Sequence[Finding], width: int = 120) -> list[str]:
    """One table for each task, and a last line that sums up."""
    lines = []
    for task, kind in KINDS.items():
        chosen = [finding for finding in findings if finding.task == task]
        if not chosen:
            continue
        lines.append(f"in {'an encoder' if kind == 'encoder' else 'a decoder'}")
        lines.append(f"  {'id':<5}{'check':<36}{'level':<7}{'measured':>10} {'limit':>16}  {'verdict':<8}")
        for each in chosen:
            lines.append(
                f"  {each.id:<5}{each.name:<36}{each.level:<7}{each.value:>10.2g} {each.limit:>16}  {each.verdict:<8}"
            )
            lines += textwrap.wrap(each.meaning, width - 8, initial_indent=" " * 7, subsequent_indent=" " * 7)
        lines.append("")
    return [*lines, summary(findings)]


def summary(findings: Sequence[Finding]) -> str:
    failed = sorted((each for each in findings if each.verdict == FAIL), key=lambda each: not each.blocks)
    if not failed:
        return f"PASS: {len(findings)} checks"
    names = dict.fromkeys(f"{each.id} {each.name}{'' if each.blocks else ' (amber)'}" for each in failed)
    return f"FAIL: {', '.join(names)}"


def markdown_row(name: str, findings: Sequence[Finding]) -> str:
    """`| alibi | encoder, decoder | PASS | |`"""
    kinds = ", ".join(kind for task, kind in KINDS.items() if any(each.task == task for each in findings))
    failed = dict.fromkeys(each.id for each in findings if each.blocks)
    minor = dict.fromkeys(f"{each.id} (amber)" for each in findings if each.verdict == FAIL and not each.blocks)
    blind = [each for each in findings if each.id == "M8" and each.verdict == REPORT and each.value <= 1e-6]
    told = [*failed, *minor, *(f"sees no word order ({KINDS[each.task]})" for each in blind)]
    return f"| `{name}` | {kinds} | {'FAIL' if failed or minor else 'PASS'} | {', '.join(told)} |"
