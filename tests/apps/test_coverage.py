"""Every published number is on the page: retried, or listed as not retried, with the reason."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest
from published_numbers import in_package, in_source, missing

from fairtrial.apps.reports.published import asides, published

PAGE = Path(__file__).parents[2] / "docs" / "five-reports.md"


def test_the_page_deals_with_every_published_number() -> None:
    assert in_package(published()).total() > 250
    assert not missing(PAGE.read_text(), published())


def test_a_number_that_goes_missing_is_noticed() -> None:
    text, facts = PAGE.read_text(), published()
    for gone in ("| 33.6 |", "2,550,125,904.81", "61,530", "95.91"):
        assert missing(text.replace(gone, "|  |" if "|" in gone else ""), facts), gone
    for row in text.splitlines():
        if row.startswith(("| r3 |", "| learned |")) and "published" not in row and "inside" in row:
            assert missing(text.replace(row, "", 1), facts), row
    more = {**facts, "accuracy": [*facts["accuracy"], {"report": "r3", "values": {"learned": 85.86}}]}
    assert missing(text, more) == Counter({("r3", 85.86): 1})


def test_what_is_not_retried_has_a_reason() -> None:
    for each in asides():
        assert len(each.why.split()) > 2, each.what
        assert each.why in PAGE.read_text()


def test_the_package_holds_every_figure_of_the_source(shared_data: Path) -> None:
    path = shared_data.parent / "published.toml"
    if not path.is_file():
        pytest.skip("the file that the figures were collected in is not beside the data")
    facts = tomllib.loads(path.read_text(encoding="utf-8"))
    assert facts.keys() - {"reports", "puzzles"} == {"recipe", "parameters", "classifier", "lm", "lm1b", "finetune"}
    source = in_source(facts)
    assert source.total() > 100
    assert not source - in_package(published())
    fewer = {**published(), "parameters": published()["parameters"][1:]}
    assert source - in_package(fewer) == Counter({("r0", 564928.0): 1})
