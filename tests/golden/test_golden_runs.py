"""Golden runs: no number and no weight changes. The values were stored before the code was rebuilt.

On the machine of the stored values all is compared to the last digit, weights by their sha256; elsewhere numbers within
a thousandth. Where a change of numbers is meant: `python tests/golden/test_golden_runs.py --write`
"""

from __future__ import annotations

import copy
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from golden_runs import RENAMED, TRIALS, differences, machine, run_apart, write_values

VALUES = Path(__file__).parent / "values.json"
STORED: dict[str, Any] = json.loads(VALUES.read_text()) if VALUES.exists() else {"machine": {}, "artefacts": {}}
EXACT = STORED["machine"] == machine()
NAMES = list(STORED["artefacts"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_apart("make", tmp_path_factory.mktemp("golden"))


def found_in(made: dict[str, Any], name: str) -> Any:
    reasons = [f"{key}: {why}" for key, why in made.items() if key.startswith("failed")]
    assert name in made, "\n".join([f"{name} was not made", *reasons])
    return made[name]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_has_changed_in(name: str, made: dict[str, Any]) -> None:
    solved = name.startswith("puzzle")  # a root, to the tolerance of its solver
    told = differences(STORED["artefacts"][name], found_in(made, name), exact=EXACT and not solved)
    assert not told, f"{len(told)} differences in {name}:\n" + "\n".join(told[:20])


def test_weights_are_compared_or_the_skip_says_why_not() -> None:
    if not EXACT:
        what = f"stored on {STORED['machine']}, this is {machine()}: numbers are compared within a thousandth"
        pytest.skip(f"weights are NOT compared: {what}")


def test_every_built_in_part_is_in_a_golden_trial(made: dict[str, Any]) -> None:
    used = " ".join(str(setting) for settings in TRIALS.values() for setting in settings)
    for name in found_in(made, "parts")["names"]:
        assert f'"{name}"' in used or f"parts={name}" in used or name == "golden-fade", name


def test_a_resumed_trial_equals_the_uninterrupted_one(made: dict[str, Any]) -> None:
    assert not differences(found_in(made, "uninterrupted"), found_in(made, "resumed"), exact=True)


def first_float(numbers: dict[str, Any]) -> str:
    return next(path for path, value in numbers.items() if isinstance(value, float) and value)


@pytest.mark.parametrize("name", ["classify-learned", "lm-alibi", "study lm", "audit record"])
def test_control_the_comparison_sees_one_unit_in_the_last_place(name: str) -> None:
    stored = STORED["artefacts"][name]
    other = copy.deepcopy(stored)
    path = first_float(other["numbers"])
    other["numbers"][path] = math.nextafter(other["numbers"][path], math.inf)
    assert not differences(stored, copy.deepcopy(stored), exact=True)
    assert len(differences(stored, other, exact=True)) == 1
    assert not differences(stored, other, exact=False)


def test_control_the_comparison_sees_a_thousandth_another_weight_and_what_is_missing() -> None:
    stored = STORED["artefacts"]["classify-learned"]
    path = "result/tests/test/nll"
    far, weight, less = (copy.deepcopy(stored) for _ in range(3))
    far["numbers"][path] *= 1.01
    weight["tensors"][next(iter(weight["tensors"]))] = "0" * 64
    del less["numbers"][path]
    assert len(differences(stored, far, exact=False)) == 1
    assert len(differences(stored, weight, exact=True)) == 1
    assert len(differences(stored, less, exact=False)) == 1


def test_control_a_key_that_was_renamed_is_found_under_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {"numbers": {"result/tests/test/nats": 1.5}, "tensors": {"model body.pace": "a"}}
    now = {"numbers": {"result/tests/test/new": 1.5}, "tensors": {"model body.speed": "a"}}
    assert len(differences(stored, now, exact=True)) == 2
    monkeypatch.setitem(RENAMED, "nats", "new")
    monkeypatch.setitem(RENAMED, "pace", "speed")
    assert not differences(stored, now, exact=True)


if __name__ == "__main__" and "--write" in sys.argv:
    with tempfile.TemporaryDirectory() as folder:
        artefacts = run_apart("make", Path(folder))
    failed = {key: why for key, why in artefacts.items() if key.startswith("failed")}
    if failed:
        sys.exit("\n".join(f"{key}: {why}" for key, why in failed.items()))
    write_values(VALUES, {"machine": machine(), "artefacts": artefacts})
    print(f"{len(artefacts)} artefacts in {VALUES}")
