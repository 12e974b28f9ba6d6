"""What is shown while a trial or study runs: bars with the time left on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from fairtrial.cli.options import drawing
from fairtrial.events import (
    Ended,
    Estimated,
    Event,
    FinalScoring,
    JobDone,
    JobEvent,
    JobFailed,
    JobNotice,
    JobScoring,
    JobStarted,
    JobStepped,
    Notice,
    Ready,
    Scored,
    ScoringBaseline,
    SearchStarted,
    Started,
    Stepped,
    StoppedEarly,
    StudyEvent,
    StudyJudged,
    StudyNotice,
    StudyPlanned,
    TimingStarted,
    event_json,
    study_event_json,
)
from fairtrial.formatting import format_time
from fairtrial.progress import SAID_AFTER_SECONDS, SAID_EVERY_SECONDS, SECONDS, Count, Waiting, time_left
from fairtrial.recipe import Recipe
from fairtrial.report.render import fitted, plain
from fairtrial.report.words import describe_result, describe_score, plan_lines, start_lines
from fairtrial.stored import Metrics

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

QUIET_SECONDS = 10.0  # plain lines: a sign of life at least this often
STUDY_QUIET_SECONDS = 15.0
FIRST_STEPS = 5  # that an estimate is based on; the first also warms up


@contextmanager
def open_screen(recipe: Recipe, as_json: bool) -> Iterator[Callable[[Event], None]]:
    if as_json:
        yield show_json
        return
    with Lines(recipe, live=sys.stdout.isatty()) as screen:
        yield screen.show


@contextmanager
def open_study_screen(as_json: bool) -> Iterator[Callable[[StudyEvent], None]]:
    if as_json:
        yield lambda event: print(json.dumps(study_event_json(event)), flush=True)
        return
    with StudyLines(live=sys.stdout.isatty()) as screen:
        yield screen.show


def show_json(event: Event) -> None:
    if not isinstance(event, Ready):
        print(json.dumps(event_json(event)), flush=True)


class Screen:
    """Prints lines; where it is `live`, on a terminal, above bars."""

    def __init__(self, live: bool, *columns: ProgressColumn | str) -> None:
        from rich.progress import Progress

        self.live, self.last_line = live, time.monotonic()
        self.waits: list[TaskID] = []  # the bar of what takes long
        self.waiting = Waiting(self.wait, SECONDS if live else SAID_EVERY_SECONDS, self.idle)
        self.progress = Progress("{task.description}", *columns, transient=True, disable=not live, console=drawing())

    def __enter__(self) -> Self:
        if self.live:
            self.progress.start()
        self.waiting.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.waiting.__exit__()
        if self.live:
            self.progress.stop()

    def wait(self, words: str, share: float | None) -> None:
        """What is being done, if it takes long."""
        if self.live and not self.waits:
            self.waits = [self.progress.add_task(words, total=None, detail="", loss="")]
        if self.live:
            self.progress.update(self.waits[0], description=words, total=share and 1.0, completed=share or 0.0)
        else:
            self.say(words)

    def idle(self) -> None:
        """Nothing that takes long is being done."""
        while self.waits:
            self.progress.remove_task(self.waits.pop())

    def say(self, *lines: str) -> None:
        console = self.progress.console
        for line in lines:
            if self.live:
                for each in fitted(plain(line), console.width):
                    console.print(each, markup=False, highlight=False, emoji=False, soft_wrap=True)
            else:
                print(line, flush=True)
        self.last_line = time.monotonic()

    def silent(self, seconds: float) -> bool:
        return time.monotonic() - self.last_line > seconds


class Estimate:
    """Passes events on, and adds a notice with the expected time after the first few steps."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self.on_event, self.steps = on_event, 0
        self.times: list[float] = []

    def __call__(self, event: Event) -> None:
        self.on_event(event)
        if isinstance(event, Started):
            self.steps = event.steps - event.step
        if not isinstance(event, Stepped) or len(self.times) == FIRST_STEPS or self.steps < 4 * FIRST_STEPS:
            return
        self.times.append(time.monotonic())
        if len(self.times) == FIRST_STEPS:
            pace = (self.times[-1] - self.times[0]) / (FIRST_STEPS - 1)
            text = f"about {format_time(pace * self.steps)} for {self.steps:,} steps, estimated from {FIRST_STEPS}"
            self.on_event(Notice(event.step, text))


