"""A real Ray cluster of two workers: one is lost in the middle, and the study ends as it does on this machine."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import Job
from fairtrial.engines.processes import Processes
from fairtrial.events import JobDone, JobFailed, JobStarted, JobStepped, StudyEvent
from fairtrial.recipe import built_in_recipe, with_settings, write_recipe
from fairtrial.study.run import run_study
from fairtrial.study.tables import study_from

ray = pytest.importorskip("ray")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]

NANO = Path(__file__).parents[1] / "model" / "nano_gpt.py"  # a network that is not ours
SMALL = {
    "shape.layers": 1, "shape.width": 16, "shape.hidden": 16, "shape.length": 12, "shape.classifier_hidden": 8,
    "training.batch": 8, "training.duration": "150 steps",
}  # fmt: skip


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that runs nothing, and two workers of one core each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # of a cluster that is there already it is for its owner to say
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_health_check_failure_threshold", "4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        workers = [made.add_node(num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        try:
            yield made, workers
        finally:
            ray.shutdown()
            made.shutdown()


def without_times(verdict: dict[str, Any]) -> dict[str, Any]:
    verdict.pop("checksum")  # of the file, with its times
    for task in verdict["tasks"].values():
        for cost in task["cost"].values():
            for name in ("seconds_per_step", "seconds_ratio", "peak_memory_mb"):
                cost.pop(name, None)
    return verdict


def test_a_study_that_loses_a_worker_ends_as_on_this_machine(
    cluster: Any, course_folder: Path, tmp_path: Path, plugins_leave: Any
) -> None:
    from fairtrial.engines.ray import Ray

    made, workers = cluster
    (tmp_path / "mine.py").write_text(
        "from fairtrial.model.part import Part, parts\n\n@parts.add('mine')\nclass Mine(Part):\n"
        "    def embed(self, x, positions):\n        return x * 2\n"
    )
    variants = {
        "learned": {"parts": ["learned"]},
        "mine": {"parts": ["learned", "mine"], "with": [str(tmp_path / "mine.py")]},
        "own": {"model": f"{NANO}:build:width=8"},
    }
    table = {"data": str(course_folder), "tasks": ["lm"], "seeds": 4, "set": SMALL, "variants": variants}
    told: list[StudyEvent] = []
    lost: list[int] = []

    def on_event(event: StudyEvent) -> None:
        told.append(event)
        done = sum(isinstance(each, JobDone) and each.work == "trial" for each in told)
        begun = sum(isinstance(each, JobStarted) and each.work == "trial" for each in told)
        if not lost and done >= 2 and begun > done:
            lost.append(done)
            made.remove_node(workers[0], allow_graceful=False)

    run_study(study_from(table), tmp_path / "far", Ray(made.address), on_event=on_event)
    assert lost, "no worker was lost: this test shows nothing"
    assert [each for each in told if isinstance(each, JobFailed)] == []
    assert any(isinstance(each, JobStepped) for each in told)
    run_study(study_from(table), tmp_path / "near", Processes(2))
    near, far = (json.loads((tmp_path / name / "verdict.json").read_text()) for name in ("near", "far"))
    assert without_times(far) == without_times(near)
    records = sorted((tmp_path / "near" / "trials").glob("*/*/*"))
    assert len(records) == 12
    for record in records:
        there = tmp_path / "far" / record.relative_to(tmp_path / "near")
        for name in ("result.json", "events.jsonl", "model.safetensors", "outcomes.safetensors"):
            assert (there / name).read_bytes() == (record / name).read_bytes()
        assert not (there / "checkpoints").exists()


def test_a_trial_on_a_gpu_asks_for_one(course_folder: Path) -> None:
    from fairtrial.engines.ray import gpus_of

    recipe = built_in_recipe("default", "lm")
    text, on_gpu = (
        write_recipe(with_settings(recipe, [f"data.source={course_folder}", f"training.device={device}"]))
        for device in ("cpu", "cuda")
    )
    trial = Job(("lm", "x", "0"), "trial", text)
    assert [gpus_of(replace(trial, **each)) for each in ({}, {"recipe": on_gpu})] == [0, 1]
