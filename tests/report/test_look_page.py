"""The look page: numbers that are those of the maps, no network, no trust in words."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policies import assert_policy

from fairtrial.inspection.attention import AttentionMaps
from fairtrial.inspection.heads import Drawn, LookResult, look_page
from fairtrial.record import Record

HOSTILE = "</script><script>alert(1)</script>"


def some_album(words: tuple[str, ...] = ("we", "will", "go"), text: str = "we will", causal: bool = True) -> LookResult:
    size = len(words)
    visible = np.tri(size, dtype=bool) if causal else np.ones((size, size), dtype=bool)
    rng = np.random.default_rng(4)

    def maps() -> AttentionMaps:
        weights = rng.random((2, 2, size, size)) * visible
        weights /= np.maximum(1e-9, weights.sum(-1, keepdims=True))
        return AttentionMaps(words, weights, np.stack([visible] * 2), causal, 0, 8, "cut after 'will'", ("senate",))

    return LookResult((Drawn(text, maps(), maps()),))


@pytest.fixture
def page_of(finished_records: dict[str, Path]) -> Any:
    return lambda album: look_page(album, Record.open(finished_records["lm"]))


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


def test_nothing_comes_from_outside(page_of: Any) -> None:
    page = page_of(some_album())
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed", "img"} & {tag for tag, _ in reader.tags}
    for tag, attributes in reader.tags:
        assert not {"src", "href", "srcset", "action", "onload", "onclick"} & attributes.keys(), tag
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttpRequest|WebSocket|import\(", page)


def test_words_are_not_believed(page_of: Any) -> None:
    page = page_of(replace(some_album(("we", HOSTILE, "go"), HOSTILE), title=HOSTILE, notices=(HOSTILE,)))
    assert page.count("<script") <= 1
    assert_policy(page)
    assert "<script>alert" not in page
    assert HOSTILE in Reader(page).text


def test_the_page_says_what_was_found_and_what_it_is_not(page_of: Any) -> None:
    page = page_of(some_album())
    text = re.sub(r"\s+", " ", Reader(page).text)
    for wanted in (
        "Attention is where a head looked, not why the model decided.",
        "cut after 'will'",
        "'senate'",
        "of the maximum",
        "Colour scales with the square root of the weight.",
    ):
        assert wanted in text, wanted
    assert page.count("<svg") == 8  # each head, before and after


def test_lines_keep_the_terminal_safe() -> None:
    text = str(some_album(text="we\x1b[31m will"))
    assert "\x1b" not in text
    assert "Attention is where a head looked, not why the model decided." in text
