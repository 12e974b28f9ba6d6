"""Commands are a layer over the public functions: the same words, the same defaults, the same folder on disk."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fairtrial as ft
from fairtrial.analysis.catalogue import Catalogue
from fairtrial.cli.main import COMMANDS
from fairtrial.recipe import full_name
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
    assert json.loads(shown.out) == finished.verdict.to_json()
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


# how each command is said in Python
PYTHON: dict[str, tuple[Call, ...]] = {
    "train": (ft.train,), "finetune": (ft.finetune, ft.train), "resume": (ft.resume,), "recipe": (ft.Recipe.load,),
    "export": (ft.load, Run.export), "study": (ft.study,), "verdict": (ft.verdict, ft.Verdict.to_latex),
    "report": (ft.report, ft.verdict), "baseline": (ft.baseline,),
    "demo": (ft.demo, ft.study), "explore": (ft.explore,), "power": (ft.power, ft.verdict), "verify": (ft.verify,),
    "show": (ft.show,), "look": (ft.load, Run.look), "params": (ft.parameters,), "predict": (ft.load, Run.predict),
    "errors": (ft.load, Run.errors), "surprisal": (ft.load, Run.surprisal), "generate": (ft.load, Run.generate),
    "length": (ft.load, Run.lengths), "parts": (ft.catalogue, Catalogue.plot),
    "audit": (ft.audit, ft.audit_data), "clean": (ft.clean,), "cache": (ft.cache,),
}  # fmt: skip
WORDS = {
    ("study", "what"): "source", ("recipe", "task"): "what", ("errors", "telling"): "words",
    ("generate", "penalty"): "repetition_penalty", ("verdict", "what"): "study", ("report", "what"): "study",
    ("show", "records"): "record",
}  # fmt: skip
# of the screen and of files: results are values that can be printed, plotted and written in any form
SCREEN = {"json", "kind", "form", "table", "file", "draw", ("parts", "out"), ("export", "to")}
EMPTY = (None, "", ())
OTHER = [
    ("recipe", "task"),
    ("length", "times"),
    ("verify", "trials"),
]  # a default here, and none there; a list, and not its text


@cases("name", [name for group in COMMANDS.values() for name, *_ in group])
def test_every_option_of_a_command_is_an_argument_with_the_same_default(name: str) -> None:
    (command,) = (function for group in COMMANDS.values() for known, function, _ in group if known == name)
    asked = inspect.signature(command).parameters
    signatures = [inspect.signature(function).parameters for function in PYTHON[name]]
    taken = {key: value for each in reversed(signatures) for key, value in each.items()}
    fields = any(value.kind is value.VAR_KEYWORD for value in taken.values())
    for option, given in asked.items():
        if option in SCREEN or (name, option) in SCREEN:
            continue
        word = WORDS.get((name, option), option)
        if word not in taken:
            assert fields, option
            assert word in ("steps", "epochs") or full_name(word), option
        elif given.default not in (*EMPTY, given.empty) and (name, option) not in OTHER:
            assert taken[word].default in (given.default, str(given.default)), option
