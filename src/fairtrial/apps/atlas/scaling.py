"""Does a difference grow with the network and with the text? One study at several widths and amounts of training text:
what `fairtrial scaling` calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fairtrial.apps.atlas.run import at_hand
from fairtrial.apps.markdown import write_markdown
from fairtrial.apps.series import Series, planned, run_series
from fairtrial.engines import Stop, open_engine
from fairtrial.errors import BadInput
from fairtrial.report import figure_bytes, our_look, spoken_time, with_interval
from fairtrial.statistics import (
    ALPHA,
    Comparison,
    TaskOutcomes,
    compare,
    counted,
    describe_set,
    holm,
    judge_study,
    subsets,
    trends,
)
from fairtrial.study import OnEvent, Options, Study, gather, recipe_of

HERE = Path(__file__).parent
Cell = tuple[int, float]  # width, share of the training text
SIZES = ("width", "text")


@dataclass(frozen=True)
class Trend:
    """What a difference gains with every doubling: of the width, or of the training text."""

    size: str
    slope: float
    low: float
    high: float
    p: float
    p_adjusted: float = 1.0  # over all trends of a page


@dataclass(frozen=True)
class Scaled:
    """A variant against the baseline on one test set: at every size, and its trends."""

    variant: str
    set: str
    metric: str
    cells: Mapping[Cell, Comparison]
    trends: tuple[Trend, ...]
    left_out: Mapping[Cell, str]  # sizes at which the two cannot be compared -> why

    @property
    def sign(self) -> int:
        """1 where more is better."""
        return 1 if next(iter(self.cells.values())).metric.higher_is_better else -1


@dataclass(frozen=True)
class Scaling:
    page: Path
    found: list[Scaled]


def make_scaling(
    study: str | Path, *, widths: Sequence[int] = (32, 64, 128), shares: Sequence[float] = (0.25, 0.5, 1.0),
    data: str | Path | None = None, seeds: int | None = None, out: str | Path | None = None,
    page: str | Path | None = None, jobs: int | None = None, retry_failed: bool = False, dry_run: bool = False,
    on_event: OnEvent = lambda kind, facts: None, stop: Stop = lambda: False,
) -> Scaling | None:  # fmt: skip
    """Run a study at every width with every share of the training text, and say how its differences change; with
    `dry_run` only the plan is told."""
    if any(width < 1 for width in widths) or not all(0 < share <= 1 for share in shares):
        raise BadInput("widths are at least 1, shares of the text above 0 and at most 1")
    if len(set(widths)) < 2 or len(set(shares)) < 2:
        raise BadInput("a trend needs at least two widths and two shares of the text", "three of each show a bend")
    ((key, asked),) = at_hand([Path(study)], None if data is None else Path(data), seeds).studies.items()
    cells = {cell: at_size(asked, *cell) for cell in product(sorted(set(widths)), sorted(set(shares)))}
    series = Series({name_of(cell): each for cell, each in cells.items()}, ())
    folder, engine = Path(out or f"scaling-{key}"), open_engine("cores", jobs)
    seconds = run_series(series, folder, engine, Options(retry_failed=retry_failed, dry_run=dry_run), on_event, stop)
    if seconds is None:
        return None
    outcomes = {cell: gather(planned(each, folder / name_of(cell)), each.tasks[0]) for cell, each in cells.items()}
    verdict = judge_study("scaling", {name_of(cell): task for cell, task in outcomes.items()}, one_family=True)
    first = next(iter(outcomes.values()))
    found = corrected(scaled(outcomes, verdict, *each) for each in product(first.others, first.sets))
    made = {"took": spoken_time(seconds), "at_a_time": counted(engine.width, "trial"), "study": asked}
    pictures, target = {"differences.svg": draw(found)}, Path(page or folder / "scaling.md")
    return Scaling(
        write_markdown(target, HERE / "scaling.md", pictures, values_of(found, outcomes, verdict) | made), found
    )


def at_size(study: Study, width: int, share: float) -> Study:
    """The feed-forward layer keeps its proportion."""
    if study.match:
        raise BadInput("a study at several sizes has no matched budget", "leave match out")
    task = study.tasks[0]
    shape = recipe_of(study, task, study.variant(study.baseline)).shape
    hidden = round(shape.hidden * width / shape.width)
    size = {"shape.width": width, "shape.hidden": hidden, "data.train_share": share}
    own = {key: value for key, value in study.task_settings.get(task, {}).items() if key not in size}
    return replace(study, settings={**study.settings, **size}, task_settings={**study.task_settings, task: own})


def name_of(cell: Cell) -> str:
    return f"width-{cell[0]}-text-{cell[1]:g}"


def scaled(outcomes: Mapping[Cell, TaskOutcomes], verdict: Mapping[str, Any], variant: str, name: str) -> Scaled:
    """On the items that are decisive at every size: those that no training text holds, where too many are copies. A
    size at which the two cannot be compared is left out."""
    keep = np.logical_and.reduce([decisive_items(task, name) for task in outcomes.values()])
    cells, left_out = {}, {}
    for cell, task in outcomes.items():
        rows = verdict["tasks"][name_of(cell)]["comparisons"]
        (row,) = (each for each in rows if (each["variant"], each["set"]) == (variant, name))
        if row["why"]:
            left_out[cell] = "; ".join(row["why"])
            continue
        pair = (task.variants[variant][name], task.variants[task.baseline][name])
        cells[cell] = compare((variant, task.baseline, name, "all"), task.metric, pair, keep, task.clusters.get(name))
    if any(len(set(at)) < 2 for at in zip(*cells, strict=True)) or not cells:
        which = ", ".join(map(name_of, left_out))
        raise BadInput(f"{variant!r} has no trend on {name}: {next(iter(left_out.values()))} ({which})")
    slopes = trends(list(cells.values()), [[math.log2(size) for size in cell] for cell in cells])
    lines = [
        Trend(size, slope.difference, *slope.interval(), slope.p) for size, slope in zip(SIZES, slopes, strict=True)
    ]
    return Scaled(variant, name, next(iter(cells.values())).metric.name, cells, tuple(lines), left_out)


def corrected(scaled: Iterable[Scaled]) -> list[Scaled]:
    """With p-values over all trends."""
    found = list(scaled)
    p = iter(holm([each.p for one in found for each in one.trends]))
    return [replace(one, trends=tuple(replace(each, p_adjusted=next(p)) for each in one.trends)) for one in found]


def decisive_items(task: TaskOutcomes, name: str) -> np.ndarray:
    items = task.variants[task.baseline][name].items
    status = task.status.get(name)
    basis = describe_set(status, items)["basis"]
    return subsets(status, items)[basis]


def in_words(one: Scaled, each: Trend) -> str:
    if each.p_adjusted >= ALPHA:
        return "no trend seen"
    return "moves towards better" if each.slope * one.sign > 0 else "moves towards worse"


def per_doubling(one: Scaled, each: Trend) -> str:
    return with_interval(*(shown(one, value) for value in (each.slope, each.low, each.high)), sign=True)


def shown(one: Scaled, value: float) -> float:
    """Points, or per cent of perplexity."""
    return value if one.metric == "accuracy" else 100 * math.expm1(value)


def difference_at(one: Scaled, cell: Cell) -> tuple[float, float, float]:
    test = one.cells[cell].test
    assert test is not None
    low, high = test.interval()
    return shown(one, test.difference), shown(one, low), shown(one, high)


def told_at(one: Scaled, cell: Cell) -> str:
    return with_interval(*difference_at(one, cell), sign=True) if cell in one.cells else "cannot be judged"


def values_of(
    found: Sequence[Scaled], outcomes: Mapping[Cell, TaskOutcomes], verdict: Mapping[str, Any]
) -> dict[str, Any]:
    """What the template shows."""
    widths, shares = sorted({width for width, _ in outcomes}), sorted({share for _, share in outcomes})
    first = next(iter(outcomes.values()))
    return {
        "baseline": first.baseline, "metric": first.metric, "sets": list(first.sets),
        "seeds": len(verdict["tasks"][name_of((widths[0], shares[0]))]["seeds"]),
        "family": sum(len(one.trends) for one in found),
        "shares": [f"{share:g} of the text" for share in shares],
        "trends": [
            [f"**{one.variant}**", one.set, each.size, per_doubling(one, each), f"{each.p_adjusted:.2g}",
             in_words(one, each)]
            for one in found
            for each in one.trends
        ],
        "tables": [
            (one.variant, one.set, [
                [str(width), *(told_at(one, (width, share)) for share in shares)]
                for width in widths
            ])
            for one in found
        ],
        "left_out": [
            f"{one.variant}, {one.set}, {name_of(cell)}: {why}" for one in found for cell, why in one.left_out.items()
        ],
        "scores": [
            [name, *(f"{task['scores'][first.baseline][each]['all']['mean']:.1f}" for each in first.sets)]
            for name, task in verdict["tasks"].items()
        ],
    }  # fmt: skip


def draw(found: Sequence[Scaled]) -> bytes:
    """A row of panels for each variant, a column for each test set: the difference by width, a line for each share of
    the text. All have one scale."""
    from matplotlib.figure import Figure

    columns = len({one.set for one in found})
    rows = len(found) // columns
    with our_look():
        figure = Figure(figsize=(2.8 * columns + 0.6, 2.5 * rows), dpi=100, facecolor="white", layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axis, one in zip(panels.flat, found, strict=True):
            axis.axhline(0, color="#333333", linewidth=0.8)
            for share in sorted({cell[1] for cell in one.cells}):
                widths = sorted(width for width, own in one.cells if own == share)
                values = [difference_at(one, (width, share)) for width in widths]
                ends = [[value - low for value, low, _ in values], [high - value for value, _, high in values]]
                middle = [value for value, _, _ in values]
                axis.errorbar(widths, middle, ends, marker="o", markersize=3, capsize=2, label=f"{share:g} of the text")
            axis.set_xscale("log", base=2)
            axis.set_title(f"{one.variant}, {one.set}")
        for axis in panels[-1]:
            axis.set_xlabel("width")
        for axis in panels[:, 0]:
            axis.set_ylabel("accuracy, points" if found[0].metric == "accuracy" else "perplexity, %")
        panels[0, 0].legend(frameon=False)
        return figure_bytes(figure, "svg")
