"""What is seen while a training runs, and what stopping it leaves."""

from __future__ import annotations

import inspect
import io
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from api_data import SMALL, reviews_of

import fairtrial as ft
from fairtrial import progress
from fairtrial.engines import Job
from fairtrial.engines.processes import start
from fairtrial.errors import FairtrialWarning
from fairtrial.events import Estimated, Event, JobStarted, JobStepped, Notice, StudyPlanned, TrialsStarted
from fairtrial.progress import (
    ProgressBar,
    StatusThread,
    StudyProgress,
    TrialProgress,
    progress_bar,
    status,
)
from fairtrial.stored import PlanSummary


class Seen(ProgressBar):
    """A bar that remembers what it showed."""

    def __init__(self) -> None:
        super().__init__("none")
        self.seen: list[tuple[str, float | None]] = []

    def show(self, text: str, share: float | None = None) -> None:
        self.seen.append((text, share))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_tells_the_step_the_loss_and_the_time_left(tmp_path: Path) -> None:
    bar = Seen()
    ft.train(
        "classify",
        reviews_of(),
        steps=3,
        out=tmp_path / "run",
        options=ft.RunOptions(on_event=TrialProgress(bar).show),
        **SMALL,
    )
    words = [text for text, _ in bar.seen]
    assert words[0].startswith("step 1 of 3, loss ")
    assert words[0].endswith(" left")
    assert bar.seen[2][1] == 1.0
    assert "scoring test" in words


def test_a_studys_bar_counts_its_trials() -> None:
    bar, trial = Seen(), (("lm", "rope", "seed 0"), "trial")
    show = StudyProgress(bar).show
    counts = {"width": 1, "seed_count": 4, "trial_count": 4, "left": 4, "comparisons": {"lm": 1}}
    times = {"expected_seconds": 240.0, "trial_seconds": {"lm": {"rope": 60.0}}}
    show(JobStarted(("lm", "rope", "calibration"), "calibrate"))
    show(StudyPlanned(PlanSummary(name="x", engine="here", folder="f", smallest_detectable={}, **counts, **times)))
    show(TrialsStarted(4, 4, 0))
    show(JobStarted(*trial))
    show(JobStepped(*trial, 5, 10))
    assert bar.seen[0] == ("timing a few steps of each variant", None)
    assert bar.seen[-1] == ("trial 0/4, lm rope seed 0, 3:30 left", 0.125)


def test_what_takes_long_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Seen()
    with StatusThread(bar) as thread:
        with status("loading"):
            thread.refresh()
            assert not bar.seen  # not yet two seconds
            monkeypatch.setattr(progress, "STATUS_AFTER_SECONDS", 0.0)
            thread.refresh()
            assert bar.seen[-1] == ("loading (0:00 so far)", None)
        assert not thread.statuses
    assert not thread.thread.is_alive()


@pytest.mark.parametrize("task", ["classify", "lm", "mlm"])
def test_final_scores_are_estimated_before_the_first_step(task: str, tmp_path: Path) -> None:
    events: list[Event] = []
    texts = [f"{name} is a good film number {at}" for at in range(80) for name in ("this", "that")]
    data = [("good" if at % 2 else "bad", text) for at, text in enumerate(texts)] if task == "classify" else texts
    ft.train(task, data, steps=2, out=tmp_path / "run", options=ft.RunOptions(on_event=events.append), **SMALL)
    kinds = [event.kind for event in events]
    assert kinds.index("estimate") < kinds.index("step")
    estimate = events[kinds.index("estimate")]
    assert isinstance(estimate, Estimated)
    assert estimate.sets == ("validation", "test")
    assert estimate.final_seconds >= 0


def test_a_notice_is_a_warning() -> None:
    with pytest.warns(FairtrialWarning, match="an older checkpoint"):
        TrialProgress(Seen()).show(Notice(3, "an older checkpoint is used"))


def test_bars_are_for_terminals_and_lines_for_log_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REDRAW_SECONDS", -1.0)  # drawn however fast it is
    how: dict[str, Any] = {"steps": 2, **SMALL, "quiet": False}
    for quiet, drawn in ((True, False), (False, True)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        ft.train("classify", reviews_of(), out=tmp_path / str(quiet), **how | {"quiet": quiet})
        assert ("scoring test" in terminal.getvalue()) == drawn
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress_bar(quiet=True) as bar:
        assert bar.medium == "none"
    with progress_bar() as bar:
        assert bar.medium == "lines"
        bar.show("trial 1 of 10", 0.1)
        bar.shown -= progress.LOG_SECONDS
        bar.show("trial 2 of 10", 0.2)
        bar.show("trial 3 of 10", 0.3)
    assert log.getvalue() == "trial 2 of 10\n"


def test_what_knows_its_share_tells_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.0)
    monkeypatch.setattr(StatusThread, "_watch", lambda thread: None)
    with progress_bar() as bar, progress_bar(quiet=True) as silent:
        bar.advance("scoring", 0.25)
        silent.advance("auditing", 0.5)
        bar.drawn.refresh()
    assert "scoring, 0:00 left" in terminal.getvalue()
    assert "auditing" not in terminal.getvalue()


@pytest.mark.parametrize("name", "train study audit audit_data baseline clean verify".split())
def test_whatever_takes_long_can_be_quiet(name: str) -> None:
    assert "quiet" in inspect.signature(getattr(ft, name)).parameters


def test_nothing_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ft.train("classify", reviews_of(), steps=2, out=tmp_path / "run", **SMALL | {"quiet": False})
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_leaves_a_folder_that_is_resumed_to_the_same_bits(tmp_path: Path) -> None:
    whole = ft.train("classify", reviews_of(), steps=8, out=tmp_path / "whole", **SMALL)

    def press(event: Any) -> None:
        if event.kind == "step" and event.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ft.Interrupted, match="stopped after step 3 of 8; all is saved") as error:
        ft.train(
            "classify", reviews_of(), steps=8, out=tmp_path / "run", options=ft.RunOptions(on_event=press), **SMALL
        )
    assert f"fairtrial train --resume {tmp_path / 'run'}" in str(error.value), "a traceback says how to go on"
    assert error.value._render_traceback_()[1] == f"  continue with: ft.resume('{tmp_path / 'run'}')", "in a notebook"
    assert signal.getsignal(signal.SIGINT) is before
    resumed = ft.resume(tmp_path / "run", quiet=True)
    assert resumed.record.result.model_sha256 == whole.record.result.model_sha256


def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    def press(event: Any) -> None:
        if event.kind == "step":
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ft.train(
            "classify", reviews_of(), steps=8, out=tmp_path / "run", options=ft.RunOptions(on_event=press), **SMALL
        )


def test_a_script_that_starts_processes_while_it_is_imported_is_told_of_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ft.FairtrialError, match="was imported again by one of its own processes") as error:
        start(Job(("lm", "rope", "seed 0"), "trial"), stop=lambda: False)
    assert '__name__ == "__main__"' in error.value.hint
