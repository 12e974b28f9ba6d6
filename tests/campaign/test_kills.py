"""kill -9 at random moments. What was killed is asked for again, and ends with the bits of a run that never was.
(A node of a Ray cluster is killed in tests/engines/test_ray.py.)"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from faulty import Faulty, Order
from scenes import Scene

from campaign import SEED, Tally, sized

pytestmark = pytest.mark.slow
pytest_plugins = ("rooms",)
COUNTS = {"train": 60, "resume": 30, "finetune": 20, "study": 20, "search": 10, "study on cores": 5}
PATIENCE = 2.0  # seconds until no process of a killed study is left; more on a machine with other things to do


@pytest.mark.parametrize("name", COUNTS)
def test_kills_at_random_moments(
    name: str, scenes: dict[str, Scene], faulty: Faulty, tmp_path: Path, capsys: Any
) -> None:
    scene, room, tally, hit = scenes[name], tmp_path / "room", Tally(f"kill -9: {name}"), 0
    rng = random.Random(f"{SEED} {name}")
    scene.prepare(room)
    whole = faulty(Order(scene.asked(room)))
    assert whole.code == 0, whole.err
    wanted = scene.result(room)
    for number in range(sized(COUNTS[name], 2)):
        scene.prepare(room)
        moments, words = [], scene.asked(room)
        for _ in range(rng.choice([1, 1, 2])):  # sometimes it is killed again while it goes on
            moments.append(rng.uniform(0, whole.seconds))
            answer = faulty(Order(words, kill_after=moments[-1]))
            hit += answer.code == -9
            words = scene.goes_on(room)
        where = f"{name} {number}, killed after {', '.join(f'{moment:.3f}' for moment in moments)} s"
        left = processes_in(room)
        answer = faulty(Order(words))
        if answer.code != 0:
            tally.failed(where, f"it does not go on: exit {answer.code}: {answer.err[-800:]}")
        elif (found := scene.result(room)) != wanted:
            tally.failed(where, f"other results: {[key for key in wanted if found.get(key) != wanted[key]]}")
        elif left:
            tally.failed(where, f"processes are left: {left}")
        else:
            tally.survived()
    with capsys.disabled():
        tally.close()
    assert hit, "no kill hit a running command: this proves nothing"


def processes_in(room: Path) -> list[str]:
    """Processes that have a file below the folder open, after some time."""
    until = time.monotonic() + PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                links = [os.readlink(link) for link in (process / "fd").iterdir()]
                if any(link.startswith(str(room)) for link in links):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
            except OSError:
                continue
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)
