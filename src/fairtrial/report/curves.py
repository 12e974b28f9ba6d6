"""Curves from a record's events: plain numbers for tables and charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fairtrial.description import Curve
from fairtrial.events import Logged, Scored, Stepped
from fairtrial.formatting import is_number
from fairtrial.stored import ClockEntry

UNITS = {
    "accuracy": "accuracy",
    "window_perplexity": "perplexity, non-overlapping windows",
    "masked_perplexity": "perplexity of masked tokens",
}


def curves_of(events: Iterable[Logged]) -> list[Curve]:
    """One curve for each split that was scored during training, in order of first occurrence."""
    found: dict[str, dict[int, float]] = {}
    unit = ""
    for event in events:
        if isinstance(event, Scored):
            name = event.metrics.headline
            unit = UNITS[name]
            found.setdefault(event.split, {})[event.step] = event.metrics.figure(name)
    return [Curve(name, unit, tuple(sorted(points.items()))) for name, points in found.items()]


def loss_curve(events: Iterable[Logged], most: int = 200) -> Curve:
    """The training loss, averaged over neighbouring steps to at most `most` points."""
    steps = [(event.step, event.loss) for event in events if isinstance(event, Stepped)]
    size = max(1, -(-len(steps) // most))
    points: list[tuple[int, float]] = []
    for begin in range(0, len(steps), size):
        part = steps[begin : begin + size]
        if points and len(part) < size / 2:  # too few to average: one noisy batch would look like a jump
            break
        points.append((part[-1][0], sum(loss for _, loss in part) / len(part)))
    return Curve("loss", "nats", tuple(points))


def trained_seconds(clock: Iterable[ClockEntry]) -> float:
    """Seconds at work, without the time between a stop and its resumption."""
    total, last = 0.0, None
    for entry in clock:
        if last is not None and entry.what not in ("start", "resume"):
            total += max(0.0, entry.time - last)  # a clock may be set back
        last = entry.time
    return total


def scored_losses(events: Iterable[Logged]) -> list[Curve]:
    """The loss of each split that was scored during training."""
    points: dict[str, list[tuple[int, float]]] = {}
    for event in events:
        if isinstance(event, Scored):
            points.setdefault(event.split, []).append((event.step, event.metrics.loss))
    return [Curve(name, "nats", tuple(own)) for name, own in points.items()]


def mean_curve(name: str, seeds: Sequence[Curve], *, log: bool = False) -> Curve:
    """The seeds' curves as one, with their range. Perplexities are averaged as logarithms."""
    values: dict[int, list[float]] = {}
    for curve in seeds:
        for step, value in curve.points:
            if is_number(value) and (value > 0 or not log):
                values.setdefault(step, []).append(value)
    points, band = [], []
    for step, at_step in sorted(values.items()):
        if 2 * len(at_step) < len(seeds):  # most seeds stopped earlier: the rest would shift the mean
            continue
        mean = math.exp(sum(map(math.log, at_step)) / len(at_step)) if log else sum(at_step) / len(at_step)
        points.append((step, mean))
        band.append((min(at_step), max(at_step)))
    return Curve(name, seeds[0].unit if seeds else "", tuple(points), tuple(band) if len(seeds) > 1 else ())
