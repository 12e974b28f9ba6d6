"""The page's figures, as SVG: published numbers among ours, differences and their intervals, attention by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fairtrial.figure import figure_bytes, our_look
from fairtrial.replicate.layers import Layers
from fairtrial.replicate.own_measure import Retried
from fairtrial.replicate.rules import FAILS, HOLDS, Answer

INK, OURS, THEIRS, PALE = "#333333", "#2166ac", "#b2182b", "#92b7d9"
COLOURS = {HOLDS: "#1a7a3c", FAILS: "#b2182b"}
ROW = 0.3  # inches of one row


def published_chart(rows: Sequence[Retried], title: str, unit: str) -> bytes:
    """A row for each published figure: our seeds as dots, their mean and its interval, the figure as a diamond."""

    def draw(axis: Any) -> None:
        for place, row in enumerate(rows):
            axis.plot(row.by_seed, [place] * len(row.by_seed), "o", color=PALE, markersize=5, zorder=2)
            if row.interval:
                axis.plot(row.interval, [place, place], "-", color=OURS, linewidth=2, zorder=3)
            axis.plot([row.mean], [place], "o", color=OURS, markersize=6, zorder=4)
            axis.plot([row.figure.value], [place], "D", color=THEIRS, markersize=5, zorder=5)
        names = []
        for row in rows:
            picked = ", best epoch" if row.figure.picked_on_test else ""
            where = "" if row.figure.measure == "accuracy" else f", {row.figure.set}"
            names.append(f"{row.figure.report}  {row.figure.variant}{where}{picked}")
        axis.set_yticks(range(len(rows)), names)
        axis.set_xlabel(unit)
        axis.set_title(title, loc="left", fontsize=9)
        for label, marker, colour in (
            ("published", "D", THEIRS),
            ("mean of ours, 95%", "o", OURS),
            ("a seed", "o", PALE),
        ):
            axis.plot([], [], marker, color=colour, label=label, markersize=5)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.45 / (ROW * len(rows) + 0.01)), ncol=3, frameon=False)

    return drawn(draw, len(rows))


def claims_chart(answers: Sequence[Answer], title: str, unit: str) -> bytes:
    """A row for each claim that a comparison decides: the difference and its 95 % interval."""

    def draw(axis: Any) -> None:
        axis.axvline(0, color=INK, linewidth=0.8)
        for place, each in enumerate(answers):
            shown = each.decided.shown() if each.decided else None
            if shown is None:
                continue
            colour = COLOURS.get(each.outcome, INK)
            axis.plot(shown[1:], [place, place], "-", color=colour, linewidth=2)
            axis.plot([shown[0]], [place], "o", color=colour, markersize=6)
        axis.set_yticks(range(len(answers)), [named(each) for each in answers])
        axis.set_xlabel(unit)
        axis.set_title(title, loc="left", fontsize=9)

    return drawn(draw, len(answers))


def named(answer: Answer) -> str:
    claim = answer.claim
    return f"{claim.report}  {claim.variant} against {claim.against}: {answer.outcome}"


def layers_chart(layers: Layers) -> bytes:
    """A line for each seed, trained and untrained."""

    def draw(axis: Any) -> None:
        for rows, colour, name in ((layers.untrained, "#999999", "untrained"), (layers.trained, OURS, "trained")):
            for number, row in enumerate(rows):
                label = name if number == 0 else None
                axis.plot(range(len(row)), row, "o-", color=colour, linewidth=1, markersize=3, label=label)
        axis.set_xticks(range(len(layers.trained[0])))
        axis.set_xlabel("layer")
        axis.set_ylabel("entropy, share of even")
        axis.set_title(
            "How spread attention is (1: even; lower: more concentrated), a line for each seed", loc="left", fontsize=9
        )
        axis.legend(frameon=False)

    return drawn(draw, 7, turned=False)


def drawn(draw: Callable[[Any], None], rows: int, *, turned: bool = True) -> bytes:
    """The same bytes for the same numbers."""
    from matplotlib.figure import Figure

    with our_look():
        figure = Figure(figsize=(7.5, ROW * rows + 1.1), dpi=100, facecolor="white", layout="tight")
        axis = figure.add_subplot()
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x" if turned else "y", color="#e5e5e5")
        draw(axis)
        if turned:
            axis.set_ylim(rows - 0.5, -0.5)
        return figure_bytes(figure, "svg")
