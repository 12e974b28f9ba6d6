"""What is shown while one waits: what is being done and for how long still, a bar in a notebook or a terminal; and
stopping on request."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol, Self, TypeVar

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
from fairtrial.stored_study import PlanSummary

SECONDS = 0.2  # between two drawings
SAID_AFTER_SECONDS = 2.0  # what takes longer says what it does
SAID_EVERY_SECONDS = 10.0  # where each saying is a line of its own
LOGGED_EVERY_SECONDS = 30.0  # by a script whose output goes to a file

Item = TypeVar("Item")
Show = Callable[[str, float | None], None]  # gets words, and the share that is done if it is known
OnStatus = Callable[[str], None]  # gets words
OnProgress = Callable[[str, int, int], None]  # what is being done, how much is done, how much there is
OnEvent = Callable[[Event], None]
Stop = Callable[[], bool]


@dataclass
class Work:
    what: str
    expected_seconds: float | None = None
    started: float = field(default_factory=time.monotonic)
    share: float = 0.0
    followed: bool = False  # something tells its share
    said: float = 0.0  # when it was last told

    def words(self) -> str:
        """`reading novel.txt: 40%, about 0:12 left`"""
        from fairtrial.formatting import format_time

        spent = time.monotonic() - self.started
        if self.share > 0:
            left = spent * (1 - self.share) / self.share
            return f"{self.what}: {self.share:.0%}, about {format_time(left)} left"
        if self.expected_seconds is not None and self.expected_seconds > spent:
            return f"{self.what}: about {format_time(self.expected_seconds - spent)} left"
        return f"{self.what} ({format_time(spent)} so far)"


class Waiting:
    """Tells what is being done, if it takes longer than two seconds, and how long it will still take. A thread of its
    own tells it, so that what is being done need not ask."""

    def __init__(self, show: Show, every: float = SECONDS, idle: Callable[[], None] = lambda: None) -> None:
        self.show, self.every, self.idle = show, every, idle
        self.works: list[Work] = []  # one inside the other
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self.token = WAITING.set(self)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.thread.join()
        WAITING.reset(self.token)

    def _watch(self) -> None:
        while not self.ended.wait(SECONDS):
            try:
                self.tell()
            except Exception:  # a pipe that was closed: whoever prints next finds out
                return

    def tell(self) -> None:
        works, now = list(self.works), time.monotonic()
        if not works:
            self.idle()
        elif now - works[-1].started >= SAID_AFTER_SECONDS and now - works[-1].said >= self.every:
            works[-1].said = now
            self.show(works[-1].words(), works[-1].share or None)

    def follow(self, items: Iterable[Item], total: int) -> Iterator[Item]:
        work = self.works[-1]
        work.followed = True
        try:
            for number, item in enumerate(items):
                work.share = number / max(1, total)
                yield item
        finally:
            work.share, work.followed = 0.0, False


WAITING: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


@contextmanager
def doing(what: str, expected_seconds: float | None = None) -> Iterator[None]:
    """Whoever waits is told what this block does. `expected_seconds`: where nothing inside is followed."""
    waiting = WAITING.get()
    if waiting is None:
        yield
        return
    work = Work(what, expected_seconds)
    waiting.works.append(work)
    try:
        yield
    finally:
        waiting.works.remove(work)


def follow(items: Iterable[Item], total: int) -> Iterable[Item]:
    """The items one by one; what is being done is done when they are all taken."""
    waiting = WAITING.get()
    if waiting is None or not waiting.works or waiting.works[-1].followed:
        return items
    return waiting.follow(items, total)


def reached(share: float) -> None:
    """Of what is being done, so much is done."""
    waiting = WAITING.get()
    if waiting is not None and waiting.works:
        waiting.works[-1].share = share


def nothing() -> None:
    """Nobody wants to know."""


@contextmanager
def stopping(
    on_request: Callable[[], None] = nothing, at_once: type[BaseException] = KeyboardInterrupt
) -> Iterator[Callable[[], bool]]:
    """Ctrl-C, a notebook's stop button and SIGTERM request a stop after the current step, with everything saved; a
    second one stops at once. Only the main thread gets signals: elsewhere nobody stops it."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
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


class Bar(Protocol):
    def show(self, words: str, share: float | None) -> None:
        """`share` of the work that is done; None: not known yet."""
        ...


@contextmanager
def open_bar(quiet: bool = False) -> Iterator[Bar]:
    """In a notebook or on a terminal, a bar that comes when something is shown and goes away at the end; elsewhere a
    line now and then."""
    bar: NoBar | NotebookBar | TerminalBar | Lines = NoBar()
    if not quiet and in_notebook():
        bar = NotebookBar()
    elif not quiet and sys.stderr is not None:
        bar = TerminalBar() if sys.stderr.isatty() else Lines()
    try:
        yield bar
    finally:
        bar.close()


