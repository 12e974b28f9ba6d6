"""A line chart as SVG text. Ours rather than matplotlib's, because its colours follow the page's light or dark mode and
it weighs 3 kB instead of 40."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from fairtrial.report.curves import Curve

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
