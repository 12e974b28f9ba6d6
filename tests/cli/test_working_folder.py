"""Nothing is imported from the working folder: a file there may have any name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fairtrial

NAMES = ("random", "json", "typing", "numpy", "torch", "safetensors", "fairtrial_plugin", "queue", "statistics")
# a study starts every kind of process that there is: the command's, the fork server's, trials, an audit's new ones
COMMANDS = {
    "audit": ["audit", "rope"],
    "study": ["study", "--variants", "learned", "rope", "--task", "lm", "--seeds", "2", "--out", "study"],
    "train": ["train", "lm", "--out", "record"],
    "parts": ["parts"],
    "baseline": ["baseline"],
}
SLOW = ("audit", "train", "baseline")  # in each of its processes a study imports what these do
SMALL = [
    "shape.layers=1",
    "shape.width=16",
    "shape.hidden=16",
    "shape.length=8",
    "training.batch=4",
    "training.duration=3 steps",
]


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in COMMANDS]
)
def test_files_of_the_working_folder_are_not_run(command: str, tmp_path: Path, course_folder: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    words = [*COMMANDS[command]]
    if command in ("study", "train"):
        words += [word for setting in SMALL for word in ("--set", setting)]
    if command in ("study", "train", "baseline"):
        words += ["--data", str(course_folder)]
    where = os.environ | {"PYTHONPATH": str(Path(fairtrial.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "fairtrial", *words], cwd=tmp_path, env=where, capture_output=True, text=True
    )
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr
    assert "FAIL" not in done.stdout
