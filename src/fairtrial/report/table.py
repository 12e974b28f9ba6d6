"""A table as a plain value, and its faces: terminal, Markdown, LaTeX. The page draws the same value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairtrial.report.text import plain


@dataclass(frozen=True)
class Cell:
    text: str
    stamp: str = ""  # stands beside the text in every face: a failed passport
    kind: str = ""  # a verdict, which the page colours

    @property
    def whole(self) -> str:
        return f"{self.text} [{self.stamp}]" if self.stamp else self.text


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    words: int = 1  # so many columns on the left hold words; the others hold numbers


def row(*cells: Cell | str) -> tuple[Cell, ...]:
    return tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells)


def without_empty_columns(table: Table, empty: str) -> Table:
    """A column that says nothing in any row is left out."""
    kept = [at for at in range(len(table.columns)) if any(each[at].whole not in ("", empty) for each in table.rows)]
    return Table(
        table.title,
        tuple(table.columns[at] for at in kept),
        tuple(tuple(each[at] for at in kept) for each in table.rows),
        table.note,
        sum(at < table.words for at in kept),
    )


def as_text(table: Table) -> list[str]:
    from rich.cells import cell_len, set_cell_size  # letters of other scripts may be two places wide

    grid = [table.columns, *(tuple(cell.whole for cell in each) for each in table.rows)]
    grid = [tuple(plain(text) for text in each) for each in grid]
    widths = [max(cell_len(each[at]) for each in grid) for at in range(len(table.columns))]

    def line(texts: tuple[str, ...]) -> str:
        parts = []
        for at, (text, width) in enumerate(zip(texts, widths, strict=True)):
            parts.append(set_cell_size(text, width) if at < table.words else " " * (width - cell_len(text)) + text)
        return "  " + "  ".join(parts).rstrip()

    lines = [plain(table.title), line(grid[0]), "  " + "-" * (sum(widths) + 2 * (len(widths) - 1))]
    lines += [line(each) for each in grid[1:]]
    return [*lines, f"  {plain(table.note)}"] if table.note else lines


def as_markdown(table: Table) -> list[str]:
    def line(texts: list[str]) -> str:
        return f"| {' | '.join(texts)} |"

    rule = ["---" if at < table.words else "---:" for at in range(len(table.columns))]
    lines = [f"**{markdown_escape(table.title)}**", "", line([markdown_escape(each) for each in table.columns])]
    lines.append(line(rule))
    lines += [line([markdown_cell(cell) for cell in each]) for each in table.rows]
    return [*lines, "", markdown_escape(table.note)] if table.note else lines


def markdown_cell(cell: Cell) -> str:
    stamp = f" **({markdown_escape(cell.stamp)})**" if cell.stamp else ""
    return markdown_escape(cell.text) + stamp


def markdown_escape(text: str) -> str:
    """Names are a user's text: no bar may end a cell, no angle bracket may open a tag, no letter may format."""
    text = re.sub(r"([\\`*_|<>~])", r"\\\1", plain(text))
    return text.replace("](", "]\\(").replace("&", "&amp;")  # intervals keep their bare brackets, links are none


def as_latex(table: Table) -> list[str]:
    """For `\\usepackage{booktabs}`."""

    def line(texts: list[str]) -> str:
        return "  " + " & ".join(texts) + r" \\"

    letters = "l" * table.words + "r" * (len(table.columns) - table.words)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_escape(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{letters}}}", r"\toprule"]
    lines += [line([latex_escape(each) for each in table.columns]), r"\midrule"]
    lines += [line([latex_cell(cell) for cell in each]) for each in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.note:
        lines.append(rf"\par\smallskip\footnotesize {latex_escape(table.note)}")
    return [*lines, r"\end{table}"]


def latex_cell(cell: Cell) -> str:
    stamp = rf" \textbf{{({latex_escape(cell.stamp)})}}" if cell.stamp else ""
    return latex_escape(cell.text) + stamp


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"\textbar{}",
    "–": "--", "×": r"$\times$", "±": r"$\pm$", "→": r"$\to$",
}  # fmt: skip


def latex_escape(text: str) -> str:
    text = "".join(LATEX.get(letter, letter) for letter in plain(text))
    text = re.sub(r"(?<![\w-])-(?=\d)", "$-$", text)
    return "{[}" + text[1:] if text.startswith("[") else text  # after a line end a bracket would be an option
