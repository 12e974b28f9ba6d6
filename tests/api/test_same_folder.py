"""Commands are a layer over the public functions: the same words, the same defaults, the same folder on disk."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairtrial as ft
from fairtrial.cli import inside, judge, parts, text, train
from fairtrial.run import Run
from sampling import cases

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
    assert "exists already, a finished record" in done.err


def test_a_study_leaves_the_same_verdict(library: dict[str, Any], fairtrial: Call, tmp_path: Path) -> None:
    """The study of the examples, asked for again on the command line: all of it is there."""
    finished = library["finished"]
    how = ("--task", "classify", "--seeds", 5, "--steps", 40, "--engine", "here", "--out", finished.folder, "--dry-run")
    before = content(finished.folder)
    done = fairtrial(
        "study", "--variants", "none", "learned", "--data", library["reviews"], *how, "--set", *FIELDS, "--dry-run"
    )
    assert done.code == 0, done.err
    assert "10 of them already done" in done.out
    shown = fairtrial("verdict", finished.folder, "--json")
    assert json.loads(shown.out) == finished.verdict.facts
    assert content(finished.folder) == before


def test_the_answers_are_the_same(library: dict[str, Any], fairtrial: Call) -> None:
    classifier, model = library["classifier"], library["language_model"]
    line = json.loads(fairtrial("predict", classifier.folder, "a warm and funny film", "--json").out)
    assert line["probabilities"] == dict(
        zip(classifier.labels, classifier.predict("a warm and funny film").predictions[0].shares, strict=True)
    )
    line = json.loads(fairtrial("generate", model.folder, "warm", "--tokens", 5, "--seed", 2, "--json").out)
    assert line["text"] == model.generate("warm", tokens=5, seed=2).text
    line = json.loads(fairtrial("surprisal", model.folder, "a warm film", "--json").out.splitlines()[0])
    assert line["perplexity"] == model.surprisal("a warm film").texts[0].perplexity
    line = json.loads(fairtrial("baseline", "--data", library["reviews"], "--task", "classify", "--json").out)
    assert line == json.loads(json.dumps(ft.baseline(library["reviews"], task="classify").tasks["classify"]))


@cases(
    ("command", "function"),
    [
        (train.train, ft.train), (train.resume, ft.resume), (train.finetune, ft.finetune), (judge.study, ft.study),
        (judge.baseline, ft.baseline), (judge.ensemble, ft.ensemble), (parts.clean, ft.clean),
        (text.generate, Run.generate), (text.predict, Run.predict), (inside.errors, Run.errors),
    ],
)  # fmt: skip
def test_defaults_are_the_same(command: Callable[..., None], function: Callable[..., Any]) -> None:
    asked, taken = (inspect.signature(each).parameters for each in (command, function))
    for name in asked.keys() & taken.keys() - {"plugins", "settings", "log", "more", "chosen_on", "texts"}:
        assert asked[name].default == taken[name].default, name
