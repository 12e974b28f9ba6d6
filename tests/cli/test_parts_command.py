"""`fairtrial parts`: the list, one part, its drawing, and the page about all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.inspection.catalogue import GROUPS, HOOKS, catalogue, describe, first_sentence, group_of
from fairtrial.model.part import parts
from sampling import cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "parts.md").read_text()
Call = Callable[..., Any]


def test_all_parts_are_listed_with_one_line_each(fairtrial: Call) -> None:
    told = fairtrial("parts").out.splitlines()
    lines = [line.strip() for line in told if line.startswith("  ") and not line.startswith(("  part ", "  ---"))]
    assert sorted(line.split()[0] for line in lines) == parts.list()
    assert [line for line in told if line and not line.startswith("  ")][:2] == ["positions:", "what may be seen:"]
    window = next(line for line in lines if line.startswith("window"))
    assert [text.strip() for text in window.split("  ") if text][-2:] == ["size = 8, global_tokens = 0", "sees order"]
    assert len({line.split(maxsplit=1)[1] for line in lines}) == len(lines)  # each says something of its own


def test_one_part_is_shown_with_options_verbs_claims_definition_and_file(fairtrial: Call) -> None:
    said = fairtrial("parts", "window").out
    for told in ("size = 8, global_tokens = 0", "allow", "sees order", "A window of 8 shows", "arxiv.org", "window.py"):
        assert told in said
    assert "by distance alone" not in said
    assert "Initialize internal Module state" not in fairtrial("parts", "rope").out  # torch's words, not the part's


def test_parts_are_grouped_by_what_they_change() -> None:
    """By the hooks that they override, so that a new part finds its place by itself."""
    groups = {entry.name: entry.changes for entry in catalogue()}
    expected = {"rope": "positions", "alibi": "positions", "disentangled": "positions", "window": "what may be seen"}
    expected |= {"concat": "heads", "pool-cls": "sentence vectors", "none": "nothing"}
    assert expected.items() <= groups.items()
    assert {hook for own in GROUPS.values() for hook in own} >= set(HOOKS)
    assert group_of(("score",), sees_order=False) == "scores and weights"
    assert group_of(("score",), sees_order=True) == "positions"
    assert group_of(("allow", "bias"), sees_order=True) == "what may be seen"
    assert group_of(("new_verb",), sees_order=False) == "other: new_verb"


def test_parts_are_told_to_machines(fairtrial: Call) -> None:
    told = {entry["name"]: entry for entry in json.loads(fairtrial("parts", "--json").out)}
    assert list(told) == parts.list()
    assert told["rope"]["papers"] == ["https://arxiv.org/abs/2104.09864"]
    assert told["shuffle"]["options"] == {"seed": "not set", "every_step": "false"}
    assert [entry["name"] for entry in json.loads(fairtrial("parts", "rope", "--json").out)] == ["rope"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("parts rpoe", "no part is called 'rpoe'; did you mean 'rope'?"),
        ("parts --figure x.svg", "nothing to plot"),
        ("parts --with none.py", "none.py: cannot be read"),
    ],
)
def test_mistakes_are_told(words: str, told: str, fairtrial: Call, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    said = fairtrial(*words.split())
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert not list(tmp_path.iterdir())


def test_a_drawing_is_written(fairtrial: Call, tmp_path: Path) -> None:
    said = fairtrial("parts", "alibi", "--figure", tmp_path / "alibi.svg")
    assert said.code == 0, said.err
    assert (tmp_path / "alibi.svg").read_bytes().startswith(b"<?xml")
    fairtrial("parts", "alibi", "--figure", tmp_path / "alibi.png")
    assert (tmp_path / "alibi.png").read_bytes().startswith(b"\x89PNG")
    said = fairtrial("parts", "rope", "--figure", tmp_path / "rope.gif")
    assert (said.code, "cannot be written as 'gif'" in said.err) == (2, True)


@cases(
    ("text", "sentence"),
    [
        ("Rope: queries turn (Su et al. 2021,\nhttps://a.b/c). More.", "queries turn"),
        ("One query looks.", "one query looks"),
        ("T5: a bias (in buckets) of its own", "a bias (in buckets) of its own"),
        ("ALiBi again. And more.", "ALiBi again"),
        ("", ""),
    ],
)
def test_the_first_sentence_is_found(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


@cases("name", parts.list())
def test_the_page_knows_every_part_as_it_is_today(name: str) -> None:
    """If this fails, write it again: python docs/build.py docs/parts.md"""
    entry = describe(name)
    assert f"\n### {name}\n" in PAGE
    kinds = "decoder" if parts.find(name).decoder_only else "encoder, decoder"
    assert f"\n| `{name}` | {kinds} | " in PAGE  # its passport
    assert entry.definition in PAGE
    assert entry.options_help in PAGE
    assert all(f"- {option} = {default}\n" in PAGE for option, default in entry.options.items())
    drawing = re.search(rf"!\[.*?\]\((parts/{name}\.svg)\)", PAGE)
    assert drawing
    assert 1_000 < (ROOT / "docs" / drawing[1]).stat().st_size < 40_000


def test_the_page_knows_no_part_that_is_gone() -> None:
    assert re.findall(r"^### (.*)$", PAGE, flags=re.M) == [entry.name for entry in catalogue()]
