"""Kill -9 at any moment: `fairtrial resume` ends with the same bits as the undisturbed run."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "fairtrial", *words, "--save-seconds", "0.05", "--json"]


def train(folder: Path, out: Path, tiny: list[str]) -> list[str]:
    settings = [*tiny, "training.duration=300 steps", "training.select_every=20 steps", "scoring.curve_every=30 steps"]
    words = [f"--set={setting}" for setting in settings]
    return command("train", "lm", "--data", str(folder), "--seed", "4", *words, "--out", str(out))


def run_until_killed(words: list[str], lines: int, seconds: float) -> bool:
    """Start, wait for so many lines of output, kill -9 after so many seconds more. True if it was still running. By
    progress, not by the clock: a busy machine is no excuse."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    for _ in range(lines):
        process.stdout.readline()
    time.sleep(seconds)
    running = process.poll() is None
    process.kill()
    process.communicate()
    return running


def finish(out: Path) -> None:
    done = subprocess.run(command("resume", str(out)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_ten_kills_at_random_moments_change_nothing(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    whole = tmp_path / "whole"
    lines = len(subprocess.run(train(course_folder, whole, tiny), check=True, capture_output=True).stdout.splitlines())
    rng = random.Random(11)
    killed = 0
    for number in range(10):
        out = tmp_path / f"broken-{number}"
        first = rng.randrange(lines)
        killed += run_until_killed(train(course_folder, out, tiny), first, rng.uniform(0, 0.05))
        if not (out / "trial.json").exists():  # killed before there was anything to resume
            subprocess.run(train(course_folder, out, tiny), check=True, capture_output=True)
        elif not (out / "result.json").exists() and rng.random() < 0.3:  # a second kill, while resuming
            killed += run_until_killed(command("resume", str(out)), rng.randrange(lines - first), rng.uniform(0, 0.05))
        finish(out)  # also where it had ended: what a kill in the last moment left is tidied up
        for name in SAME:
            assert (out / name).read_bytes() == (whole / name).read_bytes(), f"kill {number}: {name} differs"
        assert not (out / "checkpoints").exists()
    assert killed >= 5, "too few kills hit a running trial for this test to mean anything"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_record_that_resumes(number: int, course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    out = tmp_path / "stopped"
    words = [word.replace("300 steps", "100000 steps") for word in train(course_folder, out, tiny)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while '"event": "step"' not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=1800)
    assert process.returncode == 130
    assert f"fairtrial resume {out}" in said
    assert list((out / "checkpoints").glob("step-*.safetensors"))
