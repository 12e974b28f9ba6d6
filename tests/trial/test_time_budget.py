"""`--budget`: a table picks duration, width and regularization, and what it picked are plain fields of the recipe."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from course_text import sentence
from fairtrial.budget import fit_budget
from fairtrial.errors import BadInput
from fairtrial.events import Notice
from fairtrial.recipe import Recipe, load_recipe, read_settings
from fairtrial.record import Record
from fairtrial.run import Run

LM = Recipe.load("lm")


def text(path: Path, lines: int) -> str:
    rng = random.Random(1)
    path.write_text("\n".join(sentence(rng.choice("012"), rng) for _ in range(lines)))
    return str(path)


def test_more_time_trains_longer_and_wider_and_with_more_noise() -> None:
    fits = [fit_budget(LM, time).recipe for time in ("5s", "60s", "4m", "30m")]
    steps = [recipe.training.duration.steps(1) for recipe in fits]
    assert steps == sorted(steps)
    assert [recipe.shape.width for recipe in fits] == [64, 64, 96, 128]
    assert [recipe.shape.hidden for recipe in fits] == [128, 128, 192, 256]
    noise = [recipe.training.input_noise for recipe in fits]
    assert noise == sorted(noise)
    assert noise[0] < noise[-1]


def test_a_text_that_is_read_less_often_needs_less_noise(tmp_path: Path) -> None:
    noise = [
        fit_budget(LM.with_(data=text(tmp_path / f"{lines}.txt", lines)), "8s").recipe.training.input_noise
        for lines in (400, 20_000)
    ]
    assert noise[0] > noise[1]


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_seeds_and_repetitions_take_the_same_steps(task: str) -> None:
    recipe = Recipe.load(task)
    assert fit_budget(recipe, "10s") == fit_budget(recipe, "10s")


def test_a_classifier_stops_where_more_passes_do_not_help() -> None:
    fit = fit_budget(Recipe.load("classify"), "1h")
    assert "more passes did not help" in fit.sentence
    assert fit.recipe == fit_budget(Recipe.load("classify"), "2h").recipe


def test_what_the_user_sets_stays() -> None:
    recipe = fit_budget(LM.with_(width=32, input_noise=0.3), "60s", {"shape.width", "training.input_noise"}).recipe
    assert (recipe.shape.width, recipe.training.input_noise) == (32, 0.3)


def test_a_trial_of_a_budget_writes_plain_fields_and_says_what_it_picked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = text(tmp_path / "text.txt", 60)
    small = {"layers": 1, "width": 16, "hidden": 16, "length": 12}
    run_ = ft.train("lm", data, budget="1s", out=tmp_path / "a", **small)
    told = capsys.readouterr().out
    assert told.startswith("budget 1s of processor time: duration ")
    recipe = load_recipe(tmp_path / "a" / "recipe.toml")
    assert recipe.training.duration.unit == "steps"
    assert str(recipe.training.duration) in told
    again = ft.train(load_recipe(tmp_path / "a" / "recipe.toml"), out=tmp_path / "b", quiet=True)
    assert again.record.result.model_sha256 == run_.record.result.model_sha256


def test_the_command_line_prints_the_recipe_of_a_budget(fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("train", "lm", "--budget", "4m", "--print-recipe")
    assert said.code == 0
    assert "width = 96 " in said.out


@pytest.mark.parametrize(
    ("task", "name", "fields", "message"),
    [
        ("lm", "course", {}, "default recipes of lm and classify"),
        ("mlm", "default", {}, "default recipes of lm and classify"),
        ("lm", "default", {"steps": 5}, "a budget chooses the number of steps"),
    ],
)
def test_a_budget_is_refused_where_the_table_says_nothing(
    task: str, name: str, fields: dict[str, int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=message):
        ft.train(task, recipe=name, budget="60s", out=tmp_path / "a", quiet=True, **fields)


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_a_budget_too_small_to_learn_is_refused_with_the_smallest_that_works(task: str) -> None:
    with pytest.raises(BadInput, match="too short for the model to learn") as refused:
        fit_budget(Recipe.load(task), "0.1s")
    smallest = refused.value.hint.split()[1]
    assert fit_budget(Recipe.load(task), smallest).recipe.training.duration.steps(1) >= 50
    with pytest.raises(BadInput, match="too short"):
        fit_budget(Recipe.load(task), f"{int(smallest[:-1]) - 0.99}s")


@pytest.mark.second
def test_a_duration_in_time_is_measured_once_and_then_a_number_of_steps(
    tmp_path: Path, course_folder: Path, tiny: list[str]
) -> None:
    recipe = LM.with_(data=str(course_folder), **read_settings(tiny))

    def train(name: str, time: str, *stops: bool) -> Run:
        asked = iter(stops)
        told: list[Any] = []
        options = ft.RunOptions(stop=lambda: next(asked, bool(stops)), on_event=told.append)
        run = ft.train(recipe.with_(duration=time), out=tmp_path / name, options=options)
        (notice,) = [event.text for event in told if isinstance(event, Notice)]
        assert notice.startswith(f"{time} of training: {run.recipe.training.duration}, at ")
        return run

    short, long = (train(name, time) for name, time in (("short", "0.03 seconds"), ("long", "0.6 seconds")))
    steps = [run.record.result.steps for run in (short, long)]
    assert [str(run.recipe.training.duration) for run in (short, long)] == [f"{count} steps" for count in steps]
    assert steps[1] > 4 * steps[0] >= 4

    with pytest.raises(ft.Interrupted):
        train("half", "0.6 seconds", False, False, True)
    half = Record.open(tmp_path / "half").recipe
    assert half.training.duration.unit == "steps"
    resumed = ft.resume(tmp_path / "half", quiet=True)
    assert resumed.recipe == half
    assert resumed.record.result.steps == half.training.duration.count
    whole = ft.train(half, out=tmp_path / "whole", quiet=True)
    assert whole.record.result.model_sha256 == resumed.record.result.model_sha256
    (checked,) = ft.verify(tmp_path / "half").records
    assert checked.state == "proven"
