"""Processes on this machine: one for each job, one thread each. A process per job keeps a crash (or kill -9) to one job
and makes its peak memory its own. On Linux they are forked from a server that has torch loaded already, so a process
costs milliseconds, not seconds."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from types import ModuleType

from fairtrial.disk import process_folder
from fairtrial.engines import Ending, Job, JobResult, OnEvent, Stop, run_job
from fairtrial.errors import FairtrialError
from fairtrial.events import JobEvent, JobNotice, JobScoring, JobStarted, JobStepped

PATIENCE_SECONDS = 30.0  # for a job to save what it has, once it is asked to stop, or to end
START_SECONDS = 20.0  # for a fork server that was killed to be replaced
LAST_SECONDS = 5.0  # for a process that has sent its result to end by itself
EVENT_SECONDS = 0.5  # between two step events
WATCH_SECONDS, ORPHAN_SECONDS = 0.3, 1.0  # an orphan is gone after two seconds
ORPHANED = 255  # its exit code, and that of a process whose fork server was killed
# torch._dynamo: the first optimizer imports it, which takes as long as torch itself
PRELOADED = ["fairtrial.engines.preloaded", "fairtrial.trial", "torch._dynamo", "fairtrial.audit.run"]
PRELOADED += ["fairtrial.inspection.parameters", "fairtrial.baselines.classifiers"]
STARTING = threading.Lock()
# elsewhere a server that has torch loaded may not be forked: macOS forbids it to its own libraries, Windows cannot
START = "forkserver" if sys.platform == "linux" else "spawn"
MOST_PROCESSES = 30 if sys.platform == "win32" else 1024  # Windows waits for 63 things at most: two of each process


@dataclass
class Running:
    job: Job
    process: BaseProcess
    pipe: connection.Connection
    started: float
    asked: float | None = None  # when it was asked to stop
    result: JobResult | None = None
    again: bool = False  # it is run for the second time

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def give_up(self, ending: Ending, error: str) -> None:
        self.process.kill()
        self.result = JobResult(self.job, ending, error=error)


class Processes:
    name = "cores"

    def __init__(self, width: int | None = None, preload: Sequence[str] = ()) -> None:
        self.width, self.preload = min(width or usable_cores(), MOST_PROCESSES), [*PRELOADED, *preload]

    def run(self, jobs: Sequence[Job], on_event: OnEvent, stop: Stop) -> Iterator[JobResult]:
        waiting = [(job, False) for job in reversed(jobs)]
        running: list[Running] = []
        try:
            while running or (waiting and not stop()):
                while waiting and len(running) < self.width and not stop():
                    job, again = waiting.pop()
                    if (begun := start(job, stop, again, self.preload)) is None:
                        break  # it is being stopped
                    running.append(begun)
                    on_event(JobStarted(job.key, job.kind))
                collect(running, on_event, stop)
                if stop():
                    ask_to_stop(running)
                kill_late(running)
                for each in [each for each in running if each.result is not None]:
                    running.remove(each)
                    each.process.join(LAST_SECONDS)
                    each.end()  # a plugin's thread may hold it for ever; its result is here
                    assert each.result is not None
                    if each.result.ending is Ending.KILLED and not each.again and not stop():
                        text = f"{'/'.join(each.job.key)}: {each.result.error}; it runs once more"
                        on_event(JobNotice(each.job.key, each.job.kind, text))
                        waiting.append((each.job, True))
                    else:
                        yield each.result
        finally:  # the caller went away: no process is left behind
            for each in running:
                each.end()


def usable_cores() -> int:
    """The cores that this process may use, which on a shared machine are fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(job: Job, stop: Stop, again: bool = False, preload: Sequence[str] = PRELOADED) -> Running | None:
    """None where it is stopped meanwhile. The first process is there once the fork server has loaded torch, which takes
    seconds: Ctrl-C is heard after them."""
    linux = START == "forkserver"
    context = multiprocessing.get_context("forkserver") if linux else multiprocessing.get_context("spawn")
    until = time.monotonic() + START_SECONDS
    while not stop():
        ours, far = context.Pipe()
        process: BaseProcess = context.Process(target=run_in_process, args=(job, far), name="-".join(job.key))
        try:
            # two studies in two threads take turns: the environment and __main__ are everybody's
            with STARTING, one_thread(), without_ctrl_c(), without_main():
                if linux:
                    # where its sockets are: a folder that the next run removes if this one is killed
                    multiprocessing.current_process()._config.setdefault("tempdir", str(process_folder()))  # type: ignore[attr-defined]
                    context.set_forkserver_preload(list(preload))
                    forkserver.ensure_running()
                process.start()
        except RuntimeError as error:  # a process of someone else's is still importing this script
            what = "a script that starts a study was imported again by one of its own processes"
            raise FairtrialError(what, 'put the code of the script below: if __name__ == "__main__":') from error
        except (OSError, EOFError) as error:  # the fork server was killed just now: once it is gone, another is started
            if time.monotonic() > until:
                raise FairtrialError(f"no process could be started ({error})", "check that memory is left") from error
            time.sleep(0.05)
            continue
        far.close()  # so that the pipe ends when the process does
        return Running(job, process, ours, time.monotonic(), again=again)
    return None


