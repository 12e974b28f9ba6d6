"""What a user sees while a trial runs: a bar with the time left, plain lines where no terminal is, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fairtrial.recipe import Recipe
from fairtrial.report.words import describe_result, describe_score, spoken_time, start_lines

QUIET_SECONDS = 10.0  # the longest silence in plain lines


@contextmanager
def open_screen(recipe: Recipe, as_json: bool) -> Iterator[Callable[[Any], None]]:
    if as_json:
        yield show_json
    elif sys.stdout.isatty():
        with Bar(recipe) as bar:
            yield bar.show
    else:
        yield Lines(recipe).show


def show_json(event: Any) -> None:
    if event.kind != "ready":
        print(json.dumps({"event": event.kind, "step": event.step, **event.facts}), flush=True)


class Lines:
    """One line for each score, and a sign of life in between."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.facts: dict[str, Any] = {}
        self.first_step, self.begun, self.spoken = 0, time.monotonic(), time.monotonic()
        self.scores: dict[str, dict[str, Any]] = {}

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.spoken = time.monotonic()

    def show(self, event: Any) -> None:
        if event.kind == "start":
            self.facts, self.first_step, self.begun = event.facts, event.step, time.monotonic()
            for line in start_lines(self.recipe, event.facts, event.step):
                self.say(line)
        elif event.kind == "score":
            self.scores[event.facts["split"]] = event.facts
        elif event.kind == "notice":
            self.say(f"notice: {event.facts['text']}")
        elif event.kind == "stop":
            self.say(f"stopped early: {event.facts['why']}")
        elif event.kind == "step" and time.monotonic() - self.spoken > QUIET_SECONDS:
            self.say(f"{self.place(event.step)}  loss {event.facts['loss']:.3f}  {self.left(event.step)}")
        elif event.kind == "ready" and self.scores:
            scores = "  ".join(describe_score(split, score) for split, score in self.scores.items())
            self.say(f"{self.place(event.step)}  {scores}  {self.left(event.step)}")
            self.scores = {}
        elif event.kind == "testing":
            if event.facts["share"] == 0 or time.monotonic() - self.spoken > QUIET_SECONDS:
                self.say(f"scoring {event.facts['split']} with the kept weights: {event.facts['share']:.0%}")
        elif event.kind == "end":
            for line in describe_result(event.facts):
                self.say(line)
            self.say(f"record: {self.facts['folder']}  (see: fairtrial show {self.facts['folder']})")

    def place(self, step: int) -> str:
        steps, per_epoch = self.facts["steps"], self.facts["steps_per_epoch"]
        return f"step {step:>{len(str(steps))}}/{steps}  epoch {step / per_epoch:5.2f}"

    def left(self, step: int) -> str:
        done = step - self.first_step
        if not done or step >= self.facts["steps"]:
            return ""
        return f"{spoken_time((time.monotonic() - self.begun) / done * (self.facts['steps'] - step))} left"


class Bar(Lines):
    """The same lines above a bar with the time left."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            transient=True,
        )
        self.task: Any = None

    def __enter__(self) -> Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def say(self, text: str) -> None:
        self.progress.console.print(text, markup=False, highlight=False, emoji=False)
        self.spoken = time.monotonic()

    def show(self, event: Any) -> None:
        if event.kind == "step" and self.task is not None:
            self.progress.update(self.task, completed=event.step, loss=f"loss {event.facts['loss']:.3f}")
            return
        super().show(event)
        if event.kind == "start":
            self.task = self.progress.add_task("training", total=event.facts["steps"], completed=event.step, loss="")
        elif event.kind == "testing":
            self.progress.stop()
