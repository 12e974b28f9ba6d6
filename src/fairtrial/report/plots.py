"""Figures by matplotlib, with one style and the same bytes for the same numbers; small pictures also in letters."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from fairtrial.errors import BadInput
from fairtrial.events import Scored
from fairtrial.record import Record
from fairtrial.report.curves import UNITS
from fairtrial.results.values import Comparison, Verdict
from fairtrial.stored import Metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TIMELESS: dict[str, dict[str, Any]] = {  # metadata that would differ from one run to the next
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
LOOK: dict[str, Any] = {
    "text.parse_math": False,  # a user's words may hold dollars
    "svg.fonttype": "none",
    "svg.hashsalt": "fairtrial",
    "font.sans-serif": ["DejaVu Sans"],  # one font by name: every word of an SVG would carry the whole list
    "font.size": 8,
}
COLOUR = "#0b62c4"
SEVERITIES = {"pass": "#2e9f5b", "amber": "#e0a020", "red": "#c0203a"}
SHADES = "·░▒▓█"
TERMINAL_WIDTH = 80


def our_look(more: dict[str, Any] | None = None) -> AbstractContextManager[None]:
    """Draw and write inside this; `more` are further settings of matplotlib."""
    import matplotlib

    settings: Any = {**LOOK, **(more or {})}  # matplotlib types every name
    return matplotlib.rc_context(settings)


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


def picture_lines(picture: Picture) -> list[str]:
    """A picture in letters: darker is greater, blank is hidden."""
    low, high = picture.range
    longest = max(len(row) for panel in picture.panels for row in panel.values)
    step = -(-longest // TERMINAL_WIDTH)  # of columns that are shown
    side_by_side = min(2, len(picture.panels))
    cell = 2 if side_by_side * (2 * longest + 2) - 2 <= TERMINAL_WIDTH else 1  # two letters are about a square
    drawn = [
        [panel.title] * bool(panel.title)
        + ["".join(shade(value, low, high) * cell for value in row[::step]) for row in panel.values]
        for panel in picture.panels
    ]
    wide = max(len(line) for lines in drawn for line in lines)
    across = max(1, (TERMINAL_WIDTH + 2) // (wide + 2))
    across = -(-len(drawn) // -(-len(drawn) // across))  # rows of panels of about one length
    lines = [line for text in (picture.what, picture.how) for line in textwrap.wrap(text, TERMINAL_WIDTH)]
    if picture.rows:
        few = f" (every {step}th is shown)" if step > 1 else ""
        lines.append(f"{picture.rows} goes down, {picture.columns} goes across{few}")
    for first in range(0, len(drawn), across):
        for texts in zip_longest(*drawn[first : first + across], fillvalue=""):
            lines.append("  ".join(f"{text:<{wide}}" for text in texts).rstrip())
    return [*lines, legend(picture)]


def shade(value: float | None, low: float, high: float) -> str:
    if value is None:
        return " "
    share = (value - low) / (high - low) if high > low else 1.0
    return SHADES[min(len(SHADES) - 1, int(share * len(SHADES)))]


def legend(picture: Picture) -> str:
    low, high = picture.range
    ends = (
        f"{SHADES[-1]} {high:.3g}" if low == high else f"{SHADES[0]} {low:.3g} (least)   {SHADES[-1]} {high:.3g} (most)"
    )
    if picture.yes_or_no:
        ends = f"{SHADES[-1]} seen   {SHADES[0]} forbidden"
    hidden = any(None in row for panel in picture.panels for row in panel.values)
    return ends + "   blank: the future" * hidden + "   (one scale for all panels)" * (len(picture.panels) > 1)


@cache
def drawing() -> type[Figure]:
    """matplotlib's figure, one that a notebook shows by itself, also where pyplot was never imported."""
    from matplotlib.figure import Figure

    class Drawing(Figure):
        def _repr_png_(self) -> bytes:
            return figure_bytes(self, "png")

    return Drawing


def draw_intervals(
    rows: Sequence[tuple[str, float | None, float | None, float | None]], title: str, unit: str, *,
    zero: bool = False, least: float | None = None, dots: Sequence[Sequence[float]] = (),
) -> Figure:  # fmt: skip
    """A row for each name, value, low and high. `zero`: a line there, with a strip of differences that are too small to
    matter (`least`); `dots`: the values of each seed, for each row."""
    with our_look({"axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False}):
        figure = drawing()(figsize=(7, 1.1 + 0.35 * len(rows)), layout="constrained", dpi=110)
        axes = figure.subplots()
        if zero and least:
            axes.axvspan(-least, least, color="0.93", zorder=0)
        if zero:
            axes.axvline(0, color="0.3", linewidth=1)
        for at, (_, value, low, high) in enumerate(rows):
            if low is not None and high is not None:
                axes.plot([low, high], [at, at], color=COLOUR, linewidth=2.5, solid_capstyle="round")
            if value is not None:
                axes.plot([value], [at], "o", color=COLOUR, markersize=6)
            seeds = dots[at] if at < len(dots) else ()
            axes.plot(seeds, [at - 0.25] * len(seeds), "o", color="0.6", markersize=3)
        axes.set_yticks(range(len(rows)), [name for name, *_ in rows])
        axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=unit)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title, fontsize=9)
    return figure


