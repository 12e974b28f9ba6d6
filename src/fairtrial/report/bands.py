"""Learning curves of several variants: the mean over seeds, and a band from the lowest seed to the highest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from fairtrial.report.chart import y_marks
from fairtrial.report.curves import Curve
from fairtrial.report.rounding import is_number

LEFT, WIDE, TOP, TALL = 11.0, 88.0, 5.0, 80.0  # the field, in per cent of the chart
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
        y = TOP + TALL * up(mark)
        shapes.append(f'<line class="grid" x1="{LEFT}%" x2="{LEFT + WIDE}%" y1="{y:.2f}%" y2="{y:.2f}%"/>')
        shapes.append(f'<text x="{LEFT - 1.5}%" y="{y:.2f}%" dy="4" text-anchor="end">{told}</text>')
    for step, anchor in ((0, "start"), (last // 2, "middle"), (last, "end")):
        told = f"{step:,} steps" if step == last else f"{step:,}"
        x = LEFT + WIDE * step / last
        shapes.append(f'<text x="{x:.2f}%" y="{TOP + TALL}%" dy="18" text-anchor="{anchor}">{told}</text>')
    drawn = [band_shapes(band, last, up) for band in bands]
    field = (
        f'<svg class="field" x="{LEFT}%" y="{TOP}%" width="{WIDE}%" height="{TALL}%" viewBox="0 0 {PAPER} {PAPER}"'
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
