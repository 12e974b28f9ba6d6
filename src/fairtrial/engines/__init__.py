"""Jobs and their results as plain values that any engine can send, and the engine that runs them in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Protocol

from fairtrial.errors import BadInput, DiskTrouble, FairtrialError, Interrupted, is_out_of_memory, message_of
from fairtrial.events import JobEvent, JobStarted
from fairtrial.finding import Passport
from fairtrial.registry import did_you_mean


@dataclass(frozen=True)
class AuditSubject:
    """A variant whose leak audit is asked for."""

    task: str
    variant: str
    recipe: str  # TOML


@dataclass(frozen=True)
class AuditedVariant:
    task: str
    variant: str
    passport: Passport


@dataclass(frozen=True)
class Job:
    key: tuple[str, ...]  # who it is for: task, variant, seed
    # trial, calibrate, passport, baselines, contamination: `<kind>_job` in study.jobs
    kind: str
    recipe: str = ""  # TOML
    seed: int = 0
    folder: str = ""  # where what it leaves on disk belongs
    plugins: tuple[str, ...] = ()  # files with parts of a user's own
    seconds: float | None = None  # it is stopped when it takes longer
    # what only some kinds ask for
    subjects: tuple[AuditSubject, ...] = ()  # passport
    mark: str = ""  # baselines: what they depend on


class Ending(Enum):
    """How a job ended."""

    DONE = "done"
    MISTAKE = "mistake"  # the error is the user's to correct
    FAILED = "failed"  # something else broke
    DISK = "disk"  # the disk is full or broken, which no job can help
    STOPPED = "stopped"  # on request; what it had is saved
    KILLED = "killed"  # by the kernel, for memory, or with the fork server: it runs once more
    LATE = "late"  # it took longer than it may


@dataclass(frozen=True)
class JobResult:
    job: Job
    ending: Ending = Ending.DONE
    value: object = None  # what `<kind>_job` returns
    error: str = ""
    seconds: float = 0.0


OnEvent = Callable[[JobEvent], None]
Stop = Callable[[], bool]


class Engine(Protocol):
    name: str
    width: int  # jobs at a time

    def run(self, jobs: Sequence[Job], on_event: OnEvent, stop: Stop) -> Iterator[JobResult]:
        """Results as they come. A job that fails, or takes its process down, never stops the others. When `stop`
        says so, running jobs save what they have and no other begins."""
        ...


def run_job(job: Job, on_event: OnEvent, stop: Stop) -> JobResult:
    """Run a job in this process. Whatever a plugin raises becomes the result's error."""
    started = time.monotonic()
    try:
        value = getattr(import_module("fairtrial.study.jobs"), f"{job.kind}_job")(job, on_event, stop)
    except Interrupted as error:
        return JobResult(job, Ending.STOPPED, error=error.what)
    except FairtrialError as error:
        what = f"{error.what} ({error.hint})" if error.hint else error.what
        return JobResult(job, Ending.DISK if isinstance(error, DiskTrouble) else Ending.MISTAKE, error=what)
    except (Exception, GeneratorExit) as error:
        if is_out_of_memory(error):
            return JobResult(job, Ending.FAILED, error="not enough memory (try a smaller shape or batch)")
        first = message_of(error)
        return JobResult(job, Ending.FAILED, error=f"{type(error).__name__}: {first[:300]}")
    return JobResult(job, value=value, seconds=time.monotonic() - started)


class InProcess:
    name = "here"
    width = 1

    def run(self, jobs: Sequence[Job], on_event: OnEvent, stop: Stop) -> Iterator[JobResult]:
        for job in jobs:
            if stop():
                return
            on_event(JobStarted(job.key, job.kind))
            yield run_job(job, on_event, stop)


def open_engine(
    name: str = "cores",
    jobs: int | None = None,
    *,
    address: str | None = None,
) -> Engine:
    """`here` (this process), `cores` (processes on this machine) or `ray` (a cluster), with `jobs` jobs at a time."""
    if address is not None and name != "ray":
        raise BadInput("--address is for a Ray cluster", "add --engine ray")
    if name == "here":
        return InProcess()
    if name == "ray":
        from fairtrial.engines.ray import Ray

        return Ray(address, jobs)
    if name != "cores":
        raise BadInput(f"unknown engine {name!r}{did_you_mean(name, ['here', 'cores', 'ray'])}")
    from fairtrial.engines.processes import Processes

    return Processes(jobs)
