"""Keys as points with their convex hull, and queries as arrows: on a line, in the plane, in space, or seen from the
side where they differ most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairtrial.puzzles.frame import Array

ROOM = 0.15  # free space around the keys


def draw_keys(
    figure: Any,
    place: int,
    keys: Array,
    names: Sequence[str],
    colours: Sequence[str],
    queries: Sequence[tuple[Array, str]],
    title: str,
    old_key: Array | None = None,
) -> None:
    """Every query starts at the keys' mean and is drawn with one length: its direction is what matters to the hull."""
    width = keys.shape[1]
    mean = keys.mean(0)
    if width > 3:
        view = np.linalg.svd(keys - mean, full_matrices=True)[2][:2]
        title = (
            f"{title}\n(seen along 2 of {width} axes, where keys differ most:\na corner may look as if it lay inside)"
        )
    else:
        view = np.eye(width)
    points = (keys - mean) @ view.T if width > 3 else keys
    centre = np.zeros(len(view)) if width > 3 else mean
    axis = figure.add_subplot(place, **({"projection": "3d"} if len(view) == 3 else {}))
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
        was = (old_key - mean) @ view.T if width > 3 else old_key
        axis.scatter(*(was if len(view) > 1 else (was[0], 0.0)), marker="x", color="0.5", s=40)
    if len(view) < 3:
        axis.set_aspect("equal", adjustable="datalim")
        axis.margins(ROOM)
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

    steps = np.linalg.svd(points - points.mean(0))[1]
    rank = int((steps > 1e-9 * max(float(steps[0]), 1e-300)).sum()) if steps[0] > 0 else 0
    if rank == 0:
        return
    if rank == 1:
        way = points @ (points[np.abs(points - points[0]).sum(1).argmax()] - points[0])
        axis.plot(*points[[way.argmin(), way.argmax()]].T, color="0.7", linewidth=1)
    elif rank == 2:
        flat = (points - points.mean(0)) @ np.linalg.svd(points - points.mean(0))[2][:2].T
        ring = ConvexHull(flat).vertices
        axis.plot(*points[[*ring, ring[0]]].T, color="0.7", linewidth=1)
        if points.shape[1] == 2:
            axis.fill(*points[ring].T, color="#eef3f8", zorder=0)
    else:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

        sides = points[ConvexHull(points).simplices]
        axis.add_collection3d(Poly3DCollection(sides, facecolor=(0.6, 0.75, 0.9, 0.12), edgecolor="0.7", linewidth=0.7))
