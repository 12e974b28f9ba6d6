"""Does a difference grow with the network and with the text? One study at several widths and amounts of text."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import fairtrial as ft
from pages import holm, outcomes_of, records_section, save_figure, table, with_interval, write_sections

HERE = Path(__file__).parent
WIDTHS, SHARES = (32, 64, 128), (0.25, 0.5, 1.0)
HIDDEN = 4  # the feed-forward layer is so many times as wide
Cell = tuple[int, float]  # width, share of the training text


class Trend(NamedTuple):
    """What a difference gains with every doubling."""

    variant: str
    test_set: str
    doubled: str
    comparison: ft.Comparison


def main() -> None:
    found = {cell: run(*cell) for cell in product(WIDTHS, SHARES)}
    outcomes = {cell: next(iter(each.tasks.values())) for cell, each in found.items() if each is not None}
    joined = ft.Outcomes.join("scaling", {name_of(cell): each for cell, each in found.items() if each is not None})
    verdict = joined.verdict()
    first = outcomes[WIDTHS[0], SHARES[0]]
    pairs = list(product(first.others, first.sets))
    trends = [trend for variant, name in pairs for trend in trends_of(outcomes, variant, name)]
    adjusted = holm([1.0 if trend.comparison.p is None else trend.comparison.p for trend in trends])
    save_figure(draw(verdict, pairs), HERE / "differences.svg")
    rows = [
        [
            f"**{each.variant}**",
            each.test_set,
            each.doubled,
            with_interval(per_cent(each.comparison.difference), digits=2),
            f"{p:.2g}",
            "no trend seen" if p >= 0.05 else "towards better" if (each.comparison.gain or 0) > 0 else "towards worse",
        ]
        for each, p in zip(trends, adjusted, strict=True)
    ]
    columns = ["idea", "test set", "doubled", "change of the difference, % of perplexity", "p (Holm)", "trend"]
    text = (
        "A trend is what a difference gains with every doubling: the slope of least squares over all sizes, taken seed"
        " by seed and item by item, so that its interval counts new seeds and new test items. P-values are corrected"
        f" over all {len(trends)} trends (Holm).\n\n{table(columns, rows)}\n\n"
    )
    text += "![the difference by width, a line for each share of the text](differences.svg)\n\n"
    text += "\n\n".join(size_table(verdict, variant, name) for variant, name in pairs)
    write_sections(
        HERE / "README.md",
        {
            "Trends": text,
            f"What `{first.baseline}` reaches": reached(verdict, first.baseline),
            "Records": records_section(found.values()),
        },
    )


def run(width: int, share: float) -> ft.Outcomes | None:
    size = {"shape.width": width, "shape.hidden": HIDDEN * width, "data.train_share": share}
    return outcomes_of(HERE, name_of((width, share)), HERE / "study.toml", **size)


def name_of(cell: Cell) -> str:
    return f"width-{cell[0]}-text-{cell[1]:g}"


def per_cent(value: ft.Interval) -> ft.Interval:
    """Of a small difference of log-perplexities."""
    numbers = [
        None if each is None else 100 * float(np.expm1(each)) for each in (value.estimate, value.low, value.high)
    ]
    return ft.Interval(*numbers)


def trends_of(outcomes: dict[Cell, Any], variant: str, name: str) -> list[Trend]:
    """The slope of least squares over all sizes, taken seed by seed and item by item, so that its interval counts new
    seeds and new test items. Words are the same at every size, so each item has the same weight."""
    sizes = np.array([[1.0, *np.log2(cell)] for cell in outcomes])
    slopes = np.linalg.pinv(sizes)[1:]  # of the width and of the text [size cell]
    tasks = list(outcomes.values())
    sides = {}
    for side in (variant, tasks[0].baseline):
        sets = [task.variants[side][name] for task in tasks]
        tokens = sets[0]["tokens"][0]
        assert all((each["tokens"] == tokens).all() for each in sets)
        sides[side] = np.stack([each["nll"] / np.maximum(1, tokens) for each in sets])  # cell seed item
    clean = np.logical_and.reduce([task.status.get(name, np.zeros(len(tokens))) == 0 for task in tasks])
    groups = tasks[0].clusters.get(name)
    ours, theirs = sides.values()
    return [
        Trend(
            variant,
            name,
            doubled,
            ft.compare(
                np.tensordot(slope, ours, 1),
                np.tensordot(slope, theirs, 1),
                groups,
                tokens * clean,
                metric="change with every doubling",
                higher_is_better=False,
            ),
        )
        for doubled, slope in zip(("width", "text"), slopes, strict=True)
    ]


def comparison_at(verdict: ft.Verdict, cell: Cell, variant: str, name: str) -> ft.Comparison:
    rows = verdict.tasks[name_of(cell)].comparisons
    return next(row for row in rows if (row.variant, row.test_set) == (variant, name))


def size_table(verdict: ft.Verdict, variant: str, name: str) -> str:
    rows = [
        [width, *(with_interval(comparison_at(verdict, (width, share), variant, name).shown) for share in SHARES)]
        for width in WIDTHS
    ]
    columns = ["width", *(f"{share:g} of the text" for share in SHARES)]
    return f"**{variant}, {name}**\n\n{table(columns, rows)}"


def reached(verdict: ft.Verdict, baseline: str) -> str:
    names = list(next(iter(verdict.tasks.values())).sets)
    rows = [
        [size, *(with_interval(task.scores[baseline][name]["all"].mean, sign=False) for name in names)]
        for size, task in verdict.tasks.items()
    ]
    return table(["size", *names], rows)


def draw(verdict: ft.Verdict, pairs: list[tuple[str, str]]) -> Figure:
    columns = len({name for _, name in pairs})
    rows = len(pairs) // columns
    figure = Figure(figsize=(2.8 * columns + 0.6, 2.5 * rows), facecolor="white", layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axis, (variant, name) in zip(panels.flat, pairs, strict=True):
        axis.axhline(0, color="#333333", linewidth=0.8)
        for share in SHARES:
            shown = [comparison_at(verdict, (width, share), variant, name).shown for width in WIDTHS]
            middle = [each.estimate or 0.0 for each in shown]
            ends = [
                [m - (each.low or m) for m, each in zip(middle, shown, strict=True)],
                [(each.high or m) - m for m, each in zip(middle, shown, strict=True)],
            ]
            axis.errorbar(WIDTHS, middle, ends, marker="o", markersize=3, capsize=2, label=f"{share:g} of the text")
        axis.set_xscale("log", base=2)
        axis.set_title(f"{variant}, {name}", fontsize=8)
    figure.supxlabel("width", fontsize=8)
    figure.supylabel("perplexity, %", fontsize=8)
    panels[0, 0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
