"""A record proves itself: what was changed after the trial wrote it is refused by name, and resuming means the same
trial."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import fairtrial as ft
from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.record import Record
from fairtrial.study.run import run_study
from fairtrial.study.tables import study_from
from sealed import reseal

Call = Callable[..., Any]


def edited(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def swap_two_words(path: Path) -> None:
    table = json.loads(path.read_text())
    words = table["model"]["vocab"]
    one, other = list(words)[-2:]
    words[one], words[other] = words[other], words[one]
    path.write_text(json.dumps(table))


def guess_right(path: Path) -> None:
    arrays = load_file(path)
    arrays["test/guess"] = arrays["test/label"].copy()
    save_file(arrays, path)


def permute_labels(path: Path) -> None:
    arrays = load_file(path)
    save_file(arrays | {"test/label": np.roll(arrays["test/label"], 1)}, path)


def without_checksum(path: Path) -> None:
    table = json.loads(path.read_text()) | {"steps": 99}
    table.pop("checksum")
    path.write_text(json.dumps(table))


DAMAGE: dict[str, tuple[str, Callable[[Path], None], tuple[str, ...]]] = {
    "guesses are right": ("outcomes.safetensors", guess_right, ("show",)),
    "labels permuted": ("outcomes.safetensors", permute_labels, ("show",)),
    "words swapped": ("tokenizer.json", swap_two_words, ("show", "predict", "look", "errors")),
    "another recipe": (
        "recipe.toml",
        lambda path: edited(path, "learning_rate = ", "learning_rate = 1"),
        ("show", "predict"),
    ),
    "another seed": ("trial.json", lambda path: edited(path, '"seed": 0', '"seed": 1'), ("show", "predict")),
    "another score": (
        "result.json",
        lambda path: edited(path, '"accuracy": 0.', '"accuracy": 0.9'),
        ("show", "predict"),
    ),
    "a score without its checksum": ("result.json", without_checksum, ("show", "predict")),
    "a point of a curve": ("events.jsonl", lambda path: edited(path, '"accuracy": 0.', '"accuracy": 0.9'), ("show",)),
    "a weight": (
        "model.safetensors",
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x01"),
        ("show", "predict", "look", "audit"),
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_changed_is_refused_by_name(
    damage: str, finished_records: dict[str, Path], tmp_path: Path, fairtrial: Call
) -> None:
    name, change, commands = DAMAGE[damage]
    folder = Path(shutil.copytree(finished_records["classify"], tmp_path / "record"))
    words = {"predict": ["We will."], "look": ["We will."]}
    for command in commands:
        if command in ("show", "predict"):
            assert fairtrial(command, folder, *words.get(command, [])).code == 0  # before
    change(folder / name)
    if name == "outcomes.safetensors":
        with pytest.raises(BadInput, match=r"outcomes\.safetensors: was changed .* \(its checksum differs\)"):
            Record.open(folder).outcomes()
    for command in commands:
        said = fairtrial(command, folder, *words.get(command, []))
        assert said.code == 2, command
        assert name in said.err
        assert "checksum" in said.err


def small_study(tiny_recipe: Call, folder: Path) -> tuple[Any, Path]:
    recipe = tiny_recipe("classify", "training.duration=24 steps", "training.learning_rate=0.01")
    path = folder / "recipe.toml"
    from fairtrial.recipe import write_recipe

    path.write_text(write_recipe(recipe))
    study = study_from({"recipe": str(path), "tasks": ["classify"], "seeds": 2,
                        "variants": {"learned": {"parts": ["learned"]}, "rope": {"parts": ["rope"]}}})  # fmt: skip
    return study, folder / "study"


@pytest.mark.usefixtures("audits_here")
def test_a_study_refuses_swapped_records_edited_outcomes_and_outcomes_that_do_not_give_the_metrics(
    tiny_recipe: Call, tmp_path: Path
) -> None:
    study, folder = small_study(tiny_recipe, tmp_path)
    verdict = run_study(study, folder, InProcess())
    assert run_study(study, folder, InProcess()) == verdict
    one, other = (folder / f"trials/classify/{name}/seed-0" for name in ("learned", "rope"))
    for swapped in (True, False):
        one.rename(folder / "x")
        other.rename(one)
        (folder / "x").rename(other)
        if swapped:  # each record is whole, but not where it belongs
            with pytest.raises(BadInput, match=r"learned/seed-0 holds a trial with another recipe"):
                run_study(study, folder, InProcess())
    trial = folder / "trials/classify/rope/seed-1"
    guess_right(trial / "outcomes.safetensors")
    for ask in (
        lambda: run_study(study, folder, InProcess()),
        lambda: ft.verdict(folder),
        lambda: ft.verdict(folder).write_page(folder / "a.html"),
    ):
        with pytest.raises(BadInput, match=r"rope/seed-1/outcomes\.safetensors: was changed"):
            ask()
    reseal(trial)  # as if its writer had been wrong
    with pytest.raises(BadInput, match=r"its accuracy on 'test' is 1, result\.json says 0\."):
        run_study(study, folder, InProcess())


@pytest.fixture
def begun(finished_records: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_records["unfinished"], tmp_path / "begun"))


def cut_to_half(path: Path) -> None:
    """Still valid TOML: the sections that follow [shape] are lost."""
    text = path.read_text()
    path.write_text(text[: text.index("[training]")])


CHANGES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "learning rate": ("recipe.toml", lambda path: edited(path, "learning_rate = ", "learning_rate = 1")),
    "half a recipe": ("recipe.toml", cut_to_half),
    "words swapped": ("tokenizer.json", swap_two_words),
    "seed, with its checksum": ("trial.json", lambda path: reseal(path.parent, trial={"seed": 7}) and None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_trial_is_not_resumed(change: str, begun: Path, fairtrial: Call) -> None:
    name, edit = CHANGES[change]
    edit(begun / name)
    said = fairtrial("train", "--resume", begun)
    assert said.code == 2
    assert name in said.err
    assert fairtrial("train", "--resume", begun, "--ignore-changes").code == 2


def test_a_swapped_trial_file_is_noticed(begun: Path, finished_records: dict[str, Path], fairtrial: Call) -> None:
    shutil.copy(finished_records["lm"] / "trial.json", begun / "trial.json")
    said = fairtrial("train", "--resume", begun)
    assert said.code == 2
    assert "trial.json" in said.err
