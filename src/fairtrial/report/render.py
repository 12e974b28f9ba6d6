"""One renderer per medium: a description as terminal text (drawn by rich), Markdown, LaTeX, CSV, or HTML for a
notebook. Pages draw the same tables."""

from __future__ import annotations

import csv
import io
import re
import shutil
import sys
import textwrap
from collections.abc import Callable

from fairtrial.description import Cell, Description, ShadedText, Table

PROSE_WIDTH = 100
REPR_WIDTH = 120
UNLIMITED = 10_000  # columns
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"\textbar{}",
    "–": "--",
    "×": r"$\times$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "\ufffd": "?",
}


def plain(line: str) -> str:
    """Without control characters: a user's text must not command the terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", line)


def terminal_width() -> int:
    """Where output is piped, lines are as long as they need to be."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def wrapped(text: str, indent: str = "  ", first: str | None = None, width: int | None = None) -> list[str]:
    """Prose in lines of at most PROSE_WIDTH columns."""
    width = min(PROSE_WIDTH, width or terminal_width())
    first = indent if first is None else first
    wrapper = textwrap.TextWrapper(width, first, indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.wrap(plain(text))  # a path can be copied


def fitted(line: str, width: int) -> list[str]:
    """A line that is too long, broken between words; a terminal would break within them."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def column_widths(table: Table, space: int) -> list[int | None]:
    """Widths that fit into `space` columns without breaking a word, if there are any; the natural ones if they fit.
    A heading is wrapped before a cell is."""
    from rich.cells import cell_len

    cells = [table.columns, *([cell.stamped for cell in cells] for cells in table.rows)]
    columns = [[plain(text) for text in column] for column in zip(*cells, strict=True)]
    natural = [max(map(cell_len, texts)) for texts in columns]
    of_cells = [max(map(cell_len, texts[1:]), default=0) for texts in columns]
    widths = [max(cell_len(word) for text in texts for word in [*text.split(), ""]) for texts in columns]
    spare = space - 2 * (len(widths) - 1) - sum(widths)
    if spare < 0:
        return [None] * len(widths)
    for wanted in (of_cells, natural):
        while spare and any(width < want for width, want in zip(widths, wanted, strict=True)):
            narrowest = max(range(len(widths)), key=lambda at: wanted[at] - widths[at])
            widths[narrowest] += 1
            spare -= 1
    return list(widths)


def as_text(table: Table, width: int | None = None) -> list[str]:
    """Plain columns. Cells are wrapped where the terminal is too narrow, never cut off."""
    from rich.box import Box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    rule = Box("    \n    \n ---\n    \n    \n ---\n    \n    \n", ascii=True)
    grid = RichTable(box=rule, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    width = width or terminal_width()
    for at, (name, wide) in enumerate(zip(table.columns, column_widths(table, width - 2), strict=True)):
        numeric = at >= table.text_columns
        grid.add_column(Text(plain(name)), justify="right" if numeric else "left", overflow="fold", width=wide)
    for cells in table.rows:
        grid.add_row(*(Text(plain(cell.stamped)) for cell in cells))
    file = io.StringIO()
    # in a notebook, rich would show the table itself
    console = Console(file=file, width=width, color_system=None, legacy_windows=False, force_jupyter=False)
    console.print(Padding(grid, (0, 0, 0, 2)))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    title = wrapped(table.title, indent="", width=width)
    return [*title, *lines, *(wrapped(table.note, width=width) if table.note else [])]


def as_markdown(table: Table) -> list[str]:
    rows = [[markdown_cell(cell) for cell in cells] for cells in table.rows]
    names = [markdown_escape(name) for name in table.columns]
    rule = ["---" if at < table.text_columns else "---:" for at in range(len(names))]
    title = [f"**{markdown_escape(table.title)}**", ""] if table.title else []
    note = ["", markdown_escape(table.note)] if table.note else []
    return [*title, *(f"| {' | '.join(texts)} |" for texts in (names, rule, *rows)), *note]


def markdown_cell(cell: Cell) -> str:
    return markdown_escape(cell.text) + (f" **({markdown_escape(cell.stamp)})**" if cell.stamp else "")


def markdown_escape(text: str) -> str:
    """Names are a user's text: no bar may end a cell, no angle bracket open a tag, no character format."""
    text = re.sub(r"([\\`*_|<>~])", r"\\\1", plain(text))
    return text.replace("](", "]\\(").replace("&", "&amp;")  # intervals keep their brackets, links are disarmed


def as_latex(table: Table) -> list[str]:
    """For `\\usepackage{booktabs}`, without a title only the tabular."""
    alignment = "l" * table.text_columns + "r" * (len(table.columns) - table.text_columns)
    texts = [
        [latex_escape(name) for name in table.columns],
        *([latex_cell(each) for each in row] for row in table.rows),
    ]
    names, *rows = [f"  {' & '.join(cells)} \\\\" for cells in texts]
    begin, end = rf"\begin{{tabular}}{{{alignment}}}", r"\end{tabular}"
    lines = [begin, r"\toprule", names, r"\midrule", *rows, r"\bottomrule", end]
    if not table.title:
        return lines
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_escape(table.title)}}}", *lines]
    if table.note:
        lines.append(rf"\par\smallskip\footnotesize {latex_escape(table.note)}")
    return [*lines, r"\end{table}"]