def draw_comparison(comparison: Comparison) -> Figure:
    """The difference with its interval, and that of each seed."""
    metric = comparison.metric
    seeds = [value for each in comparison.by_seed if (value := metric.shown(each)) is not None]
    names, margin = f"{comparison.variant} - {comparison.baseline}", metric.shown(comparison.margin) or None
    title, unit = comparison.verdict.value.replace("_", " "), metric.difference_unit
    return draw_intervals([(names, *ends(comparison))], title, unit, zero=True, least=margin, dots=[seeds])


def draw_verdict(verdict: Verdict) -> Figure:
    """Every difference with its interval."""
    several = len(verdict.tasks) > 1
    rows = [
        (f"{each.variant}, {each.test_set}" + f" ({name})" * several, *ends(each))
        for name, task in verdict.tasks.items()
        for each in task.comparisons
    ]
    tasks = list(verdict.tasks.values())
    units = dict.fromkeys(task.metric.difference_unit for task in tasks)
    title = f"difference from {verdict.baseline}, 95% intervals"
    margin = tasks[0].metric.shown(tasks[0].margin) if len(tasks) == 1 else None
    return draw_intervals(rows, title, " or ".join(units), zero=True, least=margin)


def ends(comparison: Comparison) -> tuple[float | None, float | None, float | None]:
    shown = comparison.shown
    return shown.estimate, shown.low, shown.high


def draw_checks(cells: Sequence[tuple[str, str, str]], title: str) -> Figure:
    """A square for each check (row), place (column) and severity."""
    names, places = (list(dict.fromkeys(cell[at] for cell in cells)) for at in (0, 1))
    with our_look():
        figure = drawing()(figsize=(3.4 + 0.6 * len(places), 1.0 + 0.22 * len(names)), layout="constrained", dpi=110)
        axes = figure.subplots()
        for name, place, severity in cells:
            at = (places.index(place), names.index(name))
            axes.scatter(*at, marker="s", s=70, color=SEVERITIES[severity])
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(range(len(places)), places)
        axes.set(xlim=(-0.7, len(places) - 0.3), ylim=(len(names) - 0.4, -0.6))
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title("\n".join(textwrap.wrap(title, 60)[:3]), fontsize=9)
    return figure


def draw_bars(rows: Sequence[tuple[str, float | None]], title: str, unit: str, *, upright: bool = False) -> Figure:
    """A bar for each name and value; `upright` for the words of a text."""
    names, numbers = [name for name, _ in rows], [value or 0.0 for _, value in rows]
    long = 1.2 + 0.28 * len(rows)
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = drawing()(figsize=(max(4.0, long), 2.6) if upright else (7, long), layout="constrained", dpi=110)
        axes = figure.subplots()
        if upright:
            axes.bar(range(len(rows)), numbers, color=COLOUR)
            axes.set_xticks(range(len(rows)), names, rotation=60, ha="right")
            axes.set(ylabel=unit)
        else:
            axes.barh(range(len(rows)), numbers, color=COLOUR)
            axes.set_yticks(range(len(rows)), names)
            axes.set(xlabel=unit)
            axes.invert_yaxis()
        axes.set_title(title, fontsize=9)
    return figure


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


def curves_figure(record: Record, kind: str) -> bytes:
    """Loss and score of every split that was scored, side by side."""
    if kind not in TIMELESS:
        raise BadInput(f"a figure cannot be written as {kind!r}", f"formats: {', '.join(TIMELESS)}")
    with our_look():
        return figure_bytes(draw_curves(record), kind, dpi=150)


def draw_curves(record: Record) -> Figure:
    scores = [event for event in record.events() if isinstance(event, Scored)]
    if not scores:
        raise BadInput(f"{record.folder} has no scores yet, so there is nothing to draw")
    metric = scores[0].metrics.headline
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = drawing()(figsize=(10, 3.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw(left, scores, lambda score: score.loss, "Loss (nats per answer)", record)
        _draw(right, scores, lambda score: score.figure(metric), UNITS[metric].capitalize(), record)
        if metric == "accuracy":
            right.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        else:
            right.set_yscale("log")
        figure.suptitle(f"{record.folder.name}: seed {record.trial.seed}", fontsize=10)
        return plain_logs(figure)


def _draw(
    axes: Any, scores: Sequence[Scored], value_of: Callable[[Metrics], float], title: str, record: Record
) -> None:
    splits = dict.fromkeys(event.split for event in scores)
    for split in splits:
        points = [(event.step, value_of(event.metrics)) for event in scores if event.split == split]
        drawn = [(step, value) for step, value in points if math.isfinite(value)]
        axes.plot(*zip(*drawn, strict=True), marker="o", markersize=3, label=split)
    if record.complete and record.result.kept == "best" and record.result.validation:
        axes.axvline(record.result.kept_step, color="grey", linewidth=0.8, linestyle=":", label="kept")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("step")
    axes.legend(frameon=False, fontsize=8)
