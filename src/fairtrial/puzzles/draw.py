"""Pictures of puzzles: the keys with their hull and the query, the weights as bars, and how they move with length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtrial.figure import figure_bytes, our_look
from fairtrial.puzzles.draw_keys import draw_keys
from fairtrial.puzzles.frame import Array, Frame
from fairtrial.puzzles.growth import key_growth, query_growth
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.solve import Answer

BLUE, RED, GREY, PALE = "#1f77b4", "#d62728", "#8a8a8a", "#c9d7e6"
MOST_BARS, MOST_NAMES = 40, 20


def answer_picture(answer: Answer, kind: str) -> bytes:
    """Three panels, as PNG or SVG: the same bytes for the same numbers."""
    colours = colours_of(answer)
    verdict = "possible" if answer.possible else "impossible; the best there is"
    with _figure(f"{answer.ask}: {verdict}", kind) as page:
        draw_keys(page.figure, 131, answer.keys, answer.names, colours, [(answer.query, BLUE)], "keys, hull, query")
        _bars(page.figure.add_subplot(132), answer, {"least squares": answer.least_squares.weights})
        lengths, weights = query_growth(answer)
        axis = page.figure.add_subplot(133)
        _curves(axis, lengths, weights, answer.names, colours)
        axis.axvline(answer.norm, color="0.6", linestyle=":")
        axis.set(xlabel="length of the query", title="weights of the best query of each length")
    return page.content


def replacement_picture(answer: Replacement, kind: str) -> bytes:
    colours = colours_of(answer)
    verdict = "possible" if answer.possible else "impossible; the best there is"
    with _figure(f"{answer.ask}: {verdict}", kind) as page:
        old = answer.keys[answer.place]
        queries = [(answer.query, BLUE)]
        draw_keys(page.figure, 131, answer.new_keys, answer.names, colours, queries, "keys, hull, query", old)
        before = Frame.of(answer.keys, answer.scaled).weights(answer.query)
        _bars(page.figure.add_subplot(132), answer, {"before": before, answer.simple_way: answer.simple_weights})
        lengths, weights = key_growth(answer)
        axis = page.figure.add_subplot(133)
        _curves(axis, lengths, weights, answer.names, colours)
        reach = float(answer.new_keys[answer.place] @ answer.query) / (float(np.linalg.norm(answer.query)) or 1.0)
        axis.axvline(reach, color="0.6", linestyle=":")
        axis.set(xlabel="how far the new key goes along the query", title="weights as the key grows")
    return page.content


def identity_picture(answers: Sequence[Answer], kind: str) -> bytes:
    from matplotlib.ticker import MaxNLocator

    first = answers[0]
    colours = [BLUE if answer.possible else RED for answer in answers]
    failed = sum(not answer.possible for answer in answers)
    verdict = f"impossible for {failed} of {len(answers)}" if failed else "possible"
    with _figure(f"identity: {verdict}", kind) as page:
        queries = [(answer.query, colour) for answer, colour in zip(answers, colours, strict=True)]
        draw_keys(page.figure, 131, first.keys, first.names, colours, queries[:12], "keys, hull, queries")
        axis = page.figure.add_subplot(132)
        shown = axis.imshow(np.array([answer.weights for answer in answers]), vmin=0, vmax=1, cmap="viridis")
        axis.set(title="weights", xlabel="key", ylabel="query")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        page.figure.colorbar(shown, ax=axis, shrink=0.7)
        axis = page.figure.add_subplot(133)
        far = 1.2 * max(answer.smallest_norm for answer in answers)
        ends = []
        for number, (answer, colour) in enumerate(zip(answers[:MOST_BARS], colours, strict=False)):
            lengths, weights = query_growth(answer, far=far)
            axis.plot(lengths, weights[:, number], color=colour)
            ends.append((lengths[-1], weights[-1, number], answer.names[number], colour))
        _names_at_ends(axis, ends)
        axis.set(xlabel="length of the query", title="own weight of the best query of each length", ylim=(-0.02, 1.05))
    return page.content


def colours_of(answer: Answer | Replacement) -> list[str]:
    """Wanted keys are blue, those in the way red."""
    colours = [BLUE if share > 0 else GREY for share in answer.target]
    for place in answer.in_the_way:
        colours[place] = RED
    return colours


def _bars(axis: Any, answer: Answer | Replacement, beside: dict[str, Array]) -> None:
    shown = slice(0, MOST_BARS)
    series = {"wanted": answer.target, "attained": answer.weights, **beside}
    styles = ["0.8", BLUE, "#ff9f40", "#9467bd"]
    thick = 0.8 / len(series)
    rows = np.arange(len(answer.names[shown]))
    for number, (name, weights) in enumerate(series.items()):
        axis.barh(
            rows + (number - (len(series) - 1) / 2) * thick, weights[shown], thick, color=styles[number], label=name
        )
    axis.set(yticks=rows, yticklabels=answer.names[shown], xlim=(0, 1.02), title="weights")
    axis.invert_yaxis()
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)


def _curves(axis: Any, lengths: Array, weights: Array, names: Sequence[str], colours: Sequence[str]) -> None:
    for place in range(len(names)):
        axis.plot(lengths, weights[:, place], color=colours[place], linewidth=1.6 if colours[place] != GREY else 0.8)
    _names_at_ends(
        axis, [(lengths[-1], weights[-1, place], names[place], colours[place]) for place in range(len(names))]
    )
    axis.set_ylim(-0.02, 1.05)


def _names_at_ends(axis: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Names at the lines' ends, pushed apart where lines end together; grey lines that end at nothing go without."""
    low, right, apart = axis.get_xlim()[0], max(end[0] for end in ends), 0.045
    told = sorted((end for end in ends if end[1] > 0.02 or end[3] != GREY), key=lambda end: end[1])[-MOST_NAMES:]
    heights: list[float] = []
    for end in told:
        heights.append(max(end[1], heights[-1] + apart if heights else 0.0))
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], heights[place + 1] - apart if place + 1 < len(heights) else 1.01)
    for (across, _, name, colour), height in zip(told, heights, strict=True):
        axis.annotate(name, (across, height), fontsize=7, color=colour, xytext=(3, -2), textcoords="offset points")
    axis.set_xlim(low, right + 0.16 * (right - low))


class _figure:  # noqa: N801  used as a word: with _figure(...) as page
    """A page with a title, and its bytes when it is done."""

    def __init__(self, title: str, kind: str) -> None:
        from matplotlib.figure import Figure

        self.kind, self.content = kind, b""
        self.settings = our_look()
        self.settings.__enter__()
        self.figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=110)
        self.figure.suptitle(title if len(title) <= 120 else title[:116] + " ...")

    def __enter__(self) -> _figure:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            if kind is None:
                self.content = figure_bytes(self.figure, self.kind)
        finally:
            self.settings.__exit__(None, None, None)
