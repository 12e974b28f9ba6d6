"""What the commands print when all goes well, for people and for machines."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial.engines as job
from fairtrial import __version__
from fairtrial.cli.declare import Command
from fairtrial.cli.main import COMMANDS, GROUPS, SECTIONS
from fairtrial.events import Ended, event_json
from fairtrial.recipe import built_in_recipe, recipe_from
from fairtrial.record import Record
from fairtrial.study import tables
from fairtrial.study.tables import DEMO, load_study, study_from, write_study

Call = Callable[..., Any]


@pytest.fixture
def train(fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str]) -> Call:
    def call(task: str, *words: object) -> Any:
        small = [f"--set={each}" for each in (*tiny, "scoring.curve_every=4 steps")]
        return fairtrial("train", task, "--data", course_folder, "--steps", 10, "--out", tmp_path / "a", *small, *words)

    return call


def test_without_arguments_the_help_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fairtrial"])
    with pytest.raises(SystemExit):
        runpy.run_module("fairtrial", run_name="__main__")
    said = "".join(capsys.readouterr())
    assert "..." not in said.partition("ARGS]...")[2]  # no description is cut off
    sections = dict(re.findall(r"^([A-Z][\w ]+):\n((?:  .*\n)+)", said, flags=re.M))
    assert list(sections) == ["Options", *SECTIONS]
    listed = [
        name for section in SECTIONS for name in re.findall(r"^  ([a-z]+)  +[A-Z]", sections[section], flags=re.M)
    ]
    assert set(listed) == {entry.path.split()[0] for entry in COMMANDS}
    assert len(listed) == len(set(listed)) <= 22


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.path)
def test_the_help_of_a_command_begins_with_an_example_of_its_own_options(entry: Command, fairtrial: Call) -> None:
    said = fairtrial(*entry.path.split(), "--help").out
    assert said.splitlines()[2] == f"  Example: fairtrial {entry.example}"
    assert entry.example.startswith(entry.path)
    assert all(word in said for word in re.findall(r" (--[a-z-]+)", entry.example))
    assert "in Python" not in said


def test_earlier_names_of_commands_work_say_the_new_one_and_are_not_listed(
    fairtrial: Call, finished_records: dict[str, Path]
) -> None:
    listed = fairtrial("--help").out
    for entry in COMMANDS:
        for old in entry.deprecated:
            assert f"Example: fairtrial {entry.example}" in fairtrial(old, "--help").out
            assert not re.search(rf"^  {old} ", listed, flags=re.M)
    said = fairtrial("params", finished_records["lm"])
    assert said.err == "note: `fairtrial params` is now `fairtrial inspect params`\n"
    assert said.out == fairtrial("inspect", "params", finished_records["lm"]).out
    assert "is already finished" in fairtrial("resume", finished_records["lm"]).out
    assert "`fairtrial train --print-recipe`" in fairtrial("recipe", "lm").err
    assert fairtrial("recipe", "lm").out == fairtrial("train", "lm", "--print-recipe").out
    assert set(GROUPS) == {entry.path.split()[0] for entry in COMMANDS if " " in entry.path}


def test_the_version_is_told(fairtrial: Call) -> None:
    assert fairtrial("--version") == (0, f"fairtrial {__version__}\n", "")


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_plain_lines_tell_the_size_before_the_first_step_then_scores_the_time_left_and_the_result(
    task: str, train: Call
) -> None:
    said = train(task)
    assert said.code == 0
    lines = said.out.splitlines()
    first_step = next(at for at, line in enumerate(lines) if line.startswith("step "))
    size = next(at for at, line in enumerate(lines) if re.search(r"[\d,]{4,} parameters", line))
    assert size < first_step
    middle = [line for line in lines if re.match(r"step +4/10", line)]
    assert len(middle) == 1
    assert re.search(r"validation [\d.]+.*\d:\d\d left$", middle[0])
    assert any(line.startswith("result (weights of step ") for line in lines)
    assert "record: " in lines[-1]


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_json_lines_all_parse_and_the_last_is_the_result(
    task: str, train: Call, fairtrial: Call, tmp_path: Path
) -> None:
    said = train(task, "--json")
    assert (said.code, said.err) == (0, "")
    events = [json.loads(line) for line in said.out.splitlines()]
    assert events[0]["event"] == "start"
    assert events[0]["parameters"] > 1000
    assert [event["step"] for event in events if event["event"] == "step"] == list(range(1, 11))
    record = Record.open(tmp_path / "a")
    assert events[-1] == json.loads(json.dumps(event_json(Ended(10, record.result, record.baseline))))
    assert events[-1]["parameters"] == events[0]["parameters"]
    assert record.baseline.name == {"classify": "naive Bayes", "lm": "Kneser-Ney trigram"}[task]
    again = fairtrial("train", "--resume", tmp_path / "a", "--json")  # of a finished record: the same last line
    assert [json.loads(line) for line in again.out.splitlines()] == [events[-1]]


def test_the_default_folder_names_task_recipe_data_and_seed(
    fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small = [f"--set={each}" for each in tiny]
    assert fairtrial("train", "lm", "--data", course_folder.name, "--epochs", 0.1, "--seed", 7, *small).code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"lm-default-speechesdataset-[0-9a-f]{6}-seed7", folder.name)
    assert "seed 7" in fairtrial("show", folder).out


def test_a_watched_test_set_is_told(train: Call) -> None:
    said = train("classify", "--set", "scoring.watch_test=true", "--threads", 2)
    assert "test watched: each test set was scored" in said.out
    assert "note: test watched" in said.out


def test_a_stopped_record_is_shown_and_resumed(
    fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished_records["unfinished"], tmp_path / "a")
    shown = " ".join(fairtrial("show", tmp_path / "a").out.split())
    assert f"not finished; continue with: fairtrial train --resume {tmp_path / 'a'}" in shown
    said = fairtrial("train", "--resume", tmp_path / "a")
    assert said.code == 0
    assert "result (weights of step" in said.out
    assert "is already finished; see: fairtrial show" in fairtrial("train", "--resume", tmp_path / "a").out


def test_a_damaged_checkpoint_is_told_when_resuming(
    fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(finished_records["unfinished"], tmp_path / "a")
    (path,) = (tmp_path / "a" / "checkpoints").glob("step-*")
    path.write_bytes(path.read_bytes()[:-1])
    said = fairtrial("train", "--resume", tmp_path / "a")
    assert f"notice: {path} is damaged" in said.out
    assert said.code == 0


@pytest.mark.parametrize("name", ["classify", "lm", "unfinished"])
def test_show_gives_everything_as_json(
    name: str, fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    said = fairtrial("show", finished_records[name], "--json", "--html", tmp_path / "page.html")
    whole = json.loads(said.out)
    assert whole["recipe"]["task"] == ("lm" if name == "lm" else "classify")
    assert (whole["result"] is None) == (name == "unfinished")
    assert whole["events"][0]["event"] == "score"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_show_lists_the_records_of_a_folder(fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path) -> None:
    for name, record in finished_records.items():
        shutil.copytree(record, tmp_path / "runs" / name)
    shutil.copytree(finished_records["lm"], tmp_path / "runs" / "hurt")
    (tmp_path / "runs" / "hurt" / "recipe.toml").write_text("task = 7")
    first, _, _, _, *lines = fairtrial("show", tmp_path / "runs").out.splitlines()
    assert first == "4 records: 1 damaged, 2 finished, 1 unfinished"
    score = Record.open(finished_records["classify"]).result.tests["test"].accuracy
    assert lines[0].split() == [
        str(tmp_path / "runs" / "classify"),
        "classify",
        "default",
        "learned",
        "0",
        "test",
        f"{score:.1%}",
    ]
    assert f"damaged: {tmp_path / 'runs' / 'hurt' / 'recipe.toml'}" in lines[1]
    assert [line.split()[4] for line in lines[2:4]] == ["1", "2"]
    assert lines[3].endswith("unfinished")
    facts = [json.loads(line) for line in fairtrial("show", tmp_path / "runs", "--json").out.splitlines()]
    assert [each["state"] for each in facts] == ["finished", "damaged", "finished", "unfinished"]


def test_show_works_where_the_terminal_lacks_the_letters(
    finished_records: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtrial.cli.main import run

    record = shutil.copytree(finished_records["classify"], tmp_path / "né")

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    out = Terminal(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "argv", ["fairtrial", "show", str(record)])
    with pytest.raises(SystemExit) as ended:
        run()
    out.flush()
    assert not ended.value.code
    assert b"?" in out.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("task", ["classify", "lm"])
@pytest.mark.parametrize("name", ["default", "course"])
def test_a_printed_recipe_is_the_built_in_one(task: str, name: str, fairtrial: Call) -> None:
    said = fairtrial("recipe", task, name)
    assert recipe_from(tomllib.loads(said.out)) == built_in_recipe(name, task)


@pytest.mark.usefixtures("audits_here")
def test_the_demo_ends_in_a_verdict_and_a_page_and_goes_on_where_it_was(
    fairtrial: Call, course_folder: Path, tmp_path: Path, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo's own study, on a small corpus with a tiny network and two seeds, in this process."""
    table = load_study(DEMO)
    small = {name: int(value) for name, value in (setting.split("=") for setting in tiny)}
    table |= {"data": str(course_folder), "tasks": ["lm"], "seeds": 2}
    table["set"] = small | {"training.duration": "24 steps", "training.learning_rate": 0.01}
    path = tmp_path / "small.toml"
    path.write_text(write_study(study_from(table)))
    monkeypatch.setattr(tables, "DEMO", path)
    engines = {("cores", None): job.InProcess()}
    monkeypatch.setattr(job, "open_engine", lambda name, jobs, **ray: engines[name, jobs])
    said = fairtrial("demo", "--out", tmp_path / "demo")
    assert said.code == 0
    assert "plan: 6 trials (3 variants x 2 seeds x 1 task)" in said.out
    assert "too few seeds" in said.out
    assert "reweight failed its leak audit and is not trained (M3 sees the future" in said.out
    assert not (tmp_path / "demo" / "trials/lm/reweight").exists()
    page = tmp_path / "demo" / "report.html"
    assert said.out.splitlines()[-1] == f"open this page: {page}"
    assert page.read_text().startswith("<!doctype html>")
    (tmp_path / "demo" / "trials/lm/rope/seed-1/result.json").unlink()  # as if it had been killed before its end
    said = fairtrial("demo", "--out", tmp_path / "demo", "--json")
    assert said.code == 0
    told = [json.loads(line) for line in said.out.splitlines()]
    done = [facts["key"] for facts in told if facts["event"] == "done" and facts["work"] == "trial"]
    assert done == [["lm", "rope", "seed 1"]]


