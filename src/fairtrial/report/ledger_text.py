"""A parameter ledger as a table for the terminal, Markdown, LaTeX or CSV. It takes plain values and knows no model."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

HEADER = ("component", "formula", "parameters", "the reports' way")
COST_HEADER = ("component", "formula", "operations")
FORMATS = ("text", "markdown", "latex", "csv")

LedgerRow = tuple[str, str, int, int]  # component, formula, count, bias-free count
CostRow = tuple[str, str, int]  # component, formula, operations


def ledger_table(rows: Sequence[LedgerRow], kind: str) -> str:
    """All rows and their sums."""
    total = ("total", "", sum(row[2] for row in rows), sum(row[3] for row in rows))
    return table(HEADER, [*rows, total], kind)


def cost_table(rows: Sequence[CostRow], kind: str) -> str:
    return table(COST_HEADER, [*rows, ("total", "", sum(row[2] for row in rows))], kind)


def table(header: Sequence[str], rows: Sequence[Sequence[str | int]], kind: str) -> str:
    """Two columns of words, then numbers; the last row is a sum."""
    if kind == "csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])
        return file.getvalue()
    cells = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    return {"text": text, "markdown": markdown, "latex": latex}[kind](header, cells)


def text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    wide = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]

    def line(row: Sequence[str]) -> str:
        words = [
            cell.ljust(size) if place < 2 else cell.rjust(size)
            for place, (cell, size) in enumerate(zip(row, wide, strict=True))
        ]
        return "  ".join(words).rstrip()

    rule = "-" * (sum(wide) + 2 * (len(wide) - 1))
    return "\n".join((line(header), rule, *map(line, rows[:-1]), rule, line(rows[-1]))) + "\n"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

    rule = "|" + "|".join("---" if place < 2 else "---:" for place in range(len(header))) + "|"
    last = [f"**{cell}**" if cell else "" for cell in rows[-1]]
    return "\n".join((line(header), rule, *map(line, rows[:-1]), line(last))) + "\n"


def latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A booktabs table; `\\usepackage{booktabs}` goes before it."""
    columns = "ll" + "r" * (len(header) - 2)

    def line(row: Sequence[str]) -> str:
        return " & ".join(escape(cell) if place != 1 else mathematics(cell) for place, cell in enumerate(row)) + r" \\"

    body = [line(row) for row in rows]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(escape, header)) + r" \\", r"\midrule"]
    return "\n".join([*lines, *body[:-1], r"\midrule", body[-1], r"\bottomrule", r"\end{tabular}"]) + "\n"


def mathematics(formula: str) -> str:
    if not formula or not formula[0].isdigit():
        return escape(formula)
    sums, comma, words = formula.partition(", ")
    typeset = sums.replace("×", r"\times").replace(",", "{,}")
    return f"${typeset}$" + (f", {escape(words)}" if comma else "")


def escape(words: str) -> str:
    for letter in "\\&%$#_{}":
        words = words.replace(letter, r"\textbackslash " if letter == "\\" else f"\\{letter}")
    return words
