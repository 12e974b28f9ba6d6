"""Charts of a study: every number at its place, bands against numpy, maps that can be read back cell by cell."""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.description import (
    AttentionMap,
    BarChart,
    Chart,
    Curve,
    IntervalChart,
    IntervalRow,
    LineChart,
    ShadedText,
)
from fairtrial.errors import BadInput
from fairtrial.report.plots import SHADES, draw, figure_bytes, figure_kind, map_shapes, shade, svg
from fairtrial.results.records import mean_curve
from sampling import cases

HOSTILE = "\"><script>alert('1')</script>"


def texts(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)


def test_what_is_far_off_does_not_squeeze_the_rest() -> None:
    near = (IntervalRow("rope", 85.0, 84.0, 86.0, kind="better"), IntervalRow("near", 88.0, 87.0, 89.0, kind="simple"))
    far = IntervalRow("majority", 33.3, 30.0, 36.0, kind="simple")
    drawn = svg(IntervalChart("t", "points", (*near, far)))
    assert texts(drawn).count("◂") == 1
    assert "majority: mean 33.3" in drawn
    marks = [float(text) for text in texts(drawn) if re.fullmatch(r"[\d.]+", text)]
    assert len(marks) >= 3
    assert min(marks) > 80


def test_a_chart_has_a_dot_for_each_seed_and_speaks_them() -> None:
    row = IntervalRow("rope", 85.0, 84.0, 86.0, (84.5, 85.5, float("nan")), "better")
    drawn = svg(IntervalChart("t", "points", (row,)))
    assert "rope: mean 85.0, 95% interval [84.0, 86.0], seeds 84.5, 85.5, –" in drawn
    (axes,) = draw([IntervalChart("t", "points", (row,))]).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[84.0, 86.0], [85.0], [84.5, 85.5]]


def test_a_difference_shows_zero_and_what_is_too_small_to_matter() -> None:
    row = IntervalRow("rope", 0.5, -0.4, 1.4, kind="undecided")
    chart = IntervalChart("t", "points", (row,), difference=True, margin=1.0)
    (axes,) = draw([chart]).axes
    assert list(axes.lines[0].get_xdata()) == [0, 0]
    assert axes.patches[0].get_window_extent().width > 0
    assert "difference +0.5, 95% interval [-0.4, +1.4]" in svg(chart)


@cases("log", [False, True])
@cases("points", [((0, 5.0),), ((7, 5.0),), ((0, 3.0), (1, 3.0), (2, 3.0)), ((0, 1.0), (1000, 1.0 + 1e-15))])
def test_one_point_and_a_constant_curve_are_drawn(points: tuple[tuple[int, float], ...], log: bool) -> None:
    chart = svg(LineChart("Loss", "nats", (Curve("train", "nats", points),), log=log))
    assert f"train from {points[0][1]:.3g}" in chart
    assert not re.search(r"\b(nan|inf)\b", chart)


def test_what_is_not_finite_is_left_out() -> None:
    points = ((0, 5.0), (1, math.inf), (2, math.nan), (3, 4.0))
    chart = LineChart("Loss", "nats", (Curve("train", "nats", points), Curve("none", "nats", ((1, 0.0),))), log=True)
    (axes,) = draw([chart]).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[5.0, 4.0]]
    assert not re.search(r"\b(nan|inf)\b", svg(chart))
    assert svg(LineChart("Loss", "nats", (Curve("train", "nats", ((1, math.nan),)),))) == ""
    assert svg(LineChart("Loss", "nats", ())) == ""


def test_a_page_takes_the_markup_as_it_is() -> None:
    """No style attributes, which its policy forbids; its own ink; no link but to a marker that is in it."""
    for chart in every_chart("name")[:3]:
        drawn = svg(chart)
        assert not re.search(r" (style|on\w+)=|url\(|https?:|#000000", drawn)
        assert 'role="img" aria-label="name: ' in drawn
        assert not re.search(r"<use| id=|href", drawn)


