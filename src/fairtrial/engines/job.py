"""A job and its answer, as plain values that fit through any wire; and how a job is done in the process that has it.

One job after another, in this process: nothing to set up, nothing between the user and a debugger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from fairtrial.errors import FairtrialError, Interrupted

Key = tuple[str, ...]

# what a job may ask for: a module's function of (job, tell, stop) that gives plain facts
WORKS = {
    "trial": ("fairtrial.study.jobs", "run_trial_job"),
    "calibrate": ("fairtrial.study.jobs", "calibrate_job"),
    "passport": ("fairtrial.study.jobs", "audit_job"),
    "baselines": ("fairtrial.study.jobs", "baselines_job"),
    "contamination": ("fairtrial.study.jobs", "audit_data_job"),
    "portrait": ("fairtrial.study.jobs", "attention_job"),
}


@dataclass(frozen=True)
class Job:
    key: Key  # who it is for: task, variant, seed
    work: str  # one of WORKS
    recipe: str = ""  # TOML
    seed: int = 0
    folder: str = ""  # where what it leaves on disk belongs
    plugins: tuple[str, ...] = ()  # files with parts of a user's own
    seconds: float | None = None  # it is stopped when it takes longer
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    job: Job
    facts: dict[str, Any] | None = None  # None: it failed or was stopped
    error: str = ""
    mistake: bool = False  # the error is the user's to mend; else something broke
    stopped: bool = False  # on request; what it had is saved
    seconds: float = 0.0


@dataclass(frozen=True)
class News:
    """What a running job says of itself."""

    job: Job
    kind: str  # begin, step, testing, notice
    facts: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[str, dict[str, Any]], None]
Stop = Callable[[], bool]
Hear = Callable[[News], None]


class Engine(Protocol):
    name: str
    width: int  # jobs at a time

    def run(self, jobs: Sequence[Job], hear: Hear, stop: Stop) -> Iterator[Answer]:
        """Answers as they come. A job that fails, or takes its process down, never stops the others. When `stop`
        says so, running jobs save what they have and no other begins."""
        ...


def do(job: Job, tell: Tell, stop: Stop) -> Answer:
    """Do a job here and now."""
    begun = time.monotonic()
    try:
        module, name = WORKS[job.work]
        facts = getattr(import_module(module), name)(job, tell, stop)
    except Interrupted as error:
        return Answer(job, error=error.what, stopped=True)
    except FairtrialError as error:
        what = f"{error.what} ({error.hint})" if error.hint else error.what
        return Answer(job, error=what, mistake=True)
    except MemoryError:
        return Answer(job, error="not enough memory (try a smaller shape or batch)")
    except Exception as error:  # whatever a stranger's part raises
        first = next(iter(str(error).strip().splitlines()), "no message")
        return Answer(job, error=f"{type(error).__name__}: {first[:300]}")
    return Answer(job, facts=facts, seconds=time.monotonic() - begun)


class Here:
    name = "here"
    width = 1

    def run(self, jobs: Sequence[Job], hear: Hear, stop: Stop) -> Iterator[Answer]:
        for job in jobs:
            if stop():
                return
            hear(News(job, "begin"))
            yield do(job, partial(_pass_on, job, hear), stop)


def _pass_on(job: Job, hear: Hear, kind: str, facts: dict[str, Any]) -> None:
    hear(News(job, kind, facts))
