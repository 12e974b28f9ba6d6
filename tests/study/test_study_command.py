"""`fairtrial study` as one types it: lists of words, mistakes, the plan."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.cli.declare import repeat_options
from fairtrial.cli.screen import Screen, StudyLines
from fairtrial.errors import BadInput
from fairtrial.events import JobDone, JobFailed, JobStarted, JobStepped, SearchStarted, StudyPlanned, TrialsStarted
from fairtrial.progress import ProgressBar, StudyProgress
from fairtrial.stored import PlanSummary
from fairtrial.study.plan import default_study_folder
from fairtrial.study.tables import add_overrides, complete_study, read_study_table, variant_tables

Call = Callable[..., Any]


def test_an_option_may_take_several_words() -> None:
    words = "my.toml --variants learned rope --seeds 8 --set a=1 b=-2 --json".split()
    asked = "my.toml --variants learned --variants rope --seeds 8 --set a=1 --set b=-2 --json".split()
    assert repeat_options(words) == asked
    assert repeat_options(asked) == asked
    assert repeat_options(["--data", "x", "y"]) == ["--data", "x", "y"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "neither a study file nor a study's folder"),
        (["--variants", "rope"], "at least two variants"),
        (["--variants", "rope", "rope"], "given twice"),
        (["--task", "clasify"], "did you mean 'classify'"),
        (["--engine", "core"], "did you mean 'cores'"),
        (["--address", "auto"], "--address is for a Ray cluster"),
        (["--address", "auto"], "add --engine ray"),
        (["--budget", "soon"], "is not a time"),
        (["--until-clear", "--seeds", "7"], "takes no --seeds"),
        (["--steps", "3", "--epochs", "2"], "exclude each other"),
        (["--set", "shape.heds=3"], "did you mean 'shape.heads'"),
        (["--set", "task=lm"], "--task"),
        (["--data", "nowhere/"], "nowhere"),
        (["--with", "absent.py", "--variants", "learned", "absent"], "absent.py"),
    ],
)
def test_mistakes_are_refused_with_a_hint_and_leave_nothing(
    words: list[str], said: str, fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = [] if "--engine" in words else ["--engine", "here"]
    answer = fairtrial("study", *words, *engine)
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_settings_that_fit_only_together_are_taken(course_folder: Path) -> None:
    table: dict[str, Any] = {}
    add_overrides(table, {"shape.width": 12, "shape.heads": 3})
    assert table["set"] == {"shape.width": 12, "shape.heads": 3}


def test_a_folder_that_is_no_study_is_refused(fairtrial: Call, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "is not a study" in fairtrial("study", tmp_path).err
    assert "is not empty and holds no study" in fairtrial("study", "--out", tmp_path).err


def test_the_tasks_are_what_the_data_are_for(course_folder: Path, tmp_path: Path) -> None:
    assert complete_study({"data": str(course_folder)}, []).tasks == ("classify", "lm")
    text = tmp_path / "novel.txt"
    text.write_text("It was a dark night.\n")
    assert complete_study({"data": str(text)}, []).tasks == ("lm",)
    assert complete_study({}, []).tasks == ("classify", "lm")


def test_settings_of_the_command_line_win_over_the_file() -> None:
    table = {"set": {"training.batch": 4, "lm": {"training.batch": 2}}}
    add_overrides(table, {"training.batch": 8, "training.duration": "5 epochs", "shape.tied": True})
    assert table["set"] == {"training.batch": 8, "lm": {}, "training.duration": "5 epochs", "shape.tied": True}


def test_the_default_folder_is_of_the_variants_and_data_not_of_the_seeds(course_folder: Path) -> None:
    table = {"data": str(course_folder), "variants": variant_tables(["learned", "window:size=8"])}
    folder = default_study_folder(complete_study(dict(table), []))
    assert folder == default_study_folder(complete_study(table | {"seeds": 9}, []))
    assert folder != default_study_folder(complete_study(table | {"set": {"training.batch": 3}}, []))
    assert folder.name.startswith("learned-vs-window-size-8-")


def test_a_study_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such"):
        read_study_table(str(tmp_path / "my.toml"))


def test_a_dry_run_shows_the_plan(fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    small = ["--set", *tiny, "training.duration=5 steps", "--task", "lm", "--engine", "here", "--dry-run"]
    said = fairtrial("study", "--data", course_folder, *small, "--seeds", 3, "--out", tmp_path / "study")
    assert said.code == 0
    assert "plan: 9 trials (3 variants x 3 seeds x 1 task)" in said.out
    assert "3 seeds can detect, corrected for " in said.out
    assert "a verdict needs at least 5 seeds" in said.out
    told = fairtrial("study", "--data", course_folder, *small, "--seeds", 3, "--out", tmp_path / "study", "--json").out
    assert [json.loads(line)["event"] for line in told.splitlines()][-1] == "plan"
    assert not (tmp_path / "study").exists()


@pytest.mark.second
def test_trials_run_by_listed_commands_anywhere_give_the_verdict_of_one_machine(
    fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str]
) -> None:
    asked = ["--data", course_folder, "--task", "classify", "--variants", "learned", "rope", "--seeds", 2]
    asked += ["--set", *tiny, "training.duration=5 steps", "--engine", "here", "--out"]
    said = fairtrial("study", *asked, tmp_path / "apart", "--list-jobs")
    commands = said.out.splitlines()
    assert said.code == 0
    assert len(commands) == 4
    assert all(command.startswith("fairtrial train ") for command in commands)

    random.Random(0).shuffle(commands)
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    for number, command in enumerate(commands):
        if number == 1:
            early = fairtrial("study", tmp_path / "apart", "--collect", "--engine", "here")
            assert early.code == 2
            assert "3 of 4 trials are missing" in early.err
            assert sorted(fairtrial("study", tmp_path / "apart", "--list-jobs").out.splitlines()) == sorted(
                commands[1:]
            )
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, env=own, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    collected = fairtrial("study", tmp_path / "apart", "--collect", "--engine", "here")
    assert collected.code == 0, collected.err
    assert fairtrial("study", *asked, tmp_path / "together").code == 0
    apart, together = (ft.verdict(tmp_path / name).to_json() for name in ("apart", "together"))
    assert apart["tasks"]["classify"]["comparisons"] == together["tasks"]["classify"]["comparisons"]
    assert apart["tasks"]["classify"]["scores"] == together["tasks"]["classify"]["scores"]


PLAN = PlanSummary(
    name="x",
    engine="here",
    width=2,
    seed_count=5,
    trial_count=10,
    left=10,
    expected_seconds=50.0,
    trial_seconds={"lm": {"a": 10.0, "b": 10.0}},
    smallest_detectable={"lm": {}},
    comparisons={"lm": 1},
    folder="f",
)


def test_the_time_left_follows_how_long_trials_really_took() -> None:
    count = StudyProgress(ProgressBar("none"))
    count.update(StudyPlanned(PLAN))
    count.update(TrialsStarted(10, 10, 0))
    assert count.left() == "0:50 left"
    trial = (("lm", "a", "seed 0"), "trial")
    count.update(JobStarted(*trial))
    count.update(JobStepped(*trial, 50, 100))
    assert count.left() == "0:48 left"
    count.update(JobDone(*trial, 20.0))
    count.begun -= 10
    assert count.left() == "1:30 left"  # nine more like it


def test_plain_lines_tell_each_trial_and_each_failure(capsys: pytest.CaptureFixture[str]) -> None:
    lines = StudyLines(Screen())
    lines.show(StudyPlanned(PLAN))
    lines.show(TrialsStarted(10, 10, 0))
    done = JobDone(("lm", "a", "seed 0"), "trial", 10.0, {"test": 81.25})
    lines.show(done)
    lines.show(JobFailed(("lm", "b", "seed 0"), "trial", "ValueError: no"))
    said = capsys.readouterr().out
    assert "trial 1/10  lm a seed 0: test 81.2  0:00 left" in said
    assert "trial 2/10  lm b seed 0 failed: ValueError: no" in said


def test_tries_of_a_search_are_counted_apart_from_trials(capsys: pytest.CaptureFixture[str]) -> None:
    lines = StudyLines(Screen())
    ended = JobDone(("lm", "a", "seed 0"), "trial", 10.0, {"validation": 81.25})
    lines.show(StudyPlanned(PLAN))
    lines.show(SearchStarted(4, 8, 7))
    lines.show(ended)
    lines.show(TrialsStarted(10, 10, 0))
    lines.show(ended)
    lines.show(StudyPlanned(PLAN))  # another study follows
    assert lines.position() == "preparing"
    said = capsys.readouterr().out
    assert "try 2/8  lm a seed 0: validation 81.2" in said
    assert "trial 1/10  lm a seed 0" in said


def test_a_recipe_is_not_taken_for_a_study(fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('task = "lm"\n[data]\nsource = "sotu"\n')
    said = fairtrial("study", "mine.toml", "--dry-run")
    assert said.code == 2
    assert "this is a recipe, not a study" in said.err