@contextmanager
def without_main() -> Iterator[None]:
    """A new process would import the user's script once more, and a script without `if __name__ == "__main__"` would
    start its study in each of them. A job needs nothing of it, and a notebook has no file to import."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def one_thread() -> Iterator[None]:
    """A new process, or the fork server, and what it loads use one thread, and import nothing from the working folder;
    this process's own environment stays as it is."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONSAFEPATH")
    before = {name: os.environ[name] for name in names if name in os.environ}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches the whole terminal: what is started, and loads torch for seconds, must not die of it. On Windows
    it may, with a traceback, before it says that it ignores it: the study is being stopped then."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # where the server starts it, it lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_in_process(job: Job, pipe: connection.Connection) -> None:
    """In the job's own process: do it and send the result. If the caller has gone, save and end."""
    parent, asked, last_event = os.getppid(), False, 0.0

    def watch() -> None:
        """Whoever started this process may be killed, or the fork server, whose child it is: a trial saves what it has,
        and it ends. All it writes stands a kill. The server alone tells nothing: it lives as long as its children."""
        nonlocal asked
        caller = multiprocessing.parent_process()
        assert caller is not None
        while os.getppid() == parent and not connection.wait([caller.sentinel], WATCH_SECONDS):
            pass
        asked = True
        if job.kind == "trial":
            if hasattr(signal, "setitimer"):  # the system ends it, whatever keeps this thread from running again
                signal.setitimer(signal.ITIMER_REAL, ORPHAN_SECONDS)
            time.sleep(ORPHAN_SECONDS)
        os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the caller decides what it means

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask if job.kind == "trial" else signal.SIG_DFL)  # a trial saves what it has

    def stop() -> bool:
        nonlocal asked
        if not asked:
            try:
                asked = pipe.poll() and bool(pipe.recv())
            except (EOFError, OSError):
                asked = True
        return asked

    def on_event(event: JobEvent) -> None:
        nonlocal last_event, asked
        now = time.monotonic()
        if isinstance(event, JobStepped | JobScoring) and now - last_event < EVENT_SECONDS:
            return
        last_event = now
        try:
            pipe.send(event)
        except OSError:
            asked = True

    result = run_job(job, on_event, stop)
    if os.getppid() == parent:  # else the fork server was killed, and nobody asked to stop: it runs once more
        with suppress(OSError):
            pipe.send(result)


def collect(running: list[Running], on_event: OnEvent, stop: Stop) -> None:
    """Wait a moment for events and results, and for processes that ended without one. What ends by SIGTERM, or while
    everything is being stopped, has not failed."""
    connection.wait([each.pipe for each in running] + [each.process.sentinel for each in running], timeout=0.2)
    for each in running:
        ended = not each.process.is_alive()  # asked first: what it sent before its end is still on the pipe
        try:
            while each.result is None and each.pipe.poll():
                message = each.pipe.recv()
                if isinstance(message, JobResult):
                    each.result = message
                else:
                    on_event(message)
        except (EOFError, OSError):
            each.process.join(PATIENCE_SECONDS)
            ended = True
        if ended and each.result is None:
            code, ending = each.process.exitcode, Ending.FAILED
            if stop() or code == -signal.SIGTERM:
                ending = Ending.STOPPED
            elif code in (-9, ORPHANED):  # Windows has no name for 9
                ending = Ending.KILLED
            each.result = JobResult(each.job, ending, error=exit_message(code))


def exit_message(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        if name == "SIGKILL":
            return "its process was killed by SIGKILL (the system may have run out of memory)"
        return f"its process was ended by {name}"
    if code == ORPHANED:
        return "its process was killed with the fork server"
    return f"its process ended with code {code}, no result"


def ask_to_stop(running: list[Running]) -> None:
    """Trials save what they have; other jobs have nothing to save, and are started again another time."""
    for each in running:
        if each.job.kind != "trial" and each.result is None:
            each.give_up(Ending.STOPPED, "stopped")
        elif each.asked is None:
            each.asked = time.monotonic()
            with suppress(OSError):
                each.pipe.send(True)


def kill_late(running: list[Running]) -> None:
    """A job that neither finishes in its time nor stops when it is asked to is killed."""
    now = time.monotonic()
    for each in running:
        if each.result is not None:
            continue
        if each.job.seconds is not None and now - each.started > each.job.seconds:
            each.give_up(Ending.LATE, f"it took longer than {each.job.seconds:.0f} seconds and was killed")
        elif each.asked is not None and now - each.asked > PATIENCE_SECONDS:
            each.give_up(Ending.STOPPED, "it did not stop when asked, and was killed")
