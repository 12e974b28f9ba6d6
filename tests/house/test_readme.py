"""What the README, the pages of the documentation and the example recipes promise, they do."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from fairtrial.cli.main import app
from fairtrial.recipe import BUILT_IN, built_in_recipe, load_recipe, recipe_from, write_recipe
from sampling import cases

Call = Callable[..., Any]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# these take minutes, or need what is not here
LONG = {"demo", "study", "verdict", "report", "finetune", "export", "replicate", "puzzle", "explore"}


def commands(page: Path) -> list[str]:
    """Every `fairtrial ...` line of a page's code blocks, without its comment."""
    blocks = re.findall(r"```(\w*)\n(.*?)```", page.read_text().replace("\\\n", " "), flags=re.S)
    lines = [line.split("  #")[0].strip() for kind, block in blocks if kind != "python" for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.removeprefix("$ ").startswith("fairtrial ")]


@pytest.fixture(scope="module")
def parser() -> Any:
    return typer.main.get_command(app)


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_says_what_follows_before_pip_is_silent() -> None:
    for target, set_ups in {"demo": 1, "test": 2}.items():
        made = subprocess.run(["make", "-n", "-B", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        blocks = made.split('echo "set-up, once: ')
        assert len(blocks) == 1 + set_ups
        assert "pip install" not in blocks[0]
        assert all(re.match(r"[^\n]*\d GB[^\n]* minutes", block) for block in blocks[1:])


def test_the_tour_shows_every_command(parser: Any) -> None:
    shown = {line.split()[1] for line in commands(ROOT / "docs" / "tour.md")}
    known = {name for name, command in parser.commands.items() if not command.hidden}
    assert known - shown <= {"demo", "ensemble", "explore", "replicate"}, "told in sentences, or by the README"


@cases("page", PAGES)
def test_the_commands_of_a_page_have_the_options_that_it_names(page: Path, parser: Any) -> None:
    for line in (each for whole in commands(page) for each in re.split(r"; (?=fairtrial )", whole)):
        words, command = shlex.split(line)[1:], parser
        while hasattr(command, "commands") and words and not words[0].startswith("-"):
            assert words[0] in command.commands or words[0].isupper(), line
            command = command.commands.get(words.pop(0), command)
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
        given = {word.split("=")[0] for word in words if word.startswith("--")}
        assert given <= known | {"--version"}, line


def test_links_lead_to_files() -> None:
    for page in (*PAGES, *ROOT.glob("*.md")):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_site_is_built_and_asks_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In strict mode: every link and every anchor leads somewhere, every page is in the navigation."""
    pytest.importorskip("mkdocs", reason="pip install 'fairtrial[docs]'")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    # not --quiet, which hides the warnings that strict counts
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"?(?:https?:)?//[^>]*", page.read_text())
        assert not [each for each in loaded if "canonical" not in each], page.name


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
def test_the_commands_of_readme_and_tour_work_one_after_another(
    course_folder: Path, fairtrial: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that holds what they name. Later commands use the records of earlier ones."""
    cwd = course_folder.parent
    monkeypatch.chdir(cwd)
    course_folder.rename(cwd / "my-texts")
    course_folder = cwd / "my-texts"
    sentences = (course_folder / "train_LM.txt").read_text()
    (cwd / "my-novel.txt").write_text("\n\n".join([sentences] * 3))
    rows = [line.split("\t") for line in (course_folder / "train_CLS.tsv").read_text().splitlines()[:60]]
    folds = [[*row, "test" if number % 4 == 0 else "train"] for number, row in enumerate(rows)]
    with (cwd / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["stars", "body", "fold"], *folds])
    shutil.copy(ROOT / "examples" / "classifier.toml", cwd / "recipe.toml")
    for line in dict.fromkeys((*commands(ROOT / "README.md"), *commands(ROOT / "docs" / "tour.md"))):  # each once
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
