"""Charts: round marks for any range, a place for every point, no number that is none."""

from __future__ import annotations

import math
import re
from html import escape

from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.description import Curve, LineChart
from fairtrial.report.charts import HEIGHT, WIDTH, free_height, line_chart, y_marks
from sampling import cases

numbers = st.floats(allow_nan=False, allow_infinity=False)
ranges = st.tuples(numbers, numbers).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: tuple(sorted(pair)))
logarithms = st.floats(-20, 700)
log_ranges = (
    st.tuples(logarithms, logarithms).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: tuple(sorted(pair)))
)


def check_marks(marks: list[float], low: float, high: float) -> None:
    slack = 1e-9 * max(abs(low), abs(high), high - low)
    assert 1 <= len(marks) <= 12
    assert marks == sorted(set(marks))
    assert all(low - slack <= mark <= high + slack for mark in marks)


@given(ranges)
@settings(max_examples=500)
def test_any_range_has_a_few_marks_inside_it(pair: tuple[float, float]) -> None:
    check_marks(y_marks(*pair, percent=False, log=False), *pair)


@given(log_ranges)
@settings(max_examples=500)
def test_any_range_of_logarithms_has_a_few_marks_inside_it(pair: tuple[float, float]) -> None:
    check_marks(y_marks(*pair, percent=False, log=True), math.exp(pair[0]), math.exp(pair[1]))


def test_marks_are_round() -> None:
    for low, high, log, marks in (
        (0.0, 4.0, False, [0, 1, 2, 3, 4]),
        (0.1, 2.7, False, [0.5, 1.0, 1.5, 2.0, 2.5]),
        (math.log(9), math.log(1100), True, [10, 20, 50, 100, 200, 500, 1000]),
        (math.log(11), math.log(14), True, [11, 11.5, 12, 12.5, 13, 13.5, 14]),
    ):
        found = y_marks(low, high, percent=False, log=log)
        assert all(any(math.isclose(mark, other) for other in marks) for mark in found)
        assert len(found) >= 3


def test_shares_are_marked_in_quarters() -> None:
    assert y_marks(0.4, 0.5, percent=True, log=False) == [0, 0.25, 0.5, 0.75, 1]


def places(chart: str) -> list[float]:
    """Every number that says where something is drawn."""
    found = re.findall(r'\b(?:x|y|x1|x2|y1|y2|cx|cy)="([^"]*)"', chart)
    found += [part for line in re.findall(r'points="([^"]*)"', chart) for part in re.split("[ ,]", line)]
    return [float(each) for each in found]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e300)), max_size=50), st.booleans())
@settings(max_examples=200)
def test_any_curve_stays_on_the_paper(points: list[tuple[int, float]], log: bool) -> None:
    curve = Curve("train", "nats", tuple(sorted(points)))
    if log:
        curve = Curve("train", "nats", tuple((step, value + 0.01) for step, value in curve.points))
    chart = line_chart(LineChart("t", "y", (curve,), log=log))
    assert bool(chart) == bool(points)
    assert all(-20 <= place <= max(WIDTH, HEIGHT) + 20 for place in places(chart))


@cases("log", [False, True])
@cases("points", [((0, 5.0),), ((7, 5.0),), ((0, 3.0), (1, 3.0), (2, 3.0)), ((0, 1.0), (1000, 1.0 + 1e-15))])
def test_one_point_and_a_constant_curve_are_drawn(points: tuple[tuple[int, float], ...], log: bool) -> None:
    chart = line_chart(LineChart("Loss", "nats", (Curve("train", "nats", points),), log=log))
    assert chart.count("<circle") == len(points)
    assert all(math.isfinite(place) for place in places(chart))
    assert 'class="grid"' in chart


def test_what_is_not_finite_is_left_out() -> None:
    points = ((0, 5.0), (1, math.inf), (2, math.nan), (3, 4.0))
    chart = line_chart(LineChart("Loss", "nats", (Curve("train", "nats", points),), log=True))
    assert chart.count("<circle") == 2
    assert not re.search(r"\b(nan|inf)\b", chart)
    assert line_chart(LineChart("Loss", "nats", (Curve("train", "nats", ((1, math.nan),)),))) == ""
    assert line_chart(LineChart("Loss", "nats", ())) == ""


def test_a_higher_value_is_drawn_higher_and_a_later_step_further_right() -> None:
    chart = line_chart(LineChart("t", "y", (Curve("a", "nats", ((0, 1.0), (10, 2.0))),)))
    (line,) = re.findall(r'points="([^"]*)"', chart)
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.split(" "))
    assert x1 > x0
    assert y1 < y0


def test_the_label_speaks_the_curve_for_those_who_cannot_see_it() -> None:
    curve = Curve("train", "accuracy", ((0, 0.25), (9, 0.75)))
    chart = line_chart(LineChart("Accuracy", "share", (curve,), percent=True))
    assert 'role="img"' in chart
    assert 'aria-label="Accuracy: train from 0.25 to 0.75"' in chart
    assert ">train, step 9: 75.0%</text>" in chart


def test_hostile_names_are_escaped_everywhere() -> None:
    hostile = "\"><script>alert('1')</script>"
    chart = line_chart(LineChart(hostile, hostile, (Curve(hostile, "nats", ((0, 1.0), (1, 2.0))),)))
    assert "<script" not in chart
    assert chart.count(escape(hostile)) >= 5


def test_names_at_the_end_of_curves_do_not_cover_one_another() -> None:
    taken: list[float] = []
    found = [free_height(100.0, taken) for _ in range(5)]
    assert all(abs(one - two) >= 13 for at, one in enumerate(found) for two in found[:at])
