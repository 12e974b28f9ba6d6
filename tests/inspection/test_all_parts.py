"""The commands that look at a record work for parts of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.trial import run_trial

BRIEF = ("training.duration=1 steps", "training.select_every=1 steps", "scoring.curve_every=1 steps")
SENTENCE = "We will build bridges and schools for every child, and brave soldiers stand on guard tonight."


@pytest.mark.parametrize(
    "name", ["learned", "disentangled", "window", "reweight", "pool-cls", "differential", "experts"]
)
def test_a_classifier_can_be_looked_at(
    name: str, tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    record = run_trial(tiny_recipe("classify", f'parts=["{name}"]', *BRIEF), 0, tmp_path / "record")
    counted = json.loads(fairtrial("inspect", "params", record.folder, "--json").out)
    assert counted["total"] == record.result.parameters
    said = fairtrial("inspect", "predict", record.folder, SENTENCE, "bridges", "--json")
    assert said.code == 0, said.err
    assert [json.loads(line)["cut"] for line in said.out.splitlines()] == [True, False]
    said = fairtrial("inspect", "errors", record.folder, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)["tests"]["test"]
    if name != "reweight":  # its answer depends on how many texts are read at once
        assert tuple(map(tuple, found["confusion"])) == record.result.tests["test"].confusion


@pytest.mark.parametrize("name", ["rope", "t5", "block", "shuffle", "forgetting", "grouped-query"])
def test_a_language_model_can_be_looked_at(
    name: str, tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    record = run_trial(tiny_recipe("lm", f'parts=["{name}"]', *BRIEF), 0, tmp_path / "record")
    counted = json.loads(fairtrial("inspect", "params", record.folder, "--json").out)
    assert counted["total"] == record.result.parameters
    said = fairtrial("inspect", "surprisal", record.folder, SENTENCE, "bridges", "--json")
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert rows[0]["counted"] == len(rows[0]["tokens"]) - 1
    assert rows[1]["perplexity"] is None  # one word: nothing stands before it
    said = fairtrial("inspect", "generate", record.folder, SENTENCE, "--tokens", 4, "--json")
    assert said.code == 0, said.err
    assert len(json.loads(said.out)["tokens"]) == 4
    assert json.loads(said.out)["text"].startswith(SENTENCE)
