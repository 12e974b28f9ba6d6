"""Figures of puzzles: the keys with their hull and the query, the weights as bars, and the weights by length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtrial.disk import disk_errors, write_bytes
from fairtrial.puzzles.keys import Array, Frame, softmax
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.sentences import Found
from fairtrial.puzzles.solve import Answer, best_within
from fairtrial.report import figure_bytes, our_look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREY = "#1f77b4", "#d62728", "#8a8a8a"
MOST_BARS, MOST_NAMES = 40, 20
MARGIN = 0.15  # around the keys


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Into a folder that is made where it is missing."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def query_growth(answer: Answer, points: int = 31, far: float = 0.0) -> tuple[Array, Array]:
    """Lengths up to `far`, and the weights of the best query of each length [length key]."""
    frame = Frame.of(answer.keys, answer.scaled)
    lengths = np.linspace(0, far or 1.5 * max(answer.norm, answer.smallest_norm) or 1.0, points)
    places = [best_within(frame.points, answer.target, length * frame.unit) for length in lengths]
    return lengths, np.array([frame.weights(frame.query(place)) for place in places])


def key_growth(answer: Replacement, points: int = 60) -> tuple[Array, Array]:
    """Lengths (below zero: away from the query), and the weights with such a key along the query [length key]."""
    size = float(np.linalg.norm(answer.query))
    factor = 1 / np.sqrt(len(answer.query)) if answer.scaled else 1.0
    far = 1.5 * max(float(np.linalg.norm(answer.key)), answer.needed or 0.0) or 1.0
    lengths = np.linspace(-far, far, points)
    scores = np.tile(factor * answer.keys @ answer.query, (points, 1))
    scores[:, answer.place] = factor * lengths * size
    return lengths, softmax(scores)


def picture_of(found: Found, kind: str) -> bytes:
    """Three panels, as PNG or SVG: the same bytes for the same numbers."""
    return identity_picture(found, kind) if isinstance(found, list) else answer_picture(found, kind)


def answer_picture(answer: Answer | Replacement, kind: str) -> bytes:
    if isinstance(answer, Answer):
        keys, old_key, reached = answer.keys, None, answer.norm
        others = {"least squares": answer.least_squares.weights}
        growth = query_growth(answer)
        axis_words = {"xlabel": "length of the query", "title": "weights of the best query of each length"}
    else:
        keys, old_key = answer.new_keys, answer.keys[answer.place]
        reached = float(answer.key @ answer.query) / (float(np.linalg.norm(answer.query)) or 1.0)
        before = Frame.of(answer.keys, answer.scaled).weights(answer.query)
        others = {"before": before, answer.simple_way: answer.simple_weights}
        growth = key_growth(answer)
        axis_words = {"xlabel": "how far the new key goes along the query", "title": "weights as the key grows"}
    colours = colours_of(answer)
    verdict = "possible" if answer.possible else "impossible; the best there is"
    with our_look():
        figure = _new_figure(f"{answer.ask}: {verdict}")
        draw_keys(figure, keys, answer.names, colours, [(answer.query, BLUE)], "keys, hull, query", old_key)
        _bars(figure.add_subplot(132), answer, others)
        axis = figure.add_subplot(133)
        _curves(axis, *growth, answer.names, colours)
        axis.axvline(reached, color="0.6", linestyle=":")
        axis.set(**axis_words)
        return figure_bytes(figure, kind)


def identity_picture(answers: Sequence[Answer], kind: str) -> bytes:
    from matplotlib.ticker import MaxNLocator

    first = answers[0]
    colours = [BLUE if answer.possible else RED for answer in answers]
    failed = sum(not answer.possible for answer in answers)
    verdict = f"impossible for {failed} of {len(answers)}" if failed else "possible"
    with our_look():
        figure = _new_figure(f"identity: {verdict}")
        queries = [(answer.query, colour) for answer, colour in zip(answers, colours, strict=True)]
        draw_keys(figure, first.keys, first.names, colours, queries[:12], "keys, hull, queries")
        axis = figure.add_subplot(132)
        shown = axis.imshow(np.array([answer.weights for answer in answers]), vmin=0, vmax=1, cmap="viridis")
        axis.set(title="weights", xlabel="key", ylabel="query")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(shown, ax=axis, shrink=0.7)
        axis = figure.add_subplot(133)
        far = 1.2 * max(answer.smallest_norm for answer in answers)
        ends = []
        for number, (answer, colour) in enumerate(zip(answers[:MOST_BARS], colours, strict=False)):
            lengths, weights = query_growth(answer, far=far)
            axis.plot(lengths, weights[:, number], color=colour)
            ends.append((lengths[-1], weights[-1, number], answer.names[number], colour))
        _names_at_ends(axis, ends)
        axis.set(xlabel="length of the query", title="own weight of the best query of each length", ylim=(-0.02, 1.05))
        return figure_bytes(figure, kind)


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
        heights = rows + (number - (len(series) - 1) / 2) * thick
        axis.barh(heights, weights[shown], thick, color=styles[number], label=name)
    axis.set(yticks=rows, yticklabels=answer.names[shown], xlim=(0, 1.02), title="weights")
    axis.invert_yaxis()
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)


def _curves(axis: Any, lengths: Array, weights: Array, names: Sequence[str], colours: Sequence[str]) -> None:
    for column, colour in zip(weights.T, colours, strict=True):
        axis.plot(lengths, column, color=colour, linewidth=1.6 if colour != GREY else 0.8)
    ends = [(lengths[-1], *end) for end in zip(weights[-1], names, colours, strict=True)]
    _names_at_ends(axis, ends)
    axis.set_ylim(-0.02, 1.05)


def _names_at_ends(axis: Any, ends: list[tuple[float, float, str, str]]) -> None:
    """Names at the lines' ends, pushed apart where lines end together; grey lines that end at nothing go without."""
    low, right, apart = axis.get_xlim()[0], max(end[0] for end in ends), 0.045
    named = sorted((end for end in ends if end[1] > 0.02 or end[3] != GREY), key=lambda end: end[1])[-MOST_NAMES:]
    heights: list[float] = []
    for end in named:
        heights.append(max(end[1], heights[-1] + apart if heights else 0.0))
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], heights[place + 1] - apart if place + 1 < len(heights) else 1.01)
    for (across, _, name, colour), height in zip(named, heights, strict=True):
        axis.annotate(name, (across, height), fontsize=7, color=colour, xytext=(3, -2), textcoords="offset points")
    axis.set_xlim(low, right + 0.16 * (right - low))


