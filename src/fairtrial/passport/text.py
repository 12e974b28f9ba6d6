"""A passport as text: a table for the terminal, a row for a Markdown page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fairtrial.passport.finding import FAIL, REPORT, Finding

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
