"""Charts as SVG text that speak their numbers in an aria-label. Not matplotlib's, because their colours follow the
page's light or dark mode, and a chart has 3 kB instead of 40."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

from fairtrial.description import (
    AttentionMap,
    BarChart,
    Chart,
    Curve,
    IntervalChart,
    IntervalRow,
    LineChart,
    ReliabilityChart,
    ShadedText,
)
from fairtrial.formatting import decimals_for, finite, interval_text, is_number, plain_number

WIDTH, HEIGHT = 480, 270  # of a line chart
NAME_HEIGHT = 13
EDGE = 5.0  # per cent of a strip's width that stays free on either side
NEAR = 2.5  # widths of the variants' range that a baseline may be off and still be drawn
SHADES = 10
CELL = 18  # pixels of a map with words
MAP_SCALE = "No colour is 0% of the attention, full colour 100%. Colour scales with the square root of the weight."
# nats from which a colour is used: black on ever deeper orange, so that it reads on light and dark screens
SURPRISE = ((2.0, "#ffe8cc"), (4.0, "#ffcf99"), (6.0, "#ffb066"), (8.0, "#ff8a3d"), (10.0, "#f4622a"))

Map = Sequence[Sequence[float | None]]  # query, key; None: hidden


def svg(chart: Chart) -> str:
    """A chart of a description as markup; empty where there is nothing to draw."""
    match chart:
        case LineChart():
            return line_chart(chart)
        case IntervalChart():
            return interval_chart(chart)
        case BarChart():
            return bar_chart(chart)
        case ReliabilityChart():
            return reliability_chart(chart)
        case ShadedText():
            return shaded_html(chart)
        case AttentionMap():
            return attention_map(chart)


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """Markup; `class_` and `text_anchor` are written `class` and `text-anchor`. `content` is markup already."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value != ""
    )
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def figure(shapes: Iterable[str], label: str, caption: str, **attributes: object) -> str:
    drawn = element("svg", "".join(shapes), **attributes, role="img", aria_label=label)
    return element("figure", drawn + element("figcaption", escape(caption)))


def labelled_dot(label: str, x: str, y: str, r: object, class_: str, *, leftwards: bool) -> str:
    """A dot whose label appears where a mouse points at it or a finger taps it: no script is needed."""
    circle = element("circle", class_=class_, cx=x, cy=y, r=r, tabindex=-1)
    anchor = "end" if leftwards else "start"
    return circle + element("text", escape(label), class_="tip", x=x, y=y, dy=-8, text_anchor=anchor)


