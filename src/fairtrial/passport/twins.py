"""Twins: two fresh processes that train the same plans, their dictionaries ordered by other hashes (R1)."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO

import fairtrial
from fairtrial.errors import FairtrialError
from fairtrial.model.part import parts
from fairtrial.passport.finding import Measured
from fairtrial.passport.repeat import told
from fairtrial.passport.subject import Plan

SECONDS = 180


class Twins:
    """They train beside the other checks; `judge` waits for them."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = list(plans)
        self.running: list[tuple[subprocess.Popen[str], IO[str]]] = []
        self.states: list[list[str]] | None = None

    def __enter__(self) -> Twins:
        for number in (0, 1):
            self.running.append(start(self.plans, number))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process, told_here in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()
            told_here.close()

    def judge(self, plan: Plan) -> Measured:
        if self.states is None:
            self.states = [answer(*each) for each in self.running]
        place = self.plans.index(plan)
        return told(self.states[0][place] == self.states[1][place], "Training in two fresh processes")


def start(plans: Sequence[Plan], number: int) -> tuple[subprocess.Popen[str], IO[str]]:
    order = {"plans": [asdict(plan) for plan in plans], "number": number, "homes": homes_of(plans)}
    paths = os.pathsep.join(filter(None, (str(Path(fairtrial.__file__).parents[1]), *sys.path)))
    complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115  (a file never fills up, as a pipe does)
    process = subprocess.Popen(
        [sys.executable, "-m", "fairtrial.passport.fresh", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": str(number), "PYTHONPATH": paths},
    )
    return process, complaints


def answer(process: subprocess.Popen[str], complaints: IO[str]) -> list[str]:
    """The states that a process ended with, one for each plan."""
    out, _ = process.communicate(timeout=SECONDS)
    if process.returncode:
        complaints.seek(0)
        last = (complaints.read().strip().splitlines() or ["it says nothing"])[-1]
        raise FairtrialError(f"training in a fresh process fails: {last}")
    return [str(state) for state in json.loads(out.strip().splitlines()[-1])]


def homes_of(plans: Sequence[Plan]) -> dict[str, dict[str, str]]:
    """The file and class of every part that is not built in."""
    found = {}
    for name in dict.fromkeys(choice.name for plan in plans for choice in plan.choices):
        kind = parts.find(name)
        if not kind.__module__.startswith("fairtrial."):
            found[name] = {"file": inspect.getfile(kind), "kind": kind.__qualname__}
    return found
