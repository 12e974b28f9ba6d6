"""Maps as figures: the same numbers give the same bytes, hidden cells show no number, any word can stand on an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairtrial.inspection.attention import AttentionMaps
from fairtrial.report.plots import TIMELESS, axis_word, draw, figure_bytes, our_look
from sampling import cases

WORDS = ("we", "will", ",", "stay")
HEADS = [(layer, head) for layer in range(2) for head in range(2)]


def some_maps(words: tuple[str, ...] = WORDS, seed: int = 0) -> AttentionMaps:
    size = len(words)
    visible = np.tri(size, dtype=bool)
    weights = np.random.default_rng(seed).random((2, 2, size, size)) * visible
    weights /= np.maximum(1e-9, weights.sum(-1, keepdims=True))
    return AttentionMaps(words, weights.astype("f4"), np.stack([visible] * 2), True, 0, 8, "", ())


def drawn(maps: AttentionMaps, kind: str = "png", heads: list[tuple[int, int]] = HEADS, note: str = "") -> bytes:
    with our_look():
        return figure_bytes(draw([maps.chart(*place, note) for place in heads]), kind)


@cases(("kind", "first"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_numbers_give_the_same_bytes(kind: str, first: bytes) -> None:
    assert kind in TIMELESS
    maps, twin = some_maps(), some_maps(seed=1)
    assert drawn(maps, kind).startswith(first)
    assert drawn(maps, kind) == drawn(maps, kind)
    assert drawn(maps, kind) != drawn(twin, kind)


def test_a_hidden_cell_is_drawn_as_hidden_whatever_number_it_holds() -> None:
    maps = some_maps()
    plain = drawn(maps)
    future, seen = maps.weights.copy(), maps.weights.copy()
    future[0, 0, 0, 1] = 0.9
    seen[0, 0, 1, 0] = 0.9
    assert drawn(replace(maps, weights=future)) == plain
    assert drawn(replace(maps, weights=seen)) != plain
    opened = maps.open.copy()
    opened[0, 0, 1] = True
    assert drawn(replace(maps, open=opened)) != plain  # nothing on a word that could be seen looks other


def test_words_and_captions_stand_in_a_drawing() -> None:
    text = drawn(some_maps(), "svg", note="trained: first word, 90%").decode()
    for wanted in ("we", "will", "‘,’", "stay", "first word", "layer 1, head 0"):
        assert wanted in text
    alone = drawn(some_maps(), "svg", [(1, 0)]).decode()
    assert "layer 1, head 0" in alone
    assert "layer 0" not in alone


def test_any_word_can_stand_on_an_axis() -> None:
    """Warnings are errors here: a dollar must not start a formula, and a script that the font lacks must not shout."""
    words = ("$5", "$", "\\alpha", "漢字", "🙂", "<b>", "%", "", " ", "\n", "x" * 60, "<unk>")
    assert "$5" in drawn(some_maps(words), "svg", [(0, 0)], "stripe on '$x$', 40%").decode()


def test_words_are_left_out_where_they_would_be_dust() -> None:
    assert "word" in drawn(some_maps(("word",) * 30), "svg", [(0, 0)]).decode()
    assert "word" not in drawn(some_maps(("word",) * 90), "svg", [(0, 0)]).decode()


@cases(
    ("word", "wanted"),
    [
        ("bridges", "bridges"),
        (" bridges", "bridges"),
        (" ", "␣"),
        ("\n", "⏎"),
        (".", "‘.’"),
        ("a" * 20, "a" * 13 + "…"),
    ],
)
def test_a_word_on_an_axis_is_short_and_visible(word: str, wanted: str) -> None:
    assert axis_word(word) == wanted