def every_chart(name: str) -> list[Chart]:
    """One of each kind, with this text wherever a text may be."""
    row = IntervalRow(name, 1.0, 0.0, 2.0)
    return [
        LineChart(name, name, (Curve(name, "nats", ((0, 1.0), (1, 2.0))),), kept_step=1),
        IntervalChart(name, name, (row, row), difference=True, margin=0.5),
        BarChart(name, name, ((name, 1.0), ("none", None), ("less", -0.5))),
        ShadedText(((name, 5.0), (" start", None))),
        AttentionMap(name, (name,), [[1.0]]),
    ]


def test_what_is_drawn_for_a_page_is_also_drawn_by_matplotlib() -> None:
    for chart in every_chart("a $name$"):
        assert svg(chart)
        assert figure_bytes(draw([chart]), "svg").startswith(b"<?xml")
    assert svg(IntervalChart("t", "u", ())) == svg(BarChart("t", "u", ())) == ""
    with pytest.raises(BadInput, match="cannot be written as 'bmp'"):
        figure_kind(Path("chart.bmp"))


def test_names_are_escaped_in_every_chart() -> None:
    for chart in map(svg, every_chart(HOSTILE)):
        assert "<script" not in chart
        assert escape(HOSTILE) in chart or escape(HOSTILE[:13]) in chart


@given(st.lists(st.lists(st.floats(0.1, 1e4), min_size=3, max_size=3), min_size=1, max_size=8), st.booleans())
@settings(max_examples=100)
def test_a_band_is_the_mean_and_the_range_over_seeds(values: list[list[float]], log: bool) -> None:
    curves = [Curve("test", "u", tuple(zip((0, 5, 10), row, strict=True))) for row in values]
    band = mean_curve("rope", curves, log=log)
    table = np.array(values)
    mean = np.exp(np.log(table).mean(0)) if log else table.mean(0)
    np.testing.assert_allclose([value for _, value in band.points], mean, rtol=1e-9)
    assert [step for step, _ in band.points] == [0, 5, 10]
    if len(values) > 1:
        np.testing.assert_allclose(np.array(band.band).T, [table.min(0), table.max(0)])


def test_steps_that_most_seeds_did_not_reach_and_numbers_that_are_none_are_left_out() -> None:
    long = Curve("test", "u", ((0, 1.0), (5, 2.0), (10, 9.0)))
    short = Curve("test", "u", ((0, 1.0), (5, math.inf)))
    assert mean_curve("rope", [long, short, short]).points == ((0, 1.0),)
    assert svg(LineChart("t", "u", (Curve("x", "u", ()),))) == ""


def test_a_band_is_drawn() -> None:
    curves = [Curve("t", "u", ((0, 1.0), (10, 2.0 + seed))) for seed in range(3)]
    chart = LineChart("Loss", "nats", (mean_curve("rope", curves),))
    (axes,) = draw([chart]).axes
    assert len(axes.collections) == 1
    assert "rope from 1 to 3" in svg(chart)


def read_back(drawn: str, size: int) -> np.ndarray:
    """Shades by cell, out of the paths alone; -1 where nothing is drawn."""
    grid = np.full((size, size), -1)
    for level, path in re.findall(r'<path class="a(\d+)" d="([^"]*)"/>', drawn):
        for x, y, wide in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path):
            grid[int(y), int(x) : int(x) + int(wide)] = int(level)
    return grid


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_a_map_is_drawn_cell_by_cell_and_hidden_cells_are_empty(size: int, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(size) / 3, size)
    hidden = np.triu(np.ones((size, size), dtype=bool), 1)
    values = [
        [None if gone else float(value) for value, gone in zip(*pair, strict=True)]
        for pair in zip(weights, hidden, strict=True)
    ]
    expected = np.where(hidden, -1, np.vectorize(shade)(weights))
    np.testing.assert_array_equal(read_back(map_shapes(values), size), expected)


def test_shades_grow_with_the_weight() -> None:
    assert [shade(value) for value in (None, -1.0, 0.0, math.nan)] == [0, 0, 0, 0]
    found = [shade(value / 100) for value in range(101)]
    assert found == sorted(found)
    assert (found[1], found[100]) == (1, SHADES)
