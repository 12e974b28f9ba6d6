"""Commands are a layer over the public functions: the same words, the same defaults, the same folder on disk."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.cli.declare import OPTION_GROUPS, SHORTCUTS, Command, read_docstring
from fairtrial.cli.main import COMMANDS
from fairtrial.typed import unstructure

Call = Callable[..., Any]
FIELDS = ("shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.length=12", "training.learning_rate=0.02")
NUMBERS = {"layers": 1, "width": 16, "hidden": 16, "length": 12, "learning_rate": 0.02}
SAME = ("recipe.toml", "trial.json", "events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_training_leaves_the_same_folder(library: dict[str, Any], fairtrial: Call, tmp_path: Path) -> None:
    reviews, changes = library["reviews"], [word for field in FIELDS for word in ("--set", field)]
    shell = tmp_path / "shell"
    done = fairtrial("train", "classify", "--data", reviews, "--steps", 4, "--seed", 3, "--out", shell, *changes)
    assert done.code == 0, done.err
    run = ft.train("classify", reviews, steps=4, seed=3, out=tmp_path / "python", quiet=True, **NUMBERS)
    ours, theirs = content(run.folder), content(shell)
    assert ours.keys() == theirs.keys()
    assert all(ours[name] == theirs[name] for name in SAME)


def test_both_have_the_same_default_folder(library: dict[str, Any], fairtrial: Call, tmp_path: Path) -> None:
    ft.train("lm", library["reviews"], steps=1, quiet=True, **NUMBERS)
    changes = [word for field in FIELDS for word in ("--set", field)]
    done = fairtrial("train", "lm", "--data", library["reviews"], "--steps", 1, *changes)
    assert done.code == 2
    assert "exists already" in done.err


def test_a_study_leaves_the_same_verdict(library: dict[str, Any], fairtrial: Call, tmp_path: Path) -> None:
    """The study of the examples, asked for again on the command line: all of it is there."""
    finished = library["finished"]
    how = ("--task", "classify", "--seeds", 5, "--steps", 40, "--engine", "here", "--out", finished.folder, "--dry-run")
    before = content(finished.folder)
    done = fairtrial(
        "study", "--variants", "none", "learned", "--data", library["reviews"], *how, "--set", *FIELDS, "--dry-run"
    )
    assert done.code == 0, done.err
    assert "10 already done" in done.out
    shown = fairtrial("verdict", finished.folder, "--json")
    assert json.loads(shown.out) == finished.verdict.to_json()
    assert content(finished.folder) == before


def test_the_answers_are_the_same(library: dict[str, Any], fairtrial: Call) -> None:
    classifier, model = library["classifier"], library["language_model"]
    line = json.loads(fairtrial("inspect", "predict", classifier.folder, "a warm and funny film", "--json").out)
    assert line["probabilities"] == dict(
        zip(classifier.labels, classifier.predict("a warm and funny film").predictions[0].shares, strict=True)
    )
    line = json.loads(fairtrial("inspect", "generate", model.folder, "warm", "--tokens", 5, "--seed", 2, "--json").out)
    assert line["text"] == model.generate("warm", tokens=5, seed=2).text
    line = json.loads(fairtrial("inspect", "surprisal", model.folder, "a warm film", "--json").out.splitlines()[0])
    assert line["perplexity"] == model.surprisal("a warm film").texts[0].perplexity
    line = json.loads(fairtrial("data", "baseline", "--data", library["reviews"], "--task", "classify", "--json").out)
    assert line == unstructure(ft.baseline(library["reviews"], task="classify").tasks["classify"])


PUBLIC_FUNCTIONS = [name for name in ft.PUBLIC if inspect.isfunction(getattr(ft, name))]


@pytest.mark.parametrize("name", PUBLIC_FUNCTIONS)
def test_a_public_function_has_few_parameters_and_describes_each(name: str) -> None:
    parameters = inspect.signature(getattr(ft, name)).parameters
    assert len([each for each in parameters.values() if each.kind is not each.VAR_KEYWORD]) <= 12
    if name not in ("compare", "part", "optimizer"):  # no commands are made from them
        assert set(read_docstring(getattr(ft, name)).arguments) == set(parameters)


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.path)
def test_a_command_has_the_options_of_its_function(entry: Command) -> None:
    options = inspect.signature(entry.function).parameters
    source = inspect.signature(entry.source).parameters
    spread = {field.name for each in source.values() for field in fields_of(OPTION_GROUPS.get(str(each.annotation)))}
    own = {*source, *spread, *SHORTCUTS, "set_fields"}
    screen = {
        "json",
        "form",
        "kind",
        "wide",
        "every",
        "table",
        "file",
        "draw",
        "heads",
        "length",
        "encoder",
        "to",
        "out",
        "figure",
        "data",
        "fail_on",
        "lower_is_better",
    }
    loading = {"record", "plugins", "resume", "ignore_changes", "print_recipe"}
    assert set(options) <= own | screen | loading
    for option in set(options) & set(source):
        default = source[option].default
        assert options[option].default in (default, None, inspect.Parameter.empty), option


def fields_of(kind: Any) -> tuple[Any, ...]:
    return () if kind is None else fields(kind)
