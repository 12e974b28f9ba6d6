"""A whole verdict as lines: for the terminal, a Markdown page, a LaTeX paper."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from fairtrial.report.record_text import plain
from fairtrial.report.table import Table, as_latex, as_markdown, as_text, markdown_escape
from fairtrial.report.tables import verdict_tables

WIDTH = 100
FORMATS: dict[str, Callable[[Table], list[str]]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}


def verdict_lines(verdict: dict[str, Any], form: str = "text", *, every: bool = True) -> list[str]:
    """Sentences first, then the tables."""
    lines = opening(verdict, form)
    for table in verdict_tables(verdict, every=every):
        lines += ["", *FORMATS[form](table)]
    return lines


def opening(verdict: dict[str, Any], form: str) -> list[str]:
    name, sentences = verdict.get("name", ""), verdict.get("sentences", [])
    if form == "markdown":
        return [f"# {markdown_escape(name)}", "", *(f"- {markdown_escape(sentence)}" for sentence in sentences)]
    if form == "latex":
        return ["% needs \\usepackage{booktabs}", *(f"% {plain(sentence)}" for sentence in [name, *sentences])]
    lines = [plain(name), ""] if name else []
    for sentence in sentences:
        lines += textwrap.wrap(plain(sentence), WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines
