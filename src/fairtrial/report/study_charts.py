"""Strips: one line of a chart for each row of a table. Dots for seeds, a bar for the interval.

Places are in per cent of the width, so that a strip fits a phone and a sheet of paper while letters and dots keep
their size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from fairtrial.report.chart import y_marks
from fairtrial.report.rounding import decimals_for, finite, interval_text, is_number, plain_number

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
