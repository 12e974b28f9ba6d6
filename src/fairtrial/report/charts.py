"""Curves out of a record's events: plain numbers for tables and charts.

A line chart as SVG text. Ours rather than matplotlib's, because its colours follow the page's light or dark mode and
it weighs 3 kB instead of 40.

Learning curves of several variants: the mean over seeds, and a band from the lowest seed to the highest.

Strips: one line of a chart for each row of a table. Dots for seeds, a bar for the interval.

Places are in per cent of the width, so that a strip fits a phone and a sheet of paper while letters and dots keep
their size.

Attention maps as small drawings: one path for each of a few shades, so that a map weighs a few kB and follows the
page's colours. What may not be seen (the future) is left empty.

The reliability curve as SVG: how often a classifier is right, over how sure it was.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any

from fairtrial.report.words import decimals_for, finite, interval_text, is_number, plain_number
from fairtrial.statistics.outcomes import headline

UNITS = {
    "accuracy": "accuracy",
    "window_perplexity": "perplexity, the course's way",
    "masked_perplexity": "perplexity of hidden words",
}


@dataclass(frozen=True)
class Curve:
    name: str  # the split
    unit: str  # accuracy, or perplexity in windows
    points: tuple[tuple[int, float], ...]  # (step, value)


def curves_of(events: Iterable[dict[str, Any]]) -> list[Curve]:
    """One curve for each split that was scored during training, in the order of first sight."""
    found: dict[str, dict[int, float]] = {}
    unit = ""
    for event in events:
        if event["event"] == "score":
            name, _ = headline(event)
            unit = UNITS[name]
            found.setdefault(event["split"], {})[event["step"]] = event[name]
    return [Curve(name, unit, tuple(sorted(points.items()))) for name, points in found.items()]


def loss_curve(events: Iterable[dict[str, Any]], most: int = 200) -> Curve:
    """The training loss, averaged over neighbouring steps to at most `most` points."""
    steps = [(event["step"], event["loss"]) for event in events if event["event"] == "step"]
    size = max(1, -(-len(steps) // most))
    points: list[tuple[int, float]] = []
    for begin in range(0, len(steps), size):
        part = steps[begin : begin + size]
        if points and len(part) < size / 2:  # too few to average: one noisy batch would look like a leap
            break
        points.append((part[-1][0], sum(loss for _, loss in part) / len(part)))
    return Curve("loss", "nats", tuple(points))


def trained_seconds(clock: list[dict[str, Any]]) -> float:
    """Seconds at work, leaving out the time between a stop and its resumption."""
    total, last = 0.0, None
    for line in clock:
        if last is not None and line["what"] not in ("start", "resume"):
            total += max(0.0, line["time"] - last)  # a clock may be set back
        last = line["time"]
    return total


WIDTH, HEIGHT = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 92, 16, 42


def line_chart(curves: Sequence[Curve], *, title: str, y_label: str, percent: bool = False, log: bool = False) -> str:
    """Curves over training steps, each named at its end."""
    curves = [curve for curve in (drawable(curve, log) for curve in curves) if curve.points]
    if not curves:
        return ""
    steps = [step for curve in curves for step, _ in curve.points]
    values = [value for curve in curves for _, value in curve.points]
    low, high = (0.0, 1.0) if percent else (min(values), max(values))
    if log:
        low, high = math.log(low), math.log(high)
    high = high if high > low else low + max(1.0, abs(low) / 2)
    last = max(steps) or 1

    def across(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def up(value: float) -> float:
        value = math.log(value) if log else value
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ((value - low) / (high - low))

    shapes = []
    for mark in y_marks(low, high, percent, log):
        y = up(mark)
        text = f"{mark:.0%}" if percent else f"{mark:,.3g}" if mark < 1000 else f"{mark:,.0f}"
        shapes.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        shapes.append(f'<text class="mark" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{text}</text>')
    for mark in sorted({0, last // 4, last // 2, 3 * last // 4, last}):
        x = across(mark)
        shapes.append(f'<text class="mark" text-anchor="middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}">{mark:,}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    shapes.append(f'<text class="mark" text-anchor="middle" x="{middle}" y="{HEIGHT - 6}">step</text>')
    taken: list[float] = []
    for number, curve in enumerate(curves):
        line = " ".join(f"{across(step):.1f},{up(value):.1f}" for step, value in curve.points)
        colour = f"c{number % 6}"
        shapes.append(f'<polyline class="line {colour}" points="{line}"/>')
        y = free_place(up(curve.points[-1][1]), taken)
        end = across(curve.points[-1][0]) + 6
        shapes.append(f'<text class="name {colour}" x="{end:.1f}" y="{y + 4:.1f}">{escape(curve.name)}</text>')
        for step, value in curve.points if len(curve.points) <= 40 else ():
            told = f"{value:.1%}" if percent else f"{value:.4g}"
            label = f"<title>{escape(curve.name)}, step {step:,}: {told}</title>"
            shapes.append(
                f'<circle class="{colour}" cx="{across(step):.1f}" cy="{up(value):.1f}" r="3">{label}</circle>'
            )
    spoken = f"{title}: " + "; ".join(f"{c.name} from {c.points[0][1]:.3g} to {c.points[-1][1]:.3g}" for c in curves)
    return (
        f'<figure><svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{escape(spoken)}">'
        f"{''.join(shapes)}</svg><figcaption>{escape(title)} ({escape(y_label)})</figcaption></figure>"
    )


def drawable(curve: Curve, log: bool) -> Curve:
    """Only what has a place on paper: a perplexity may be infinite."""
    fits = [(step, value) for step, value in curve.points if math.isfinite(value) and (value > 0 or not log)]
    return replace(curve, points=tuple(fits))


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
    if not sys.float_info.min * 100 < high - low < math.inf or high - low < 1e-9 * max(abs(low), abs(high)):
        return [low]  # too close for numbers between them
    step = 10.0 ** math.floor(math.log10(high - low))
    while (high - low) / step < 4:
        step /= 2
    first = math.ceil(low / step)
    return [mark * step for mark in range(first, math.floor(high / step) + 1)][:: max(1, int((high - low) / step / 5))]


def free_place(y: float, taken: list[float]) -> float:
    """Move a name up until it covers no other."""
    while any(abs(y - other) < 13 for other in taken):
        y -= 4
    taken.append(y)
    return y


BAND_LEFT, WIDE, BAND_TOP, TALL = 11.0, 88.0, 5.0, 80.0  # the field, in per cent of the chart
PAPER = 1000  # units of the field's own paper
STYLES = 8  # how many looks of lines the style sheet has


@dataclass(frozen=True)
class Band:
    """One variant's curve: (step, mean, lowest, highest) over seeds."""

    name: str
    style: int  # which colour and dash, so that a variant keeps its look through the page
    points: tuple[tuple[int, float, float, float], ...]
    seeds: int


