"""The page: whole HTML that needs no network, says what is seen, and believes no record."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from policies import assert_policy

from fairtrial.record import Listed, Record
from fairtrial.report.page import result_page
from fairtrial.results.records import Records

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Walks a page, checks that every tag closes in order, and gathers what stands in it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open, f"never closed: {reader.open}"
    return reader


def records_page(records: list[Record], title: str, names: tuple[str, ...] | None = None) -> str:
    return result_page(Records(tuple(map(Listed, records)), names).describe_all(title), records)


@pytest.fixture
def records(finished_records: dict[str, Path]) -> dict[str, Record]:
    return {name: Record.open(folder) for name, folder in finished_records.items()}


def test_the_checker_finds_what_does_not_close() -> None:
    for bad in ("<p><b>text</p>", "<div>", "</p>"):
        with pytest.raises(AssertionError):
            parsed(bad)


def test_every_tag_closes_and_nothing_comes_from_outside(records: dict[str, Record]) -> None:
    page = records_page(list(records.values()), "All")
    reader = parsed(page)
    names = [tag for tag, _ in reader.tags]
    assert names.count("section") == 3
    assert not {"script", "iframe", "link", "object", "embed"} & set(names)
    for tag, attributes in reader.tags:
        assert not {"src", "href", "srcset", "action", "onload", "onclick"} & attributes.keys(), tag
    assert not re.search(r"url\(|@import|https?:", page.replace("http://www.w3.org", ""))
    assert_policy(page)


def test_every_chart_is_spoken_for_those_who_cannot_see_it(records: dict[str, Record]) -> None:
    reader = parsed(records_page(list(records.values()), "All"))
    charts = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert len(charts) >= 4
    for attributes in charts:
        assert attributes["role"] == "img"
        assert re.search(r"\d", attributes["aria-label"] or "")
    assert next(attributes for tag, attributes in reader.tags if tag == "html")["lang"] == "en"


def test_a_classifiers_page_has_its_figures_and_confusion(records: dict[str, Record]) -> None:
    record = records["classify"]
    reader = parsed(records_page([record], "One"))
    score = record.result.tests["test"]
    assert f"{score.accuracy:.1%}" in reader.text
    assert f"[{score.interval[0]:.1%}, {score.interval[1]:.1%}]" in reader.text.replace("\u00a0", " ")
    assert f"{record.result.parameters:,} parameters" in reader.text
    assert "confusion on test" in reader.text
    assert "encoder and classifier" in reader.text
    assert "each test set was scored once" in reader.text
    assert record.trial.recipe in reader.text


def test_classes_are_called_by_their_names(records: dict[str, Record], fairtrial: Callable[..., Any]) -> None:
    record = records["classify"]
    assert record.trial.labels == ("0", "1", "2")
    confusion = "true class Obama W. Bush H. W. Bush"  # the course's labels are known
    assert confusion in parsed(records_page([record], "One")).text
    assert confusion in re.sub(r"\s+", " ", fairtrial("show", record.folder).out)
    assert "true class A B C" in parsed(records_page([record], "One", ("A", "B", "C"))).text
    assert "true class A B C" in re.sub(r"\s+", " ", fairtrial("show", record.folder, "--names", "A,B,C").out)
    assert fairtrial("show", record.folder, "--names", "A,B").code == 2
    assert "  Obama" in fairtrial("inspect", "predict", record.folder, "We will build schools.").out


def test_a_language_models_page_has_its_figures_and_says_that_test_was_watched(records: dict[str, Record]) -> None:
    record = records["lm"]
    reader = parsed(records_page([record], "One"))
    for name, score in record.result.tests.items():
        assert name in reader.text
        assert f"{score.perplexity:.1f}" in reader.text
        assert f"{score.bits_per_byte:.3f}" in reader.text
    assert "decoder language model" in reader.text
    assert "test watched: each test set was scored" in reader.text
    assert "confusion" not in reader.text


def test_an_unfinished_record_has_a_page_too(records: dict[str, Record]) -> None:
    reader = parsed(records_page([records["unfinished"]], "One"))
    assert "not finished; continue with" in reader.text
    assert "95% intervals over test" not in reader.text


def test_the_recipe_on_the_page_can_be_used_again(records: dict[str, Record]) -> None:
    import tomllib

    from fairtrial.recipe import recipe_from

    reader = parsed(records_page([records["lm"]], "One"))
    text = next(words for words in reader.words if "[training]" in words)
    assert recipe_from(tomllib.loads(text)) == records["lm"].recipe


def test_a_hostile_title_is_escaped() -> None:
    hostile = "</title><script>alert(1)</script>"
    page = records_page([], hostile)
    assert "<script" not in page
    assert hostile in parsed(page).text
