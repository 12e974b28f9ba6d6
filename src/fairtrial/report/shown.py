"""Results that show themselves: as text, as HTML in a notebook (no script, no network), as Markdown, LaTeX, a data
frame or a figure. A result says its sentences, its tables and its plain rows; the rest follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.errors import FairtrialError
from fairtrial.report.table import PROSE_WIDTH, Table, as_latex, as_markdown, as_text, markdown_escape, plain, wrapped

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

TEXT_WIDTH = 120  # of a result's repr


class Shown:
    """What every result can do. Printed it is text, and a notebook shows it with tables and charts.

    >>> "<script" in classifier._repr_html_()
    False
    """

    def sentences(self) -> Sequence[str]:
        """What comes first.

        >>> len(finished.verdict.sentences()) > 1
        True
        """
        return ()

    def tables(self) -> Sequence[Table]:
        """As plain values.

        >>> classifier.tables()[0].columns[:2]
        ('scored on', 'accuracy')
        """
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """Its numbers, all digits of them.

        >>> [row["set"] for row in classifier.rows()]
        ['validation', 'test']
        """
        table = self.tables()[0]
        values = ([cell.stamped if cell.number is None else cell.number for cell in cells] for cells in table.rows)
        return [dict(zip(table.columns, row, strict=True)) for row in values]

    def charts(self) -> Sequence[str]:
        """SVG for the notebook.

        >>> "<svg" in classifier.charts()[0]
        True
        """
        return ()

    def __repr__(self) -> str:
        texts = (" ".join(text.split()) for text in self.sentences())
        lines = [line for text in texts for line in wrapped(text, indent="", width=PROSE_WIDTH)]
        for table in self.tables():
            lines += [*([""] if lines else []), *as_text(table, width=TEXT_WIDTH)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from fairtrial.report.page import fragment

        return fragment(self.sentences(), self.charts(), self.tables())

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown.

        >>> print(ft.power(seeds=5, items=750).to_markdown())
        5 seeds and 750 items detect 2.4 to 5.3 points of accuracy in 4 of 5 cases.
        ...
        """
        blocks = ["\n".join(as_markdown(table)) for table in self.tables()]
        return "\n\n".join([*map(markdown_escape, self.sentences()), *blocks])

    def to_latex(self) -> str:
        """The tables as LaTeX (needs `\\usepackage{booktabs}`), the sentences as comments.

        >>> "toprule" in classifier.to_latex()
        True
        """
        lines = ["% needs \\usepackage{booktabs}", *(f"% {plain(text)}" for text in self.sentences())]
        return "\n".join([*lines, *(line for table in self.tables() for line in ("", *as_latex(table)))])

    def to_frame(self) -> pandas.DataFrame:
        """Its numbers as a pandas DataFrame.

        >>> classifier.to_frame()["items"].tolist()
        [20, 48]
        """
        try:
            import pandas
        except ImportError as error:
            raise FairtrialError(
                "pandas is not installed", "pip install pandas; or take .rows(), plain values"
            ) from error
        return pandas.DataFrame(self.rows())

    def plot(self) -> Figure:
        """Its numbers as a matplotlib figure.

        >>> ft.power(seeds=5, items=750).plot().savefig("power.svg")
        """
        raise FairtrialError(f"{type(self).__name__} has no plot", "its numbers are in .rows() and .to_frame()")