class Lines(Screen):
    """One line for each score; in between a bar with the time left, or a sign of life."""

    def __init__(self, recipe: Recipe, live: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), "{task.fields[loss]}", TimeRemainingColumn(), "left")
        super().__init__(live, *columns)
        self.recipe, self.task = recipe, self.progress.add_task("training", visible=False, loss="")
        self.begun: Started | None = None
        self.started, self.final, self.scoring = time.monotonic(), 0.0, 0.0
        self.scores: dict[str, Metrics] = {}

    def show(self, event: Event) -> None:
        if isinstance(event, Started):
            self.begun, self.started = event, time.monotonic()
            self.say(*start_lines(self.recipe, event))
            self.progress.update(self.task, total=event.steps, completed=event.step, visible=True)
        elif isinstance(event, Estimated):
            self.final, self.started = event.final_seconds, time.monotonic()
            if self.final >= SAID_AFTER_SECONDS:
                self.say(f"final scoring of {', '.join(event.sets)}: about {format_time(self.final)}, after training")
        elif isinstance(event, Scored):
            self.scores[event.split] = event.metrics
        elif isinstance(event, Notice):
            self.say(f"notice: {event.text}")
        elif isinstance(event, StoppedEarly):
            self.say(f"stopped early: {event.why}")
        elif isinstance(event, Stepped) and self.live:
            self.progress.update(self.task, completed=event.step, loss=f"loss {event.loss:.3f}")
        elif isinstance(event, Stepped) and self.silent(QUIET_SECONDS):
            self.say(f"{self.position(event.step)}  loss {event.loss:.3f}  {self.left(event.step)}")
        elif isinstance(event, Ready) and self.scores:
            told = (describe_score(split, of) + self.mark(split, event.step) for split, of in self.scores.items())
            self.say(f"{self.position(event.step)}  {'  '.join(told)}  {self.left(event.step)}".rstrip())
            self.scores = {}
        elif isinstance(event, FinalScoring):
            if self.live:
                self.progress.stop()
            share, self.scoring = event.share, self.scoring if event.share else time.monotonic()
            if share == 0 or self.silent(QUIET_SECONDS):
                left = f", {time_left(self.scoring, share)} left" if share else ""
                self.say(f"scoring {event.split} with the selected weights: {share:.0%}{left}")
        elif isinstance(event, ScoringBaseline):
            self.say(f"scoring {event.name} on the same items")
        elif isinstance(event, Ended) and self.begun:
            self.say(*describe_result(event.result, self.recipe, event.baseline))
            self.say(f"record: {self.begun.folder}  (see: fairtrial show {self.begun.folder})")

    def mark(self, split: str, step: int) -> str:
        """Of a validation score that chooses no weights."""
        assert self.begun is not None
        candidate = step % self.begun.select_every == 0 or step >= self.begun.steps
        return "" if split != self.begun.choose_on or candidate else " (curve only)"

    def position(self, step: int) -> str:
        assert self.begun is not None
        steps = self.begun.steps
        return f"step {step:>{len(str(steps))}}/{steps}  epoch {step / self.begun.steps_per_epoch:5.2f}"

    def left(self, step: int) -> str:
        assert self.begun is not None
        done = step - self.begun.step
        if not done or step >= self.begun.steps:
            return ""
        seconds = (time.monotonic() - self.started) / done * (self.begun.steps - step) + self.final
        return f"{format_time(seconds)} left"


