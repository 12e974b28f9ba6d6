"""The audit of a data set as a table for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from fairtrial.report.baseline_text import spoken_copies

QUIET = ("PASS", "REPORT")


def audit_lines(audit: dict[str, Any], width: int = 120) -> Iterator[str]:
    """`audit`: what `audit_data` found for one task."""
    recipe = audit["recipe"] or "of your own"
    yield f"{audit['task']}: {audit['source']} (recipe {recipe}: {spoken_documents(audit['documents'])})"
    for name, copies in audit["sets"].items():
        yield f"  {name}: {spoken_copies(copies)}"
    yield ""
    yield f"  {'id':<5}{'check':<28}{'where':<18}{'measured':<26}{'limit':<14}verdict"
    told = ""
    for each in audit["findings"]:
        yield (
            f"  {each['id']:<5}{each['name']:<28}{each['where']:<18}{each['shown']:<26}{each['limit']:<14}"
            f"{each['verdict']}"
        )
        if each["verdict"] != "PASS" and each["meaning"] != told:
            told = each["meaning"]
            yield from textwrap.wrap(each["meaning"], width - 8, initial_indent=" " * 7, subsequent_indent=" " * 7)
        for example in each["examples"] if each["verdict"] not in QUIET else []:
            yield f"       - {example}"
    for note in audit["notes"]:
        yield f"  note: {note}"
    yield ""
    yield summary_line(audit)


def spoken_documents(documents: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in documents.items() if count)


def summary_line(audit: dict[str, Any]) -> str:
    def named(verdict: str) -> str:
        return ", ".join(
            dict.fromkeys(f"{each['id']} {each['name']}" for each in audit["findings"] if each["verdict"] == verdict)
        )

    if audit["level"] == "red":
        copied = any(each["verdict"] == "RED" and each["id"] in ("D1", "D1n") for each in audit["findings"])
        hint = f" (repair it with: fairtrial clean --data {audit['source']} --out FOLDER)" if copied else ""
        return f"RED: {named('RED')}{hint}"
    if audit["level"] == "amber":
        return f"AMBER: {named('AMBER')}"
    return f"PASS: {len(audit['findings'])} checks"
