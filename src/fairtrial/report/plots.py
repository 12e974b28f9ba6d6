"""Charts by matplotlib, with one style and the same bytes for the same numbers: figures, and SVG inside pages. Maps of
attention and shaded texts have markup of their own, which is a tenth as long."""

from __future__ import annotations

import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from html import escape
from io import BytesIO
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from fairtrial.description import (
    AttentionMap,
    BarChart,
    Chart,
    IntervalChart,
    IntervalRow,
    LineChart,
    Result,
    ShadedText,
)
from fairtrial.disk import write_bytes
from fairtrial.errors import BadInput
from fairtrial.formatting import decimals_for, finite, interval_text, is_number, plain_number

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
COLOUR = "#2f7fd6"
GREY = "#7d8794"
VERDICTS = {"better": COLOUR, "worse": "#d0601a", "equivalent": GREY, "undecided": GREY, "not_comparable": "#c03a5a"}
MARKERS = {"better": "^", "worse": "v", "equivalent": "s", "undecided": "o", "not_comparable": "X"}
NEAR = 2.5  # widths of the variants' range that a baseline may be off and still be drawn
SHADES = 10
MAPS_IN_A_ROW, MOST_AXIS_WORDS = 4, 60
INVISIBLE = {" ": "␣", "\n": "⏎", "\t": "⇥", "": "∅"}
CELL = 18  # pixels of a map with words
# nats from which a colour is used: black on ever deeper orange, so that it reads on light and dark screens
SURPRISE = ((2.0, "#ffe8cc"), (4.0, "#ffcf99"), (6.0, "#ffb066"), (8.0, "#ff8a3d"), (10.0, "#f4622a"))

Map = Sequence[Sequence[float | None]]  # query, key; None: hidden


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


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """A script that the font lacks is drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def figure_bytes(figure: Figure, kind: str, dpi: float | str = "figure") -> bytes:
    file = BytesIO()
    plain_logs(figure)
    with without_glyph_warnings():
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
    """The charts of a description: maps in a grid, curves side by side, all others below one another."""
    if maps := [chart for chart in charts if isinstance(chart, AttentionMap)]:
        return draw_maps(maps)
    curves = all(isinstance(chart, LineChart) for chart in charts)
    heights = [3.8 if curves else height_of(chart) for chart in charts]
    across = min(2, len(charts)) if curves else 1
    down = -(-len(charts) // across)
    size = (5.0 * across, 3.8 * down) if curves else (7.0, sum(heights))
    with our_look({"axes.spines.top": False, "axes.spines.right": False}):
        figure = drawing()(figsize=size, layout="constrained", dpi=110)
        grid = figure.subplots(down, across, squeeze=False, height_ratios=None if curves else heights).flat
        for axes, chart in zip(grid, charts, strict=False):
            draw_one(axes, chart)
        for axes in grid[len(charts) :]:
            axes.set_axis_off()
        if any(row.kind in VERDICTS for chart in charts if isinstance(chart, IntervalChart) for row in chart.rows):
            add_verdict_legend(figure)
        return plain_logs(figure)


def add_verdict_legend(figure: Figure) -> None:
    """The five verdicts, always all of them, so that figures can be compared."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, linewidth=2.5, label=kind.replace("_", " "), **verdict_marker(kind))
        for kind, colour in VERDICTS.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)


def verdict_marker(kind: str) -> dict[str, Any]:
    """A form for each verdict beside its colour; undecided is hollow, as two verdicts are grey."""
    fill = {"markerfacecolor": "none"} if kind == "undecided" else {}
    return {"marker": MARKERS.get(kind, "o"), "markersize": 7 if kind in MARKERS else 6, **fill}


def svg(chart: Chart) -> str:
    """A chart as markup for a page: it speaks its numbers, and its ink is the page's. Empty where there are none."""
    if isinstance(chart, ShadedText):
        return shaded_html(chart)
    if isinstance(chart, AttentionMap):
        return attention_map(chart)
    spoken = spoken_numbers(chart)
    if not spoken:
        return ""
    with our_look():
        figure = draw([chart])
        figure.patch.set_visible(False)
        figure.axes[0].patch.set_visible(False)
        drawn = figure_bytes(figure, "svg").decode()
    label = escape(f"{chart.title}: {'; '.join(spoken)}")
    return f'<figure><svg class="chart" role="img" aria-label="{label}" {page_markup(drawn)}</figure>'


