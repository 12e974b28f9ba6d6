"""The look page: numbers that are those of the maps, no network, no trust in words; its script answers a pointer."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from policies import assert_policy

from fairtrial.inspection.attention import AttentionMaps, Check
from fairtrial.inspection.heads import Effect, HeadStatistics, HeadSummary
from fairtrial.inspection.look import Drawn, LookResult, bars, hidden, look_page

HEADS = [(layer, head) for layer in range(2) for head in range(2)]
TITLE = "Where heads look"
FACTS = {"about": "A decoder", "notes": ["551 copies"], "read": "7 texts", "command": "fairtrial look mine"}
HOSTILE = "</script><script>alert(1)</script>"


def some_album(words: tuple[str, ...] = ("we", "will", "go"), text: str = "we will", causal: bool = True) -> LookResult:
    size = len(words)
    visible = np.tri(size, dtype=bool) if causal else np.ones((size, size), dtype=bool)
    rng = np.random.default_rng(4)

    def maps() -> AttentionMaps:
        weights = rng.random((2, 2, size, size)) * visible
        weights /= np.maximum(1e-9, weights.sum(-1, keepdims=True))
        checks = (Check("rows sum to one", 1e-7, 1e-5, "far"), Check("nothing on padding", 0.5, 0.0, "most"))
        return AttentionMaps(
            words, weights, np.stack([visible] * 2), causal, 0, 8, "cut after 'will'", ("senate",), checks
        )

    even = HeadStatistics(1.0, 0.9, 2.0, 0.1, 0.2, None if causal else 0.2, 0.3, 0.4, None, "we", 1.0)
    portraits = tuple(
        HeadSummary(layer, head, replace(even, previous=0.71), even, even, "previous word, 71%")
        for layer, head in HEADS
    )
    effects = tuple(Effect(layer, head, "test", "accuracy", 0.8, 0.75, -0.05, (-0.08, -0.02)) for layer, head in HEADS)
    return LookResult(8, 7, 1, (Drawn(text, maps(), maps()),), portraits, effects)


class Reader(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.text += data


def data_of(page: str) -> Any:
    return json.loads(Reader(page).scripts[0])


def test_the_numbers_on_the_page_are_those_of_the_maps() -> None:
    album = some_album()
    chosen = [(0, 1), (1, 0)]
    data = data_of(look_page(album, chosen, TITLE, FACTS))
    assert [(each["layer"], each["head"]) for each in data["heads"]] == chosen
    text, drawn = data["texts"][0], album.drawn[0]
    for name in ("trained", "untrained"):
        shares = np.frombuffer(b64decode(text[name]), "<u2").reshape(2, 3, 3) / 65535
        wanted = getattr(drawn, name).weights
        assert shares == pytest.approx(np.stack([wanted[0, 1], wanted[1, 0]]), abs=1e-5)
    bits = np.unpackbits(np.frombuffer(b64decode(text["open"]), np.uint8).reshape(2, -1), axis=1)[:, :9]
    assert (bits.reshape(2, 3, 3) == drawn.trained.open).all()


def test_nothing_comes_from_outside() -> None:
    page = look_page(some_album(), HEADS, TITLE, FACTS)
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed", "img"} & {tag for tag, _ in reader.tags}
    for tag, attributes in reader.tags:
        assert not {"src", "href", "srcset", "action", "onload", "onclick"} & attributes.keys(), tag
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttpRequest|WebSocket|import\(", page)


def test_words_are_not_believed() -> None:
    album = some_album(("we", HOSTILE, "go"), HOSTILE)
    page = look_page(album, HEADS, HOSTILE, FACTS | {"notes": [HOSTILE]})
    assert page.count("<script") == 2  # its data and its own
    assert_policy(page)
    assert "<script>alert" not in page
    assert data_of(page)["texts"][0]["words"][1] == HOSTILE
    assert HOSTILE in Reader(page).text


def test_the_page_says_what_was_found_and_what_it_is_not() -> None:
    page = look_page(some_album(), HEADS, TITLE, FACTS)
    text = re.sub(r"\s+", " ", Reader(page).text)
    for wanted in (
        "Attention is where a head looked, not why the model decided.",
        "previous word, 71%",
        "71% 20%",  # beside its untrained twin
        "cut after 'will'",
        "'senate'",
        "551 copies",
        "Means over 7 texts",
        "-5.0 points [-8.0, -2.0]",
        "accuracy 80.0% with all heads",
        "hidden: the future",
        "Colour scales with the square root of the weight.",
        "fairtrial look mine",
    ):
        assert wanted in text, wanted
    classes = [attributes.get("class") for tag, attributes in Reader(page).tags if tag == "li"]
    assert classes.count("good") == 2
    assert classes.count("bad") == 2  # a failed check is marked
    assert "next</th>" not in page  # a decoder has no next word
    assert "next</th>" in look_page(some_album(causal=False), HEADS, TITLE, FACTS)


def test_a_page_without_switched_off_heads_says_why() -> None:
    page = look_page(replace(some_album(), effects=(), not_ablated_because="the data are gone"), HEADS, TITLE, FACTS)
    assert "No head was switched off: the data are gone." in page


def test_what_hatched_cells_are() -> None:
    assert hidden(some_album(causal=False)) == ""
    assert 'id="hatch"' not in look_page(some_album(causal=False), HEADS, TITLE, FACTS)
    album = some_album(("a", "b", "c", "d", "e"), causal=False)
    maps = album.drawn[0].trained
    narrow = replace(maps, open=maps.open & (np.abs(np.subtract.outer(np.arange(5), np.arange(5))) < 2))
    assert hidden(replace(album, drawn=(replace(album.drawn[0], trained=narrow),))) == "what a part forbids"


def test_bars_are_shares_of_the_largest_harm() -> None:
    def effect(measure: str, change: float) -> Effect:
        return Effect(0, 0, "test", measure, 0.8, 0.7, change, None)

    assert bars([effect("accuracy", -0.1), effect("accuracy", 0.05), effect("accuracy", 0.0)]) == [1.0, -0.5, 0.0]
    assert bars([effect("perplexity", 1.5), effect("perplexity", 1.25)]) == [1.0, 0.5]
    assert bars([effect("accuracy", 0.0)]) == [0.0]


def test_changes_in_words() -> None:
    gone = Effect(0, 0, "test", "perplexity", 10.0, 10.4, 1.041, None)
    assert gone.shown == "+4.1%"
    assert replace(gone, interval=(1.03, 1.052)).shown == "+4.1% [+3.0%, +5.2%]"


def test_lines_tell_a_failed_check_and_keep_the_terminal_safe() -> None:
    text = str(some_album(text="we\x1b[31m will"))
    assert re.search(r"nothing on padding +NO ", text)
    assert re.search(r"rows sum to one +yes ", text)
    assert "\x1b" not in text
    assert "Attention is where a head looked, not why the model decided." in text
