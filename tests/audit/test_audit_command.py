"""`fairtrial audit`: the table, the JSON, the exit code, and the passport that stays in the record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.audit.run import CHECKS
from fairtrial.recipe import PartChoice, built_in_recipe, with_settings, write_recipe
from fairtrial.record import Record

Call = Callable[..., Any]


@pytest.fixture
def recipe_file(tmp_path: Path, tiny: list[str]) -> Callable[..., Path]:
    """A small recipe with one part, on disk."""

    def write(task: str, part: str) -> Path:
        from dataclasses import replace

        recipe = replace(with_settings(built_in_recipe("default", task), tiny), parts=(PartChoice(name=part),))
        path = tmp_path / f"{task}-{part}.toml"
        path.write_text(write_recipe(recipe))
        return path

    return write


def test_a_part_is_audited_in_encoder_and_decoder(fairtrial: Call) -> None:
    said = fairtrial("audit", "alibi", "--json")
    assert said.code == 0
    passport = json.loads(said.out)
    assert passport["passed"] is True
    told = {(finding["id"], finding["task"]) for finding in passport["findings"]}
    assert {("M3", "lm"), ("M6", "classify"), ("M9", "lm"), ("R1", "lm"), ("R1", "classify")} <= told
    assert {id for id, _ in told} <= {check.id for check in CHECKS}
    assert all(finding["meaning"].endswith(".") for finding in passport["findings"])


def test_a_recipe_that_cheats_exits_1_and_the_table_says_how(fairtrial: Call, recipe_file: Call) -> None:
    said = fairtrial("audit", recipe_file("lm", "reweight"))
    assert said.code == 1
    assert "sees the future" in said.out
    assert "in a decoder" in said.out
    assert "in an encoder" not in said.out
    last = said.out.strip().splitlines()[-1]
    assert last.startswith("FAIL: M3 no future: changed words")
    row = next(line for line in said.out.splitlines() if line.strip().startswith("M3 "))
    assert "1e-09" in row
    assert "FAIL" in row


def test_an_amber_failure_exits_1_too(fairtrial: Call, recipe_file: Call, plugins_leave: Call) -> None:
    flaws = Path(__file__).parents[2] / "examples" / "reports" / "r0_flaws.py"
    said = fairtrial("audit", recipe_file("lm", "normed-stream"), "--with", flaws)
    assert said.code == 1
    assert said.out.strip().splitlines()[-1] == "FAIL: M11 residual identity (amber)"


def test_a_trained_record_keeps_its_passport(
    fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished_records["lm"], folder)
    said = fairtrial("audit", folder)
    assert said.code == 0, said.out
    passport = Record.open(folder).read_json("passport.json")
    assert passport["passed"] is True
    assert {finding["task"] for finding in passport["findings"]} == {"lm"}
    assert str(folder / "passport.json") in said.out


def test_an_unfinished_record_is_refused(fairtrial: Call, finished_records: dict[str, Path]) -> None:
    said = fairtrial("audit", finished_records["unfinished"])
    assert said.code == 2
    assert "not finished" in said.err
    assert not (finished_records["unfinished"] / "passport.json").exists()


def test_damaged_weights_are_refused(fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished_records["classify"], folder)
    (folder / "model.safetensors").write_bytes(b"nonsense")
    said = fairtrial("audit", folder)
    assert said.code == 2
    assert "damaged" in said.err


@pytest.mark.parametrize(("what", "told"), [("rpoe", "did you mean 'rope'"), ("nowhere.toml", "nowhere.toml")])
def test_what_is_not_there_is_a_mistake_and_no_traceback(fairtrial: Call, what: str, told: str) -> None:
    said = fairtrial("audit", what)
    assert said.code == 2
    assert told in said.err


STRANGER = '''"""Peek: mixes the mean over time into every output."""
from fairtrial.model.part import Part, concatenate, parts

@parts.add("peek")
class Peek(Part):
    def merge(self, heads, site):
        return concatenate(heads + heads.mean(2, keepdim=True))
'''


@pytest.mark.usefixtures("plugins_leave")
def test_a_strangers_part_is_audited_too(fairtrial: Call, tmp_path: Path) -> None:
    path = tmp_path / "peek.py"
    path.write_text(STRANGER)
    said = fairtrial("audit", "peek", "--with", path, "--json")
    assert said.code == 1
    verdicts = {(finding["id"], finding["task"]): finding["verdict"] for finding in json.loads(said.out)["findings"]}
    assert verdicts["M3", "lm"] == "FAIL"
    assert verdicts["R1", "lm"] == "PASS"  # it was found in the fresh processes as well
