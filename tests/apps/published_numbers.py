"""Which numbers the package's file, its source and a page hold, by report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

COURSE = "the course"
TABLES = (
    "accuracy", "window_perplexity", "sentence_perplexity", "sentence_loss", "curves", "parameters", "settings",
    "not_retried",
)  # fmt: skip
NOT_FIGURES = {"first", "every", "at"}  # where a number stands, not what it is
NUMBER = r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?(?![\w-])"

Numbers = Counter[tuple[str, float]]  # (report, number)


def numbers_in(value: Any) -> Iterator[float]:
    """All numbers of a table, also those of '15 epochs'."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from () if name in NOT_FIGURES else numbers_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)
    elif isinstance(value, str) and (found := re.fullmatch(r"(\d+) (epochs|steps)", value)):
        yield float(found[1])


def in_package(facts: dict[str, Any]) -> Numbers:
    return Counter((row["report"], each) for table in TABLES for row in facts[table] for each in numbers_in(row))


def in_source(facts: dict[str, Any]) -> Numbers:
    """The same of the file that the reports' figures were collected in."""
    found: Numbers = Counter((COURSE, each) for each in numbers_in(facts["recipe"]["speeches"]))
    found += Counter((report, each) for report, row in facts["parameters"].items() for each in numbers_in(row))
    rows = [row for name in ("classifier", "lm") for row in facts[name]]
    found += Counter((row["report"], each) for row in rows for each in numbers_in(row))
    return found + Counter(("r4", each) for name in ("lm1b", "finetune") for each in numbers_in(facts[name]))


def on_page(text: str) -> Numbers:
    """What stands in columns of published numbers, by the report that the row or its heading names."""
    found: Numbers = Counter()
    heading, columns = "", list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            heading = re.sub(r"^#+ (r\d)?.*", r"\1", line)
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        if not cells or not columns:
            columns = cells
            continue
        row = dict(zip(columns, cells, strict=True))
        for name, cell in row.items():
            if name.endswith("published"):
                shown = re.findall(NUMBER, cell)
                found += Counter((row.get("report", heading), float(each.replace(",", ""))) for each in shown)
    return found


def missing(text: str, facts: dict[str, Any]) -> Numbers:
    return in_package(facts) - on_page(text)
