"""A classifier's answers, for every part."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.data.tokenizer import Tokenizer, fit
from fairtrial.inspection.attention import model_input
from fairtrial.inspection.classifier import (
    Prediction,
    predict,
    share_text,
)
from fairtrial.inspection.text import encode_texts
from fairtrial.model.network import Classifier
from fairtrial.recipe import PartChoice, Shape, Tokens
from sampling import cases

SHAPE = Shape(
    layers=2, heads=2, width=16, length=9, hidden=24, classifier_hidden=10, dropout=0.3, start="torch",
    activation="gelu",  # smooth, so that slopes can be measured
)  # fmt: skip
LINES = ["we go home now .", "they came late , and we went home before the rain began .", "now", "the rain , the town"]
PARTS = ("learned", "disentangled", "window", "shuffle", "pool-cls", "pool-attention")


def words() -> Tokenizer:
    return fit(Tokens(kind="word", min_count=1), LINES)


def encoder(tokenizer: Tokenizer, name: str = "learned", classes: int = 3) -> Classifier:
    return Classifier(SHAPE, (PartChoice(name=name),), tokenizer.size, classes).double()


def predictions(network: Classifier, tokenizer: Tokenizer, texts: list[str]) -> list[Prediction]:
    recipe = SimpleNamespace(shape=SHAPE)
    record = SimpleNamespace(class_names=lambda given: ("a", "b", "c"))
    run = SimpleNamespace(network=network, tokenizer=tokenizer, recipe=recipe, record=record)
    return predict(run, texts).predictions  # type: ignore[arg-type]


def one_by_one(network: Classifier, row: np.ndarray) -> torch.Tensor:
    with torch.no_grad():
        return network.eval()(torch.from_numpy(row)[None]).log_softmax(-1)


@cases("name", PARTS)
def test_answers_are_those_of_each_text_alone(name: str) -> None:
    tokenizer = words()
    network = encoder(tokenizer, name).train()
    found = predictions(network, tokenizer, [*LINES, "xyzzy"])
    assert network.training  # left as it was, and nothing was dropped
    for each in found:
        np.testing.assert_allclose(each.shares, one_by_one(network, each.ids)[0].exp(), atol=1e-9)
        assert sum(each.shares) == pytest.approx(1)
    assert [each.cut for each in found] == [False, True, False, False, False]
    assert len(found[1].ids) == 9
    assert found[4].unknown == ("xyzzy",)


def test_the_command_predicts(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    record = finished_records["classify"]
    row = json.loads(fairtrial("inspect", "predict", record, "We will build xyzzy bridges.", "--json").out)
    assert set(row["probabilities"]) == {"0", "1", "2"}
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    assert row["guess"] == max(row["probabilities"], key=row["probabilities"].get)
    assert "xyzzy" in row["unknown"]
    assert "build" not in row["unknown"]
    said = fairtrial("inspect", "predict", record, "We will build xyzzy bridges.", "--names", "A,B,C")
    assert said.code == 0, said.err
    assert "'xyzzy'" in said.out
    best = "ABC"[int(row["guess"])]
    assert [best, f"{row['probabilities'][row['guess']]:.1%}"] in [line.split()[:2] for line in said.out.splitlines()]


def test_the_record_alone_is_enough(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    """The data may be gone, and the test score's own answers come back."""
    record = tmp_path / "record"
    shutil.copytree(finished_records["classify"], record)
    recipe = record / "recipe.toml"
    source = next(line.split('"')[1] for line in recipe.read_text().splitlines() if line.startswith("source"))
    text = recipe.read_text().replace(source, str(tmp_path / "gone"))
    recipe.write_text(text)
    lines = [line.split("\t") for line in (Path(source) / "test_CLS.tsv").read_text().splitlines()]
    (tmp_path / "test.txt").write_text("\n".join(sentence for _, sentence in lines))
    said = fairtrial("inspect", "predict", record, "--text-file", tmp_path / "test.txt", "--json")
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in said.out.splitlines()]
    right = np.mean([row["guess"] == label for row, (label, _) in zip(rows, lines, strict=True)])
    assert right == json.loads((record / "result.json").read_text())["tests"]["test"]["accuracy"]


def test_a_flipped_bit_in_the_weights_is_noticed(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    for task, command in (("classify", "predict"), ("lm", "surprisal")):
        record = tmp_path / task
        shutil.copytree(finished_records[task], record)
        content = bytearray((record / "model.safetensors").read_bytes())
        content[-5] ^= 1
        (record / "model.safetensors").write_bytes(bytes(content))
        said = fairtrial(command, record, "We will build bridges.")
        assert said.code == 2
        assert "checksum differs" in said.err


def test_a_thousand_sentences_come_from_a_file(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "many.txt"
    file.write_text("\n".join(f"We will build {number} bridges." for number in range(1000)))
    said = fairtrial("inspect", "predict", finished_records["classify"], "--text-file", file)
    assert said.code == 0, said.err
    assert sum("bridges." in line for line in said.out.splitlines()) == 1000


def test_mistakes_are_told(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    for given, told in (
        ((), "no text was given"),
        ((" ",), "empty"),
        (("hi", "--names", "a,b"), "2 names for 3 labels"),
    ):
        said = fairtrial("inspect", "predict", finished_records["classify"], *given)
        assert (said.code, told in said.err) == (2, True), said.err
    assert "is a language model" in fairtrial("inspect", "predict", finished_records["lm"], "We").err
    assert "not finished" in fairtrial("inspect", "predict", finished_records["unfinished"], "We").err


def test_a_text_is_cut_as_the_training_text_was() -> None:
    """Sentence by sentence where documents were sentences; else as one, whatever is unknown then."""
    tokenizer = fit(Tokens(min_count=1), ["We go home.", "They came."])
    texts = ["We go home. They came."]
    for facts, unknown in (({"by_sentences": True}, 0), ({"by_sentences": False}, 1), ({}, 0)):
        known = replace(tokenizer, facts=tokenizer.facts | facts)
        (encoded,) = encode_texts(known, texts)
        assert len(encoded.unknown) == unknown
        assert "".join(encoded.pieces()) == texts[0]
        assert tuple(model_input(known, texts[0], 20).ids) == encoded.ids


def test_a_share_is_not_called_100_percent_or_0_unless_it_is() -> None:
    shares = (1.0, 0.99999, 0.9994, 0.12345, 0.0006, 0.0001, 0.0)
    assert [share_text(share).strip() for share in shares] == [
        "100.0%", ">99.9%", "99.9%", "12.3%", "0.1%", "<0.1%", "0.0%",
    ]  # fmt: skip


def test_names_of_classes_must_differ(finished_records: dict[str, Path], fairtrial: Any) -> None:
    said = fairtrial("inspect", "predict", finished_records["classify"], "We go home.", "--names", "a,a,b")
    assert said.code == 2
    assert "a name is given twice" in said.err


def test_text_that_is_not_utf_8_is_told(finished_records: dict[str, Path], fairtrial: Any) -> None:
    for words in (["predict", "classify"], ["surprisal", "lm"], ["generate", "lm"]):
        said = fairtrial(words[0], finished_records[words[1]], "caf\udce9")
        assert said.code == 2
        assert "is not UTF-8" in said.err
