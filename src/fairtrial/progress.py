"""Progress bars and status lines, in a terminal, a notebook or a log file; stopping on request, and time limits."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any, Literal, Self

from fairtrial.errors import FairtrialWarning, OutOfTime
from fairtrial.events import (
    Estimated,
    Event,
    FinalScoring,
    JobDone,
    JobEvent,
    JobFailed,
    JobStarted,
    JobStepped,
    Notice,
    SearchStarted,
    Started,
    Stepped,
    StudyEvent,
    StudyPlanned,
    TrialsStarted,
)
from fairtrial.formatting import format_time
from fairtrial.stored import PlanSummary

REDRAW_SECONDS = 0.2
STATUS_AFTER_SECONDS = 2.0  # only what takes longer is shown as a status
LOG_SECONDS = 30.0  # between two lines where nothing can be redrawn

Medium = Literal["none", "lines", "terminal", "notebook"]
OnProgress = Callable[[str, int, int], None]  # what is being done, how much is done, how much there is
OnEvent = Callable[[Event], None]
Stop = Callable[[], bool]


class ProgressBar:
    """What is being done, in one line that is drawn again in its place; in a log file, a line now and then."""

    def __init__(self, medium: Medium, every: float = LOG_SECONDS) -> None:
        self.medium = medium
        self.every = every if medium == "lines" else REDRAW_SECONDS
        self.stream: Any = sys.stderr
        self.shown = time.monotonic()
        self.drawn: Any = None  # rich's bar, or what a notebook redraws
        self.begun: dict[str, float] = {}
        self.lock = threading.RLock()

    def show(self, text: str, share: float | None = None) -> None:
        """`share` of the work that is done; None: unknown."""
        if self.medium == "none" or time.monotonic() - self.shown <= self.every:
            return
        self.shown = time.monotonic()
        with self.lock:
            if self.medium == "lines":
                print(text, file=self.stream, flush=True)
            elif self.medium == "notebook":
                value = "" if share is None else f' value="{share:.4f}"'
                self._draw_html(f"<progress{value}></progress> <code>{escape(text)}</code>", text)
            else:
                self.open().update(0, description=text, total=share and 1.0, completed=share or 0.0, visible=True)

    def advance(self, text: str, share: float) -> None:
        """Show the time left, too, once enough is done to tell: `M7 batch-mate invariance, 0:12 left`."""
        begun = self.begun.setdefault(text, time.monotonic())
        left = f", {format_left(begun, share)}" if share > 0.05 else ""
        self.show(f"{text}{left}", share)

    def open(self) -> Any:
        """Rich's bar, made when it is first needed."""
        if self.drawn is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            stream = getattr(self.stream, "drawn", self.stream)  # of the command line, which prints no control codes
            console = Console(file=stream, force_jupyter=False, highlight=False)
            columns = (BarColumn(), TextColumn("{task.description}", markup=False))
            self.drawn = Progress(*columns, console=console, transient=True, redirect_stdout=False)
            self.drawn.add_task("", total=None, visible=False)
            self.drawn.start()
        return self.drawn

    def _draw_html(self, html: str, text: str) -> None:
        from IPython.display import display

        drawing = {"text/html": html, "text/plain": text}
        if self.drawn is None:
            self.drawn = display(drawing, display_id=True, raw=True)
        else:
            self.drawn.update(drawing, raw=True)

    def close(self) -> None:
        """Wipe what is drawn; it comes back when something is shown again."""
        with self.lock:
            if self.drawn is not None and self.medium == "notebook":
                self._draw_html("", "")
            elif self.drawn is not None:
                self.drawn.stop()
                self.drawn = None


def format_left(begun: float, share: float) -> str:
    """`0:12 left`, of work that has done this share since it was begun."""
    return f"{format_time((time.monotonic() - begun) * (1 - share) / share)} left"


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[ProgressBar]:
    """A bar on standard error, which also shows the status of what takes long."""
    bar = ProgressBar(find_medium(quiet))
    if bar.medium == "none":
        yield bar
        return
    with StatusThread(bar):
        yield bar


def find_medium(quiet: bool) -> Medium:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if quiet:
        return "none"
    if getattr(shell, "kernel", None) is not None:  # not a terminal's IPython
        return "notebook"
    if sys.stderr is None:
        return "none"
    return "terminal" if sys.stderr.isatty() else "lines"


class StatusThread:
    """Shows in a bar what is being done, if it takes longer than two seconds. A thread of its own does, so that the
    work itself need not ask."""

    def __init__(self, bar: ProgressBar) -> None:
        self.bar, self.showing = bar, False
        self.statuses: list[tuple[str, float]] = []  # what is being done since when, one inside the other
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.token = STATUS_THREAD.set(self)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.thread.join()
        STATUS_THREAD.reset(self.token)
        self.bar.close()

    def _watch(self) -> None:
        while not self.ended.wait(REDRAW_SECONDS):
            try:
                self.refresh()
            except Exception:  # a pipe that was closed: whoever prints next finds out
                return

    def refresh(self) -> None:
        last = next(reversed(list(self.statuses)), None)
        if last is None and self.showing:
            self.bar.close()
        self.showing = last is not None and time.monotonic() - last[1] >= STATUS_AFTER_SECONDS
        if last is not None and self.showing:
            self.bar.show(f"{last[0]} ({format_time(time.monotonic() - last[1])} so far)")


STATUS_THREAD: ContextVar[StatusThread | None] = ContextVar("status_thread", default=None)