@dataclass(frozen=True)
class Area:
    """Where a chart draws, in pixels, and the values at its edges."""

    left: float
    top: float
    width: float
    height: float
    last: float  # at the right edge; 0 is at the left
    low: float  # at the bottom; a logarithm where `log`
    high: float
    log: bool = False

    def x(self, value: float) -> float:
        return self.left + self.width * value / self.last

    def y(self, value: float) -> float:
        value = math.log(value) if self.log else value
        return self.top + self.height * (1 - (value - self.low) / (self.high - self.low))

    def at(self, number: float) -> str:
        return f"{number:.2f}"

    def points(self, values: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in values)

    def text(self, words: str, x: float, y: float, anchor: str, *, class_: str = "mark", dy: int = 4) -> str:
        return element("text", escape(words), class_=class_, x=self.at(x), y=self.at(y), dy=dy, text_anchor=anchor)

    def line(self, class_: str, x1: float, y1: float, x2: float, y2: float) -> str:
        return element("line", class_=class_, x1=self.at(x1), x2=self.at(x2), y1=self.at(y1), y2=self.at(y2))

    def dot(self, label: str, class_: str, x: float, y: float, r: object = 3) -> str:
        return labelled_dot(label, self.at(self.x(x)), self.at(self.y(y)), r, class_, leftwards=2 * x > self.last)

    def y_axis(self, marks: Sequence[float], labels: Sequence[str]) -> list[str]:
        shapes = []
        for y, label in zip(map(self.y, marks), labels, strict=True):
            shapes.append(self.line("grid", self.left, y, self.left + self.width, y))
            shapes.append(self.text(label, self.left - 6, y, "end"))
        return shapes

    def step_axis(self) -> list[str]:
        last, bottom = int(self.last), self.top + self.height
        ticks = ((0, "start", "0"), (last // 2, "middle", f"{last // 2:,}"), (last, "end", f"{last:,} steps"))
        return [self.text(label, self.x(step), bottom, anchor, dy=18) for step, anchor, label in ticks]


def value_range(values: Sequence[float], log: bool) -> tuple[float, float]:
    """Lowest and highest, or their logarithms; never equal."""
    low, high = (math.log(end) if log else end for end in (min(values), max(values)))
    return low, high if high > low else low + max(1.0, abs(low) / 2)


def y_marks(low: float, high: float, percent: bool, log: bool) -> list[float]:
    """A few round numbers between low and high, which are logarithms where `log` is set."""
    if percent:
        return [0, 0.25, 0.5, 0.75, 1]
    if log:
        rounds = [base * 10.0**power for power in range(-3, 305) for base in (1, 2, 5)]
        inside = [mark for mark in rounds if low <= math.log(mark) <= high]
        if len(inside) > 1:
            return inside[:: max(1, -(-len(inside) // 6))]
        low, high = math.exp(low), math.exp(high)  # no two of 1, 2, 5, 10 ... lie so close together
    span = high - low
    if not sys.float_info.min * 100 < span < math.inf or span < 1e-9 * max(abs(low), abs(high)):
        return [low]  # too close for numbers between them
    step = 10.0 ** math.floor(math.log10(span))
    while span / step < 4:
        step /= 2
    numbers = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [number * step for number in numbers][:: max(1, int(span / step / 5))]


def mark_labels(marks: Sequence[float]) -> list[str]:
    """`0.25`, `1,200`, `15k`: all with as few decimals as keep them distinct and evenly spaced."""
    large = max(map(abs, marks), default=0.0)
    unit, letter = (1e6, "M") if large >= 1e7 else (1e3, "k") if large >= 1e4 else (1.0, "")
    if large >= 1e10:
        return [f"{mark:.1e}" for mark in marks]
    scaled = [mark / unit for mark in marks]
    least = min((abs(two - one) for one, two in pairwise(scaled)), default=large / unit)
    for decimals in range(9):
        if all(abs(round(mark, decimals) - mark) <= least / 20 for mark in scaled):
            break
    return [f"{mark:,.{decimals}f}{letter}" for mark in scaled]


def line_chart(chart: LineChart) -> str:
    """Curves over training steps, each named at its end, with the range over seeds where there are several."""
    percent, log = chart.percent, chart.log
    lines = [(curve, points) for curve in chart.curves if (points := drawable(curve, log))]
    if not lines:
        return ""
    steps, values = zip(*(point for _, points in lines for point in points), strict=True)
    ends = [end for curve, _ in lines for pair in curve.band for end in pair]
    low, high = (0.0, 1.0) if percent else value_range([*values, *ends], log)
    area = Area(54, 16, 334, 220, max(steps) or 1, low, high, log)
    marks = y_marks(low, high, percent, log)
    shapes = area.y_axis(marks, [f"{mark:.0%}" for mark in marks] if percent else mark_labels(marks))
    shapes += area.step_axis()
    if chart.kept_step is not None and chart.kept_step <= area.last:
        x = area.x(chart.kept_step)
        shapes.append(area.line("even", x, area.top, x, area.top + area.height))
    taken: list[float] = []
    for number, (curve, points) in enumerate(lines):
        colour, (last, end) = f"c{number % 6}", points[-1]
        if curve.band:
            at_steps = list(zip((step for step, _ in points), curve.band, strict=True))
            low_ends, high_ends = ([(step, pair[at]) for step, pair in at_steps] for at in (0, 1))
            shapes.append(element("polygon", class_=f"area {colour}", points=area.points(high_ends + low_ends[::-1])))
        shapes.append(element("polyline", class_=f"line {colour}", points=area.points(points)))
        y = free_height(area.y(end), taken)
        shapes.append(area.text(curve.name, area.x(last) + 6, y, "start", class_=f"name {colour}"))
        for step, value in points if len(points) <= 40 else ():
            shown = f"{value:.1%}" if percent else f"{value:.4g}"
            shapes.append(area.dot(f"{curve.name}, step {step:,}: {shown}", colour, step, value))
    spoken = "; ".join(f"{curve.name} from {points[0][1]:.3g} to {points[-1][1]:.3g}" for curve, points in lines)
    title, box = chart.title, f"0 0 {WIDTH} {HEIGHT}"
    return figure(shapes, f"{title}: {spoken}", f"{title} ({chart.y_label})", class_="chart", viewBox=box)


def drawable(curve: Curve, log: bool) -> list[tuple[int, float]]:
    """A perplexity may be infinite, and only what is above zero has a place on a log scale."""
    return [(step, value) for step, value in curve.points if is_number(value) and (value > 0 or not log)]


def free_height(y: float, taken: list[float]) -> float:
    """Move a name up until it covers no other."""
    while any(abs(y - other) < NAME_HEIGHT for other in taken):
        y -= 4
    taken.append(y)
    return y


@dataclass(frozen=True)
class Scale:
    """The values along a strip, one line of a chart for each row of a table. Places are in per cent of its width."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[object], near: Iterable[Sequence[object]] = ()) -> Scale | None:
        """For all of `values`, and those groups of `near` whose first number would not squeeze the rest."""
        chosen = finite(list(values))
        if not chosen:
            return None
        low, high = min(chosen), max(chosen)
        span = (high - low) or max(1.0, abs(low) / 10)
        for group in near:
            numbers = finite(group)
            if numbers and low - NEAR * span <= numbers[0] <= high + NEAR * span:
                chosen += numbers
        low, high = min(chosen), max(chosen)
        if high > low:
            return cls(low, high)
        return cls(low - span / 2, high if high == 100 else high + span / 2)  # nobody is right on more than 100%

    def place(self, value: float) -> float:
        """Per cent of the width."""
        return EDGE + (100 - 2 * EDGE) * (value - self.low) / (self.high - self.low)

    def at(self, value: float) -> str:
        return f"{self.place(value):.2f}%"

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def marks(self) -> list[float]:
        marks = y_marks(self.low, self.high, percent=False, log=False)
        return marks[:: -(-len(marks) // 5)]

    def grid(self, values: Iterable[float] | None = None, class_: str = "grid") -> str:
        places = map(self.at, self.marks if values is None else values)
        return "".join(element("line", class_=class_, x1=place, x2=place, y1=0, y2="100%") for place in places)


def interval_chart(chart: IntervalChart) -> str:
    rows = [row for row in chart.rows if finite([row.estimate, row.low, row.high])]
    if (scale := scale_of(rows, chart.difference, chart.margin)) is None:
        return ""
    strips = [
        (row.name, interval_strip(row, row.name, scale, chart.difference, chart.margin, chart.seeds)) for row in rows
    ]
    return strip_table(chart.title, chart.unit, strips, axis_strip(scale, sign=chart.difference))


def bar_chart(chart: BarChart) -> str:
    """Bars from zero."""
    scale = Scale.around([0.0, *(value for _, value in chart.bars)]) if chart.bars else None
    strips = []
    for name, value in chart.bars if scale else ():
        ends = sorted(scale.place(end) for end in (0.0, value or 0.0)) if scale else [0.0, 0.0]
        size = {"x": f"{ends[0]:.2f}%", "width": f"{ends[1] - ends[0]:.2f}%", "y": 8, "height": 14}
        strips.append((name, strip([element("rect", class_="bar", **size)], f"{name}: {value or 0:.4g}", "")))
    return strip_table(chart.title, chart.unit, strips, axis_strip(scale)) if scale else ""


def strip_table(title: str, unit: str, strips: Sequence[tuple[str, str]], axis: str) -> str:
    """Strips below one another, each with its name, above an axis."""
    rows = [(element("th", escape(name), scope="row"), drawn) for name, drawn in strips]
    body = "".join(
        element("tr", name + element("td", drawn, class_="chart")) for name, drawn in [*rows, ("<td></td>", axis)]
    )
    caption = element("caption", escape(f"{title} ({unit})" if unit else title))
    columns = '<colgroup><col class="c-name"><col></colgroup>'
    return element("table", caption + columns + element("tbody", body), class_="strips")


def scale_of(rows: Sequence[IntervalRow], difference: bool = False, margin: float | None = None) -> Scale | None:
    """One for all rows; of differences, it includes zero and the margin. What needs no transformer may be off it."""
    fixed = [] if not difference else [0.0] if margin is None else [-margin, 0.0, margin]
    groups = {simple: [numbers_of(row) for row in rows if (row.kind == "simple") is simple] for simple in (False, True)}
    inside = groups[False] or groups[True]
    return Scale.around([*fixed, *(number for group in inside for number in group)], near=groups[True])


def numbers_of(row: IntervalRow) -> list[float | None]:
    return [row.estimate, row.low, row.high, *row.dots]


def interval_strip(
    row: IntervalRow,
    label: str,
    scale: Scale,
    difference: bool = False,
    margin: float | None = None,
    seeds: Sequence[int] = (),
) -> str:
    """One row: a dot for each seed above the estimate and its interval; of a difference also zero, and the differences
    too small to matter."""
    mean, low, high = row.estimate, row.low, row.high
    decimals, shapes = decimals_for(low, high), [scale.grid()]
    if difference:
        shapes.append(scale.grid([0] if scale.holds(0) else [], "zero"))
    if margin is not None:  # below all others
        left, right = (min(100.0, max(0.0, scale.place(value))) for value in (-margin, margin))
        ends = {"x": f"{left:.2f}%", "width": f"{right - left:.2f}%"}
        shapes.insert(0, element("rect", class_="small", **ends, y=0, height="100%"))
    dots = row.dots if len(set(row.dots)) > 1 else ()  # equal ones would lie on their mean
    for seed, value in zip(seeds or range(len(dots)), dots, strict=False):
        if is_number(value) and scale.holds(value):
            told, leftwards = f"seed {seed}: {plain_number(value, decimals + 1)}", scale.place(value) > 50
            shapes.append(labelled_dot(told, scale.at(value), "10", 3.5, "seed", leftwards=leftwards))
    shown = plain_number(mean, decimals, sign=difference)
    label += f": {'difference' if difference else 'mean'} {shown}"
    label += f", 95% interval {interval_text(low, high, sign=difference)}"
    if row.dots:
        label += "; seeds " + ", ".join(plain_number(value, decimals) for value in row.dots)
    return strip([*shapes, interval_shapes(scale, mean, low, high, y=22 if row.dots else 15)], label, row.kind)


def interval_shapes(scale: Scale, mean: object, low: object, high: object, y: int = 22) -> str:
    means, ends = finite([mean]), finite([low, high])
    if means and not scale.holds(means[0]):  # too far off to be drawn: an arrow at the edge
        x, anchor, arrow = ("0", "start", "◂") if means[0] < scale.low else ("100%", "end", "▸")
        return element("text", arrow, class_="off", x=x, y=y + 4, text_anchor=anchor)
    shapes = ""
    if len(ends) == 2:
        left, right = (scale.at(min(scale.high, max(scale.low, end))) for end in ends)
        shapes += element("line", class_="interval", x1=left, x2=right, y1=y, y2=y)
    return shapes + "".join(element("circle", class_="mean", cx=scale.at(value), cy=y, r=5) for value in means)


def axis_strip(scale: Scale, *, sign: bool = False) -> str:
    """The numbers below a column of strips."""
    fits = (places for places in range(5) if all(abs(round(mark, places) - mark) < 1e-9 for mark in scale.marks))
    decimals = next(fits, decimals_for(scale.low, scale.high))
    texts = ""
    for mark in scale.marks:
        number = plain_number(mark, decimals, sign=sign).replace("-", "−")
        texts += element("text", number, x=scale.at(mark), y=12, text_anchor="middle")
    return element("svg", texts, class_="strip axis", aria_hidden="true")


def strip(shapes: Sequence[str], label: str, kind: str) -> str:
    return element("svg", "".join(shapes), class_=f"strip {kind}".rstrip(), role="img", aria_label=label)


def reliability_chart(chart: ReliabilityChart) -> str:
    """On the diagonal it is calibrated. Larger: more answers."""
    most = max((point.items for point in chart.points), default=1)
    area = Area(48, 12, 300, 300, 1, 0, 1)
    shares = (0, 0.25, 0.5, 0.75, 1)
    shapes = area.y_axis(shares, [f"{share:.0%}" for share in shares])
    shapes += [area.text(f"{share:.0%}", area.x(share), area.y(0), "middle", dy=16) for share in shares]
    shapes.append(element("line", class_="even", x1=area.x(0), y1=area.y(0), x2=area.x(1), y2=area.y(1)))
    curve = area.points((point.confidence, point.accuracy) for point in chart.points)
    shapes.append(element("polyline", class_="line c0", points=curve))
    for point in chart.points:
        radius, x = f"{3 + 6 * (point.items / most) ** 0.5:.1f}", area.x(point.confidence)
        shapes.append(area.line("whisker c0", x, area.y(point.low), x, area.y(point.high)))
        label = f"{point.items:,} answers, confidence {point.confidence:.1%}, {point.accuracy:.1%} right"
        label += f" ({point.low:.1%} to {point.high:.1%})"
        shapes.append(area.dot(label, "c0", point.confidence, point.accuracy, radius))
    shapes.append(area.text("confidence", area.x(0.5), area.y(0), "middle", dy=36))
    spoken = "; ".join(f"confidence {point.confidence:.0%}, {point.accuracy:.0%} right" for point in chart.points)
    return figure(shapes, f"{chart.title}: {spoken}", chart.title, class_="chart square", viewBox="0 0 364 356")


def shade_of(nats: float | None) -> str | None:
    """None: no colour."""
    return next((colour for least, colour in reversed(SURPRISE) if nats is not None and nats >= least), None)


def shaded_html(chart: ShadedText) -> str:
    """For a notebook; pages allow no style attributes."""
    spans = []
    for piece, nats in chart.pieces:
        colour = shade_of(nats)
        style = f"background: {colour}; color: #000" if colour else ""
        spans.append(
            element("span", escape(piece), title="not counted" if nats is None else f"{nats:.2f} nats", style=style)
        )
    return element("p", "".join(spans))


def shade(value: float | None) -> int:
    """0 (nothing) to SHADES (all), by the root: most weights are small, and a reader should see them."""
    return round(SHADES * min(1.0, value) ** 0.5) if is_number(value) and value > 0 else 0


def map_shapes(values: Map) -> str:
    """Attention as one path for each shade above one for all visible cells, one unit for each cell: a few kB."""
    visible = runs([[0 if value is None else 1 for value in row] for row in values])
    shades = runs([[shade(value) for value in row] for row in values])
    paths = [*((0, path) for path in visible.values()), *sorted(shades.items())]
    return "".join(element("path", class_=f"a{level}", d=path) for level, path in paths)


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
    edge = margin + CELL * len(chart.weights)
    shapes = [element("g", map_shapes(chart.weights), transform=f"translate({margin} {margin}) scale({CELL})")]
    for index, word in enumerate(chart.words):
        text = escape(word if len(word) <= 14 else word[:13] + "…")
        middle = f"{margin + CELL * (index + 0.5) + 4:.0f}"
        shapes.append(element("text", text, x=margin - 6, y=middle, text_anchor="end"))
        shapes.append(element("text", text, transform=f"translate({middle} {margin - 6}) rotate(-90)"))
    return figure(shapes, chart.title, chart.title, class_="words", viewBox=f"0 0 {edge} {edge}", width=edge)