def _new_figure(title: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=110)
    figure.suptitle(title if len(title) <= 120 else title[:116] + " ...")
    return figure


def draw_keys(
    figure: Any,
    keys: Array,
    names: Sequence[str],
    colours: Sequence[str],
    queries: Sequence[tuple[Array, str]],
    title: str,
    old_key: Array | None = None,
) -> None:
    """Every query starts at the keys' mean and is drawn with one length: its direction is what matters to the hull."""
    width, mean = keys.shape[1], keys.mean(0)
    view, origin = np.eye(width), np.zeros(width)
    if width > 3:
        view, origin = np.linalg.svd(keys - mean, full_matrices=True)[2][:2], mean
        title += f"\n(seen along 2 of {width} axes, where keys differ most:\na corner may look as if it lay inside)"
    points, centre = (keys - origin) @ view.T, (mean - origin) @ view.T
    axis = figure.add_subplot(131, **({"projection": "3d"} if len(view) == 3 else {}))
    axis.set_title(title)
    spread = float(np.linalg.norm(points - centre, axis=1).max()) or 1.0
    if len(view) == 1:  # a line is drawn in the plane
        points, centre = np.column_stack((points, np.zeros(len(points)))), np.append(centre, 0.0)
        axis.set_yticks([])
    draw_hull(axis, points)
    many = len(points) > 40
    flat = {"depthshade": False} if len(view) == 3 else {}
    axis.scatter(*points.T, c=list(colours), s=12 if many else 32, zorder=3, **flat)
    for point, name, colour in zip(points, names, colours, strict=True) if not many else ():
        axis.text(*(point + 0.06 * spread), name.removeprefix("key "), color=colour, fontsize=8)
    for query, colour in queries:
        draw_arrow(axis, centre, query @ view.T, spread, colour)
    if old_key is not None:
        was = (old_key - origin) @ view.T
        axis.scatter(*(was if len(view) > 1 else (was[0], 0.0)), marker="x", color="0.5", s=40)
    if len(view) < 3:
        axis.set_aspect("equal", adjustable="datalim")
        axis.margins(MARGIN)
    else:
        for name, middle in zip("xyz", centre, strict=True):
            axis.set(**{f"{name}lim": (middle - spread, middle + spread)})
        axis.set_box_aspect((1, 1, 1), zoom=1.15)
        axis.tick_params(labelbottom=False, labelleft=False, labelright=False)


def draw_arrow(axis: Any, centre: Array, seen: Array, spread: float, colour: str) -> None:
    size = float(np.linalg.norm(seen))
    if size < 1e-12:
        return  # a query of zero points nowhere
    step = np.zeros(len(centre))
    step[: len(seen)] = seen / size * spread
    if len(centre) == 3:
        axis.quiver(*centre, *step, color=colour, arrow_length_ratio=0.12, linewidth=1.4)
    else:
        tip = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
        axis.annotate("", centre + step, centre, arrowprops=tip)
        axis.plot(*(centre + 1.05 * step)[:, None], alpha=0)  # so that the axes make room for the arrow


def draw_hull(axis: Any, points: Array) -> None:
    from scipy.spatial import ConvexHull

    _, steps, axes = np.linalg.svd(points - points.mean(0))
    rank = int((steps > 1e-9 * max(float(steps[0]), 1e-300)).sum()) if steps[0] > 0 else 0
    if rank == 0:
        return
    if rank == 1:
        way = points @ (points[np.abs(points - points[0]).sum(1).argmax()] - points[0])
        axis.plot(*points[[way.argmin(), way.argmax()]].T, color="0.7", linewidth=1)
    elif rank == 2:
        ring = ConvexHull((points - points.mean(0)) @ axes[:2].T).vertices
        axis.plot(*points[[*ring, ring[0]]].T, color="0.7", linewidth=1)
        if points.shape[1] == 2:
            axis.fill(*points[ring].T, color="#eef3f8", zorder=0)
    else:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

        sides = points[ConvexHull(points).simplices]
        axis.add_collection3d(Poly3DCollection(sides, facecolor=(0.6, 0.75, 0.9, 0.12), edgecolor="0.7", linewidth=0.7))