@contextmanager
def status(what: str) -> Iterator[None]:
    """Whoever waits is shown what this block does."""
    thread = STATUS_THREAD.get()
    if thread is None:
        yield
        return
    thread.statuses.append(own := (what, time.monotonic()))
    try:
        yield
    finally:
        thread.statuses.remove(own)


class TrialProgress:
    """A trial's events in a bar: `step 3 of 500, loss 2.310, 1:20 left`."""

    def __init__(self, bar: ProgressBar) -> None:
        self.bar = bar
        self.begun: Started | None = None
        self.since, self.final_seconds = time.monotonic(), 0.0

    def show(self, event: Event) -> None:
        if isinstance(event, Started):
            self.begun, self.since = event, time.monotonic()
        elif isinstance(event, Estimated):
            self.final_seconds, self.since = event.final_seconds, time.monotonic()
        elif isinstance(event, Stepped) and self.begun:
            steps = self.begun.steps
            text = f"step {event.step:,} of {steps:,}, loss {event.loss:.3f}, {self.left(event.step)}"
            self.bar.show(text.removesuffix(", "), event.step / max(1, steps))
        elif isinstance(event, FinalScoring):
            self.bar.advance(f"scoring {event.split}", event.share)
        elif isinstance(event, Notice):
            self.notice(event.text)

    def notice(self, text: str) -> None:
        warnings.warn(text, FairtrialWarning, stacklevel=3)

    def left(self, step: int) -> str:
        """By the pace since training began or was resumed, with the scores at the end."""
        done = step - self.begun.step if self.begun else 0
        if self.begun is None or not done or step >= self.begun.steps:
            return ""
        seconds = (time.monotonic() - self.since) / done * (self.begun.steps - step) + self.final_seconds
        return f"{format_time(seconds)} left"


class StudyProgress:
    """A study's events in a bar. The time left: as planned, then by the pace of the trials that are done."""

    def __init__(self, bar: ProgressBar) -> None:
        self.bar = bar
        self.plan: PlanSummary | None = None
        self.trials = self.done = self.reused = 0
        self.begun = time.monotonic()
        self.noun = "trial"
        self.running: dict[tuple[str, ...], float] = {}  # fraction done

    def show(self, event: StudyEvent) -> None:
        self.update(event)
        job = event if isinstance(event, JobEvent) else None
        if not self.trials:
            timing = job is not None and job.work == "calibrate"
            self.bar.show("timing a few steps of each variant" if timing else "preparing")
        else:
            share = (self.done + sum(self.running.values())) / max(1, self.trials)
            texts = (self.position(), " ".join(job.key) if job else "", self.left())
            self.bar.show(", ".join(filter(None, texts)), share)

    def position(self) -> str:
        return f"{self.noun} {self.done}/{self.trials}" if self.trials else "preparing"

    def update(self, event: StudyEvent) -> None:
        if isinstance(event, StudyPlanned):
            self.plan, self.trials = event.summary, 0
        elif isinstance(event, SearchStarted | TrialsStarted):
            self.noun = "try" if isinstance(event, SearchStarted) else "trial"
            self.trials, self.begun = event.trials, time.monotonic()
            self.done = self.reused = event.trials - event.left
        elif not isinstance(event, JobEvent) or event.work != "trial":
            return
        elif isinstance(event, JobStarted):
            self.running[event.key] = 0.0
        elif isinstance(event, JobStepped):
            self.running[event.key] = event.step / max(1, event.steps)
        elif isinstance(event, JobDone | JobFailed):
            self.running.pop(event.key, None)
            self.done += 1

    def left(self) -> str:
        """Empty while it is unknown, and when nothing is left."""
        asked = self.trials - self.reused
        share = (self.done - self.reused + sum(self.running.values())) / max(1, asked)
        if not asked or share >= 1:
            return ""
        if self.done > self.reused:
            return format_left(self.begun, share)
        return f"{format_time(self.plan.expected_seconds * (1 - share))} left" if self.plan else ""


@contextmanager
def stopping(
    stop: Stop | None = None,
    on_request: Callable[[], None] = lambda: None,
    at_once: type[BaseException] = KeyboardInterrupt,
) -> Iterator[Stop]:
    """Ctrl-C, a notebook's stop button and SIGTERM request a stop after the current step, with everything saved; a
    second one stops at once. `stop`: the caller's own way instead. Only the main thread gets signals."""
    if stop is not None or threading.current_thread() is not threading.main_thread():
        yield stop or (lambda: False)
        return
    requested = False

    def request(number: int, frame: Any) -> None:
        nonlocal requested
        if requested:
            raise at_once
        requested = True
        on_request()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TimeLimit:
    """What runs `within` it is ended by `OutOfTime` when its time is over, also where it hangs: not in code of another
    language, which Python cannot interrupt. Only the main thread gets signals: elsewhere what has begun ends by
    itself."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds, self.until = seconds, time.monotonic() + seconds

    @contextmanager
    def within(self) -> Iterator[None]:
        left = self.until - time.monotonic()
        if left <= 0:
            raise OutOfTime
        in_main = threading.current_thread() is threading.main_thread()
        if left == math.inf or not in_main or not hasattr(signal, "setitimer"):
            yield
            return

        def ring(number: int, frame: Any) -> None:
            raise OutOfTime

        handler, timer = signal.signal(signal.SIGALRM, ring), signal.setitimer(signal.ITIMER_REAL, left)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, handler)
