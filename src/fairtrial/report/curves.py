"""Curves from a record's events: plain numbers for tables and charts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairtrial.statistics.outcomes import headline

UNITS = {
    "accuracy": "accuracy",
    "window_perplexity": "perplexity, non-overlapping windows",
    "masked_perplexity": "perplexity of masked tokens",
}


@dataclass(frozen=True)
class Curve:
    name: str  # the split
    unit: str
    points: tuple[tuple[int, float], ...]  # (step, value)


def curves_of(events: Iterable[dict[str, Any]]) -> list[Curve]:
    """One curve for each split that was scored during training, in order of first occurrence."""
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
        if points and len(part) < size / 2:  # too few to average: one noisy batch would look like a jump
            break
        points.append((part[-1][0], sum(loss for _, loss in part) / len(part)))
    return Curve("loss", "nats", tuple(points))


def trained_seconds(clock: list[dict[str, Any]]) -> float:
    """Seconds at work, without the time between a stop and its resumption."""
    total, last = 0.0, None
    for line in clock:
        if last is not None and line["what"] not in ("start", "resume"):
            total += max(0.0, line["time"] - last)  # a clock may be set back
        last = line["time"]
    return total
