"""Maps as figures: the same numbers give the same bytes, hidden cells show no number, any word can stand on an axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairtrial.inspection.attention import AttentionMaps
from fairtrial.inspection.look import GridLayout, axis_word, map_figure
from fairtrial.report.plots import TIMELESS
from sampling import cases

WORDS = ("we", "will", ",", "stay")
HEADS = [(layer, head) for layer in range(2) for head in range(2)]


def some_maps(words: tuple[str, ...] = WORDS, seed: int = 0) -> AttentionMaps:
    size = len(words)
    visible = np.tri(size, dtype=bool)
    weights = np.random.default_rng(seed).random((2, 2, size, size)) * visible
    weights /= np.maximum(1e-9, weights.sum(-1, keepdims=True))
    return AttentionMaps(words, weights.astype("f4"), np.stack([visible] * 2), True, 0, 8, "", (), ())


@cases(("kind", "first"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_numbers_give_the_same_bytes(kind: str, first: bytes) -> None:
    assert kind in TIMELESS
    maps, twin = some_maps(), some_maps(seed=1)
    drawn = map_figure(maps, twin, HEADS, {(0, 0): "itself, 50%"}, "title", kind)
    assert drawn.startswith(first)
    assert drawn == map_figure(maps, twin, HEADS, {(0, 0): "itself, 50%"}, "title", kind)
    assert drawn != map_figure(twin, maps, HEADS, {(0, 0): "itself, 50%"}, "title", kind)


def test_a_hidden_cell_is_drawn_as_hidden_whatever_number_it_holds() -> None:
    maps = some_maps()
    plain = map_figure(maps, maps, [(0, 0)], {}, "", "png")
    future, seen = maps.weights.copy(), maps.weights.copy()
    future[0, 0, 0, 1] = 0.9
    seen[0, 0, 1, 0] = 0.9
    assert map_figure(replace(maps, weights=future), maps, [(0, 0)], {}, "", "png") == plain
    assert map_figure(replace(maps, weights=seen), maps, [(0, 0)], {}, "", "png") != plain
    opened = maps.open.copy()
    opened[0, 0, 1] = True
    zero = map_figure(replace(maps, open=opened), maps, [(0, 0)], {}, "", "png")
    assert zero != plain  # nothing on a word that could be seen looks other than a word that could not


def test_words_and_captions_stand_in_a_drawing() -> None:
    text = map_figure(some_maps(), some_maps(), HEADS, {(1, 0): "first word, 90%"}, "My title", "svg").decode()
    for wanted in ("we", "will", "‘,’", "stay", "first word, 90%", "My title", "untrained", "layer 1, head 0"):
        assert wanted in text
    alone = map_figure(some_maps(), some_maps(), [(1, 0)], {}, "", "svg").decode()
    assert "layer 1, head 0" in alone
    assert "layer 0" not in alone


def test_any_word_can_stand_on_an_axis() -> None:
    """Warnings are errors here: a dollar must not start a formula, and a script that the font lacks must not shout."""
    words = ("$5", "$", "\\alpha", "漢字", "🙂", "<b>", "%", "", " ", "\n", "x" * 60, "<unk>")
    svg = map_figure(some_maps(words), some_maps(words), [(0, 0)], {(0, 0): "stripe on '$x$', 40%"}, "$a$ _b", "svg")
    assert "$5" in svg.decode()


def test_words_are_left_out_where_they_would_be_dust() -> None:
    assert GridLayout(["word"] * 30, 4, 4).points > 5
    assert GridLayout(["word"] * 300, 4, 4).points == 0
    wide = GridLayout(["word"] * 128, 12, 24)
    assert wide.width < 45


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
