"""Figures by matplotlib, with one style and the same bytes for the same numbers; small pictures also in letters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.description import (
    AttentionMap,
    BarChart,
    Chart,
    IntervalChart,
    LineChart,
    ReliabilityChart,
    Result,
    ShadedText,
)
from fairtrial.disk import write_bytes
from fairtrial.errors import BadInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


TIMELESS: dict[str, dict[str, str | None]] = {  # metadata that would differ from one run to the next
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
LOOK: Mapping[str, object] = {
    "text.parse_math": False,  # a user's words may hold dollars
    "svg.fonttype": "none",
    "svg.hashsalt": "fairtrial",
    "font.sans-serif": ["DejaVu Sans"],  # one font by name: every word of an SVG would carry the whole list
    "font.size": 8,
}
COLOUR = "#0b62c4"
VERDICTS = {"better": "#2e7d32", "worse": "#c0203a", "equivalent": "#5f6b7a", "undecided": "#8a8f98"}


def our_look(more: Mapping[str, object] | None = None) -> AbstractContextManager[None]:
    """Draw and write inside this; `more` are further settings of matplotlib."""
    import matplotlib

    settings: dict[str, object] = {**LOOK, **(more or {})}
    return matplotlib.rc_context(settings)  # type: ignore[arg-type]  # matplotlib types every name


def plain_logs(figure: Figure) -> Figure:
    """Numbers on logarithmic axes as digits: our look draws no formulas."""
    from matplotlib.ticker import LogFormatter, LogFormatterSciNotation

    for axis in (each for axes in figure.axes for each in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), LogFormatterSciNotation):
            base = getattr(axis.get_transform(), "base", 10)
            axis.set_major_formatter(LogFormatter(base))
            axis.set_minor_formatter(LogFormatter(base, labelOnlyBase=False))
    return figure


def figure_bytes(figure: Figure, kind: str, dpi: float | str = "figure") -> bytes:
    file = BytesIO()
    plain_logs(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a script that the font lacks is drawn as boxes
        figure.savefig(file, format=kind, dpi=dpi, metadata=TIMELESS[kind])
    return file.getvalue()


@dataclass(frozen=True)
class Panel:
    """Rows of numbers; None is hidden."""

    title: str
    values: list[list[float | None]]


@dataclass(frozen=True)
class Picture:
    """Panels that share one scale and one meaning."""

    what: str
    rows: str  # what goes down
    columns: str  # what goes across
    panels: tuple[Panel, ...]
    yes_or_no: bool = False
    how: str = ""  # to read it, for those who see it for the first time

    @property
    def range(self) -> tuple[float, float]:
        if self.yes_or_no:
            return 0.0, 1.0
        numbers = [value for panel in self.panels for row in panel.values for value in row if value is not None]
        return (min(numbers) + 0.0, max(numbers) + 0.0) if numbers else (0.0, 0.0)  # + 0.0: -0 is shown as 0


@cache
def drawing() -> type[Figure]:
    """matplotlib's figure, one that a notebook shows by itself, also where pyplot was never imported."""
    from matplotlib.figure import Figure

    class Drawing(Figure):
        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png")

    return Drawing


def draw(charts: Sequence[Chart]) -> Figure:
    """The charts of a description: curves side by side, all others below one another."""
    curves = all(isinstance(chart, LineChart) for chart in charts)
    heights = [3.8 if curves else height_of(chart) for chart in charts]
    size = (5.0 * len(charts), 3.8) if curves else (7.0, sum(heights))
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = drawing()(figsize=size, layout="constrained", dpi=110)
        ratios, rows, columns = (None, 1, len(charts)) if curves else (heights, len(charts), 1)
        grid = figure.subplots(rows, columns, squeeze=False, height_ratios=ratios)
        for axes, chart in zip(grid.flat, charts, strict=True):
            draw_one(axes, chart)
        return plain_logs(figure)


def height_of(chart: Chart) -> float:
    """In inches."""
    match chart:
        case IntervalChart():
            return 1.1 + 0.35 * len(chart.rows)
        case BarChart():
            return 2.6 if chart.upright else 1.2 + 0.28 * len(chart.bars)
        case _:
            return 2.6 if isinstance(chart, ShadedText) else 5.0


def draw_one(axes: Axes, chart: Chart) -> None:
    match chart:
        case LineChart():
            draw_lines(axes, chart)
        case IntervalChart():
            draw_intervals(axes, chart)
        case BarChart():
            draw_bars(axes, chart)
        case ReliabilityChart():
            draw_reliability(axes, chart)
        case ShadedText():
            bars = tuple((piece.strip() or "␣", nats) for piece, nats in chart.pieces)
            draw_bars(axes, BarChart("surprisal", "nats", bars, upright=True))
        case AttentionMap():
            axes.imshow([[weight or 0.0 for weight in row] for row in chart.weights], cmap="Blues", vmin=0, vmax=1)
            axes.set_title(chart.title, fontsize=9)


