"""Confident mistakes; the page of a classifier's mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from fairtrial.data.corpus import Corpus, Document, Splits, TextIndex
from fairtrial.data.tokenizer import fit
from fairtrial.inspection.classifier import (
    Errors,
    Mistake,
    confident_mistakes,
    errors_of,
)
from fairtrial.model.network import Classifier
from fairtrial.prepare import Prepared
from fairtrial.recipe import Recipe, Shape, Tokens
from fairtrial.report.page import result_page
from fairtrial.report.render import render
from fairtrial.training.scoring import log_probabilities
from fairtrial.typed import structure


def test_the_surest_mistakes_come_first() -> None:
    log_p = np.log(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.99, 0.01]]))
    assert confident_mistakes(log_p, np.array([1, 1, 1, 0]), 5) == [0, 1]
    assert confident_mistakes(log_p, np.array([1, 1, 1, 0]), 1) == [0]


def test_what_all_rounds_to_100_percent_is_ranked_all_the_same() -> None:
    log_p = torch.tensor([[30.0, 0, 0], [40.0, 0, 0], [9.0, 0, 0]], dtype=torch.float64).log_softmax(1).numpy()
    assert confident_mistakes(log_p, np.array([1, 1, 1]), 5) == [1, 0, 2]  # 1 - 1e-13 and 1 - 1e-17 differ


def test_the_command_agrees_with_the_record(
    finished_records: dict[str, Path], fairtrial: Callable[..., Any], tmp_path: Path
) -> None:
    record, page = finished_records["classify"], tmp_path / "errors.html"
    said = fairtrial("inspect", "errors", record, "--json", "--html", page)
    assert said.code == 0, said.err
    found = json.loads(said.out)["tests"]["test"]
    kept = json.loads((record / "result.json").read_text())["tests"]["test"]
    for name in ("accuracy", "macro_f1", "confusion", "items"):
        assert found[name] == kept[name]
    wrong = kept["items"] - round(kept["accuracy"] * kept["items"])
    assert len(found["mistakes"]) == min(10, wrong)
    assert all(each["true"] != each["guess"] for each in found["mistakes"])
    text = " ".join(fairtrial("inspect", "errors", record, "--names", "A,B,C").out.split())
    assert "macro-F1" in text
    written = page.read_text()
    assert "<script" not in written
    assert "http:" not in written
    assert "https:" not in written


def test_items_that_stand_in_the_training_text_are_told_apart() -> None:
    tokenizer = fit(Tokens(kind="word", min_count=1), ["we go home ."])
    network = Classifier(Shape(layers=1, width=8, heads=2, dropout=0.0), (), tokenizer.size, 2)
    texts = ["we go", "go home", "home we", "we"]
    documents = [Document(text=text, label="", location="") for text in texts]
    rows = [np.array(ids) for ids in tokenizer.encode(texts)]
    guesses = log_probabilities(network, rows, 0).argmax(1)
    labels = np.where([True, True, True, False], guesses, 1 - guesses)  # the last one is wrong
    for known, copies in ((["WE GO!", "go home"], 2), (["x"], 0), (texts, 4)):
        corpus = Corpus(tuple(Document(text=text) for text in known), tests={"test": tuple(documents)})
        splits = Splits(corpus.train, (), corpus.tests, ("a", "b"), False, False, TextIndex(corpus))
        prepared = Prepared(Recipe(), 0, corpus, splits)
        task = SimpleNamespace(network=network, sets={"test": (rows, labels)}, groups={"test": None})
        run: Any = SimpleNamespace(task=task, tokenizer=tokenizer, splits=splits, prepared=prepared)
        found = errors_of(run, "test", ["a", "b"], most=10)
        assert (found.copies, found.accuracy) == (copies, 0.75)
        assert [each.copy for each in found.mistakes] == [copies == 4]
        whole = Errors("r", "none", ("a", "b"), {"test": found}).describe()
        for text in (result_page(whole), render(whole, "terminal")):
            assert ("measure memorization" in text) == (copies > 0)
            assert ("(also in the training set)" in text) == (copies == 4)


def test_a_page_escapes_what_strangers_wrote(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    whole = json.loads(fairtrial("inspect", "errors", finished_records["classify"], "--json").out)
    found = structure(Errors, whole)
    of_set = found.tests["test"]
    mistake = Mistake("<script>alert(1)</script>", "", "a", "b", 1.0, share_of_truth=0.0, copy=False)
    hostile = replace(of_set, labels=("<b>zero", *of_set.labels[1:]), mistakes=(mistake,))
    page = result_page(replace(found, record="<i>", tests={"<i>": hostile}).describe())
    for bad in ("<b>zero", "<script", "<i>"):
        assert bad not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "mistakes" not in result_page(replace(of_set, mistakes=()).describe("test"))


def test_mistakes_are_told(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    assert "is a language model" in fairtrial("inspect", "errors", finished_records["lm"]).err
    said = fairtrial("inspect", "errors", finished_records["classify"], "--test", "tset")
    assert said.code == 2
    assert "did you mean 'test'" in said.err
    assert fairtrial("inspect", "errors", finished_records["unfinished"]).code == 2