CLOSED = [
    "--help",
    "--version",
    "train lm --print-recipe",
    "parts",
    "parts rope --figure rope.svg",
    "show {lm}",
    "show {lm} --json",
    "inspect params {lm}",
    "inspect params course --task lm --vocabulary 50",
    "inspect predict {classify} Hello",
    "inspect errors {classify}",
    "inspect surprisal {lm} Hello",
    "inspect generate {lm} We --tokens 3",
    "inspect length {lm} --times 1",
    "data audit --data {course} --json",
    "data clean --data {course} --out cleaned",
    "puzzle average 0 1",
    "train classify --data {course} --steps 1",
    "train --resume {unfinished}",
    "verdict --help",
]


@pytest.mark.parametrize("words", CLOSED)
def test_a_reader_who_closes_the_pipe_ends_every_command_with_141(
    words: str,
    finished_records: dict[str, Path],
    course_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As `fairtrial ... | head -1`: no traceback, whether the output is flushed at once or at the end."""
    from fairtrial.cli.main import run

    shutil.copytree(finished_records["unfinished"], tmp_path / "unfinished")
    places = {**finished_records, "course": course_folder, "unfinished": tmp_path / "unfinished"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fairtrial", *(word.format(**places) for word in words.split())])
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        with pytest.raises(SystemExit) as ended:
            run()
        assert ended.value.code == 141
    assert "Traceback" not in capsys.readouterr().err


def test_a_closed_pipe_in_a_shell() -> None:
    said = subprocess.run(
        [
            "bash",
            "-c",
            f"{shlex.quote(sys.executable)} -m fairtrial train lm --print-recipe | true; echo ${{PIPESTATUS[0]}}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (said.stdout, said.stderr) == ("141\n", "")