def page_markup(drawn: str) -> str:
    """What matplotlib writes, from its size on, for a page that allows no style attributes and no links: every marker
    is written where it stands."""
    markers = dict(re.findall(r'<path id="(\w+)" d="([^"]*)"', drawn))
    drawn = re.sub(r"<defs>.*?</defs>|<metadata>.*?</metadata>|<!--.*?-->", "", drawn, flags=re.S)
    drawn = re.sub(r' (id|clip-path|xmlns(:xlink)?)="[^"]*"', "", drawn)

    def placed(use: re.Match[str]) -> str:
        return f'<path d="{markers[use[1]]}" transform="translate({use[2]} {use[3]})"'

    def attributes(style: re.Match[str]) -> str:
        pairs = (each.partition(":") for each in style[1].split(";") if ":" in each)
        return "".join(f' {name.strip()}="{value.strip()}"' for name, _, value in pairs)

    drawn = re.sub(r'<use xlink:href="#(\w+)" x="([^"]*)" y="([^"]*)"', placed, drawn)
    drawn = re.sub(r' style="([^"]*)"', attributes, drawn.replace("#000000", "currentColor"))
    drawn = re.sub(r' font="([\d.]+)px [^"]*"', r' font-size="\1"', drawn)
    drawn = re.sub(r" font-family=\"[^\"]*\"|(?<=>)\s+(?=<)", "", drawn)
    return drawn[drawn.index("viewBox=") :].replace(' version="1.1"', "")


def spoken_numbers(chart: Chart) -> list[str]:
    """For those who cannot see it; empty where there is nothing to draw."""
    match chart:
        case LineChart():
            lines = [(curve.name, points) for curve in chart.curves if (points := drawable(chart, curve.points))]
            return [f"{name} from {points[0][1]:.3g} to {points[-1][1]:.3g}" for name, points in lines]
        case IntervalChart():
            return [spoken_interval(chart, row) for row in chart.rows if finite([row.estimate, row.low, row.high])]
        case BarChart():
            return [f"{name} {value or 0:.4g}" for name, value in chart.bars]
        case _:
            return []


def spoken_interval(chart: IntervalChart, row: IntervalRow) -> str:
    decimals, sign = decimals_for(row.low, row.high), chart.difference
    mean = f"{'difference' if sign else 'mean'} {plain_number(row.estimate, decimals, sign=sign)}"
    dots = "".join(f", {plain_number(value, decimals)}" for value in row.dots)
    interval = interval_text(row.low, row.high, sign=sign)
    return f"{row.name}: {mean}, 95% interval {interval}" + (f", seeds{dots[1:]}" if dots else "")


