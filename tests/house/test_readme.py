"""What the README and the example recipes promise, they do."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairtrial.recipe import BUILT_IN, built_in_recipe, load_recipe, recipe_from, write_recipe

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FEW_STEPS = ["--steps", "3"]
LONG = {
    "demo",
    "study",
    "verdict",
    "report",
    "finetune",
    "export",
    "replicate",
    "puzzle",
}  # minutes, or what they need is not here


def commands() -> list[str]:
    """Every `fairtrial ...` line of the README's code blocks, without its comment."""
    blocks = re.findall(r"```(?:sh|console|bash)?\n(.*?)```", README, flags=re.S)
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("fairtrial ")]


def fairtrial(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fairtrial", *words], cwd=cwd, capture_output=True, text=True)


def test_the_readme_shows_commands() -> None:
    shown = {line.split()[1] for line in commands()}
    assert {"train", "show", "resume", "parts", "audit", "length", "study", "look", "finetune"} <= shown


@pytest.mark.parametrize("line", [line for line in commands() if line.split()[1] in LONG])
def test_the_readmes_long_commands_have_the_options_that_it_names(line: str, tmp_path: Path) -> None:
    words = shlex.split(line)[1:]
    told = fairtrial(*words[: 2 if words[0] == "puzzle" else 1], "--help", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert all(word in told.stdout for word in words if word.startswith("--"))


def test_the_readmes_commands_work_one_after_another(course_folder: Path) -> None:
    """In a folder that holds what they name; training is cut to a few steps, all else is as written."""
    cwd = course_folder.parent
    sentences = (course_folder / "train_LM.txt").read_text()
    (cwd / "my-novel.txt").write_text("\n\n".join([sentences] * 3))
    shutil.copy(ROOT / "examples" / "classifier.toml", cwd / "recipe.toml")
    for line in commands():
        words = shlex.split(line)[1:]
        if ">" in words:
            words = words[: words.index(">")]
        if words[0] in LONG:
            continue  # they have tests of their own
        if words[0] == "resume":
            done = fairtrial(*words, cwd=cwd)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
            assert "already finished" in done.stdout
            continue
        extra = FEW_STEPS if words[0] == "train" and "--steps" not in words and "--epochs" not in words else []
        words = [*words, *extra]
        if "--steps" in words:
            words[words.index("--steps") + 1] = "3"
        done = fairtrial(*words, cwd=cwd)
        codes = (0, 1) if words[:2] == ["audit", "--data"] else (0,)  # 1: the small folder here may hold copies
        assert done.returncode in codes, f"{line}\n{done.stderr}"
        assert done.stdout


@pytest.mark.parametrize(
    "path", sorted([*(ROOT / "examples").glob("*.toml"), *BUILT_IN.glob("*.toml")]), ids=lambda p: p.name
)
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
