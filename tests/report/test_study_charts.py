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
    ReliabilityChart,
    ReliabilityPoint,
    ShadedText,
)
from fairtrial.errors import BadInput
from fairtrial.report.charts import (
    EDGE,
    SHADES,
    Scale,
    axis_strip,
    interval_strip,
    line_chart,
    map_shapes,
    mark_labels,
    shade,
    svg,
)
from fairtrial.report.curves import mean_curve
from fairtrial.report.plots import draw, write_drawing

HOSTILE = "\"><script>alert('1')</script>"
some_numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


def places(strip: str) -> list[float]:
    return [float(each) for each in re.findall(r'\b(?:x|x1|x2|cx)="([-\d.]+)%"', strip)]


@given(some_numbers, some_numbers)
@settings(max_examples=200)
def test_every_value_has_its_place_in_order(values: list[float], near: list[float]) -> None:
    scale = Scale.around(values, [near])
    assert scale is not None
    assert all(EDGE - 1e-6 <= scale.place(value) <= 100 - EDGE + 1e-6 for value in values)
    assert sorted(values, key=scale.place) == sorted(values) or len({scale.place(value) for value in values}) < len(
        values
    )
    assert 1 <= len(scale.marks) <= 6
    assert all(0 <= place <= 100 for place in places(axis_strip(scale)))


def test_what_is_far_off_does_not_squeeze_the_rest() -> None:
    scale = Scale.around([84.0, 86.0], near=[[88.0], [33.3, 84.1]])
    assert scale == Scale(84.0, 88.0)
    far = interval_strip(IntervalRow("majority", 33.3, 30.0, 36.0), "majority", Scale(84.0, 88.0))
    assert "◂" in far
    assert "<circle" not in far
    assert 'class="interval"' not in far
    assert "mean 33.3" in far
    assert Scale.around([]) is None
    assert Scale.around([math.nan, None]) is None


def test_a_strip_has_a_dot_for_each_seed_and_speaks_them() -> None:
    row = IntervalRow("rope", 85.0, 84.0, 86.0, (84.5, 85.5, float("nan")), "better")
    strip = interval_strip(row, "rope", Scale(84.0, 86.0), seeds=[3, 7, 9])
    dots = re.findall(r'class="seed" cx="([\d.]+)%"[^>]*/><text class="tip"[^>]*>seed (\d+): ([\d.]+)</text>', strip)
    assert [(seed, value) for _, seed, value in dots] == [("3", "84.50"), ("7", "85.50")]
    assert float(dots[0][0]) == pytest.approx(EDGE + (100 - 2 * EDGE) / 4)
    assert 'class="strip better" role="img"' in strip
    assert "rope: mean 85.0, 95% interval [84.0, 86.0]; seeds 84.5, 85.5, –" in strip


def test_a_difference_shows_zero_and_what_is_too_small_to_matter() -> None:
    scale = Scale(-2.0, 2.0)
    row = IntervalRow("rope", 0.5, -0.4, 1.4, kind="undecided")
    strip = interval_strip(row, "rope", scale, difference=True, margin=1.0)
    (zero,) = re.findall(r'class="zero" x1="([\d.]+)%"', strip)
    (left, wide) = re.findall(r'class="small" x="([\d.]+)%" width="([\d.]+)%"', strip)[0]
    assert float(zero) == 50.0
    assert float(left) == pytest.approx(scale.place(-1.0))
    assert float(wide) == pytest.approx(scale.place(1.0) - scale.place(-1.0))
    assert "difference +0.5, 95% interval [-0.4, +1.4]" in strip


def every_chart(name: str) -> list[Chart]:
    """One of each kind, with this text wherever a text may be."""
    row = IntervalRow(name, 1.0, 0.0, 2.0)
    return [
        LineChart(name, name, (Curve(name, "nats", ((0, 1.0), (1, 2.0))),), kept_step=1),
        IntervalChart(name, name, (row, row), difference=True, margin=0.5),
        BarChart(name, name, ((name, 1.0), ("none", None), ("less", -0.5))),
        ReliabilityChart(name, (ReliabilityPoint(3, 0.9, 0.6, 0.2, 0.9),)),
        ShadedText(((name, 5.0), (" start", None))),
        AttentionMap(name, (name,), [[1.0]]),
    ]


def test_what_is_drawn_for_a_page_is_also_drawn_by_matplotlib(tmp_path: Path) -> None:
    for chart in every_chart("a $name$"):
        assert svg(chart)
        write_drawing(tmp_path / "chart.svg", lambda chart=chart: draw([chart]))
        assert (tmp_path / "chart.svg").read_text().startswith("<?xml")
    assert svg(IntervalChart("t", "u", ())) == svg(BarChart("t", "u", ())) == ""
    with pytest.raises(BadInput, match="cannot be written as 'bmp'"):
        write_drawing(tmp_path / "chart.bmp", lambda: draw(every_chart("x")[:1]))


def test_names_are_escaped_in_every_chart() -> None:
    curve = Curve("validation", "accuracy", ((0, 0.3), (1, 0.4)))
    drawn = [
        interval_strip(IntervalRow(HOSTILE, 1.0), HOSTILE, Scale(0.0, 2.0)),
        *map(svg, every_chart(HOSTILE)),
        line_chart(LineChart(HOSTILE, HOSTILE, (mean_curve(HOSTILE, [curve, curve]),))),
    ]
    for chart in drawn:
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
    assert line_chart(LineChart("t", "u", (Curve("x", "u", ()),))) == ""


def test_a_band_is_drawn_and_higher_is_higher() -> None:
    curves = [Curve("t", "u", ((0, 1.0), (10, 2.0 + seed))) for seed in range(3)]
    chart = line_chart(LineChart("Loss", "nats", (mean_curve("rope", curves),)))
    (line,) = re.findall(r'<polyline class="line c0" points="([^"]*)"', chart)
    (_, y0), (_, y1) = (map(float, point.split(",")) for point in line.split())
    assert y1 < y0
    (area,) = re.findall(r'<polygon class="area c0" points="([^"]*)"', chart)
    assert len(area.split()) == 4
    assert "rope from 1 to 3" in chart


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


def test_marks_have_as_few_digits_as_keep_them_apart() -> None:
    for marks, labels in (
        ([0.25, 0.5, 0.75], ["0.25", "0.50", "0.75"]),
        ([1.09, 1.095, 1.1], ["1.090", "1.095", "1.100"]),
        ([200, 500, 1000, 2000], ["200", "500", "1,000", "2,000"]),
        ([10_000, 20_000], ["10k", "20k"]),
        ([5_000, 10_000, 12_500], ["5.0k", "10.0k", "12.5k"]),
        ([7.0], ["7"]),
    ):
        assert mark_labels(marks) == labels
