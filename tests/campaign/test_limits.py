"""Too few open files, too little memory, files that may not grow, folders that may not be written or read: told in a
sentence, with an exit code; and once there is enough, the same bits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faulty import Faulty, Order
from scenes import Scene

from campaign import Tally, sized

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
MB = 1_000_000
NOBODY = 65534
LIMITS: dict[str, list[int]] = {
    "NOFILE": [7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 32],
    "FSIZE": [0, 1, 100, 1_000, 5_000, 20_000, 100_000],
    "AS": [each * MB for each in (2, 6, 8, 12, 16, 30, 60, 100, 150, 250, 280, 330, 400, 600)],  # beside what it has
}
SCENES = {"train": 1.0, "resume": 0.5, "study": 0.3, "export": 0.5, "show": 0.5, "errors": 0.5, "report": 0.3}


@pytest.mark.parametrize("limit", LIMITS)
def test_too_little(limit: str, scenes: dict[str, Scene], faulty: Faulty, tmp_path: Path, capsys: Any) -> None:
    tally, workspace = Tally(f"limit: {limit}"), tmp_path / "workspace"
    begins = int(faulty(Order(["--version"])).memory)
    for name, share in SCENES.items():
        scene = scenes[name]
        scene.prepare(workspace)
        assert faulty(Order(scene.asked(workspace))).code == 0
        wanted = scene.result(workspace)
        values = LIMITS[limit]
        for value in values[:: max(1, len(values) // sized(round(share * len(values)), 1))]:
            where = f"{name}, {limit} {value:,}"
            scene.prepare(workspace)
            limits, few = {limit: value + begins * (limit == "AS")}, limit == "NOFILE"
            # one that finds too few files for its processes may leave their server broken: not the one of all others
            answer = faulty(Order(scene.asked(workspace), limits=limits, own_server=few))
            check(tally, where, answer, faulty, scene, workspace, wanted)
    with capsys.disabled():
        tally.close()


def check(
    tally: Tally, where: str, answer: Any, faulty: Faulty, scene: Scene, workspace: Path, wanted: dict[str, str]
) -> None:
    if answer.trouble:
        tally.failed(where, answer.trouble)
        return
    after = answer if answer.code == 0 else faulty(Order(scene.goes_on(workspace)))
    if after.code != 0:
        tally.failed(where, f"it does not go on: {after.err} (after: {answer.err})")
    elif scene.result(workspace) != wanted:
        tally.failed(where, f"other results (after: {answer.code} {answer.err})")
    elif answer.code == 0:
        tally.survived()
    else:
        tally.refused()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become nobody, for whom permissions hold")
def test_what_may_not_be_written_or_read(
    scenes: dict[str, Scene],
    faulty: Faulty,
    course: Path,
    finished_records: dict[str, Path],
    studies: Callable[[str], Path],
    capsys: Any,
) -> None:
    tally, workspace = Tally("permissions"), Path("/tmp") / f"fairtrial-campaign-{os.getpid()}"

    def ask(where: str, words: list[object], forbid: Callable[[], object]) -> None:
        forbid()
        answer = faulty(Order([*map(str, words)], user=NOBODY))
        if answer.trouble or answer.code == 0:
            tally.failed(where, answer.trouble or "it is not refused")
        else:
            tally.refused()

    def place(source: Path, name: str) -> Path:
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(source, workspace / name)
        for path in [workspace, *workspace.rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        return workspace / name

    small = ["--set=shape.layers=1", "--steps=1"]
    try:
        for mode in (0o555, 0o000):
            home = place(course, "data")
            words = ["train", "lm", "--data", home, *small, "--out", workspace / "run"]
            ask(f"folder of the record {mode:o}", words, lambda home=home, mode=mode: home.parent.chmod(mode))
            workspace.chmod(0o777)
        for name in sorted(path.name for path in course.iterdir()):
            home = place(course, "data")
            words = ["train", "lm" if "LM" in name else "classify", "--data", home, *small, "--out", workspace / "run"]
            ask(f"data {name}", words, (home / name).chmod(0o000) or (lambda: None))
        for name in sorted(path.name for path in finished_records["classify"].iterdir()):
            if name in ("run.lock", "clock.jsonl"):
                continue
            home = place(finished_records["classify"], "run")
            words = ["predict", home, "We will."] if name.endswith((".safetensors", "r.json")) else ["show", home]
            words = ["errors", home] if name.startswith("outcomes") else words
            if name != "outcomes.safetensors":  # errors scores again
                ask(f"record {name}", words, lambda home=home, name=name: (home / name).chmod(0o000))
        for name in sorted(path.name for path in finished_records["unfinished"].iterdir()):
            home = place(finished_records["unfinished"], "run")
            ask(f"resume {name}", ["train", "--resume", home], lambda home=home, name=name: (home / name).chmod(0o000))
        for name in ("verdict.json", "trials"):
            home = place(studies("plain"), "study")
            ask(f"study {name}", ["report", home], lambda home=home, name=name: (home / name).chmod(0o000))
        home = place(studies("plain"), "study")
        ask("study that may not be written", ["report", home], lambda home=home: home.chmod(0o555))
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
    with capsys.disabled():
        tally.close()
