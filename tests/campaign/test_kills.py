"""kill -9 at random moments. What was killed is asked for again, and ends with the bits of a run that never was."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from faulty import Faulty, Order
from scenes import Scene, digests

from campaign import SEED, Tally, sized
from forked import Forked

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
COUNTS = {"train": 60, "resume": 30, "finetune": 20, "study": 20, "search": 10, "study on cores": 5}
PATIENCE = 2.0  # seconds until no process of a killed study is left; more on a machine with other things to do


@pytest.mark.parametrize("name", COUNTS)
def test_kills_at_random_moments(
    name: str, scenes: dict[str, Scene], faulty: Faulty, tmp_path: Path, capsys: Any
) -> None:
    scene, workspace, tally, hit, slowest = scenes[name], tmp_path / "workspace", Tally(f"kill -9: {name}"), 0, 0.0
    rng = Random(f"{SEED} {name}")
    scene.prepare(workspace)
    whole = faulty(Order(scene.asked(workspace), own_server=scene.own_server))
    assert whole.code == 0, whole.err
    wanted = scene.result(workspace)
    for number in range(sized(COUNTS[name], 2)):
        scene.prepare(workspace)
        moments, words = [rng.uniform(0, whole.seconds)], scene.asked(workspace)
        if rng.random() < 0.3:  # it is killed again while it goes on
            moments.append(rng.uniform(0, whole.seconds))
        for moment in moments:
            last = moment is moments[-1]
            answer = faulty(Order(words, kill_after=moment, own_server=scene.own_server, until_gone=last))
            hit += answer.code == -9
            words = scene.goes_on(workspace)
        where = f"{name} {number}, killed after {', '.join(f'{moment:.3f}' for moment in moments)} s"
        left = processes_in(workspace)
        late = answer.gone
        slowest = max(slowest, late)
        answer = faulty(Order(words))
        if answer.code != 0:
            tally.failed(where, f"it does not go on: exit {answer.code}: {answer.err[-800:]}")
        elif (found := scene.result(workspace)) != wanted:
            tally.failed(where, f"other results: {[key for key in wanted if found.get(key) != wanted[key]]}")
        elif left or late > patience():
            tally.failed(where, f"processes are left: {left}, the last one was gone after {late:.1f} s")
        else:
            tally.survived()
    with capsys.disabled():
        tally.close(hit=hit, gone_seconds=round(slowest, 2))
    assert hit, "no kill hit a running command: this proves nothing"


def patience() -> float:
    return PATIENCE * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_an_explorer_is_killed_while_it_writes(finished_records: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    """Its records are as they were, what it writes (a cleaned copy of data) is whole or not there, and the next one
    writes the same."""
    pytest.importorskip("starlette", reason="needs the explorer's extra: pip install -e '.[explore]'")
    source, workspace, tally, rng = (
        finished_records["lm"].parent,
        tmp_path / "workspace",
        Tally("kill -9: explorer"),
        Random(SEED),
    )
    copy, hit = workspace / "speechesdataset-clean", 0

    def prepare() -> dict[str, str]:
        shutil.rmtree(workspace, ignore_errors=True)
        shutil.copytree(source, workspace)
        return digests(workspace)

    def explore(kill_after: float | None) -> float:
        """Start one and ask it for the copy; how long that took."""
        process = Forked("explore", workspace, "--port", 0, "--no-browser")
        address = next(line.split()[1] for line in process.stdout if line.startswith("open "))
        started = time.monotonic()
        asking = Thread(target=ask_for_copy, args=(address, str(workspace / "speechesdataset")), daemon=True)
        asking.start()
        asking.join(kill_after)
        process.kill()
        process.communicate()
        asking.join()
        return time.monotonic() - started

    prepare()
    seconds = explore(None)
    wanted = digests(copy)
    for number in range(sized(20, 2)):
        before, moment = prepare(), rng.uniform(0, seconds)
        explore(moment)
        where, killed = f"explorer {number}, killed after {moment:.3f} s", not copy.exists()
        left = processes_in(workspace)
        hit += killed
        if killed:
            explore(None)
        found = digests(workspace)
        if {name: found.get(name) for name in before} != before:
            tally.failed(where, "records or data have changed")
        elif not copy.exists() or digests(copy) != wanted or len(found) != len(before) + len(wanted):
            tally.failed(where, f"another copy: {sorted(found.keys() - before.keys())}")
        elif left:
            tally.failed(where, f"processes are left: {left}")
        else:
            tally.survived()
    with capsys.disabled():
        tally.close()
    assert hit, "no kill hit a running command: this proves nothing"


def ask_for_copy(address: str, source: str) -> None:
    """As the page does: the token becomes a cookie, then the question is asked."""
    place = urlsplit(address)
    with (
        suppress(OSError, HTTPException),  # it is killed
        closing(HTTPConnection(place.hostname or "", place.port, timeout=600)) as connection,
    ):
        connection.request("GET", f"{place.path}?{place.query}")
        answer = connection.getresponse()
        answer.read()
        headers = {"Cookie": (answer.headers["set-cookie"] or "").partition(";")[0], "Content-Type": "application/json"}
        connection.request(
            "POST", "/api/clean", json.dumps({"source": source}), headers | {"Origin": f"http://{place.netloc}"}
        )
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()


def processes_in(workspace: Path) -> list[str]:
    """Processes that have a file below the folder open, after some time."""
    until = time.monotonic() + patience()
    while True:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                links = [os.readlink(link) for link in (process / "fd").iterdir()]
                if any(link.startswith(str(workspace)) for link in links):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:100])
            except OSError:
                continue
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)
