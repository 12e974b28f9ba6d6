"""A stranger's record: looking at it runs nothing, reads and writes nothing outside it, and its text stays text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import BadInput
from fairtrial.record import Record
from fairtrial.report.render import render
from fairtrial.results.records import describe_record
from sealed import plain_of, reseal

HOSTILE = "<script>alert(1)</script>\x1b]0;owned\x07"


def poison(value: Any) -> Any:
    """Hostile text in every place of a record that may hold a stranger's words."""
    if isinstance(value, dict):
        return {key: poison(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [poison(inner) for inner in value]
    return HOSTILE + value if isinstance(value, str) else value


@pytest.fixture
def trapped(finished_records: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "trapped"
    shutil.copytree(finished_records["classify"], folder)
    trial, result = (plain_of(folder / name) for name in ("trial.json", "result.json"))
    trial = {**poison(trial), "notes": [HOSTILE], "counts": trial["counts"] | {"documents": {HOSTILE: 5}}}
    result["tests"] = {HOSTILE: result["tests"]["test"]}
    events = (folder / "events.jsonl").read_text()
    (folder / "events.jsonl").write_text(events.replace('"validation"', json.dumps(HOSTILE)))
    recipe = (folder / "recipe.toml").read_text()
    (folder / "recipe.toml").write_text(recipe.replace('"default"', json.dumps(HOSTILE)))
    reseal(folder, trial=trial, result=result)
    for name in ("conftest.py", "sitecustomize.py", "json.py", "fade.py", "page.html"):
        (folder / name).write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n{{{{ 1 / 0 }}}}")
    return folder


def test_a_trapped_record_runs_nothing_and_its_text_is_escaped(
    trapped: Path, tmp_path: Path, fairtrial: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trapped)
    said = fairtrial("show", trapped, "--html", tmp_path / "page.html")
    assert said.code == 0, said.err
    page = (tmp_path / "page.html").read_text()
    assert not (tmp_path / "canary").exists()
    assert page.count("&lt;script&gt;") > 10  # it did arrive
    assert "<script" not in page
    shown = render(describe_record(Record.open(trapped)), "terminal")
    assert not any(character in shown for character in "\x1b\x07")
    assert json.loads(fairtrial("show", trapped, "--json").out)["trial"]["notes"] == [HOSTILE]


@pytest.mark.parametrize("name", ["events.jsonl", "trial.json", "checkpoints", "run.lock", "extra"])
def test_a_record_that_links_out_of_itself_is_neither_read_nor_written(
    name: str, finished_records: dict[str, Path], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    folder, outside = tmp_path / "trapped", tmp_path / "outside"
    shutil.copytree(finished_records["unfinished"], folder)
    shutil.move(folder / name, outside) if (folder / name).exists() else outside.write_text("precious")
    before = outside.read_bytes() if outside.is_file() else None
    (folder / name).symlink_to(outside)
    for command in ("show", "resume"):
        said = fairtrial(command, folder)
        assert said.code == 2
        assert f"{folder / name} is a link" in said.err
    assert before is None or outside.read_bytes() == before


def test_a_pipe_in_a_record_does_not_hang_its_reader(tmp_path: Path) -> None:
    (tmp_path / "trial.json").write_text("{}")
    Record.open(tmp_path)
    os.mkfifo(tmp_path / "events.jsonl")
    with pytest.raises(BadInput, match="plain files only"):
        Record.open(tmp_path)
