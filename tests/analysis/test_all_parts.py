"""The commands that look at a record work for every part."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial.parts  # noqa: F401  fills the registry
from fairtrial.model.part import parts
from fairtrial.trial import run_trial

BUILT_IN = [name for name in parts.list() if parts.find(name).__module__.startswith("fairtrial.parts.")]
BRIEF = ("training.duration=1 steps", "training.select_every=1 steps", "scoring.curve_every=1 steps")
SENTENCE = "We will build bridges and schools for every child, and brave soldiers stand on guard tonight."


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_classifier_can_be_looked_at(
    name: str, tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    record = run_trial(tiny_recipe("classify", f'parts=["{name}"]', *BRIEF), 0, tmp_path / "record")
    counted = json.loads(fairtrial("params", record.folder, "--json").out)
    assert counted["total"] == record.result["parameters"]
    said = fairtrial("predict", record.folder, SENTENCE, "bridges", "--words", "--json")
    assert said.code == 0, said.err
    assert [json.loads(line)["cut"] for line in said.out.splitlines()] == [True, False]
    said = fairtrial("errors", record.folder, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)["tests"]["test"]
    if name != "reweight":  # its answer depends on how many texts are read at once
        assert found["confusion"] == record.result["tests"]["test"]["confusion"]


@pytest.mark.parametrize("name", [name for name in BUILT_IN if not name.startswith("pool-")])
def test_a_language_model_can_be_looked_at(
    name: str, tiny_recipe: Callable[..., Any], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    record = run_trial(tiny_recipe("lm", f'parts=["{name}"]', *BRIEF), 0, tmp_path / "record")
    counted = json.loads(fairtrial("params", record.folder, "--json").out)
    assert counted["total"] == record.result["parameters"]
    said = fairtrial("surprise", record.folder, SENTENCE, "bridges", "--json")
    assert said.code == 0, said.err
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert rows[0]["counted"] == len(rows[0]["tokens"]) - 1
    assert rows[1]["perplexity"] is None  # one word: nothing stands before it
    said = fairtrial("generate", record.folder, SENTENCE, "--tokens", 4, "--json")
    assert said.code == 0, said.err
    assert len(json.loads(said.out)["tokens"]) == 4
    assert json.loads(said.out)["text"].startswith(SENTENCE)