def in_notebook() -> bool:
    """Whether a kernel runs this, and not a terminal's IPython."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


class NoBar:
    def show(self, words: str, share: float | None) -> None:
        """Shows nothing."""

    def close(self) -> None:
        """Nothing was shown."""


class Lines(NoBar):
    """For a log file, on the standard error stream."""

    def __init__(self) -> None:
        self.said = time.monotonic()

    def show(self, words: str, share: float | None) -> None:
        if time.monotonic() - self.said > LOGGED_EVERY_SECONDS:
            self.said = time.monotonic()
            print(words, file=sys.stderr, flush=True)


class NotebookBar:
    """One line of HTML without a script, drawn again in its place."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.drawn = time.monotonic()

    def show(self, words: str, share: float | None) -> None:
        if time.monotonic() - self.drawn > SECONDS:
            self.drawn = time.monotonic()
            value = "" if share is None else f' value="{share:.4f}"'
            self.draw(f"<progress{value}></progress> <code>{escape(words)}</code>", words)

    def draw(self, html: str, words: str) -> None:
        from IPython.display import display

        drawing = {"text/html": html, "text/plain": words}
        if self.handle is None:
            self.handle = display(drawing, display_id=True, raw=True)
        else:
            self.handle.update(drawing, raw=True)

    def close(self) -> None:
        if self.handle is not None:
            self.draw("", "")


class TerminalBar:
    def __init__(self) -> None:
        self.progress: Any = None
        self.begun = time.monotonic()

    def show(self, words: str, share: float | None) -> None:
        if self.progress is None and time.monotonic() - self.begun > SECONDS:
            self.open()
        if self.progress is not None:
            total = None if share is None else 1.0
            self.progress.update(self.task, description=words, total=total, completed=share or 0.0)

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        stream = getattr(sys.stderr, "drawn", sys.stderr)  # of the command line, which prints no control characters
        console = Console(file=stream, force_jupyter=False)
        columns = (BarColumn(), TextColumn("{task.description}", markup=False))
        self.progress = Progress(*columns, console=console, transient=True, redirect_stdout=False)
        self.task = self.progress.add_task("", total=None)
        self.progress.start()

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


def trial_listener(bar: Bar) -> OnEvent:
    """Shows the events of a trial."""
    from fairtrial.formatting import format_time

    first, steps, started, final, scoring = 0, 1, time.monotonic(), 0.0, 0.0

    def show(event: Event) -> None:
        nonlocal first, steps, started, final, scoring
        if isinstance(event, Started):
            first, steps, started = event.step, event.steps, time.monotonic()
        elif isinstance(event, Estimated):
            final, started = event.final_seconds, time.monotonic()
        elif isinstance(event, Stepped):
            done = event.step - first
            left = format_time((time.monotonic() - started) / done * (steps - event.step) + final)
            words = f"step {event.step:,} of {steps:,}, loss {event.loss:.3f}, {left} left"
            bar.show(words, event.step / max(1, steps))
        elif isinstance(event, FinalScoring):
            share, scoring = event.share, scoring if event.share else time.monotonic()
            left = f", {time_left(scoring, share)} left" if share else ""
            bar.show(f"scoring {event.split}{left}", share)
        elif isinstance(event, Notice):
            warnings.warn(event.text, FairtrialWarning, stacklevel=2)

    return show


LISTENER: ContextVar[OnStatus | None] = ContextVar("listener", default=None)


@contextmanager
def listening(on_status: OnStatus) -> Iterator[None]:
    """Public functions that are called inside tell this one what they do, and show no bar. It may stop them by an
    exception."""
    token = LISTENER.set(on_status)
    try:
        yield
    finally:
        LISTENER.reset(token)


@contextmanager
def telling(quiet: bool) -> Iterator[OnStatus]:
    """Whoever is told what is being done: a listener, or a bar."""
    listener = LISTENER.get()
    silent = quiet or listener is not None
    with open_bar(silent) as bar, waiting(bar, silent):
        yield listener or (lambda what: bar.show(what, None))


@contextmanager
def sharing(quiet: bool) -> Iterator[Show]:
    """The same, for what knows the share that it has done: `M7 batch-mate invariance, 0:12 left`."""
    started = time.monotonic()
    with open_bar(quiet) as bar:
        yield lambda what, share: bar.show(what + left_after(started, share or 0.0), share)


