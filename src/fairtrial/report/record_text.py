"""A record as lines of plain text."""

from __future__ import annotations

import math
import re
from typing import Any

from fairtrial.record import Record
from fairtrial.report.curves import Curve, curves_of, trained_seconds
from fairtrial.report.words import KINDS, describe_result, spoken_parts, spoken_time

MOST_ROWS = 21
SPARKS = "▁▂▃▄▅▆▇█"


def record_lines(record: Record) -> list[str]:
    recipe, trial = record.recipe, record.trial
    training, shape = recipe.training, recipe.shape
    kind = KINDS[recipe.task]
    documents = ", ".join(f"{count:,} {name}" for name, count in trial["documents"].items())
    lines = [
        f"{record.folder}: {kind}, recipe {recipe.name or 'unnamed'!r}, seed {trial['seed']}",
        f"  data      {recipe.data.source} ({documents})",
        f"  tokens    {recipe.tokens.kind}, vocabulary {trial['vocabulary']:,}",
        f"  shape     {shape.layers} layers, {shape.heads} heads, width {shape.width}, feed-forward {shape.hidden},"
        f" length {shape.length}, dropout {shape.dropout:g}"
        + (f" (of attention weights {shape.attention_dropout:g})" if shape.attention_dropout else ""),
        f"  parts     {spoken_parts(recipe)}",
        f"  training  {training.duration}, batch {training.batch}, {training.optimizer},"
        f" learning rate {training.learning_rate:g}",
    ]
    if record.complete:
        lines.append(f"  size      {record.result['parameters']:,} parameters")
    lines.append(f"  took      {spoken_time(trained_seconds(record.clock()))} in all")
    lines += [f"  note      {note}" for note in trial["notes"]]
    if trial.get("cite"):
        lines.append(f"  cite      {trial['cite']}")
    lines += ["", *curve_table(curves_of(record.events()))]
    if record.complete:
        lines += ["", *describe_result(record.result), *confusion_lines(record.result, trial["labels"])]
    else:
        lines += ["", f"not finished; go on with: fairtrial resume {record.folder}"]
    environment = trial["environment"]
    lines += [
        "",
        f"fingerprints: recipe {trial['recipe']}, code {trial['code']}, data"
        f" {' '.join(f'{name}:{digest[:8]}' for name, digest in sorted(trial['data'].items())[:6])}",
        f"environment: Python {environment['python']}, torch {environment['torch']},"
        f" {environment['threads']} thread(s), {environment['system']} {environment['machine']}",
    ]
    return [plain(line) for line in lines]


def plain(line: str) -> str:
    """Without control characters: a stranger's record must not command the terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", line)


def curve_table(curves: list[Curve]) -> list[str]:
    """One row for each scored step, one column for each split, a spark line on top."""
    if not curves:
        return ["no scores yet"]
    steps = sorted({step for curve in curves for step, _ in curve.points})
    shown = steps if len(steps) <= MOST_ROWS else [steps[round(place * (len(steps) - 1) / 20)] for place in range(21)]
    values = [dict(curve.points) for curve in curves]
    widths = [max(12, len(curve.name) + 2) for curve in curves]
    unit = curves[0].unit
    lines = [f"curves ({unit}):", "  step    " + "".join(f"{c.name:>{w}}" for c, w in zip(curves, widths, strict=True))]
    lines.append("          " + "".join(f"{spark(c):>{w}}" for c, w in zip(curves, widths, strict=True)))
    for step in shown:
        cells = (value.get(step) for value in values)
        row = "".join(
            f"{'' if cell is None else unit_text(cell, unit):>{w}}" for cell, w in zip(cells, widths, strict=True)
        )
        lines.append(f"  {step:<8}{row}")
    return lines


def unit_text(value: float, unit: str) -> str:
    return f"{value:.1%}" if unit == "accuracy" else f"{value:.1f}"


def spark(curve: Curve) -> str:
    """At most ten blocks that rise and fall with the curve."""
    values = [value for _, value in curve.points if math.isfinite(value)]
    if not values:
        return ""
    chosen = [values[round(place * (len(values) - 1) / 9)] for place in range(10)] if len(values) > 10 else values
    low, high = min(chosen), max(chosen)
    return "".join(SPARKS[int((value - low) / (high - low or 1) * 7)] for value in chosen)


def confusion_lines(result: dict[str, Any], labels: list[str]) -> list[str]:
    """Rows are true classes, columns guesses."""
    lines = []
    for name, score in result["tests"].items():
        if "confusion" in score:
            width = max(6, *(len(label) + 2 for label in labels))
            lines.append(f"  confusion on {name} (rows: true, columns: guessed)")
            lines.append("  " + " " * width + "".join(f"{label:>{width}}" for label in labels))
            for label, row in zip(labels, score["confusion"], strict=True):
                lines.append(f"  {label:<{width}}" + "".join(f"{count:>{width}}" for count in row))
    return lines