SHORT = {"equivalent": "equiv.", "not comparable": "n/c"}  # verdicts


def latex_cell(cell: Cell) -> str:
    text = re.sub("^(equivalent|not comparable)", lambda word: SHORT[word[1]], cell.text) if cell.kind else cell.text
    return latex_escape(text) + (rf" \textbf{{({latex_escape(cell.stamp)})}}" if cell.stamp else "")


def latex_escape(text: str) -> str:
    text = "".join(LATEX.get(letter, letter) for letter in plain(text))
    text = re.sub(r"(?<![\w-])-(?=\d)", "$-$", text)
    return "{[}" + text[1:] if text.startswith("[") else text  # after a line end a bracket would be an option


def as_csv(table: Table) -> list[str]:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell.stamped if cell.number is None else cell.number for cell in cells] for cells in table.rows)
    return file.getvalue().splitlines()


def render(description: Description, to: str) -> str:
    """`to`: terminal, markdown, latex, csv or html."""
    return MEDIA[to](description)


def as_repr(description: Description) -> str:
    """In Python: without a title, and as wide as most screens."""
    return "\n".join(text_lines(description, REPR_WIDTH)[bool(description.title) :])


def to_terminal(description: Description) -> str:
    return "\n".join(text_lines(description, terminal_width()))


def text_lines(description: Description, width: int) -> list[str]:
    """Title, sentences (a list below a title), shaded texts, tables and sections."""
    lines = [plain(description.title)] if description.title else []
    lines += prose_lines(description, width)
    lines += [shaded_text(chart) for chart in description.charts if isinstance(chart, ShadedText)]
    for block in (
        *(as_text(table, width) for table in description.tables),
        *(text_lines(section, width) for section in description.sections),
    ):
        lines += [*([""] if lines else []), *block]
    return [*lines, *([""] if description.notes else []), *description.more]


def prose_lines(description: Description, width: int | None = None) -> list[str]:
    """All that stands before the first table."""
    first = "- " if description.title else ""
    lines: list[str] = []
    for text in description.prose:
        lines += wrapped(" ".join(text.split()), indent=" " * len(first), first=first, width=width)
    return lines


def shaded_text(chart: ShadedText) -> str:
    """`word/5.2`: each piece with its nats; a dash where nothing is counted, `␣` for a space that is a token."""
    pieces = ((plain(piece).strip() or "␣", "-" if nats is None else f"{nats:.1f}") for piece, nats in chart.pieces)
    return " ".join(f"{piece}/{nats}" for piece, nats in pieces)


def to_markdown(description: Description, level: int = 1) -> str:
    blocks = [f"{'#' * level} {markdown_escape(description.title)}"] if description.title else []
    if description.title:
        blocks += ["\n".join(f"- {markdown_escape(text)}" for text in description.prose)]
    else:
        blocks += map(markdown_escape, description.prose)
    blocks += ["\n".join(as_markdown(table)) for table in description.tables]
    blocks += [to_markdown(section, level + 1) for section in description.sections]
    blocks += map(markdown_escape, description.more)
    return "\n\n".join(filter(None, blocks))


def to_latex(description: Description) -> str:
    """The sentences as comments."""
    lines = [r"% needs \usepackage{booktabs}"]
    for part in description.parts():
        lines += [
            f"% {plain(text)}" for text in (part.title, *part.sentences, *part.basis, *part.limits, *part.notes) if text
        ]
        lines += [line for table in part.tables for line in ("", *as_latex(table))]
    return "\n".join(lines)


def to_csv(description: Description) -> str:
    return "\n\n".join("\n".join(as_csv(table)) for part in description.parts() for table in part.tables)


def to_html(description: Description) -> str:
    from fairtrial.report.page import fragment

    return fragment(description)


MEDIA: dict[str, Callable[[Description], str]] = {
    "terminal": to_terminal,
    "markdown": to_markdown,
    "latex": to_latex,
    "csv": to_csv,
    "html": to_html,
}