def drawable(chart: LineChart, points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """A perplexity may be infinite, and only what is above zero has a place on a log scale."""
    return [(step, value) for step, value in points if is_number(value) and (value > 0 or not chart.log)]


def height_of(chart: Chart) -> float:
    """In inches."""
    match chart:
        case IntervalChart():
            return 1.1 + 0.35 * len(chart.rows)
        case BarChart():
            return 2.6 if chart.upright else 1.2 + 0.28 * len(chart.bars)
        case _:
            return 2.6 if isinstance(chart, ShadedText) else 5.0


def draw_maps(charts: Sequence[AttentionMap]) -> Figure:
    columns = min(MAPS_IN_A_ROW, len(charts))
    rows = -(-len(charts) // columns)
    side = 0.9 + min(6.0, max(2.2, 0.16 * max(len(chart.words) for chart in charts)))
    with our_look({"hatch.linewidth": 0.6}):
        figure = drawing()(figsize=(columns * side, rows * (side + 0.2)), layout="constrained", dpi=110)
        grid = figure.subplots(rows, columns, squeeze=False).flat
        for axes, chart in zip(grid, charts, strict=False):
            draw_map(axes, chart, round(12 * side))
        for axes in grid[len(charts) :]:
            axes.set_axis_off()
        with without_glyph_warnings():
            figure.draw_without_rendering()  # square axes need a second layout: the first one cuts off their words
        return figure


def draw_map(axes: Axes, chart: AttentionMap, letters: int = 48) -> None:
    """Queries go down, keys across. Hidden cells show the hatched background. `letters`: in a line of the title."""
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    weights = np.array([[np.nan if weight is None else weight for weight in row] for row in chart.weights])
    colours = colormaps["Blues"].with_extremes(bad=(0, 0, 0, 0))
    axes.patch.set(facecolor="0.94", edgecolor="0.72", hatch="/////")
    axes.imshow(weights, cmap=colours, norm=PowerNorm(0.5, 0, 1), interpolation="none")
    words = [axis_word(word) for word in chart.words] if len(chart.words) <= MOST_AXIS_WORDS else []
    axes.set_xticks(range(len(words)), words, rotation=90, fontsize=7, parse_math=False)
    axes.set_yticks(range(len(words)), words, fontsize=7, parse_math=False)
    axes.tick_params(length=0, pad=1.5)
    axes.set_title("\n".join(wrap(chart.title, letters)), fontsize=8, parse_math=False)


def axis_word(word: str, longest: int = 14) -> str:
    """A word as an axis label: white space is made visible, long words are shortened."""
    if not word.strip():
        return "".join(INVISIBLE.get(letter, letter) for letter in word) or INVISIBLE[""]
    word = word.strip()
    if len(word) < 3 and not any(letter.isalnum() for letter in word):
        return f"‘{word}’"  # a lone comma would be overlooked
    return word if len(word) <= longest else word[: longest - 1] + "…"


def draw_one(axes: Axes, chart: Chart) -> None:
    match chart:
        case LineChart():
            draw_lines(axes, chart)
        case IntervalChart():
            draw_intervals(axes, chart)
        case BarChart():
            draw_bars(axes, chart)
        case ShadedText():
            bars = tuple((piece.strip() or "␣", nats) for piece, nats in chart.pieces)
            draw_bars(axes, BarChart("surprisal", "nats", bars, upright=True))
        case AttentionMap():
            draw_map(axes, chart)


def draw_lines(axes: Axes, chart: LineChart) -> None:
    for curve in chart.curves:
        points = drawable(chart, curve.points)
        if not points:
            continue
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
    axes.set_title("\n".join(wrap(chart.title, 50)), fontsize=10)
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    axes.legend(frameon=False, fontsize=8)


def draw_intervals(axes: Axes, chart: IntervalChart) -> None:
    if chart.difference and chart.margin:
        axes.axvspan(-chart.margin, chart.margin, color=GREY, alpha=0.15, linewidth=0, zorder=0)
    if chart.difference:
        axes.axvline(0, color="black", linewidth=1)
    low, high = interval_range(chart.rows)
    for at, row in enumerate(chart.rows):
        colour = VERDICTS.get(row.kind, "black" if row.kind == "reference" else GREY if row.kind else COLOUR)
        if is_number(row.estimate) and not low <= row.estimate <= high:  # it would squeeze the rest
            arrow, edge = ("◂", 0.01) if row.estimate < low else ("▸", 0.99)
            axes.text(edge, at, arrow, color=colour, transform=axes.get_yaxis_transform(), va="center", ha="center")
            continue
        if is_number(row.low) and is_number(row.high):
            axes.plot([row.low, row.high], [at, at], color=colour, linewidth=2.5, solid_capstyle="round")
        estimate = finite([row.estimate])
        axes.plot(estimate, [at] * len(estimate), linestyle="", color=colour, **verdict_marker(row.kind))
        dots = finite(row.dots)
        axes.plot(dots, [at - 0.25] * len(dots), "o", color=GREY, alpha=0.6, markersize=3)
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(chart.rows)), [row.name for row in chart.rows])
    axes.set(ylim=(len(chart.rows) - 0.4, -0.6), xlabel=chart.unit)
    axes.tick_params(axis="y", length=0)
    axes.set_title(chart.title, fontsize=9)


