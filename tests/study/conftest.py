"""Studies that take seconds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import InProcess
from fairtrial.events import StudyEvent, study_event_json
from fairtrial.study.design import Study
from fairtrial.study.run import Options, run_study
from fairtrial.study.tables import study_from
from forked import auditing_here
from tiny import RECIPES

SMALL = {
    "shape.layers": 1, "shape.width": 16, "shape.hidden": 16, "shape.length": 12, "shape.classifier_hidden": 8,
    "training.batch": 8, "training.duration": "24 steps", "training.learning_rate": 0.01,
}  # fmt: skip


def tiny_table(source: Path, **more: Any) -> dict[str, Any]:
    table = {"data": str(source), "tasks": ["classify"], "seeds": 5, "set": dict(SMALL)}
    files = [RECIPES / f"default-{task}.toml" for task in more.get("tasks", ["classify"])]
    table["recipe"] = [str(file) if file.exists() else "default" for file in files]  # probe tasks are new
    return table | {"variants": {name: {"parts": [name]} for name in ("learned", "rope")}} | more


@pytest.fixture
def tiny_study(course_folder: Path) -> Callable[..., Study]:
    """`tiny_study(seeds=8)`: learned against rope on a small classifier."""
    return lambda **more: study_from(tiny_table(course_folder, **more))


@pytest.fixture(scope="session")
def same_twice(tmp_path_factory: pytest.TempPathFactory, finished_records: dict[str, Path]) -> tuple[Study, Path]:
    """A finished study of one variant under two names, with draws of their own; both tasks, six seeds. To look at."""
    workspace = tmp_path_factory.mktemp("studies")
    variants = {"learned": {"parts": ["learned"]}, "again": {"parts": ["learned"], "seeds_from": 100}}
    source = finished_records["classify"].parent / "speechesdataset"
    table = tiny_table(source, tasks=["classify", "lm"], seeds=6, variants=variants)
    study = study_from(table)
    with auditing_here():
        run_study(study, workspace / "study", InProcess(), Options())
    return study, workspace / "study"


@pytest.fixture
def copied(same_twice: tuple[Study, Path], tmp_path: Path) -> tuple[Study, Path]:
    """The same study in a folder that a test may change."""
    study, folder = same_twice
    shutil.copytree(folder, tmp_path / "study")
    return study, tmp_path / "study"


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: StudyEvent) -> None:
        self.told.append((event.kind, study_event_json(event)))

    def of(self, kind: str, work: str = "") -> list[dict[str, Any]]:
        return [facts for each, facts in self.told if each == kind and (not work or facts.get("work") == work)]


@pytest.fixture
def heard() -> Heard:
    return Heard()