def draw_lines(axes: Axes, chart: LineChart) -> None:
    for curve in chart.curves:
        points = [(step, value) for step, value in curve.points if math.isfinite(value)]
        marker = "o" if len(points) <= 40 else None
        (line,) = axes.plot(*zip(*points, strict=True), marker=marker, markersize=3, label=curve.name)
        if curve.band:
            steps = [step for step, _ in curve.points]
            lowest, highest = zip(*curve.band, strict=True)
            axes.fill_between(steps, lowest, highest, color=line.get_color(), alpha=0.15, linewidth=0)
    if chart.kept_step is not None:
        axes.axvline(chart.kept_step, color="grey", linewidth=0.8, linestyle=":", label="kept")
    if chart.percent:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    if chart.log:
        axes.set_yscale("log")
    axes.set_title(chart.title, fontsize=10)
    axes.set(xlabel="step", ylabel=chart.y_label)
    axes.legend(frameon=False, fontsize=8)


def draw_intervals(axes: Axes, chart: IntervalChart) -> None:
    if chart.difference and chart.margin:
        axes.axvspan(-chart.margin, chart.margin, color="0.93", zorder=0)
    if chart.difference:
        axes.axvline(0, color="0.3", linewidth=1)
    for at, row in enumerate(chart.rows):
        colour = VERDICTS.get(row.kind, COLOUR)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [at, at], color=colour, linewidth=2.5, solid_capstyle="round")
        if row.estimate is not None:
            axes.plot([row.estimate], [at], "o", color=colour, markersize=6)
        dots = [value for value in row.dots if value is not None]
        axes.plot(dots, [at - 0.25] * len(dots), "o", color="0.6", markersize=3)
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(chart.rows)), [row.name for row in chart.rows])
    axes.set(ylim=(len(chart.rows) - 0.4, -0.6), xlabel=chart.unit)
    axes.tick_params(axis="y", length=0)
    axes.set_title(chart.title, fontsize=9)


def draw_bars(axes: Axes, chart: BarChart) -> None:
    names, numbers = [name for name, _ in chart.bars], [value or 0.0 for _, value in chart.bars]
    if chart.upright:
        axes.bar(range(len(names)), numbers, color=COLOUR)
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
        axes.set(ylabel=chart.unit)
    else:
        axes.barh(range(len(names)), numbers, color=COLOUR)
        axes.set_yticks(range(len(names)), names)
        axes.set(xlabel=chart.unit)
        axes.invert_yaxis()
    axes.set_title(chart.title, fontsize=9)


def draw_reliability(axes: Axes, chart: ReliabilityChart) -> None:
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
    for point in chart.points:
        axes.plot([point.confidence] * 2, [point.low, point.high], color=COLOUR, linewidth=1)
    shown = [(point.confidence, point.accuracy) for point in chart.points]
    if shown:
        axes.plot(*zip(*shown, strict=True), marker="o", color=COLOUR)
    axes.set(xlabel="confidence", ylabel="share right", xlim=(0, 1), ylim=(0, 1))
    axes.set_title(chart.title, fontsize=9)


def image(pictures: Sequence[Picture], title: str, kind: str) -> bytes:
    """All pictures below one another, as PNG or SVG: the same bytes for the same numbers."""
    with our_look():
        return figure_bytes(draw_pictures(pictures, title), kind)


def draw_pictures(pictures: Sequence[Picture], title: str) -> Figure:
    import matplotlib
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    columns = min(4, max(len(picture.panels) for picture in pictures))
    heights = [-(-len(picture.panels) // columns) for picture in pictures]
    with our_look():
        figure = drawing()(figsize=(max(4.0, 2.2 * columns), 0.4 + 2.5 * sum(heights)), layout="constrained", dpi=120)
        figure.suptitle(title)
        parts = figure.subfigures(len(pictures), 1, height_ratios=heights, squeeze=False)[:, 0]
        for picture, part, height in zip(pictures, parts, heights, strict=True):
            part.suptitle(picture.what, fontsize=8)
            axes = part.subplots(height, columns, squeeze=False).flat
            low, high = picture.range
            for index, (axis, panel) in enumerate(zip(axes, picture.panels, strict=False)):
                numbers = np.array([[np.nan if value is None else value for value in row] for row in panel.values])
                colours = matplotlib.colormaps["Blues" if picture.yes_or_no else "viridis"].with_extremes(bad="0.93")
                shown = axis.imshow(numbers, cmap=colours, vmin=low, vmax=high, interpolation="none", aspect="auto")
                axis.set(title=panel.title, xlabel=picture.columns, ylabel="" if index % columns else picture.rows)
                axis.xaxis.set_major_locator(MaxNLocator(3, integer=True))
                axis.yaxis.set_major_locator(MaxNLocator(3, integer=True))
                if index % columns or not picture.rows:  # the first panel of a row has the labels
                    axis.set_yticks([])
            for axis in axes[len(picture.panels) :]:
                axis.set_axis_off()
            if not picture.yes_or_no:
                part.colorbar(shown, ax=list(axes))
        return figure


def write_figure(result: Result, path: Path) -> None:
    """The charts of a result, in the format of the file's ending."""
    charts = [chart for part in result.describe().parts() for chart in part.charts]
    write_drawing(path, lambda: draw(charts))


def write_drawing(path: Path, drawn: Callable[[], Figure]) -> None:
    """`drawn` is called once the file's ending is known to be right."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in TIMELESS:
        raise BadInput(f"a figure cannot be written as {kind!r}", f"formats: {', '.join(TIMELESS)}")
    with our_look():
        write_bytes(path, figure_bytes(drawn(), kind, dpi=150))
