"""Figures of puzzles: the keys with their hull and the query, and the weights as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtrial.disk import disk_errors, write_bytes
from fairtrial.puzzles.keys import Array, Frame
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.sentences import Found
from fairtrial.puzzles.solve import Answer
from fairtrial.report import figure_bytes, our_look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREY = "#1f77b4", "#d62728", "#8a8a8a"
MOST_BARS = 40
MARGIN = 0.15  # around the keys


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Into a folder that is made where it is missing."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def picture_of(found: Found, kind: str) -> bytes:
    """Two panels, as PNG or SVG: the same bytes for the same numbers."""
    return identity_picture(found, kind) if isinstance(found, list) else answer_picture(found, kind)


def answer_picture(answer: Answer | Replacement, kind: str) -> bytes:
    if isinstance(answer, Answer):
        keys, old_key, others = answer.keys, None, {"least squares": answer.least_squares.weights}
    else:
        keys, old_key = answer.new_keys, answer.keys[answer.place]
        before = Frame.of(answer.keys, answer.scaled).weights(answer.query)
        others = {"before": before, answer.simple_way: answer.simple_weights}
    colours = colours_of(answer)
    verdict = "possible" if answer.possible else "impossible; the best there is"
    with our_look():
        figure = _new_figure(f"{answer.ask}: {verdict}")
        draw_keys(figure, keys, answer.names, colours, [(answer.query, BLUE)], "keys, hull, query", old_key)
        _bars(figure.add_subplot(122), answer, others)
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
        axis = figure.add_subplot(122)
        shown = axis.imshow(np.array([answer.weights for answer in answers]), vmin=0, vmax=1, cmap="viridis")
        axis.set(title="weights", xlabel="key", ylabel="query")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(shown, ax=axis, shrink=0.7)
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


def _new_figure(title: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.4), layout="constrained", dpi=110)
    figure.suptitle(title if len(title) <= 90 else title[:86] + " ...")
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
    axis = figure.add_subplot(121, **({"projection": "3d"} if len(view) == 3 else {}))
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
