"""Curves from elsewhere (variant, seed, step, loss) -> how much less training reaches the same loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.results.item_rows import Rows
from fairtrial.results.judge import CHOOSE, numbered_seeds, two_scores, wanted_metrics
from fairtrial.results.readers import Results, read_results
from fairtrial.results.values import Speedups
from fairtrial.statistics.crossed import Counts
from fairtrial.statistics.outcomes import direction_of
from fairtrial.statistics.speedup import Curve, compare_costs

SHAPE = "give a table with the columns variant, seed, step and loss, or a dict: variant -> seed -> [(step, loss), ...]"


def speedups_of(
    given: object,
    columns: Mapping[str, str] | None,
    baseline: str | None,
    metric: str | None,
    where: Mapping[str, str] | None,
) -> Speedups:
    """Of every variant but the baseline, by default the first."""
    if isinstance(given, Mapping):
        given = list(rows_of(given))
    results = read_results(given, columns, [metric] if metric else (), where)
    curves = curves_of(results, metric)
    chosen = next(iter(curves)) if baseline is None else baseline
    if chosen not in curves:
        raise BadInput(
            f"no variant is called {chosen!r}{did_you_mean(chosen, list(curves))}", f"there are: {', '.join(curves)}"
        )
    if len(curves) < 2:
        raise BadInput(f"there is one variant only, {chosen!r}: nothing to compare it with", SHAPE)
    return Speedups(
        tuple(compare_costs(curves, name, chosen) for name in curves if name != chosen), tuple(results.notes)
    )


def rows_of(given: Mapping[object, object]) -> Iterator[dict[str, object]]:
    for variant, runs in given.items():
        if not isinstance(runs, Mapping):
            raise BadInput(f"{variant}: {type(runs).__name__} holds no runs", SHAPE)
        for seed, points in runs.items():
            for point in points:
                if not isinstance(point, Sequence) or len(point) != 2:
                    raise BadInput(f"{variant}, seed {seed}: {point!r} is not a pair of a step and a loss", SHAPE)
                step, loss = map(float, point)
                yield {"variant": variant, "seed": seed, "step": step, "value": loss if math.isfinite(loss) else "nan"}


def curves_of(results: Results, metric: str | None) -> dict[str, dict[int, Curve]]:
    """By variant and seed; a loss that is no finite number is infinite."""
    cells = results.cells
    diverged = np.array([is_broken(cell) for cell in cells.get("value", ())], bool)
    finite = [None if broken else cell for cell, broken in zip(cells.get("value", ()), diverged, strict=True)]
    rows = replace(results, cells=cells | {"value": finite}).rows
    rows.numbers["value"][diverged] = math.inf
    if "item" in rows.texts or np.isnan(rows.numbers["step"]).all():
        raise BadInput("no column holds the steps of a run", SHAPE)
    rows = wanted_metrics(rows, [metric] if metric and rows["metric"].values != [None] else ())
    for name, hint in (("metric", CHOOSE), ("test", "with where=")):
        if len(rows[name].values) > 1:
            known = ", ".join(map(str, rows[name].values))
            raise BadInput(f"curves are of one {name}, and the table has {known}", f"choose one {hint}")
    title = rows["metric"].values[0] or rows["column"].values[0] or "loss"
    if direction_of(title):
        raise BadInput(f"curves must be of a loss, which falls: {title}", f"choose another column {CHOOSE}")
    rows = rows.kept(~np.isnan(rows.numbers["value"]) & ~np.isnan(rows.numbers["step"]))
    label = next((name for name in ("seed", "run") if rows[name].values != [None]), "seed")
    seeds = numbered_seeds(rows[label].values)
    curves: dict[str, dict[int, Curve]] = {}
    codes = rows["variant"].joined(rows[label]).codes
    for code in range(int(codes.max(initial=-1)) + 1):
        own = np.flatnonzero(codes == code)
        variant, run = rows["variant"].at(int(own[0])), rows[label].at(int(own[0]))
        curves.setdefault(str(variant), {})[seeds[run]] = curve_of(rows, own, label)
    return curves


def curve_of(rows: Rows, own: Counts, label: str) -> Curve:
    """In the order of its steps. A log that was resumed tells a step twice: its last line counts."""
    order = own[np.argsort(rows.numbers["step"][own], kind="stable")]
    steps, losses = rows.numbers["step"][order], rows.numbers["value"][order]
    again = np.flatnonzero(steps[1:] == steps[:-1])
    other = [at for at in again.tolist() if losses[at] != losses[at + 1]]
    if other and label == "seed":
        raise two_scores(rows, int(order[other[0]]), int(order[other[0] + 1]), label)
    return Curve(np.delete(steps, again), np.delete(losses, again))


def is_broken(cell: object) -> bool:
    """Whether it says that a loss is infinite or not a number; an empty cell, NaN in a data frame, says nothing."""
    if not isinstance(cell, str):
        return isinstance(cell, float) and math.isinf(cell)
    return cell.strip().lower().lstrip("+-") in ("nan", "inf", "infinity")
