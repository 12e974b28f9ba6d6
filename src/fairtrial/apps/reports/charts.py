"""The page's figures, as SVG: published numbers among ours, differences and their intervals, attention by layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairtrial.apps.reports.claims import FAILS, HOLDS, Answer
from fairtrial.apps.reports.evidence import Decided
from fairtrial.apps.reports.measures import Layers, Retried
from fairtrial.report import figure_bytes, our_look

INK, OURS, THEIRS, PALE = "#333333", "#2166ac", "#b2182b", "#92b7d9"
COLOURS = {HOLDS: "#1a7a3c", FAILS: "#b2182b"}
ROW = 0.3  # inches of one row
MARKS = {"r0": "P", "r1": "D", "r2": "^", "r3": "v", "r4": "s"}


def published_chart(rows: Sequence[Retried], title: str, unit: str) -> bytes:
    """A row for each published figure: our seeds as dots, their mean and its interval, the figure as a diamond."""

    def draw(axis: Any) -> None:
        for y, row in enumerate(rows):
            axis.plot(row.by_seed, [y] * len(row.by_seed), "o", color=PALE, markersize=5, zorder=2)
            if interval := row.interval():
                axis.plot(interval, [y, y], "-", color=OURS, linewidth=2, zorder=3)
            axis.plot([row.mean], [y], "o", color=OURS, markersize=6, zorder=4)
            axis.plot([row.figure.value], [y], "D", color=THEIRS, markersize=5, zorder=5)
        legend = (("published", "D", THEIRS), ("mean of ours, 95%", "o", OURS), ("a seed", "o", PALE))
        for label, marker, colour in legend:
            axis.plot([], [], marker, color=colour, label=label, markersize=5)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / (ROW * len(rows) + 0.01)), ncol=3, frameon=False)

    names = []
    for figure in (row.figure for row in rows):
        picked = ", best epoch" if figure.picked_on_test else ""
        where = "" if figure.measure == "accuracy" else f", {figure.set}"
        run = f", {figure.note.partition(':')[0]}" if figure.note else ""
        names.append(f"{figure.report}  {figure.variant}{run}{where}{picked}")
    return drawn(draw, title, unit, names)


def claims_chart(answers: Sequence[Answer], title: str, unit: str) -> bytes:
    """A row for each comparison that decides a claim: the difference and its 95% interval."""
    rows = [row for each in answers for row in compared(each)]

    def draw(axis: Any) -> None:
        axis.axvline(0, color=INK, linewidth=0.8)
        for y, (_, outcome, decided) in enumerate(rows):
            if (shown := decided.shown()) is not None:
                colour = COLOURS.get(outcome, INK)
                axis.plot(shown[1:], [y, y], "-", color=colour, linewidth=2)
                axis.plot([shown[0]], [y], "o", color=colour, markersize=6)

    return drawn(draw, title, unit, [f"{name}: {outcome}" for name, outcome, _ in rows])


def compared(answer: Answer) -> list[tuple[str, str, Decided]]:
    """Name, outcome and comparison; optimizers are compared twice."""
    claim, at_one = answer.claim, answer.at_one_rate
    name = f"{claim.report}  {claim.variant} against {claim.against}"
    both = [(name, answer)] if at_one is None else [(f"{name}, one rate", at_one), (f"{name}, own rates", answer)]
    return [(label, each.outcome, each.decided) for label, each in both if each.decided is not None]


def curves_chart(rows: Sequence[Retried]) -> bytes:
    """A panel for each variant and set: the range of our seeds, and the published curves."""
    from matplotlib.figure import Figure

    panels: dict[tuple[str, str], dict[str, list[Retried]]] = {}
    for row in rows:
        reports = panels.setdefault((row.figure.variant, row.figure.set), {})
        reports.setdefault(row.figure.report, []).append(row)
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    with our_look():
        figure = Figure(figsize=(2.5 * across, 2.1 * down + 0.5), dpi=100, facecolor="white", layout="constrained")
        figure.supylabel({"accuracy": "accuracy, %"}.get(rows[0].figure.measure, rows[0].figure.measure), fontsize=8)
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for axis, ((variant, name), reports) in zip(axes, panels.items(), strict=False):
            draw_curve(axis, f"{variant}: {name}", reports)
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        known: dict[str, Any] = {}
        for axis in figure.axes:
            lines, labels = axis.get_legend_handles_labels()
            known |= dict(zip(labels, lines, strict=True))
        figure.legend(known.values(), known.keys(), loc="outside lower center", ncol=len(known), frameon=False)
        return figure_bytes(figure, "svg")


def draw_curve(axis: Any, title: str, reports: Mapping[str, Sequence[Retried]]) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e5e5e5")
    longest = max(reports.values(), key=len)
    steps = [row.figure.at.count for row in longest if row.figure.at]
    lowest, highest = ([way(row.by_seed) for row in longest] for way in (min, max))
    axis.fill_between(steps, lowest, highest, color=PALE, alpha=0.6, linewidth=0, label="our seeds")
    axis.plot(steps, [row.mean for row in longest], "-", color=OURS, linewidth=1.2, label="their mean")
    for report, points in reports.items():
        at = [row.figure.at.count for row in points if row.figure.at]
        values = [row.figure.value for row in points]
        axis.plot(at, values, MARKS[report], color=THEIRS, markersize=3, label=f"published by {report}")
    axis.set_title(title, loc="left", fontsize=8)
    axis.set_xlabel(longest[0].figure.at.unit if longest[0].figure.at else "")


def layers_chart(layers: Layers) -> bytes:
    """A line for each seed, trained and untrained."""

    def draw(axis: Any) -> None:
        for name, colour in (("untrained", "#999999"), ("trained", OURS)):
            for number, row in enumerate(layers[name]):
                label = name if number == 0 else None
                axis.plot(range(len(row)), row, "o-", color=colour, linewidth=1, markersize=3, label=label)
        axis.set_xticks(range(len(layers["trained"][0])))
        axis.set_ylabel("entropy, share of uniform")
        axis.legend(frameon=False)

    return drawn(draw, "Attention entropy (1: uniform; lower: more concentrated), a line for each seed", "layer")


def drawn(draw: Callable[[Any], None], title: str, xlabel: str, rows: Sequence[str] = ()) -> bytes:
    """The same bytes for the same numbers. `rows`: names of what is drawn in rows."""
    from matplotlib.figure import Figure

    with our_look():
        figure = Figure(figsize=(7.5, ROW * (len(rows) or 7) + 1.1), dpi=100, facecolor="white", layout="tight")
        axis = figure.add_subplot()
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x" if rows else "y", color="#e5e5e5")
        draw(axis)
        axis.set_xlabel(xlabel)
        axis.set_title(title, loc="left", fontsize=9)
        if rows:
            axis.set_yticks(range(len(rows)), rows)
            axis.set_ylim(len(rows) - 0.5, -0.5)
        return figure_bytes(figure, "svg")
