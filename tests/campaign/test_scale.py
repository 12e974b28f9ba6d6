"""Many: 500 trials in one study hold no more memory than 50, and 5,000 records are listed in seconds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign import add_row, sized

pytestmark = pytest.mark.slow
pytest_plugins = ("workspaces",)
GROWTH = 0.05  # of the main process, from a fifth of the trials to all


def test_five_hundred_trials_hold_no_more_memory_than_a_hundred(
    studies: Callable[[str], Path], tmp_path: Path, capsys: Any
) -> None:
    folder, count = tmp_path / "study", sized(250, 10)
    shutil.copytree(studies("plain"), folder)
    words = [sys.executable, "-P", "-m", "fairtrial", "study", str(folder), "--seeds", str(count), "--json"]
    held: list[int] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "done" and event.get("work") == "trial":
                held.append(resident_kb(process.pid))
    assert process.returncode == 0
    assert len(held) == 2 * count - 4  # two seeds of each variant were there
    early, late = (max(held[at - len(held) // 10 : at]) for at in (len(held) // 5, len(held)))
    with capsys.disabled():
        add_row({"what": "memory", "trials": 2 * count, "early_mb": early // 1024, "late_mb": late // 1024})
    assert late < early * (1 + GROWTH)


def resident_kb(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")))


def test_five_thousand_records_are_listed(
    fairtrial: Callable[..., Any], finished_records: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    count = sized(5000, 50)
    for number in range(count):
        (tmp_path / f"{number:04}").mkdir()
        for path in finished_records["classify"].iterdir():
            os.link(path, tmp_path / f"{number:04}" / path.name)
    started = time.process_time()
    said = fairtrial("show", tmp_path)
    seconds = time.process_time() - started
    with capsys.disabled():
        add_row({"what": "listing", "records": count, "seconds": round(seconds, 1)})
    assert said.out.splitlines()[-1] == f"{count:,} records: {count:,} finished"
    assert seconds < 60  # of this process, not of the clock: a few on a calm machine
