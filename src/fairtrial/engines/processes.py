"""This machine's cores: each job in a process of its own, one thread each.

A process per job keeps a crash (or kill -9) to one job and makes its peak memory its own. They are forked from a server
that has torch loaded already, so a process costs milliseconds, not seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from typing import Any

from fairtrial.engines.job import Answer, Hear, Job, News, Stop, do

PATIENCE_SECONDS = 30.0  # for a job to save what it has, once it is asked to stop
LAST_SECONDS = 5.0  # for a process that has answered to end by itself
NEWS_SECONDS = 0.5  # between two steps that are told
# torch._dynamo: the first optimizer imports it, which takes as long as torch itself
PRELOADED = [
    "fairtrial.trial",
    "torch._dynamo",
    "fairtrial.audit.run",
    "fairtrial.analysis.parameters",
    "fairtrial.baselines.classifiers",
]


@dataclass
class Running:
    job: Job
    process: Any
    wire: connection.Connection
    begun: float
    asked: float | None = None  # when it was asked to stop
    answer: Answer | None = None


class Cores:
    name = "cores"

    def __init__(self, width: int | None = None) -> None:
        self.width = width or usable_cores()

    def run(self, jobs: Sequence[Job], hear: Hear, stop: Stop) -> Iterator[Answer]:
        waiting = list(reversed(jobs))
        running: list[Running] = []
        try:
            while running or (waiting and not stop()):
                while waiting and len(running) < self.width and not stop():
                    job = waiting.pop()
                    running.append(start(job))
                    hear(News(job, "begin"))
                on_event(running, hear)
                if stop():
                    ask_to_stop(running)
                end_the_late(running)
                for each in [each for each in running if each.answer is not None]:
                    running.remove(each)
                    each.process.join(LAST_SECONDS)
                    each.process.kill()  # a stranger's thread may hold it for ever; its answer is here
                    each.process.join()
                    each.wire.close()
                    assert each.answer is not None
                    yield each.answer
        finally:  # whoever asked went away: no process is left behind
            for each in running:
                each.process.kill()
                each.process.join()
                each.wire.close()


def usable_cores() -> int:
    """The cores that this process may use, which on a shared machine are fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start(job: Job) -> Running:
    context: Any = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
    ours, theirs = context.Pipe()
    if os.name == "posix":
        context.set_forkserver_preload(PRELOADED)
        with one_thread():
            forkserver.ensure_running()
    process = context.Process(target=answer_through, args=(job, theirs), name="-".join(job.key))
    process.start()
    theirs.close()  # so that the wire ends when the process does
    return Running(job, process, ours, time.monotonic())


@contextmanager
def one_thread() -> Iterator[None]:
    """What the server loads is told to use one thread; this process's own environment stays as it is."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def answer_through(job: Job, wire: connection.Connection) -> None:
    """In the job's own process: do it and send the answer. Where the asker has gone, save and end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the asker decides what it means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asked, told = False, 0.0

    def stop() -> bool:
        nonlocal asked
        if not asked:
            try:
                asked = wire.poll() and bool(wire.recv())
            except (EOFError, OSError):
                asked = True
        return asked

    def tell(kind: str, facts: dict[str, Any]) -> None:
        nonlocal told, asked
        now = time.monotonic()
        if kind in ("step", "testing") and now - told < NEWS_SECONDS:
            return
        told = now
        try:
            wire.send((kind, facts))
        except OSError:
            asked = True

    answer = do(job, tell, stop)
    with suppress(OSError):
        wire.send(answer)


def on_event(running: list[Running], hear: Hear) -> None:
    """Wait a moment for news and answers, and for processes that ended without one."""
    connection.wait([each.wire for each in running] + [each.process.sentinel for each in running], timeout=0.2)
    for each in running:
        ended = not each.process.is_alive()  # asked first: what it sent before its end is still on the wire
        try:
            while each.answer is None and each.wire.poll():
                said = each.wire.recv()
                if isinstance(said, Answer):
                    each.answer = said
                else:
                    hear(News(each.job, *said))
        except (EOFError, OSError):
            each.process.join(5)
            ended = True
        if ended and each.answer is None:
            each.answer = Answer(each.job, error=last_words(each.process.exitcode))


def last_words(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        more = " (the system may have run out of memory)" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{more}"
    return f"its process ended with code {code} and without an answer"


def ask_to_stop(running: list[Running]) -> None:
    """Trials save what they have; other jobs have nothing to save, and are begun anew another time."""
    for each in running:
        if each.job.work != "trial" and each.answer is None:
            each.process.kill()
            each.answer = Answer(each.job, error="stopped", stopped=True)
        elif each.asked is None:
            each.asked = time.monotonic()
            with suppress(OSError):
                each.wire.send(True)


def end_the_late(running: list[Running]) -> None:
    """A job that neither answers in its time, nor stops when it is asked to, is ended."""
    now = time.monotonic()
    for each in running:
        if each.answer is not None:
            continue
        if each.job.seconds is not None and now - each.begun > each.job.seconds:
            each.process.kill()
            each.answer = Answer(each.job, error=f"it took longer than {each.job.seconds:.0f} seconds and was ended")
        elif each.asked is not None and now - each.asked > PATIENCE_SECONDS:
            each.process.kill()
            each.answer = Answer(each.job, error="it did not stop when asked, and was ended", stopped=True)
