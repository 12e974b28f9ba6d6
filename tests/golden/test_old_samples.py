"""Records, studies and recipe files of version 0.2.0 can still be used, and give the same numbers.

The samples in `before/` were written once, by the last code of that version. Their numbers (`before/values.json`) may
be written anew where a change is meant: `python tests/golden/test_old_samples.py --write`
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from golden_runs import differences, machine, run_apart, write_values
from old_samples import BEFORE, USES

VALUES = BEFORE / "values.json"
STORED: dict[str, Any] = json.loads(VALUES.read_text()) if VALUES.exists() else {"machine": {}, "uses": {}}


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_apart("use", tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("name", list(USES))
def test_an_old_sample_still_serves(name: str, used: dict[str, Any]) -> None:
    assert "failed" not in used[name], used[name]["failed"]
    told = differences(STORED["uses"][name], used[name], exact=STORED["machine"] == machine())
    assert not told, f"{len(told)} differences in {name}:\n" + "\n".join(told[:20])


def test_the_samples_are_small_and_name_no_machine() -> None:
    files = [path for path in BEFORE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    for path in files:
        assert not re.search(rb"/(tmp|work|root|home)/", path.read_bytes()), path


if __name__ == "__main__" and "--write" in sys.argv:
    with tempfile.TemporaryDirectory() as folder:
        uses = run_apart("use", Path(folder))
    failed = {key: value["failed"] for key, value in uses.items() if "failed" in value}
    if failed:
        sys.exit("\n".join(f"{key}: {why}" for key, why in failed.items()))
    write_values(VALUES, {"machine": machine(), "uses": uses})
    print(f"{len(uses)} uses in {VALUES}")
