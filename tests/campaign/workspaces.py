"""Fixtures of the campaigns, as a pytest plugin: beside a conftest.py, tests could not import from tests/conftest.py.
What is damaged is built once, and copied before anything happens to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from faulty import Faulty
from scenes import Scene, digests, judged, names, trained

from course_text import write_course
from fairtrial.recipe import write_recipe
from tiny import TINY, make_tiny

STEPS = ("training.duration=3 steps", "training.select_every=2 steps", "scoring.curve_every=2 steps")
SET = [f"--set={each}" for each in (*TINY, *STEPS)]
SAVING = ["--save-seconds", "0"]
LAST = ("search/classify/rope/try-1", "trials")
TEXT = "We will build bridges ."


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    try:
        made = Faulty(tmp_path_factory.mktemp("faults"))
    except FileNotFoundError as error:
        pytest.skip(f"{error}: the layer that fails operations cannot be built")
    yield made
    made.close()


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_course(tmp_path_factory.mktemp("course") / "speechesdataset")


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory, course: Path) -> Callable[[str], Path]:
    """A finished study of two variants and two seeds, `plain` or with a `search`. Audits prove determinism in this
    process."""
    from fairtrial.engines import InProcess
    from fairtrial.study.run import run_study
    from fairtrial.study.tables import study_from

    @cache
    def make(kind: str) -> Path:
        workspace = tmp_path_factory.mktemp(kind)
        (workspace / "recipe.toml").write_text(write_recipe(make_tiny("classify", course)))
        table: dict[str, Any] = {"recipe": str(workspace / "recipe.toml"), "tasks": ["classify"], "seeds": 2}
        table |= {"variants": {name: {"parts": [name]} for name in ("learned", "rope")}}
        if kind == "search":
            table["search"] = {"seeds": [7], "training.learning_rate": [0.001, 0.01]}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(import_module("fairtrial.audit.run"), "RepeatedRuns", lambda plans: nullcontext())
            run_study(study_from(table), workspace / "study", InProcess())
        return workspace / "study"

    return make


@pytest.fixture(scope="session")
def scenes(
    course: Path,
    finished_records: dict[str, Path],
    studies: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Scene]:
    def copy(name: str, source: Path) -> Path:
        workspace = tmp_path_factory.mktemp("start")
        shutil.copytree(source, workspace / name)
        return workspace

    @cache
    def unfinished_record() -> Path:
        return copy("run", finished_records["unfinished"])

    @cache
    def finished_study() -> Path:
        return copy("study", studies("plain"))

    @cache
    def unfinished_study(kind: str, *missing: str) -> Path:
        """All but its trials is there, or all but the `missing` ones: audits, baselines and timings are not made
        again."""
        workspace = copy("study", studies(kind))
        whole = ("search.json", "verdict.json", "report.html")
        for name in (*whole, *(missing or ("trials", "search"))):
            path = workspace / "study" / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=not missing)
        return workspace

    @cache
    def encoder() -> Path:
        from fairtrial.trial import run_trial

        workspace = tmp_path_factory.mktemp("start")
        run_trial(make_tiny("mlm", course), 0, workspace / "mlm")
        return workspace

    record, here = str(finished_records["classify"]), ["study", "WORKSPACE/study", "--engine", "here"]
    train = ["--data", str(course), "--seed", "4", *SET, *SAVING, "--out", "WORKSPACE/run"]
    return {
        "train": Scene(["train", "lm", *train], trained),
        "resume": Scene(["train", "--resume", "WORKSPACE/run", *SAVING], trained, unfinished_record),
        "finetune": Scene(["finetune", "--encoder", "WORKSPACE/mlm", "--threads", "1", *train], trained, encoder),
        "study": Scene(here, judged, lambda: unfinished_study("plain")),
        "search": Scene(here, judged, lambda: unfinished_study("search")),
        "search, last trials": Scene(here, judged, lambda: unfinished_study("search", *LAST)),
        "study on cores": Scene(
            ["study", "WORKSPACE/study", "--jobs", "2"], judged, lambda: unfinished_study("plain"), own_server=True
        ),
        "report": Scene(["report", "WORKSPACE/study"], judged, finished_study),
        "export": Scene(["export", record, "--out", "WORKSPACE/given"], lambda workspace: digests(workspace / "given")),
        "clean": Scene(
            ["clean", "--data", str(course), "--out", "WORKSPACE/cleaned"], lambda workspace: digests(workspace)
        ),
        "show": Scene(["show", record, "--html", "WORKSPACE/a.html", "--figure", "WORKSPACE/a.svg"], names),
        "errors": Scene(["errors", record, "--html", "WORKSPACE/a.html"], digests),
        "look": Scene(["look", record, TEXT, "--out", "WORKSPACE/look"], names),
    }