def band_of(name: str, style: int, curves: Sequence[Curve], *, log: bool = False) -> Band:
    """The seeds' curves as one. Perplexities are averaged as logarithms: their plain mean is nobody's perplexity."""
    values: dict[int, list[float]] = {}
    for curve in curves:
        for step, value in curve.points:
            if is_number(value) and (value > 0 or not log):
                values.setdefault(step, []).append(value)
    points = []
    for step, found in sorted(values.items()):
        if 2 * len(found) < len(curves):  # most seeds stopped before: the rest would pull the mean about
            continue
        mean = math.exp(sum(map(math.log, found)) / len(found)) if log else sum(found) / len(found)
        points.append((step, mean, min(found), max(found)))
    return Band(name, style, tuple(points), len(curves))


def band_chart(bands: Sequence[Band], *, title: str, unit: str, log: bool = False) -> str:
    """All variants in one field. Their names stand in the page's legend, and in the label for those who cannot see."""
    bands = [band for band in bands if band.points]
    if not bands:
        return ""
    low = min(point[2] for band in bands for point in band.points)
    high = max(point[3] for band in bands for point in band.points)
    low, high = (math.log(low), math.log(high)) if log else (low, high)
    high = high if high > low else low + max(1.0, abs(low) / 2)
    last = max(band.points[-1][0] for band in bands) or 1

    def up(value: float) -> float:
        """Share of the field's height, from above."""
        return 1 - ((math.log(value) if log else value) - low) / (high - low)

    shapes = []
    marks = y_marks(low, high, percent=False, log=log)
    for mark, told in zip(marks, told_apart(marks), strict=True):
        y = BAND_TOP + TALL * up(mark)
        shapes.append(f'<line class="grid" x1="{BAND_LEFT}%" x2="{BAND_LEFT + WIDE}%" y1="{y:.2f}%" y2="{y:.2f}%"/>')
        shapes.append(f'<text x="{BAND_LEFT - 1.5}%" y="{y:.2f}%" dy="4" text-anchor="end">{told}</text>')
    for step, anchor in ((0, "start"), (last // 2, "middle"), (last, "end")):
        told = f"{step:,} steps" if step == last else f"{step:,}"
        x = BAND_LEFT + WIDE * step / last
        shapes.append(f'<text x="{x:.2f}%" y="{BAND_TOP + TALL}%" dy="18" text-anchor="{anchor}">{told}</text>')
    drawn = [band_shapes(band, last, up) for band in bands]
    field = (
        f'<svg class="field" x="{BAND_LEFT}%" y="{BAND_TOP}%" width="{WIDE}%" height="{TALL}%"'
        f' viewBox="0 0 {PAPER} {PAPER}"'
        f' preserveAspectRatio="none">{"".join(area for area, _ in drawn)}{"".join(line for _, line in drawn)}</svg>'
    )
    ends = "; ".join(f"{band.name} from {band.points[0][1]:.3g} to {band.points[-1][1]:.3g}" for band in bands)
    spoken = f"{title}, {unit}, mean over seeds: {ends}"
    return (
        f'<figure><svg class="curves" role="img" aria-label="{escape(spoken)}">{"".join(shapes)}{field}</svg>'
        f"<figcaption>{escape(title)}, {escape(unit)}</figcaption></figure>"
    )


def band_shapes(band: Band, last: int, up: Callable[[float], float]) -> tuple[str, str]:
    """The area between the seeds, and the line of their mean."""
    across = [PAPER * step / last for step, *_ in band.points]
    mean, lowest, highest = ([PAPER * up(point[at]) for point in band.points] for at in (1, 2, 3))
    line = " ".join(f"{x:.0f},{y:.0f}" for x, y in zip(across, mean, strict=True))
    over = [f"{x:.0f},{y:.0f}" for x, y in zip(across, highest, strict=True)]
    under = [f"{x:.0f},{y:.0f}" for x, y in zip(across, lowest, strict=True)]
    style = f"v{band.style % STYLES}"
    title = f"<title>{escape(band.name)}</title>"
    area = f'<polygon class="area {style}" points="{" ".join(over + under[::-1])}"/>' if band.seeds > 1 else ""
    return area, f'<polyline class="curve {style}" points="{line}">{title}</polyline>'


def told_apart(marks: Sequence[float]) -> list[str]:
    """`0.25`, `1,200`, `15k`: with as few decimals as still tell them apart, and evenly."""
    large = max(map(abs, marks), default=0.0)
    unit, letter = (1e6, "M") if large >= 1e7 else (1e3, "k") if large >= 1e4 else (1.0, "")
    if large >= 1e10:
        return [f"{mark:.1e}" for mark in marks]
    least = min((abs(two - one) for one, two in pairwise(marks)), default=large) / unit
    decimals = next((places for places in range(8) if rounded_off(marks, unit, places) <= least / 20), 8)
    return [f"{mark / unit:,.{decimals}f}" + letter for mark in marks]


def rounded_off(marks: Sequence[float], unit: float, decimals: int) -> float:
    """The most that any mark loses."""
    return max((abs(round(mark / unit, decimals) - mark / unit) for mark in marks), default=0.0)


EDGE = 5.0  # per cent of the width that stays free on either side
NEAR = 2.5  # how many widths of the variants' range a baseline may be off and still be drawn


@dataclass(frozen=True)
class Scale:
    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[object], near: Iterable[Sequence[object]] = ()) -> Scale | None:
        """A scale that holds all of `values`, and those groups of `near` whose first number is not so far off that the
        rest would be squeezed."""
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
        return cls(low, high) if high > low else cls(low - span / 2, high + span / 2)

    def place(self, value: float) -> float:
        """Per cent of the width."""
        return EDGE + (100 - 2 * EDGE) * (value - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def marks(self) -> list[float]:
        marks = y_marks(self.low, self.high, percent=False, log=False)
        return marks[:: -(-len(marks) // 5)]

    @property
    def decimals(self) -> int:
        marks = self.marks
        fits = (places for places in range(5) if all(abs(round(mark, places) - mark) < 1e-9 for mark in marks))
        return next(fits, decimals_for(self.low, self.high))


def score_strip(name: str, estimate: dict[str, Any], scale: Scale, seeds: Sequence[object], kind: str = "") -> str:
    """One variant: a dot for each seed above the mean and its 95% interval."""
    mean, low, high = (estimate.get(key) for key in ("mean", "low", "high"))
    decimals = decimals_for(low, high)
    shapes = [grid(scale)]
    values = estimate.get("by_seed", [])
    for place, value in enumerate(values if len(set(values)) > 1 else ()):  # equal dots would lie on their mean
        if is_number(value) and scale.holds(value):
            seed = seeds[place] if place < len(seeds) else place
            told = f"<title>seed {escape(str(seed))}: {plain_number(value, decimals + 1)}</title>"
            shapes.append(f'<circle class="seed" cx="{scale.place(value):.2f}%" cy="10" r="3.5">{told}</circle>')
    shapes.append(interval_shapes(scale, mean, low, high))
    told = f"{name}: mean {plain_number(mean, decimals)}, 95% interval {interval_text(low, high)}"
    if values:
        told += "; seeds " + ", ".join(plain_number(value, decimals) for value in values)
    return strip(shapes, told, kind)


def difference_strip(
    name: str, values: tuple[float | None, float | None, float | None], least: float | None, scale: Scale, kind: str
) -> str:
    """One comparison: the difference and its interval, beside zero and the differences too small to matter."""
    mean, low, high = values
    shapes = []
    if least is not None:
        left, right = (min(100.0, max(0.0, scale.place(value))) for value in (-least, least))
        shapes.append(f'<rect class="small" x="{left:.2f}%" width="{right - left:.2f}%" y="0" height="100%"/>')
    shapes.append(grid(scale))
    if scale.holds(0):
        shapes.append(f'<line class="zero" x1="{scale.place(0):.2f}%" x2="{scale.place(0):.2f}%" y1="0" y2="100%"/>')
    shapes.append(interval_shapes(scale, mean, low, high, y=15))
    told = plain_number(mean, decimals_for(low, high), sign=True)
    return strip(shapes, f"{name}: difference {told}, 95% interval {interval_text(low, high, sign=True)}", kind)


def interval_shapes(scale: Scale, mean: object, low: object, high: object, y: int = 22) -> str:
    shapes = ""
    ends = finite([low, high])
    if len(ends) == 2 and all(scale.holds(value) for value in finite([mean])):
        left, right = (scale.place(min(scale.high, max(scale.low, end))) for end in ends)
        shapes += f'<line class="interval" x1="{left:.2f}%" x2="{right:.2f}%" y1="{y}" y2="{y}"/>'
    for value in finite([mean]):
        if scale.holds(value):
            shapes += f'<circle class="mean" cx="{scale.place(value):.2f}%" cy="{y}" r="5"/>'
        else:  # too far off to be drawn: an arrow at the edge
            at, anchor, arrow = ("0", "start", "◂") if value < scale.low else ("100%", "end", "▸")
            shapes += f'<text class="off" x="{at}" y="{y + 4}" text-anchor="{anchor}">{arrow}</text>'
    return shapes


def grid(scale: Scale) -> str:
    places = (scale.place(mark) for mark in scale.marks)
    return "".join(f'<line class="grid" x1="{at:.2f}%" x2="{at:.2f}%" y1="0" y2="100%"/>' for at in places)


def axis_strip(scale: Scale, *, sign: bool = False) -> str:
    """The numbers below a column of strips."""
    words = "".join(
        f'<text x="{scale.place(mark):.2f}%" y="12" text-anchor="middle">{number(mark, scale, sign)}</text>'
        for mark in scale.marks
    )
    return f'<svg class="strip axis" aria-hidden="true">{words}</svg>'


def number(mark: float, scale: Scale, sign: bool) -> str:
    return plain_number(mark, scale.decimals, sign=sign).replace("-", "−")


def strip(shapes: list[str], told: str, kind: str) -> str:
    chosen = f" {kind}" if kind else ""
    return f'<svg class="strip{chosen}" role="img" aria-label="{escape(told)}">{"".join(shapes)}</svg>'


SHADES = 10
MOST_CELLS = 250_000  # of one page; a network of many heads shows each layer's mean instead
Map = Sequence[Sequence[float | None]]  # query, key; None: hidden


def mean_over_heads(heads: Sequence[Map]) -> list[list[float | None]]:
    """One map for a layer."""

    def mean(values: tuple[float | None, ...]) -> float | None:
        seen = [value for value in values if value is not None]
        return sum(seen) / len(seen) if seen else None

    return [[mean(values) for values in zip(*rows, strict=False)] for rows in zip(*heads, strict=False)]


def without_future(heads: Sequence[Sequence[Map]]) -> list[list[list[list[float | None]]]]:
    """Keys after the query are hidden where no head of any layer sees any of them, as in a decoder."""
    seen = any(value for layer in heads for head in layer for at, row in enumerate(head) for value in row[at + 1 :])
    if seen:
        return [[[list(row) for row in head] for head in layer] for layer in heads]
    return [
        [
            [[value if key <= at else None for key, value in enumerate(row)] for at, row in enumerate(head)]
            for head in layer
        ]
        for layer in heads
    ]


def shade(value: float | None) -> int:
    """0 (nothing) to SHADES (all), by the root: most weights are small, and a reader should see them."""
    if value is None or not is_number(value) or value <= 0:
        return 0
    return min(SHADES, round(SHADES * min(1.0, value) ** 0.5))


def map_shapes(values: Map) -> str:
    """The drawing alone, one unit for each cell: a ground below all that may be seen, then shade by shade."""
    ground = bars([[0 if value is None else 1 for value in row] for row in values])
    shades = bars([[shade(value) for value in row] for row in values])
    drawn = f'<path class="a0" d="{ground[1]}"/>' if 1 in ground else ""
    return drawn + "".join(f'<path class="a{level}" d="{path}"/>' for level, path in sorted(shades.items()))


def bars(levels: list[list[int]]) -> dict[int, str]:
    """A path for each level above 0; neighbours of one level are one bar."""
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(levels):
        start = 0
        for x in range(1, len(row) + 1):
            if x == len(row) or row[x] != row[start]:
                if row[start]:
                    paths.setdefault(row[start], []).append(f"M{start} {y}h{x - start}v1h-{x - start}z")
                start = x
    return {level: "".join(found) for level, found in paths.items()}


def spoken_map(name: str, values: Map, words: Sequence[str]) -> str:
    """What a map shows, in one sentence: its strongest link and how much stays on the word itself."""
    links = [
        (value, query, key)
        for query, row in enumerate(values)
        for key, value in enumerate(row)
        if value is not None and is_number(value) and (len(values) == 1 or sum(map(is_number, row)) > 1)
    ]  # the first word of a language model sees itself alone: 100%, whatever the head
    if not links:
        return name
    value, query, key = max(links)
    on_self = [row[at] for at, row in enumerate(values) if at < len(row) and is_number(row[at])]
    mean = sum(each for each in on_self if each is not None) / max(1, len(on_self))
    strongest = f"strongest link {word_at(words, query)} to {word_at(words, key)}, {value:.0%}"
    return f"{name}: {strongest}; on the word itself {mean:.0%} on average"


def word_at(words: Sequence[str], place: int) -> str:
    return words[place] if place < len(words) else f"word {place + 1}"


def small_map(identity: str, name: str, values: Map, words: Sequence[str]) -> str:
    """A map the size of a stamp; `large_map` draws the same shapes again by its identity."""
    told = escape(spoken_map(name, values, words))
    across = max((len(row) for row in values), default=0)
    return (
        f'<svg class="map" role="img" aria-label="{told}" viewBox="0 0 {across} {len(values)}"><title>{told}</title>'
        f'<g id="{escape(identity)}">{map_shapes(values)}</g></svg>'
    )


def large_map(identity: str, name: str, size: int, words: Sequence[str], cell: int = 18) -> str:
    """The same map with its words: queries go down, keys across."""
    shown = [word_at(words, place) for place in range(size)]
    margin = 8 * min(14, max((len(word) for word in shown), default=1)) + 8
    edge = margin + cell * size
    letters = []
    for place, word in enumerate(shown):
        text = escape(word if len(word) <= 14 else word[:13] + "…")
        middle = margin + cell * (place + 0.5)
        letters.append(f'<text x="{margin - 6}" y="{middle + 4:.0f}" text-anchor="end">{text}</text>')
        letters.append(f'<text transform="translate({middle + 4:.0f} {margin - 6}) rotate(-90)">{text}</text>')
    return (
        f'<svg class="words" role="img" aria-label="{escape(name)} with words" viewBox="0 0 {edge} {edge}"'
        f' style="max-width:{edge}px"><g transform="translate({margin} {margin}) scale({cell})">'
        f'<use href="#{escape(identity)}"/></g>{"".join(letters)}</svg>'
    )


SIZE, CURVE_LEFT, CURVE_TOP, CURVE_BOTTOM = 300, 48, 12, 44


def reliability_chart(bins: Sequence[dict[str, Any]], title: str) -> str:
    """Bins with their intervals; a larger dot holds more answers. On the diagonal a model is as sure as it may be."""
    filled = [each for each in bins if each["items"]]
    most = max((each["items"] for each in filled), default=1)

    def across(share: float) -> float:
        return CURVE_LEFT + SIZE * share

    def up(share: float) -> float:
        return CURVE_TOP + SIZE * (1 - share)

    shapes = []
    for mark in (0, 0.25, 0.5, 0.75, 1):
        shapes.append(
            f'<line class="grid" x1="{CURVE_LEFT}" x2="{CURVE_LEFT + SIZE}" y1="{up(mark):.1f}" y2="{up(mark):.1f}"/>'
        )
        shapes.append(
            f'<text class="mark" text-anchor="end" x="{CURVE_LEFT - 6}" y="{up(mark) + 4:.1f}">{mark:.0%}</text>'
        )
        shapes.append(
            f'<text class="mark" text-anchor="middle"'
            f' x="{across(mark):.1f}" y="{CURVE_TOP + SIZE + 16}">{mark:.0%}</text>'
        )
    shapes.append(f'<line class="even" x1="{CURVE_LEFT}" y1="{up(0)}" x2="{CURVE_LEFT + SIZE}" y2="{up(1)}"/>')
    points = " ".join(f"{across(each['confidence']):.1f},{up(each['accuracy']):.1f}" for each in filled)
    shapes.append(f'<polyline class="line c0" points="{points}"/>')
    for each in filled:
        x, (low, high) = across(each["confidence"]), each["interval"]
        told = (
            f"{each['items']:,} answers, {each['confidence']:.1%} sure, {each['accuracy']:.1%} right"
            f" ({low:.1%} to {high:.1%})"
        )
        radius = 3 + 6 * (each["items"] / most) ** 0.5
        shapes.append(f'<line class="whisker c0" x1="{x:.1f}" x2="{x:.1f}" y1="{up(low):.1f}" y2="{up(high):.1f}"/>')
        shapes.append(
            f'<circle class="c0" cx="{x:.1f}" cy="{up(each["accuracy"]):.1f}" r="{radius:.1f}">'
            f"<title>{escape(told)}</title></circle>"
        )
    middle = CURVE_LEFT + SIZE / 2
    bottom = CURVE_TOP + SIZE + CURVE_BOTTOM
    shapes.append(f'<text class="mark" text-anchor="middle" x="{middle}" y="{bottom - 8}">confidence</text>')
    spoken = f"{title}: " + "; ".join(f"{each['confidence']:.0%} sure, {each['accuracy']:.0%} right" for each in filled)
    return (
        f'<figure><svg class="chart square" role="img" viewBox="0 0 {CURVE_LEFT + SIZE + 16} {bottom}"'
        f' aria-label="{escape(spoken)}">{"".join(shapes)}</svg>'
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )
