"""What a terminal shows of a trial or a study: lines above a progress bar, plain lines elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.events import (
    Ended,
    Estimated,
    Event,
    FinalScoring,
    JobDone,
    JobFailed,
    JobNotice,
    Ready,
    Scored,
    ScoringBaseline,
    SearchStarted,
    Started,
    StudyEvent,
    StudyJudged,
    StudyNotice,
    StudyPlanned,
    TimingStarted,
    event_json,
    study_event_json,
)
from fairtrial.formatting import format_time
from fairtrial.progress import STATUS_AFTER_SECONDS, ProgressBar, StatusThread, StudyProgress, TrialProgress
from fairtrial.recipe import Recipe
from fairtrial.report.render import fitted, plain, prose_lines
from fairtrial.results.records import describe_result, describe_score, plan_lines, start_lines
from fairtrial.results.verdict_tables import first_screen
from fairtrial.stored import Metrics

QUIET_SECONDS = 10.0  # plain lines: a sign of life at least this often


class Screen(ProgressBar):
    """A bar on standard output that prints lines above itself."""

    def __init__(self) -> None:
        super().__init__("terminal" if sys.stdout.isatty() else "lines", QUIET_SECONDS)
        self.stream = sys.stdout

    def say(self, *lines: str) -> None:
        for line in lines:
            if self.medium == "terminal":
                console = self.open().console
                for piece in fitted(plain(line), console.width):
                    console.print(piece, markup=False, highlight=False, emoji=False, soft_wrap=True)
            else:
                print(line, flush=True)
                self.shown = time.monotonic()


@contextmanager
def open_screen(recipe: Recipe, as_json: bool) -> Iterator[Callable[[Event], None]]:
    if as_json:
        yield show_json
        return
    with StatusThread(screen := Screen()):
        yield TrialLines(screen, recipe).show


@contextmanager
def open_study_screen(as_json: bool) -> Iterator[Callable[[StudyEvent], None]]:
    if as_json:
        yield lambda event: print(json.dumps(study_event_json(event)), flush=True)
        return
    with StatusThread(screen := Screen()):
        yield StudyLines(screen).show


def show_json(event: Event) -> None:
    if not isinstance(event, Ready):
        print(json.dumps(event_json(event)), flush=True)


class TrialLines(TrialProgress):
    """One line for each score."""

    def __init__(self, screen: Screen, recipe: Recipe) -> None:
        super().__init__(screen)
        self.say, self.recipe = screen.say, recipe
        self.scores: dict[str, Metrics] = {}

    def notice(self, text: str) -> None:
        self.say(f"notice: {text}")

    def show(self, event: Event) -> None:
        super().show(event)
        if isinstance(event, Started):
            self.say(*start_lines(self.recipe, event))
        elif isinstance(event, Estimated) and event.final_seconds >= STATUS_AFTER_SECONDS:
            seconds = format_time(event.final_seconds)
            self.say(f"final scoring of {', '.join(event.sets)}: about {seconds}, after training")
        elif isinstance(event, Scored):
            self.scores[event.split] = event.metrics
        elif isinstance(event, Ready) and self.scores:
            told = (describe_score(split, of) + self.mark(split, event.step) for split, of in self.scores.items())
            self.say(f"{self.position(event.step)}  {'  '.join(told)}  {self.left(event.step)}".rstrip())
            self.scores = {}
        elif isinstance(event, FinalScoring) and event.share == 0:
            self.say(f"scoring {event.split} with the selected weights")
        elif isinstance(event, ScoringBaseline):
            self.say(f"scoring {event.name} on the same items")
        elif isinstance(event, Ended) and self.begun:
            self.bar.close()
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


class StudyLines(StudyProgress):
    """One line for each trial that ends."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(screen)
        self.say = screen.say

    def show(self, event: StudyEvent) -> None:
        super().show(event)
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
            self.say(f"{self.position()}  {told}  {self.left()}".rstrip())
        elif isinstance(event, JobFailed):
            self.say(f"{self.position()}  {' '.join(event.key)} failed: {event.error}")
        elif isinstance(event, StudyJudged):
            self.bar.close()
            shown = first_screen(event.verdict)
            self.say("", *prose_lines(shown), *shown.more, "")
            self.say(f"tables: fairtrial verdict {event.folder}", f"open this page: {Path(event.page).resolve()}")

    def score_texts(self, done: JobDone) -> list[str]:
        """Accuracies, which are at most one, or perplexities."""
        return [f"{name} {score:{'.1%' if score <= 1 else '.1f'}}" for name, score in (done.scores or {}).items()]
