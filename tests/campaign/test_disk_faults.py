"""A disk that fails: the k-th write, fsync, rename, truncation or new file, for every k (of a search: of its last
trials); in turn full for ever, broken once, a write that is cut short, kill -9 before it and in the
middle (with FAIRTRIAL_CAMPAIGN_SIZE=2 each of them at every k). What was stopped goes on to the same bits, or to the
same files, and nothing is left beside them."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faulty import Fault, Faulty, Order
from scenes import Scene

from campaign import SEED, SIZE, Tally

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
FAULTS = {
    "full": Fault("fail", lasting=True),
    "broken once": Fault("fail", error=errno.EIO),
    "cut short": Fault("short", lasting=True),
    "killed before": Fault("kill"),
    "killed within": Fault("torn"),
}
NO_WRITES = ("full", "broken once", "killed before", "killed within")  # what is no write cannot be cut short
LEFT = (".tmp", ".new", ".new.lock", "checkpoints")
SCENES = (
    "train",
    "resume",
    "finetune",
    "study",
    "search, last trials",
    "report",
    "export",
    "clean",
    "show",
    "errors",
    "look",
)


@pytest.mark.parametrize("name", SCENES)
def test_every_operation_fails_once(
    name: str, scenes: dict[str, Scene], faulty: Faulty, tmp_path: Path, capsys: Any
) -> None:
    scene, workspace, tally = scenes[name], tmp_path / "workspace", Tally(f"disk: {name}")
    scene.prepare(workspace)
    whole = faulty(Order(scene.asked(workspace), str(workspace)))
    assert whole.code == 0, whole.err
    wanted = scene.result(workspace)
    stride = min(round(1 / min(1, SIZE)), len(whole.operations))
    for at, kind in faults_at(whole.operations, stride):
        where = f"{name}, {kind}, operation {at} ({whole.operations[at - 1]})"
        scene.prepare(workspace)
        answer = faulty(Order(scene.asked(workspace), str(workspace), replace(FAULTS[kind], at=at)))
        if trouble := answer.trouble or ("" if answer.code in (0, 5, -9) else f"{answer.code}: {answer.err}"):
            tally.failed(where, trouble)
            continue
        after = answer if answer.code == 0 else faulty(Order(scene.goes_on(workspace)))
        taken = after.code == 2 and "exist" in after.err  # killed when it was whole: nothing is written over it
        if after.code != 0 and not taken:
            tally.failed(where, f"it does not go on: exit {after.code}: {after.err} (after: {answer.err})")
        elif (found := scene.result(workspace)) != wanted:
            names = {key for key in found.keys() | wanted.keys() if found.get(key) != wanted.get(key)}
            tally.failed(where, f"other results: {sorted(names)}")
        elif left := [path.name for path in workspace.rglob("*") if path.name.endswith(LEFT)]:
            tally.failed(where, f"left behind: {left}")
        elif answer.code == 5:
            tally.refused()
        else:
            tally.survived()
    with capsys.disabled():
        tally.close()


def faults_at(operations: str, stride: int) -> Iterator[tuple[int, str]]:
    """At every so manieth operation, counted from 1, one fault in turn; in a large campaign all."""
    for at in range(1 + SEED % stride, len(operations) + 1, stride):
        kinds = list(FAULTS) if operations[at - 1] == "w" else list(NO_WRITES)
        yield from ((at, kind) for kind in (kinds if SIZE > 1 else [kinds[at // stride % len(kinds)]]))