class StudyLines(Screen):
    """One line for each trial that ends; in between bars for the study and for each running job, or a sign of life."""

    def __init__(self, live: bool = False) -> None:
        from rich.progress import BarColumn

        super().__init__(live, BarColumn(bar_width=30), "{task.fields[detail]}")
        self.count = Count()
        self.running: dict[tuple[str, ...], None] = {}  # jobs; their keys say what they do
        self.main = self.progress.add_task("calibrating", total=None, detail="a few steps of each variant")
        self.bars: dict[tuple[str, ...], TaskID] = {}

    def show(self, event: StudyEvent) -> None:
        if self.live and isinstance(event, StudyJudged):
            self.progress.stop()
        self.count.update(event)
        self.print_lines(event)
        if self.live:
            self.draw(event)

    def print_lines(self, event: StudyEvent) -> None:
        if isinstance(event, StudyPlanned):
            self.say(*plan_lines(event.summary))
        elif isinstance(event, TimingStarted):
            self.say("timing a few steps of each variant on this machine ...")
        elif isinstance(event, SearchStarted):
            how = f"chosen on validation ({event.left} trials to run)"
            self.say(f"search: {event.tries} tries for each variant, {how}")
        elif isinstance(event, StudyNotice | JobNotice):
            self.say(f"notice: {event.text}")
        elif isinstance(event, JobDone) and event.scores is not None:
            told = f"{' '.join(event.key)}: {', '.join(self.score_texts(event))}"
            self.say(f"{self.count.position()}  {told}  {self.count.left()}".rstrip())
        elif isinstance(event, JobFailed):
            self.say(f"{self.count.position()}  {' '.join(event.key)} failed: {event.error}")
        elif isinstance(event, StudyJudged):
            self.say("", "verdict:", *(f"  {line}" for line in event.verdict.text), "")
            self.say(f"tables: fairtrial verdict {event.folder}", f"open this page: {Path(event.page).resolve()}")
        if isinstance(event, JobStarted):
            self.running[event.key] = None
        elif isinstance(event, JobDone | JobFailed):
            self.running.pop(event.key, None)

    def score_texts(self, done: JobDone) -> list[str]:
        """Where vocabularies differ, bits per byte; else accuracies, which are at most one, or perplexities."""
        plan = self.count.plan
        if done.bits_per_byte and plan is not None and done.key[0] in plan.vocabularies_differ:
            return [f"{name} {bits:.3f} bits per byte" for name, bits in done.bits_per_byte.items()]
        return [f"{name} {score:{'.1%' if score <= 1 else '.1f'}}" for name, score in (done.scores or {}).items()]

    def idle(self) -> None:
        """A sign of life that says what is running."""
        super().idle()
        if not self.live and self.running and self.silent(STUDY_QUIET_SECONDS):
            works = [" ".join(key) for key in list(self.running)]
            self.say(f"{self.count.position()}  running: {', '.join(works)}  {self.count.left()}".rstrip())

    def draw(self, event: StudyEvent) -> None:
        bar = self.bars.get(event.key) if isinstance(event, JobEvent) else None
        if isinstance(event, JobStarted):
            self.bars[event.key] = self.progress.add_task(f"  {' '.join(event.key)}", total=None, detail="")
        elif isinstance(event, JobStepped) and bar is not None:
            self.progress.update(bar, total=event.steps, completed=event.step, detail="")
        elif isinstance(event, JobScoring) and bar is not None:
            self.progress.update(bar, detail=f"scoring {event.split}")
        elif isinstance(event, JobDone | JobFailed) and bar is not None:
            self.progress.remove_task(self.bars.pop(event.key))
        if self.count.trials:
            seeds = self.count.plan.seed_count if self.count.plan else 0
            done = self.count.done + sum(self.count.running.values())
            detail = f"{self.count.done}/{self.count.trials} trials, {seeds} seeds  {self.count.left()}"
            self.progress.update(self.main, description="study", total=self.count.trials, completed=done, detail=detail)
