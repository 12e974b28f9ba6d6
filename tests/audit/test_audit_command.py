"""`fairtrial audit`: the table, the JSON, the exit code, and the passport that stays in the record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.audit import subject
from fairtrial.audit.run import CHECKS
from fairtrial.recipe import PartChoice, built_in_recipe, with_settings, write_recipe
from fairtrial.stored import read_plain

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


@pytest.mark.usefixtures("audits_here")
def test_a_recipe_that_cheats_exits_1_and_the_table_says_how(fairtrial: Call, recipe_file: Call) -> None:
    said = fairtrial("audit", recipe_file("lm", "reweight"))
    assert said.code == 1
    assert "sees the future" in said.out
    assert "in a decoder" in said.out
    assert "in an encoder" not in said.out
    assert "FAIL: M3 sees the future, M4" in " ".join(said.out.split("\n\n")[0].split())
    row = next(line for line in said.out.splitlines() if line.strip().startswith("M3 "))
    assert "1e-09" in row
    assert "FAIL" in row


@pytest.mark.usefixtures("audits_here")
def test_a_trained_record_keeps_its_passport(
    fairtrial: Call, finished_records: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(finished_records["lm"], folder)
    said = fairtrial("audit", folder)
    assert said.code == 0, said.out
    passport = read_plain(folder / "passport.json")
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
    path = folder / "model.safetensors"
    flipped = bytearray(path.read_bytes())
    flipped[-5] ^= 1
    for content in (b"nonsense", bytes(flipped)):
        path.write_bytes(content)
        said = fairtrial("audit", folder)
        assert said.code == 2
        assert "damaged" in said.err


def test_an_unknown_part_or_file_is_an_error_and_no_traceback(fairtrial: Call) -> None:
    for what, message in (("rpoe", "did you mean 'rope'"), ("nowhere.toml", "nowhere.toml")):
        said = fairtrial("audit", what)
        assert said.code == 2
        assert message in said.err


PLUGIN = '''"""Peek: mixes the mean over time into every output."""
from fairtrial.model.part import Part, concatenate, parts

@parts.add("peek")
class Peek(Part):
    def merge(self, heads, context):
        return concatenate(heads + heads.mean(2, keepdim=True))
'''


@pytest.mark.usefixtures("plugins_leave")
def test_a_plugin_is_audited_in_encoder_and_decoder(
    fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In new processes too, which import nothing from the working folder."""
    path, here = tmp_path / "peek.py", tmp_path / "here"
    path.write_text(PLUGIN)
    here.mkdir()
    (here / "queue.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n")
    monkeypatch.chdir(here)
    monkeypatch.setattr(subject, "CALLS", 20)
    said = fairtrial("audit", "peek", "--with", path, "--json")
    assert said.code == 1
    findings = json.loads(said.out)["findings"]
    verdicts = {(finding["id"], finding["task"]): finding["verdict"] for finding in findings}
    assert verdicts["M3", "lm"] == "FAIL"
    assert verdicts["R1", "lm"] == verdicts["R1", "classify"] == "PASS"
    assert not (tmp_path / "ran").exists()
    assert verdicts["M1", "classify"] == "PASS"
    assert {id for id, _ in verdicts} <= {check.id for check in CHECKS}
    assert all(finding["meaning"].endswith(".") for finding in findings)
