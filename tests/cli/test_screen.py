"""What a terminal shows: lines above a bar, lines elsewhere, a sign of life in between."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial import progress
from fairtrial.cli import screen
from fairtrial.cli.screen import Screen, TrialLines, open_screen
from fairtrial.events import Ended, FinalScoring, Notice, Ready, Scored, Started, Stepped
from fairtrial.recipe import PartChoice, Recipe, Shape
from fairtrial.stored import Metrics, TrialResult

START = Started(
    0, folder="runs/[red]:bomb:", task="classify", parameters=12_345, steps=4, steps_per_epoch=2, seed=3,
    choose_on="validation", select_every=2, notes=("be [bold]careful[/bold]",), documents={"train": 1200},
    vocabulary=50, shape=Shape(layers=6, heads=12, width=384, length=512), memory_mb=0,
    parts=(PartChoice(name="window", options={"size": 8}),),
)  # fmt: skip
TEST = Metrics(accuracy=0.5, interval=(0.3, 0.7), macro_f1=0.4, items=30, confusion=((15, 0), (15, 0)))
RESULT = TrialResult(
    task="classify", kept_step=2, steps=4, steps_per_epoch=2, parameters=12_345, kept="best", seed=3,
    test_watched=False, test_reads={"test": 1}, train=Metrics(), picked_on_test={}, tests={"test": TEST},
    model_sha256="",
)  # fmt: skip


def scored(step: int, split: str, accuracy: float) -> Scored:
    return Scored(step, split, Metrics(accuracy=accuracy))


EVENTS = [
    START,
    Notice(0, "a checkpoint is damaged"),
    scored(0, "validation", 0.25),
    Ready(0),
    Stepped(1, 1.0, 0.1),
    scored(1, "train", 0.5),
    scored(1, "validation", 0.875),
    Ready(1),
    Stepped(2, 0.5, 0.1),
    scored(2, "validation", 0.75),
    Ready(2),
    FinalScoring(2, "test", 0.0),
    Ended(2, RESULT),
]
SAID = (
    "12,345 parameters (6 layers, 12 heads, width 384, length 512; parts: window (size 8))",
    "note: be [bold]careful[/bold]", "notice: a checkpoint is damaged", "validation 25.0%",
    "weights chosen on validation, every 2 steps\n", "train 50.0%  validation 87.5% (curve only)",
    "step 2/4  epoch  1.00  validation 75.0%  ", "left",
    "scoring test with the selected weights", "50.0% [30.0%, 70.0%]", "record: runs/[red]:bomb:",
)  # fmt: skip


def show_all(shown: Any) -> None:
    for event in EVENTS:
        shown(event)


def test_lines_say_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    show_all(TrialLines(Screen(), Recipe()).show)
    said = capsys.readouterr().out
    for text in SAID:
        assert text in said
    assert "loss" not in said  # nothing was silent long enough


def test_a_long_silence_is_broken_by_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = TrialLines(Screen(), Recipe())
    lines.show(EVENTS[0])
    for step in (1, 2, 3):
        now[0] += 6.0
        lines.show(Stepped(step, 0.5, 0.1))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step")]
    assert said == ["step 2 of 4, loss 0.500, 0:12 left"]


def test_the_time_left_counts_only_the_steps_since_a_resumption(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    lines = TrialLines(Screen(), Recipe())
    lines.show(replace(START, step=90, steps=190))
    now[0] = 10.0
    assert lines.left(90) == ""
    assert lines.left(100) == "1:30 left"  # ten steps in ten seconds, ninety to go
    assert lines.left(190) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    out = Terminal()
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(screen, "sys", SimpleNamespace(stdout=out))
    monkeypatch.setattr(progress, "REDRAW_SECONDS", 0.0)
    return out


def test_the_bar_shows_the_same_on_a_terminal(terminal: Terminal) -> None:
    with open_screen(Recipe(), as_json=False) as show:
        show_all(show)
    said = terminal.getvalue()
    assert "\x1b[" in said  # it is drawn
    for text in SAID:
        assert text in said


def test_the_bar_shows_loss_and_progress(terminal: Terminal) -> None:
    bar = Screen()
    lines = TrialLines(bar, Recipe())
    for event in EVENTS[:9]:
        lines.show(event)
    bar.open().refresh()
    task = bar.open().tasks[0]
    assert (task.completed, task.total) == (0.5, 1.0)
    bar.close()
    assert "step 2 of 4, loss 0.500" in terminal.getvalue()


def test_the_bar_leaves_the_terminal_in_order_after_an_error(terminal: Terminal) -> None:
    def fail() -> None:
        with open_screen(Recipe(), as_json=False) as show:
            show(EVENTS[0])
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert terminal.getvalue().rfind(shown) > terminal.getvalue().rfind(hidden) >= 0


@pytest.mark.parametrize(
    ("tty", "as_json", "kind"), [(True, False, "terminal"), (False, False, "lines"), (True, True, "")]
)
def test_the_screen_fits_where_it_is_shown(
    tty: bool, as_json: bool, kind: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: tty)
    with open_screen(Recipe(), as_json) as show:
        lines = getattr(show, "__self__", None)
        assert (lines.bar.medium if lines else "") == kind


def test_a_terminal_breaks_lines_between_words(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    sentence = "Underfitted: 5 of 5 seeds of learned were still improving at the last step; train longer."
    path = "/a/folder/whose/name/is/longer/than/the/line/report.html"
    bar = Screen()
    bar.say(f"  {sentence}", f"open this page: {path}")
    bar.close()
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).splitlines()
    begin, end = (
        next(at for at, line in enumerate(said) if word in line) for word in ("Underfitted", "open this page")
    )
    assert " ".join(" ".join(said[begin:end]).split()) == sentence
    assert all(len(line) <= 40 for line in said[begin:end])
    assert any(path in line for line in said), "never broken"