def interval_range(rows: Sequence[IntervalRow]) -> tuple[float, float]:
    """Where an estimate may lie to be drawn: near the variants, if there are any, and not only near a baseline."""
    ours = [row for row in rows if row.kind != "simple"] or rows
    numbers = [number for row in ours for number in finite([row.estimate, row.low, row.high, *row.dots])]
    if not numbers:
        return -math.inf, math.inf
    low, high = min(numbers), max(numbers)
    room = NEAR * ((high - low) or max(1.0, abs(low) / 10))
    return low - room, high + room


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


def figure_kind(path: Path) -> str:
    kind = path.suffix.lstrip(".").lower()
    if kind not in TIMELESS:
        raise BadInput(f"a figure cannot be written as {kind!r}", f"formats: {', '.join(TIMELESS)}")
    return kind


def write_figure(result: Result, path: Path) -> None:
    """What `result.plot()` draws, in the format of the file's ending."""
    kind = figure_kind(path)
    with our_look():
        write_bytes(path, figure_bytes(result.plot(), kind, dpi=150))


def shade_of(nats: float | None) -> str | None:
    """None: no colour."""
    return next((colour for least, colour in reversed(SURPRISE) if nats is not None and nats >= least), None)


def shaded_html(chart: ShadedText) -> str:
    """For a notebook; pages allow no style attributes."""
    spans = []
    for piece, nats in chart.pieces:
        colour, told = shade_of(nats), "not counted" if nats is None else f"{nats:.2f} nats"
        style = f' style="background: {colour}; color: #000"' if colour else ""
        spans.append(f'<span title="{told}"{style}>{escape(piece)}</span>')
    return f"<p>{''.join(spans)}</p>"


def shade(value: float | None) -> int:
    """0 (nothing) to SHADES (all), by the root: most weights are small, and a reader should see them."""
    return round(SHADES * min(1.0, value) ** 0.5) if is_number(value) and value > 0 else 0


def map_shapes(values: Map) -> str:
    """Attention as one path for each shade above one for all visible cells, one unit for each cell: a few kB."""
    visible = runs([[0 if value is None else 1 for value in row] for row in values])
    shades = runs([[shade(value) for value in row] for row in values])
    paths = [*((0, path) for path in visible.values()), *sorted(shades.items())]
    return "".join(f'<path class="a{level}" d="{path}"/>' for level, path in paths)


def runs(levels: list[list[int]]) -> dict[int, str]:
    """A path for each level above 0; neighbours of one level are one run."""
    paths: defaultdict[int, str] = defaultdict(str)
    for y, row in enumerate(levels):
        x = 0
        for level, cells in groupby(row):
            wide = len(list(cells))
            if level:
                paths[level] += f"M{x} {y}h{wide}v1h-{wide}z"
            x += wide
    return paths


def attention_map(chart: AttentionMap) -> str:
    """A map with its words: queries go down, keys across."""
    margin = 8 * min(14, max((len(word) for word in chart.words), default=1)) + 8
    edge, title = margin + CELL * len(chart.weights), escape(chart.title)
    shapes = [f'<g transform="translate({margin} {margin}) scale({CELL})">{map_shapes(chart.weights)}</g>']
    for index, word in enumerate(chart.words):
        text = escape(word if len(word) <= 14 else word[:13] + "…")
        middle = f"{margin + CELL * (index + 0.5) + 4:.0f}"
        shapes.append(f'<text x="{margin - 6}" y="{middle}" text-anchor="end">{text}</text>')
        shapes.append(f'<text transform="translate({middle} {margin - 6}) rotate(-90)">{text}</text>')
    size = f'viewBox="0 0 {edge} {edge}" width="{edge}"'
    drawn = f'<svg class="words" {size} role="img" aria-label="{title}">{"".join(shapes)}</svg>'
    return f"<figure>{drawn}<figcaption>{title}</figcaption></figure>"