@contextmanager
def counting(quiet: bool = False) -> Iterator[OnProgress]:
    """The same, for what counts: `leaving words out: 3 of 20, 0:12 left`."""
    started: dict[str, float] = {}
    with open_bar(quiet) as bar:

        def show(what: str, done: int, total: int) -> None:
            begun, share = started.setdefault(what, time.monotonic()), done / max(1, total)
            bar.show(f"{what}: {done:,} of {total:,}{left_after(begun, share)}", share)

        yield show


@contextmanager
def watching(quiet: bool, on_event: OnEvent | None, stop: Stop | None) -> Iterator[tuple[OnEvent, Stop]]:
    """Whoever is told of a trial's events, and asked whether to stop: the caller, or a bar and Ctrl-C."""
    quiet = quiet or on_event is not None
    with open_bar(quiet) as bar, stopping_unless(stop) as asked, waiting(bar, quiet):
        yield on_event or trial_listener(bar), asked


def stopping_unless(stop: Stop | None) -> AbstractContextManager[Stop]:
    """The caller's way to stop, or Ctrl-C."""
    return stopping() if stop is None else nullcontext(stop)


def waiting(bar: Bar, quiet: bool) -> AbstractContextManager[Any]:
    """What takes long is shown in the bar, unless nobody looks at it."""
    return nullcontext() if quiet else Waiting(bar.show)


def left_after(started: float, share: float) -> str:
    """`, 0:12 left`; nothing while too little is done to tell."""
    return f", {time_left(started, share)} left" if share > 0.05 else ""


def time_left(started: float, share: float) -> str:
    """In words, of what has done this share since it was started."""
    from fairtrial.formatting import format_time

    return format_time((time.monotonic() - started) * (1 - share) / share)


def study_listener(bar: Bar) -> Callable[[StudyEvent], None]:
    """Shows the events of a study."""
    count = Count()

    def show(event: StudyEvent) -> None:
        count.update(event)
        job = event if isinstance(event, JobEvent) else None
        if not count.trials:
            timing = job is not None and job.work == "calibrate"
            bar.show("timing a few steps of each variant" if timing else "preparing", None)
        else:
            done = (count.done + sum(count.running.values())) / max(1, count.trials)
            now = " ".join(job.key) if job else ""
            bar.show(", ".join(filter(None, (f"{count.position()}", now, count.left()))), done)

    return show


class Count:
    """What of a study is done, and the time left: calibrated times, corrected by the times measured so far."""

    def __init__(self) -> None:
        self.plan: PlanSummary | None = None
        self.width, self.trials, self.done = 1, 0, 0
        self.noun = "trial"
        self.waiting = 0.0  # expected seconds of unfinished trials
        self.running: dict[tuple[str, ...], float] = {}  # fraction done
        self.expected_done = self.spent_done = 0.0

    def position(self) -> str:
        return f"{self.noun} {self.done}/{self.trials}" if self.trials else "preparing"

    def seconds_of(self, key: tuple[str, ...]) -> float:
        return self.plan.trial_seconds.get(key[0], {}).get(key[1], 0.0) if self.plan else 0.0

    def update(self, event: StudyEvent) -> None:
        if isinstance(event, StudyPlanned):
            self.plan, self.width, self.trials = event.summary, event.summary.width, 0
        elif isinstance(event, SearchStarted | TrialsStarted):
            self.noun = "try" if isinstance(event, SearchStarted) else "trial"
            self.trials, self.done = event.trials, event.trials - event.left
            named = self.plan.trial_seconds.values() if self.plan else ()
            seconds = [value for by_variant in named for value in by_variant.values()]
            self.waiting = event.left / max(1, len(seconds)) * sum(seconds)
        elif not isinstance(event, JobEvent) or event.work != "trial":
            return
        elif isinstance(event, JobStarted):
            self.running[event.key] = 0.0
        elif isinstance(event, JobStepped):
            self.running[event.key] = event.step / max(1, event.steps)
        elif isinstance(event, JobDone | JobFailed):
            self.running.pop(event.key, None)
            self.done += 1
            self.waiting -= self.seconds_of(event.key)
            if isinstance(event, JobDone):
                self.expected_done += self.seconds_of(event.key)
                self.spent_done += event.seconds

    def left(self) -> str:
        """Time left, in words; empty while it is unknown."""
        from fairtrial.formatting import format_time

        if self.waiting < 0.1 or not self.trials:
            return ""
        partial = sum(share * self.seconds_of(key) for key, share in self.running.items())
        pace = self.spent_done / self.expected_done if self.expected_done else 1.0
        return f"{format_time(max(1.0, self.waiting - partial) * pace / self.width)} left"
