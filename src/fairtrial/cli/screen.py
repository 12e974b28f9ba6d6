"""What is shown while a trial or study runs: bars with the time left on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from fairtrial.cli.options import drawing
from fairtrial.formatting import format_time
from fairtrial.progress import SAID_AFTER_SECONDS, SAID_EVERY_SECONDS, SECONDS, Count, Waiting, time_left
from fairtrial.recipe import Recipe
from fairtrial.report.render import fitted, plain
from fairtrial.report.words import describe_result, describe_score, plan_lines, start_lines

QUIET_SECONDS = 10.0  # plain lines: a sign of life at least this often
STUDY_QUIET_SECONDS = 15.0
FIRST_STEPS = 5  # that an estimate is based on; the first also warms up


@contextmanager
def open_screen(recipe: Recipe, as_json: bool) -> Iterator[Callable[[Any], None]]:
    if as_json:
        yield show_json
        return
    with Lines(recipe, live=sys.stdout.isatty()) as screen:
        yield screen.show


@contextmanager
def open_study_screen(as_json: bool) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    if as_json:
        yield lambda kind, facts: print(json.dumps({"event": kind, **facts}), flush=True)
        return
    with StudyLines(live=sys.stdout.isatty()) as screen:
        yield screen.show


def show_json(event: Any) -> None:
    if event.kind != "ready":
        print(json.dumps({"event": event.kind, "step": event.step, **event.facts}), flush=True)


class Screen:
    """Prints lines; where it is `live`, on a terminal, above bars."""

    def __init__(self, live: bool, *columns: Any) -> None:
        from rich.progress import Progress

        self.live, self.last_line = live, time.monotonic()
        self.waits: list[Any] = []  # the bar of what takes long
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

    def __init__(self, on_event: Callable[[Any], None]) -> None:
        self.on_event, self.steps = on_event, 0
        self.times: list[float] = []

    def __call__(self, event: Any) -> None:
        from fairtrial.training.loop import Event

        self.on_event(event)
        if event.kind == "start":
            self.steps = event.facts["steps"] - event.step
        if event.kind != "step" or len(self.times) == FIRST_STEPS or self.steps < 4 * FIRST_STEPS:
            return
        self.times.append(time.monotonic())
        if len(self.times) == FIRST_STEPS:
            pace = (self.times[-1] - self.times[0]) / (FIRST_STEPS - 1)
            text = f"about {format_time(pace * self.steps)} for {self.steps:,} steps, estimated from {FIRST_STEPS}"
            self.on_event(Event("notice", event.step, {"text": text}))


class Lines(Screen):
    """One line for each score; in between a bar with the time left, or a sign of life."""

    def __init__(self, recipe: Recipe, live: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), "{task.fields[loss]}", TimeRemainingColumn(), "left")
        super().__init__(live, *columns)
        self.recipe, self.task = recipe, self.progress.add_task("training", visible=False, loss="")
        self.facts: dict[str, Any] = {}
        self.first_step, self.started, self.final, self.scoring = 0, time.monotonic(), 0.0, 0.0
        self.scores: dict[str, dict[str, Any]] = {}

    def show(self, event: Any) -> None:
        kind, step, facts = event.kind, event.step, event.facts
        if kind == "start":
            self.facts, self.first_step, self.started = facts, step, time.monotonic()
            self.say(*start_lines(self.recipe, facts, step))
            self.progress.update(self.task, total=facts["steps"], completed=step, visible=True)
        elif kind == "estimate":
            self.final, self.started = facts["final_seconds"], time.monotonic()
            if self.final >= SAID_AFTER_SECONDS:
                self.say(
                    f"final scoring of {', '.join(facts['sets'])}: about {format_time(self.final)}, after training"
                )
        elif kind == "score":
            self.scores[facts["split"]] = facts
        elif kind == "notice":
            self.say(f"notice: {facts['text']}")
        elif kind == "stop":
            self.say(f"stopped early: {facts['why']}")
        elif kind == "step" and self.live:
            self.progress.update(self.task, completed=step, loss=f"loss {facts['loss']:.3f}")
        elif kind == "step" and self.silent(QUIET_SECONDS):
            self.say(f"{self.position(step)}  loss {facts['loss']:.3f}  {self.left(step)}")
        elif kind == "ready" and self.scores:
            told = (describe_score(split, of) + self.mark(split, step) for split, of in self.scores.items())
            self.say(f"{self.position(step)}  {'  '.join(told)}  {self.left(step)}".rstrip())
            self.scores = {}
        elif kind == "testing":
            if self.live:
                self.progress.stop()
            share, self.scoring = facts["share"], self.scoring if facts["share"] else time.monotonic()
            if share == 0 or self.silent(QUIET_SECONDS):
                left = f", {time_left(self.scoring, share)} left" if share else ""
                self.say(f"scoring {facts['split']} with the selected weights: {share:.0%}{left}")
        elif kind == "baseline":
            self.say(f"scoring {facts['name']} on the same items")
        elif kind == "end":
            self.say(*describe_result(facts, self.recipe, facts.get("baseline") or {}))
            self.say(f"record: {self.facts['folder']}  (see: fairtrial show {self.facts['folder']})")

    def mark(self, split: str, step: int) -> str:
        """Of a validation score that chooses no weights."""
        candidate = step % self.facts["select_every"] == 0 or step >= self.facts["steps"]
        return "" if split != self.facts["choose_on"] or candidate else " (curve only)"

    def position(self, step: int) -> str:
        steps, per_epoch = self.facts["steps"], self.facts["steps_per_epoch"]
        return f"step {step:>{len(str(steps))}}/{steps}  epoch {step / per_epoch:5.2f}"

    def left(self, step: int) -> str:
        done = step - self.first_step
        if not done or step >= self.facts["steps"]:
            return ""
        seconds = (time.monotonic() - self.started) / done * (self.facts["steps"] - step) + self.final
        return f"{format_time(seconds)} left"


class StudyLines(Screen):
    """One line for each trial that ends; in between bars for the study and for each running job, or a sign of life."""

    def __init__(self, live: bool = False) -> None:
        from rich.progress import BarColumn

        super().__init__(live, BarColumn(bar_width=30), "{task.fields[detail]}")
        self.count = Count()
        self.running: dict[tuple[str, ...], None] = {}  # jobs; their keys say what they do
        self.main = self.progress.add_task("calibrating", total=None, detail="a few steps of each variant")
        self.bars: dict[tuple[str, ...], Any] = {}

    def show(self, kind: str, facts: dict[str, Any]) -> None:
        if self.live and kind == "verdict":
            self.progress.stop()
        self.count.update(kind, facts)
        self.print_lines(kind, facts)
        if self.live:
            self.draw(kind, facts)

    def print_lines(self, kind: str, facts: dict[str, Any]) -> None:
        if kind == "plan":
            self.say(*plan_lines(facts))
        elif kind == "timing":
            most = "" if facts["most_seconds"] is None else f" (at most {format_time(facts['most_seconds'])})"
            self.say(f"timing a few steps of each variant on this machine{most} ...")
        elif kind == "search":
            how = f"chosen on validation ({facts['left']} trials to run)"
            self.say(f"search: {facts['tries']} tries for each variant, {how}")
        elif kind == "notice":
            self.say(f"notice: {facts['text']}")
        elif kind == "done" and facts["work"] == "trial":
            # accuracies are at most one, perplexities above
            scores = [f"{name} {of:{'.1%' if of <= 1 else '.1f'}}" for name, of in facts["scores"].items()]
            if facts["key"][0] in self.count.plan.get("vocabularies_differ", ()) and "bits_per_byte" in facts:
                scores = [f"{name} {bits:.3f} bits per byte" for name, bits in facts["bits_per_byte"].items()]
            told = f"{' '.join(facts['key'])}: {', '.join(scores)}"
            self.say(f"{self.count.position()}  {told}  {self.count.left()}".rstrip())
        elif kind == "failed":
            self.say(f"{self.count.position()}  {' '.join(facts['key'])} failed: {facts['error']}")
        elif kind == "verdict":
            self.say("", "verdict:", *(f"  {line}" for line in facts["text"]), "")
            self.say(f"tables: fairtrial verdict {facts['folder']}", f"open this page: {Path(facts['page']).resolve()}")
        if kind == "begin":
            self.running[tuple(facts["key"])] = None
        elif kind in ("done", "failed"):
            self.running.pop(tuple(facts["key"]), None)

    def idle(self) -> None:
        """A sign of life that says what is running."""
        super().idle()
        if not self.live and self.running and self.silent(STUDY_QUIET_SECONDS):
            works = [" ".join(key) for key in list(self.running)]
            self.say(f"{self.count.position()}  running: {', '.join(works)}  {self.count.left()}".rstrip())

    def draw(self, kind: str, facts: dict[str, Any]) -> None:
        key = tuple(facts.get("key", ()))
        if kind == "begin":
            self.bars[key] = self.progress.add_task(f"  {' '.join(key)}", total=None, detail="")
        elif kind == "step" and key in self.bars:
            self.progress.update(self.bars[key], total=facts["steps"], completed=facts["step"], detail="")
        elif kind == "testing" and key in self.bars:
            self.progress.update(self.bars[key], detail=f"scoring {facts['split']}")
        elif kind in ("done", "failed") and key in self.bars:
            self.progress.remove_task(self.bars.pop(key))
        if self.count.trials:
            seeds = self.count.plan.get("seed_count", 0)
            done = self.count.done + sum(self.count.running.values())
            detail = f"{self.count.done}/{self.count.trials} trials, {seeds} seeds  {self.count.left()}"
            self.progress.update(self.main, description="study", total=self.count.trials, completed=done, detail=detail)
