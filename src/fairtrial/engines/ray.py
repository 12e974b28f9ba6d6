"""A Ray cluster: each trial a task, tried again where a machine is lost, its record shipped back.

Machines need not share a disk: what a trial needs (its recipe, the files of plugins' parts, the data, what an earlier
attempt had saved) travels with it, and its record comes back as files.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fairtrial.engines.job import Answer, Hear, Job, News, Stop, do
from fairtrial.errors import BadInput

RETRIES = 3  # of a task whose machine was lost
Files = dict[str, bytes]  # by path inside a folder


class Ray:
    name = "ray"

    def __init__(self, address: str | None = None, width: int | None = None) -> None:
        """`address`: of a cluster, 'auto' for the one at hand; None: one of its own, on this machine."""
        try:
            import ray
        except ImportError as error:
            raise BadInput("Ray is not installed", "pip install 'fairtrial[ray]'") from error
        self.ray: Any = ray
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        if not ray.is_initialized():
            try:
                own: dict[str, Any] = {"num_cpus": width, "include_dashboard": False} if address is None else {}
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
            except (ConnectionError, RuntimeError, ValueError) as error:
                what = str(error).strip().splitlines()[0]
                raise BadInput(f"no Ray cluster at {address!r}: {what}", "start one with: ray start --head") from error
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.width = min(width or cores, cores)

    def run(self, jobs: Sequence[Job], hear: Hear, stop: Stop) -> Iterator[Answer]:
        ray = self.ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_far)
        board = ray.remote(num_cpus=0, scheduling_strategy=self.at_home())(Board).remote()
        shipped: dict[str, Any] = {}  # data by their place, put into the cluster once
        waiting = list(reversed(jobs))
        running: dict[Any, Job] = {}
        while running or (waiting and not stop()):
            while waiting and len(running) < self.width and not stop():
                job = waiting.pop()
                data = self.data_of(job, shipped)
                begun = files_in(Path(job.folder)) if job.folder else {}
                running[task.remote(asdict(job), begun, plugins_of(job), data, board)] = job
                hear(News(job, "begin"))
            done, _ = ray.wait(list(running), num_returns=1, timeout=0.5)
            with suppress(ray.exceptions.RayError):
                keys = {job.key: job for job in running.values()}
                for key, kind, facts in ray.get(board.read.remote(), timeout=5):
                    if tuple(key) in keys:
                        hear(News(keys[tuple(key)], kind, facts))
                if stop():
                    ray.get(board.ask_to_stop.remote(), timeout=5)
            for reference in done:
                yield self.received(running.pop(reference), reference)

    def received(self, job: Job, reference: Any) -> Answer:
        """The answer of a task, its record put in its place here."""
        try:
            told, files = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[0]
            return Answer(job, error=f"lost on the cluster, {RETRIES} retries included: {first[:200]}")
        if job.folder and files:
            put_files(Path(job.folder), files)
        return Answer(job, **told)

    def data_of(self, job: Job, shipped: dict[str, Any]) -> tuple[str, Any]:
        """Where a job's data lie here, and their files in the cluster's store."""
        import tomllib

        source = tomllib.loads(job.recipe).get("data", {}).get("source", "") if job.recipe else ""
        if not source or source == "sotu" or not Path(source).exists():
            return source, None
        if source not in shipped:
            path = Path(source)
            files = files_in(path) if path.is_dir() else {path.name: path.read_bytes()}
            shipped[source] = self.ray.put(files)
        return source, shipped[source]

    def at_home(self) -> Any:
        """News are kept on the asker's own machine: a lost worker does not take them along."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return NodeAffinitySchedulingStrategy(self.ray.get_runtime_context().get_node_id(), soft=False)


class Board:
    """Where far tasks leave their news, and read whether to stop."""

    def __init__(self) -> None:
        self.news: list[tuple[Any, str, dict[str, Any]]] = []
        self.asked = False

    def tell(self, key: Any, kind: str, facts: dict[str, Any]) -> bool:
        self.news.append((key, kind, facts))
        return self.asked

    def read(self) -> list[tuple[Any, str, dict[str, Any]]]:
        told, self.news = self.news, []
        return told

    def ask_to_stop(self) -> None:
        self.asked = True


def run_far(
    told: dict[str, Any], begun: Files, plugins: Files, data: tuple[str, Any], board: Any
) -> tuple[dict[str, Any], Files]:
    """On a worker: do a job in a folder of its own; the answer, and the files that it left."""
    import ray

    job = Job(**(told | {"key": tuple(told["key"]), "plugins": tuple(told["plugins"])}))
    room = Path(tempfile.mkdtemp(prefix="fairtrial-"))
    last, asked = 0.0, False

    def tell(kind: str, facts: dict[str, Any]) -> None:
        nonlocal last, asked
        if kind in ("step", "testing") and time.monotonic() - last < 1.0:
            return
        last = time.monotonic()
        with suppress(ray.exceptions.RayError):
            asked = ray.get(board.tell.remote(job.key, kind, facts), timeout=10)

    try:
        put_files(room / "plugins", plugins)
        here = replace(
            job,
            folder=str(room / "record") if job.folder else "",
            plugins=tuple(str(room / "plugins" / Path(name).name) for name in job.plugins),
        )
        source, shipped = data
        moved = shipped is not None and not Path(source).exists()
        if moved:
            put_files(room / "data", shipped)
            is_file = list(shipped) == [Path(source).name]
            there = room / "data" / Path(source).name if is_file else room / "data"
            here = replace(here, recipe=here.recipe.replace(source, str(there)))
        if begun:
            if moved and "recipe.toml" in begun:
                begun = begun | {"recipe.toml": begun["recipe.toml"].replace(source.encode(), str(there).encode())}
            put_files(room / "record", begun)
        answer = do(here, tell, lambda: asked)
        files = files_in(room / "record")
        if moved and "recipe.toml" in files:  # the record speaks of the data's place at home
            files["recipe.toml"] = files["recipe.toml"].replace(str(there).encode(), source.encode())
        facts = {name: value for name, value in vars(answer).items() if name != "job"}
        return facts, files
    finally:
        shutil.rmtree(room, ignore_errors=True)


def files_in(folder: Path) -> Files:
    """Every file below a folder, but for locks."""
    if not folder.is_dir():
        return {}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock"
    }


def put_files(folder: Path, files: Files) -> None:
    """Files below a folder. What says that a record is whole comes last, so that it is whole or not there."""
    from fairtrial.disk import write_bytes

    for name in sorted(files, key=lambda name: (name == "result.json", name)):
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise BadInput(f"{name!r} leads out of its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, files[name])
    if "result.json" in files:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def plugins_of(job: Job) -> Files:
    return {Path(name).name: Path(name).read_bytes() for name in job.plugins}
