"""The page of a zoo, in Markdown. Its prose is in page.md; scripts that reproduce a fault, with what they printed,
stand in a folder beside it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from fairtrial.apps.zoo.labels import DESIGN, FAULT, OPEN, Label, kind_of, labels, summary
from fairtrial.apps.zoo.run import COLUMNS, HERE, KINDS, SHAPE, Row, Zoo
from fairtrial.disk import write_text
from fairtrial.finding import FAIL, NOT_ASKED, PASS
from fairtrial.report import environment

MARKS = {PASS: "ok", NOT_ASKED: "–", "": ""}
SHOWN = {FAULT: "**fault**", DESIGN: "design", OPEN: "**FAIL**"}


def write_page(zoo: Zoo, path: Path) -> Path:
    template = environment().overlay(loader=FileSystemLoader(HERE), autoescape=False).get_template("page.md")
    text = template.render(values_of(zoo, path.with_suffix("")))
    write_text(path, re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n")
    return path


def values_of(zoo: Zoo, scripts: Path) -> dict[str, Any]:
    """What the template shows."""
    asked = [row for row in zoo.rows if not row.reason]
    found = [(label, findings_of(label, asked)) for label in labels()]
    open_ones = [(row, each) for row in asked for each in row.failed if kind_of(row, each) == OPEN]
    return {
        "zoo": zoo, "summary": summary(zoo), "torch": version("torch"), "python": platform.python_version(),
        "shape": ", ".join(f"{name} {size}" for name, size in SHAPE.items()),
        "columns": COLUMNS,
        "faults": [fault(label, rows, scripts) for label, rows in found if label.kind == FAULT and rows],
        "designed": [(label, rows) for label, rows in found if label.kind == DESIGN and rows],
        "open": open_ones,
        "tables": {KINDS[task]: list(table_of([row for row in asked if row.species.task == task])) for task in KINDS},
        "left_out": [(row, one_line(row.reason)) for row in zoo.rows if row.reason],
    }  # fmt: skip


def findings_of(label: Label, rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Class, and what was measured: `K2 3.9, C2 raises`"""
    found = []
    for row in rows:
        fitting = [each for each in row.failed if label.fits(row, each)]
        shown = [f"{each.id} {'raises' if 'raises' in each.meaning else f'{each.value:.2g}'}" for each in fitting]
        found += [(row.species.name, ", ".join(shown))] if fitting else []
    return found


def fault(label: Label, rows: list[tuple[str, str]], scripts: Path) -> dict[str, Any]:
    """Its script and what that printed, where they stand beside the page."""
    path = scripts / f"{label.script}.py"
    blocks = {"script": (path, "python"), "output": (path.with_suffix(".txt"), "")}
    return {
        "label": label, "rows": rows, "path": f"{scripts.name}/{path.name}",
        **{name: fenced(file, language) for name, (file, language) in blocks.items()},
    }  # fmt: skip


def fenced(path: Path, language: str) -> str:
    """A file as a block of code; empty: it is not there"""
    return f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```" if path.is_file() else ""


def table_of(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Class, families, and a cell for each column."""
    for row in rows:
        yield [f"`{row.species.name}`", ", ".join(row.species.families), *(cell_of(row, column) for column in COLUMNS)]


def cell_of(row: Row, column: str) -> str:
    if row.cell(column) != FAIL:
        return MARKS.get(row.cell(column), row.cell(column))
    kinds = {kind_of(row, each) for each in row.failed if each.id in COLUMNS[column]}
    return next(SHOWN[kind] for kind in (OPEN, FAULT, DESIGN) if kind in kinds)


def one_line(reason: str) -> str:
    return re.sub(r"\s+", " ", reason).split(" (the contract:")[0].split(" (give options")[0].replace("|", r"\|")
