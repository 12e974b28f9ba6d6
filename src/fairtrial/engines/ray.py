"""A Ray cluster: each trial a task, which another machine resumes where one is lost. Machines share a disk: the study's
folder, its data and its plugin files have the same paths everywhere."""

from __future__ import annotations

import logging
import os
import platform
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fairtrial.engines import Ending, Job, JobResult, OnEvent, Stop, run_job
from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput
from fairtrial.events import JobEvent, JobScoring, JobStarted, JobStepped

if TYPE_CHECKING:
    from ray.actor import ActorHandle

HOW_TO_CONNECT = "start one with: ray start --head; if it asks for a token, as those of new Ray do: RAY_AUTH_MODE=token"
RETRIES = 3  # of a task whose machine was lost
TRAINING = ("trial", "calibrate")  # kinds of jobs that run on the cluster


class Ray:
    name = "ray"

    def __init__(self, address: str | None = None, width: int | None = None) -> None:
        """`address`: of a cluster, 'auto' for the one that runs here; None: start one on this machine."""
        try:
            import ray
        except ImportError as error:
            raise BadInput("Ray is not installed", "pip install 'fairtrial[ray]'") from error
        self.ray: ModuleType = ray
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")  # trials are the work: at Ray's 15 anything else starves them
        if not ray.is_initialized():
            tell_on_standard_error()
            try:
                own_cluster = address is None
                with chdir("/"):  # Ray puts the working folder on the path of its workers: a random.py there would run
                    ray.init(
                        address=address,
                        num_cpus=width if own_cluster else None,
                        include_dashboard=False if own_cluster else None,
                        log_to_driver=False,
                        logging_level=logging.ERROR,
                    )
            except (ConnectionError, RuntimeError, ValueError) as error:
                what = str(error).strip().splitlines()[0]
                raise BadInput(f"no Ray cluster at {address!r}: {what}", HOW_TO_CONNECT) from error
        self.most = width  # trials at once, whatever the cluster has
        self.width = self._width()

    def _width(self) -> int:
        """Trials at once, a core for each. Machines come and go."""
        room = int(self.ray.cluster_resources().get("CPU", 1))
        return max(1, min(self.most or room, room))

    def run(self, jobs: Sequence[Job], on_event: OnEvent, stop: Stop) -> Iterator[JobResult]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # audits and baselines are made here, where data and parts are
        yield from Processes(self.width).run([job for job in jobs if job.kind not in TRAINING], on_event, stop)
        ray = self.ray
        task = ray.remote(max_retries=RETRIES)(run_remotely)
        # the board stays on the caller's machine: a lost worker does not take it along
        this_machine = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        board = ray.remote(num_cpus=0, scheduling_strategy=this_machine)(Board).remote()
        waiting = [job for job in reversed(jobs) if job.kind in TRAINING]
        running: dict[object, Job] = {}
        while running or (waiting and not stop()):
            self.width = self._width()
            while waiting and len(running) < self.width and not stop():
                job = waiting.pop()
                asked = task.options(num_cpus=1, num_gpus=gpus_of(job))
                running[asked.remote(job, os.getcwd(), board)] = job
                on_event(JobStarted(job.key, job.kind))
            done, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            with suppress(ray.exceptions.RayError):
                keys = {job.key for job in running.values()}
                for event in ray.get(board.read.remote(), timeout=5):
                    if event.key in keys:
                        on_event(event)
                if stop():
                    ray.get(board.ask_to_stop.remote(), timeout=5)
            for reference in done:
                yield self._receive(running.pop(reference), reference)

    def _receive(self, job: Job, reference: object) -> JobResult:
        try:
            result = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            return JobResult(job, Ending.FAILED, error=f"lost on the cluster after {RETRIES} retries: {first[:200]}")
        assert isinstance(result, JobResult)
        return result


def gpus_of(job: Job) -> int:
    """One where the recipe trains on GPUs."""
    return int(tomllib.loads(job.recipe).get("training", {}).get("device", "").startswith("cuda"))


def tell_on_standard_error() -> None:
    """Ray prints that a machine is lost on standard output, among the lines of --json."""
    from ray._private import worker

    def tell(data: dict[str, Sequence[str]], *_: object, **__: object) -> None:
        print(*data.get("lines", ()), sep="\n", file=sys.stderr)

    if hasattr(worker, "print_to_stdstream"):  # it has no public name
        worker.print_to_stdstream = tell


class Board:
    """Where remote tasks leave their events, and read whether to stop."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []
        self.stopping = False

    def add(self, event: JobEvent) -> bool:
        self.events.append(event)
        return self.stopping

    def read(self) -> list[JobEvent]:
        events, self.events = self.events, []
        return events

    def ask_to_stop(self) -> None:
        self.stopping = True


def run_remotely(job: Job, working_folder: str, board: ActorHandle) -> JobResult:
    """On a worker: run a job where its caller is, so that relative paths mean the same."""
    import ray

    if not Path(working_folder).is_dir():
        what = f"{platform.node()} has no folder {working_folder}: the machines of a cluster must share a disk"
        return JobResult(job, Ending.MISTAKE, error=what)
    last_event, stopping = 0.0, False

    def on_event(event: JobEvent) -> None:
        nonlocal last_event, stopping
        if isinstance(event, JobStepped | JobScoring) and time.monotonic() - last_event < 1.0:
            return
        last_event = time.monotonic()
        with suppress(ray.exceptions.RayError):
            stopping = bool(ray.get(board.add.remote(event), timeout=10))

    with chdir(working_folder):
        return run_job(job, on_event, lambda: stopping)
