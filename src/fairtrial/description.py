"""A result described once, without a medium: title, sentences, tables, charts. `report.render` turns a description into
terminal text, Markdown, LaTeX, CSV, or HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.errors import FairtrialError
from fairtrial.typed import unstructure

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

MISSING = "–"


@dataclass(frozen=True)
class Cell:
    text: str
    stamp: str = ""  # shown beside the text in every format: a failed leak audit
    kind: str = ""  # a verdict, which pages colour
    number: int | float | None = None  # for CSV, where the text is a rounded or grouped number

    @property
    def stamped(self) -> str:
        return f"{self.text} [{self.stamp}]" if self.stamp else self.text


Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells, without a medium.

    >>> ft.power(seeds=5, items=750).describe().tables[0].numbers()[0]["items"]
    750
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    text_columns: int = 1  # so many columns on the left hold text; the others hold numbers

    def without_empty_columns(self) -> Table:
        kept = [at for at in range(len(self.columns)) if any(row[at].stamped not in ("", MISSING) for row in self.rows)]
        return replace(
            self,
            columns=tuple(self.columns[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in self.rows),
            text_columns=sum(at < self.text_columns for at in kept),
        )

    def numbers(self) -> list[dict[str, object]]:
        """Its rows with all digits."""
        values = ([cell.stamped if cell.number is None else cell.number for cell in cells] for cells in self.rows)
        return [dict(zip(self.columns, row, strict=True)) for row in values]


def row(*cells: Cell | str | int) -> Row:
    return tuple(
        cell if isinstance(cell, Cell) else Cell(cell) if isinstance(cell, str) else Cell(f"{cell:,}", number=cell)
        for cell in cells
    )


@dataclass(frozen=True)
class Curve:
    name: str  # the split
    unit: str
    points: tuple[tuple[int, float], ...]  # (step, value)
    band: tuple[tuple[float, float], ...] = ()  # (lowest, highest) over seeds, at each point


@dataclass(frozen=True)
class LineChart:
    """Curves over training steps."""

    title: str
    y_label: str
    curves: tuple[Curve, ...]
    percent: bool = False
    log: bool = False
    kept_step: int | None = None  # whose weights were kept
    x_label: str = "step"


@dataclass(frozen=True)
class IntervalRow:
    name: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    dots: tuple[float | None, ...] = ()  # of each seed
    kind: str = ""  # a verdict, which decides the colour


@dataclass(frozen=True)
class IntervalChart:
    """Estimates with their 95% intervals, one below the other."""

    title: str
    unit: str
    rows: tuple[IntervalRow, ...]
    difference: bool = False  # from zero, which is marked
    margin: float | None = None  # smaller differences do not matter


@dataclass(frozen=True)
class BarChart:
    title: str
    unit: str
    bars: tuple[tuple[str, float | None], ...]
    upright: bool = False  # for the words of a text


@dataclass(frozen=True)
class ShadedText:
    """A text; the deeper the shade of a piece, the more nats it took. None: it is not counted."""

    pieces: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True)
class AttentionMap:
    title: str
    words: tuple[str, ...]
    weights: Sequence[Sequence[float | None]]  # query, key; None: hidden


Chart = LineChart | IntervalChart | BarChart | ShadedText | AttentionMap


@dataclass(frozen=True)
class Description:
    """What a result says, the most important first.

    >>> ft.power(seeds=5, items=750).describe().sentences[0].endswith("in 4 of 5 cases.")
    True
    """

    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    title: str = ""
    charts: Sequence[Chart] = ()
    sections: Sequence[Description] = ()  # each with a title
    basis: Sequence[str] = ()  # what the sentences rest on, said once
    limits: Sequence[str] = ()  # what limits them: a few
    notes: Sequence[str] = ()  # on demand

    @property
    def prose(self) -> list[str]:
        """All that is said before the first table."""
        return [*self.sentences, *self.basis, *self.limits]

    @property
    def more(self) -> list[str]:
        """That there are notes."""
        count = len(self.notes)
        return [f"{count} further note{'s' * (count > 1)}: --all, in Python to_text(every=True)."] if count else []

    def parts(self) -> Iterator[Description]:
        """Itself and all sections."""
        yield self
        for section in self.sections:
            yield from section.parts()


class Result:
    """What every result can do. Printed it is text, and a notebook shows it with tables and charts.

    >>> "<script" in classifier._repr_html_()
    False
    """

    def describe(self) -> Description:
        """Its title, sentences, tables and charts, without a medium."""
        raise NotImplementedError

    def rows(self) -> list[dict[str, object]]:
        """Its numbers, all digits of them."""
        return self.describe().tables[0].numbers()

    def to_json(self) -> object:
        """All of it as plain values."""
        return unstructure(self, lambda value: value.tolist() if hasattr(value, "tolist") else str(value))

    def __repr__(self) -> str:
        from fairtrial.report.render import as_repr

        return as_repr(self.describe())

    def __str__(self) -> str:
        return self._rendered("terminal")

    def _repr_html_(self) -> str:
        return self._rendered("html")

    def _rendered(self, to: str) -> str:
        from fairtrial.report.render import render

        return render(self.describe(), to)

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""
        return self._rendered("markdown")

    def to_latex(self) -> str:
        """The tables as LaTeX (needs `\\usepackage{booktabs}`), the sentences as comments."""
        return self._rendered("latex")

    def to_csv(self) -> str:
        """The tables as comma-separated values, one below the other, with all digits."""
        return self._rendered("csv")

    def to_frame(self) -> pandas.DataFrame:
        """Its numbers as a pandas DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise FairtrialError(
                "pandas is not installed", "pip install pandas; or take .rows(), plain values"
            ) from error
        return pandas.DataFrame(self.rows())

    def plot(self) -> Figure:
        """Its charts as a matplotlib figure."""
        from fairtrial.report.plots import draw

        charts = [chart for part in self.describe().parts() for chart in part.charts]
        if not charts:
            raise FairtrialError(f"{type(self).__name__} has no plot", "its numbers are in .rows() and .to_frame()")
        return draw(charts)
