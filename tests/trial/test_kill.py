"""Kill -9 at any moment: `fairtrial train --resume` ends with the same bits as the undisturbed run."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairtrial.cli.main import give_up
from fairtrial.errors import Interrupted
from forked import Forked

SAME = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")
SAVING = ("--save-seconds", "0.05", "--json")


def train(folder: Path, out: Path, tiny: list[str], duration: str = "100 steps") -> list[str]:
    settings = [*tiny, f"training.duration={duration}", "training.select_every=10 steps"]
    settings += ["scoring.curve_every=12 steps"]
    words = [f"--set={setting}" for setting in settings]
    return ["train", "lm", "--data", str(folder), "--seed", "4", *words, "--out", str(out), *SAVING]


def run_until_killed(words: list[str], lines: int, seconds: float) -> bool:
    """Start, wait for so many lines of output, kill -9 after so many seconds more. True if it was still running. By
    progress, not by the clock: a busy machine is no excuse."""
    process = Forked(*words)
    for _ in range(lines):
        process.stdout.readline()
    time.sleep(seconds)
    running = process.returncode is None
    process.kill()
    process.communicate()
    return running


def run_to_its_end(*words: object) -> str:
    process = Forked(*words)
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out


@pytest.mark.second
def test_kills_at_random_moments_change_nothing(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    whole = tmp_path / "whole"
    lines = len(run_to_its_end(*train(course_folder, whole, tiny)).splitlines())
    rng = random.Random(11)
    killed = 0
    for number in range(6):  # tests/campaign has more
        out = tmp_path / f"broken-{number}"
        first = rng.randrange(lines)
        killed += run_until_killed(train(course_folder, out, tiny), first, rng.uniform(0, 0.05))
        if not (out / "trial.json").exists():  # killed before there was anything to resume
            run_to_its_end(*train(course_folder, out, tiny))
        elif not (out / "result.json").exists() and rng.random() < 0.3:  # a second kill, while resuming
            killed += run_until_killed(
                ["train", "--resume", str(out), *SAVING], rng.randrange(lines - first), rng.uniform(0, 0.05)
            )
        run_to_its_end(
            "train", "--resume", out, *SAVING
        )  # also where it had ended: what a kill in the last moment left is tidied up
        for name in SAME:
            assert (out / name).read_bytes() == (whole / name).read_bytes(), f"kill {number}: {name} differs"
        assert not (out / "checkpoints").exists()
    assert killed >= 3, "too few kills hit a running trial for this test to mean anything"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_record_that_resumes(number: int, course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    out = tmp_path / "stopped"
    process = Forked(*train(course_folder, out, tiny, "100000 steps"))
    while '"event": "step"' not in process.stdout.readline():
        assert process.returncode is None
    os.kill(process.pid, number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert f"fairtrial train --resume {out}" in said
    assert list((out / "checkpoints").glob("step-*.safetensors"))


def test_a_second_ctrl_c_does_not_disturb_the_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient(io.StringIO):
        def write(self, text: str) -> int:
            os.kill(os.getpid(), signal.SIGINT)
            return super().write(text)

    before, said = signal.getsignal(signal.SIGINT), Impatient()
    monkeypatch.setattr(sys, "stderr", said)
    try:
        with pytest.raises((SystemExit, KeyboardInterrupt)) as ended:
            give_up(Interrupted("stopped; all is saved"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert isinstance(ended.value, SystemExit)
    assert (ended.value.code, said.getvalue()) == (130, "fairtrial: stopped; all is saved\n")


def test_any_number_of_ctrl_c_is_one_line(course_folder: Path, tmp_path: Path, tiny: list[str]) -> None:
    """Also those that come while Python takes itself apart. In a new Python, since that is its own end."""
    words = [*train(course_folder, tmp_path / "run", tiny, "100000 steps")]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "fairtrial", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    said = process.communicate()[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "Exception" not in said
    assert len([line for line in said.splitlines() if line.startswith("fairtrial: stopped")]) == 1
