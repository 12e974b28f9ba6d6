"""The reliability curve as SVG: how often a classifier is right, over how sure it was."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

SIZE, LEFT, TOP, BOTTOM = 300, 48, 12, 44


def reliability_chart(bins: Sequence[dict[str, Any]], title: str) -> str:
    """Bins with their intervals; a larger dot holds more answers. On the diagonal a model is as sure as it may be."""
    filled = [each for each in bins if each["items"]]
    most = max((each["items"] for each in filled), default=1)

    def across(share: float) -> float:
        return LEFT + SIZE * share

    def up(share: float) -> float:
        return TOP + SIZE * (1 - share)

    shapes = []
    for mark in (0, 0.25, 0.5, 0.75, 1):
        shapes.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + SIZE}" y1="{up(mark):.1f}" y2="{up(mark):.1f}"/>')
        shapes.append(f'<text class="mark" text-anchor="end" x="{LEFT - 6}" y="{up(mark) + 4:.1f}">{mark:.0%}</text>')
        shapes.append(
            f'<text class="mark" text-anchor="middle" x="{across(mark):.1f}" y="{TOP + SIZE + 16}">{mark:.0%}</text>'
        )
    shapes.append(f'<line class="even" x1="{LEFT}" y1="{up(0)}" x2="{LEFT + SIZE}" y2="{up(1)}"/>')
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
    middle = LEFT + SIZE / 2
    bottom = TOP + SIZE + BOTTOM
    shapes.append(f'<text class="mark" text-anchor="middle" x="{middle}" y="{bottom - 8}">confidence</text>')
    spoken = f"{title}: " + "; ".join(f"{each['confidence']:.0%} sure, {each['accuracy']:.0%} right" for each in filled)
    return (
        f'<figure><svg class="chart square" role="img" viewBox="0 0 {LEFT + SIZE + 16} {bottom}"'
        f' aria-label="{escape(spoken)}">{"".join(shapes)}</svg>'
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )
