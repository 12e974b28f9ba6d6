"""Surprise is what a test score is made of, token by token."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.data.corpus import Document
from fairtrial.data.tokenizer import Tokenizer, fit
from fairtrial.description import ShadedText
from fairtrial.errors import BadInput
from fairtrial.inspection.language import Surprisal, TextSurprisal, Token, surprisal
from fairtrial.inspection.text import encode_texts, unknown_notice
from fairtrial.model.network import LanguageModel
from fairtrial.recipe import PartChoice, Shape, Tokens
from fairtrial.report.plots import SURPRISE, shade_of
from fairtrial.report.render import shaded_text
from fairtrial.training.scoring import score_lm
from fairtrial.training.tasks import token_set
from sampling import cases

SHAPE = Shape(layers=2, heads=2, width=16, length=8, hidden=24, dropout=0.0, start="torch")
SENTENCES = ["We will build bridges.", "Schools will open tonight, and we will stay."]
LINES = ["we go home now .", "they came late , and we went home before the rain began to fall on the town .", "now !"]


def words(*, marks: bool = False) -> Tokenizer:
    return fit(Tokens(kind="word", min_count=1), LINES, marks=marks)


def decoder(tokenizer: Tokenizer, name: str = "rope") -> LanguageModel:
    return LanguageModel(SHAPE, (PartChoice(name=name),), tokenizer.size).double()


def read(network: LanguageModel, tokenizer: Tokenizer, *texts: str, full_context: float = 0.97) -> list[TextSurprisal]:
    recipe = SimpleNamespace(shape=SHAPE, scoring=SimpleNamespace(full_context=full_context))
    return surprisal(SimpleNamespace(network=network, tokenizer=tokenizer, recipe=recipe), texts).texts  # type: ignore[arg-type]


@cases("name", ["learned", "rope", "alibi", "window"])
def test_a_short_text_is_scored_in_one_pass(name: str) -> None:
    tokenizer = words()
    network = decoder(tokenizer, name).eval()
    (found,) = read(network, tokenizer, LINES[0])
    ids = torch.tensor(tokenizer.encode([LINES[0]]))
    with torch.no_grad():
        log_p = network(ids[:, :-1]).log_softmax(-1)[0]
    assert found.tokens[0].nll is None
    for place, token in enumerate(found.tokens[1:]):
        answer = int(ids[0, place + 1])
        assert token.nll == pytest.approx(-float(log_p[place, answer]), abs=1e-9)


@cases("marks", [False, True])
@cases("full_context", [0.97, 0.5])
def test_sums_are_those_of_a_test_score(marks: bool, full_context: float) -> None:
    """Long texts too, which are read in windows; start and stop marks as in training."""
    tokenizer = words(marks=marks)
    network = decoder(tokenizer)
    lines = LINES if marks else LINES[1:2]
    scored = token_set([Document(text=line, label="", location="") for line in lines], tokenizer, running=not marks)
    score = score_lm(network, scored, length=8, full_context=full_context)
    found = read(network, tokenizer, *lines, full_context=full_context)
    np.testing.assert_allclose([each.nll for each in found], score.outcomes["nll"], rtol=1e-9)
    assert [each.counted for each in found] == score.outcomes["tokens"].tolist()
    assert Surprisal(found, (), "").perplexity == pytest.approx(score.metrics.perplexity)


def test_a_text_means_the_same_alone_and_among_others() -> None:
    tokenizer = words()
    network = decoder(tokenizer)
    together = read(network, tokenizer, *LINES)
    for line, found in zip(LINES, together, strict=True):
        assert read(network, tokenizer, line)[0].nll == pytest.approx(found.nll, abs=1e-9)


def token(nats: float | None) -> Token:
    return Token("w", "w ", nats, False)


def test_the_perplexity_of_a_set_weighs_its_tokens() -> None:
    one = TextSurprisal("a", (token(None), token(math.log(10))))
    two = TextSurprisal("b", (token(None), *[token(math.log(1000))] * 3))
    found = Surprisal([one, two], (), "")
    assert found.counted == 4
    assert found.perplexity == pytest.approx(10 ** ((1 + 9) / 4))
    assert Surprisal([replace(one, tokens=(token(None),))], (), "").perplexity is None


def test_unknown_words_are_noticed_as_they_were_written() -> None:
    tokenizer = words()
    (encoded,) = encode_texts(tokenizer, ["We go  Xyzzy, home"])
    assert encoded.unknown == ("We", "Xyzzy")
    assert encoded.pieces() == ["We ", "go  ", "Xyzzy", ", ", "home"]
    assert "'We', 'Xyzzy'" in unknown_notice(tokenizer, [encoded])
    assert "never trained" in unknown_notice(tokenizer, [encoded])
    assert not unknown_notice(tokenizer, [])
    (found,) = read(decoder(tokenizer), tokenizer, "We go Xyzzy, home")
    assert [each.unknown for each in found.tokens] == [True, False, True, False, False]


def test_a_period_inside_a_text_is_parted_where_that_makes_words_known() -> None:
    tokenizer = words()
    (encoded,) = encode_texts(tokenizer, ["we go home. They came"])
    assert tokenizer.words(encoded.ids)[:4] == ["we", "go", "home", "."]
    assert encoded.unknown == ("They",)
    assert "".join(encoded.pieces()) == "we go home. They came"


@cases("text", ["", "  ", "\n"])
def test_an_empty_text_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="empty"):
        encode_texts(words(), ["we go", text])


def test_shades_grow_with_surprise() -> None:
    assert shade_of(None) is None
    assert shade_of(1.9) is None
    assert [shade_of(least) for least, _ in SURPRISE] == [colour for _, colour in SURPRISE]
    chart = ShadedText((("My ", None), ("word", 7.25)))
    assert shaded_text(chart) == "My/- word/7.2"
    assert shaded_text(ShadedText(((" ", 1.0),))) == "␣/1.0"


def test_the_command_tells_and_counts(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("inspect", "surprisal", finished_records["lm"], "We will build xyzzy bridges.")
    assert said.code == 0, said.err
    assert "unknown: xyzzy" in said.out
    assert "'xyzzy'" in said.out
    assert "not counted" in said.out
    lines = fairtrial("inspect", "surprisal", finished_records["lm"], *SENTENCES, "--json").out.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["text"] for row in rows[:-1]] == SENTENCES
    total = sum(row["nll"] for row in rows[:-1]) / sum(row["counted"] for row in rows[:-1])
    assert rows[-1]["perplexity"] == pytest.approx(math.exp(total))


def test_a_thousand_sentences_come_from_a_file(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "many.txt"
    file.write_text("\n\n".join(f"We will build {number} bridges." for number in range(1000)))
    said = fairtrial("inspect", "surprisal", finished_records["lm"], "--text-file", file)
    assert said.code == 0, said.err
    assert "1000 sentences, 5,000 tokens counted" in said.out
    assert len(said.out.splitlines()) >= 1000


def test_mistakes_are_told(finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path) -> None:
    record = finished_records["lm"]
    (tmp_path / "blank.txt").write_text("\n \n")
    for words, told in (
        ((), "no text was given"),
        (("",), "empty"),
        (("--text-file", tmp_path / "nowhere.txt"), "no such file"),
        (("--text-file", tmp_path), "folder"),
        (("--text-file", tmp_path / "blank.txt"), "empty"),
    ):
        said = fairtrial("inspect", "surprisal", record, *words)
        assert (said.code, told in said.err) == (2, True), said.err
    assert "is a classifier" in fairtrial("inspect", "surprisal", finished_records["classify"], "We").err
