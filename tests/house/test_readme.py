"""What the README and the example recipes promise, they do."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.recipe import BUILT_IN, built_in_recipe, load_recipe, recipe_from, write_recipe
from sampling import cases

Call = Callable[..., Any]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
# these take minutes, or need what is not here
LONG = {"demo", "study", "verdict", "report", "finetune", "export", "replicate", "puzzle"}


def commands() -> list[str]:
    """Every `fairtrial ...` line of the README's code blocks, without its comment."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.S)
    lines = [line.split("  #")[0].strip() for kind, block in blocks if kind != "python" for line in block.splitlines()]
    return [line for line in lines if line.startswith("fairtrial ")]


def test_the_readme_shows_commands() -> None:
    shown = {line.split()[1] for line in commands()}
    assert {"train", "show", "resume", "parts", "audit", "length", "study", "look", "finetune"} <= shown


@cases("line", [line for line in commands() if line.split()[1] in LONG])
def test_the_readmes_long_commands_have_the_options_that_it_names(line: str, fairtrial: Call) -> None:
    words = shlex.split(line)[1:]
    told = fairtrial(*words[: 2 if words[0] == "puzzle" else 1], "--help")
    assert told.code == 0, told.err
    assert all(word in told.out for word in words if word.startswith("--"))


def run_as_written(line: str, fairtrial: Call) -> None:
    """A command of the README; training is cut to a few steps, a network on the large corpus to a small one."""
    words = shlex.split(line)[1:]
    if ">" in words:
        words = words[: words.index(">")]
    if words[0] == "train" and "--steps" in words:
        words[words.index("--steps") + 1] = "3"
    elif words[0] == "train" and "--epochs" not in words:
        words += ["--steps", "3"]
    if words[0] == "train" and "--data" not in words:  # on the embedded corpus, whose test set is large
        words += ["--set=shape.layers=1", "--set=shape.width=16"]
    done = fairtrial(*words)
    codes = (0, 1) if words[:2] == ["audit", "--data"] else (0,)  # 1: the small folder here may hold copies
    assert done.code in codes, f"{line}\n{done.err}"
    assert done.out
    if words[0] == "resume":
        assert "already finished" in done.out


@pytest.mark.usefixtures("audits_here")
def test_the_readmes_commands_work_one_after_another(
    course_folder: Path, fairtrial: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that holds what they name. Later commands use the records of earlier ones."""
    cwd = course_folder.parent
    monkeypatch.chdir(cwd)
    sentences = (course_folder / "train_LM.txt").read_text()
    (cwd / "my-novel.txt").write_text("\n\n".join([sentences] * 3))
    rows = [line.split("\t") for line in (course_folder / "train_CLS.tsv").read_text().splitlines()[:60]]
    folds = [[*row, "test" if number % 4 == 0 else "train"] for number, row in enumerate(rows)]
    with (cwd / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["stars", "body", "fold"], *folds])
    shutil.copy(ROOT / "examples" / "classifier.toml", cwd / "recipe.toml")
    for line in commands():
        if line.split()[1] not in LONG:  # these have tests of their own
            run_as_written(line, fairtrial)


@cases("path", sorted([*(ROOT / "examples").glob("*.toml"), *BUILT_IN.glob("*.toml")]))
def test_recipes_load_and_survive_a_round_trip(path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe_from(tomllib.loads(write_recipe(recipe))) == recipe


def test_the_course_recipe_is_the_reports_setting() -> None:
    for task, hidden in (("classify", 256), ("lm", 100)):
        recipe = built_in_recipe("course", task)
        assert (recipe.shape.layers, recipe.shape.heads, recipe.shape.width, recipe.shape.length) == (4, 2, 64, 32)
        assert (recipe.shape.hidden, recipe.training.batch, recipe.training.learning_rate) == (hidden, 16, 1e-3)


def test_the_ci_script_calls_the_readmes_test_command() -> None:
    assert "make test" in README
    assert "make demo" in README
    assert "\nmake test" in (ROOT / ".ci" / "run").read_text()
