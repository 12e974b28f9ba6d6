"""Pictures: what a part does, measured on the part itself and drawn from plain numbers."""

from __future__ import annotations

import math

import pytest

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.inspection.catalogue import plot_part
from fairtrial.model.part import parts
from fairtrial.report.plots import Panel, Picture, draw_pictures, figure_bytes, our_look
from sampling import cases

LADDER = Picture("a ladder", "step", "rung", (Panel("up", [[0.0, 1.0], [2.0, None]]), Panel("", [[4.0]])))


def image(pictures: list[Picture], title: str, kind: str) -> bytes:
    with our_look():
        return figure_bytes(draw_pictures(pictures, title), kind)


@pytest.mark.parametrize(("kind", "first"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_same_numbers_give_the_same_bytes_and_others_do_not(kind: str, first: bytes) -> None:
    drawn = image([LADDER], "title", kind)
    assert drawn.startswith(first)
    assert drawn == image([LADDER], "title", kind)
    assert b"date" not in drawn.lower().replace(b"validate", b"")
    other = Picture(
        LADDER.what, LADDER.rows, LADDER.columns, (Panel("up", [[0.0, 1.0], [3.0, None]]), LADDER.panels[1])
    )
    assert drawn != image([other], "title", kind)


@cases(("number", "name"), enumerate(parts.list()))
def test_every_part_can_be_plotted(number: int, name: str) -> None:
    heads, length, causal = ((1, 1, True), (3, 7, False), (4, 24, True), (2, 1, False))[number % 4]
    pictures = plot_part(name, heads=heads, length=length, causal=causal)
    numbers = [value for picture in pictures for panel in picture.panels for row in panel.values for value in row]
    assert numbers
    assert all(value is None or math.isfinite(value) for value in numbers)
    assert pictures == plot_part(name, heads=heads, length=length, causal=causal)


def values(name: str, panel: int = 0, **more: object) -> list[list[float | None]]:
    return plot_part(name, **more)[0].panels[panel].values  # type: ignore[arg-type]


def test_the_picture_of_a_window_shows_what_a_window_shows() -> None:
    rows = values("window", size=3, length=6)
    assert [[value for value in row if value is not None] for row in rows[:5]] == [
        [1], [1, 1], [1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1, 1],
    ]  # fmt: skip
    assert values("window", size=3, length=6, causal=False)[0] == [1, 1, 0, 0, 0, 0]


def test_the_picture_of_alibi_has_a_slope_for_each_head() -> None:
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        assert values("alibi", head, heads=4, length=5)[4] == [-slope * back for back in (4, 3, 2, 1, 0)]


def test_the_picture_of_rope_shows_its_angles_on_a_clock() -> None:
    pairs = values("rope", length=24)  # heads of width 8: four pairs
    assert len(pairs) == 4
    for pair, row in enumerate(pairs):
        expected = [position * 10_000 ** (-pair / 4) % (2 * math.pi) for position in range(24)]
        assert row == pytest.approx(expected, abs=1e-4)


def test_the_picture_of_sinusoidal_shows_its_waves() -> None:
    table = values("sinusoidal", heads=2, length=5)
    assert len(table[0]) == 16
    assert [row[0] for row in table] == pytest.approx([math.sin(position) for position in range(5)], abs=1e-6)
    assert [row[1] for row in table] == pytest.approx([math.cos(position) for position in range(5)], abs=1e-6)


def test_the_picture_of_a_score_is_an_attention_map_relative_to_each_rows_greatest() -> None:
    pictures = plot_part("disentangled", length=6)
    for panel in pictures[-1].panels:
        assert [max(value for value in row if value is not None) for row in panel.values] == [1.0] * 6
        assert all(value is None or 0 < value <= 1 for row in panel.values for value in row)
    assert pictures[-1].panels != plot_part("none", length=6)[-1].panels
