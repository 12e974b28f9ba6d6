"""The library: all that is there, quickly, and what runs moves."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from client import Client, until

from fairtrial.errors import Interrupted
from fairtrial.explore.library import Library
from fairtrial.trial import run_trial
from tiny import make_tiny


def test_records_and_their_numbers_are_listed(client: Client, shelf: Path) -> None:
    rows = {row["path"]: row for row in client.ask("library").json["rows"]}
    stored = json.loads((shelf / "classify" / "result.json").read_text())["tests"]["test"]
    told = rows["classify"]["headline"]
    assert (told["metric"], told["value"]) == ("accuracy", stored["accuracy"])
    assert [told["low"], told["high"]] == stored["interval"]
    assert rows["lm"]["headline"]["metric"] == "perplexity"
    assert rows["unfinished"]["state"] in ("running", "unfinished")
    assert "headline" not in rows["unfinished"]


def test_a_folder_that_is_itself_a_record_is_listed_and_opened(shelf: Path) -> None:
    library = Library(shelf / "classify")
    (row,) = library.rows()
    assert (row["path"], row["state"]) == (".", "finished")
    assert library.record(".").folder == shelf / "classify"


def test_damaged_and_hostile_records_are_rows_not_errors(shelf: Path, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    shutil.copytree(shelf / "classify", tmp_path / "cut")
    (tmp_path / "cut" / "result.json").write_text("{")
    (tmp_path / name).mkdir()
    (tmp_path / name / "trial.json").write_text("[]")
    rows = {row["path"]: row for row in Library(tmp_path).rows()}
    assert {row["state"] for row in rows.values()} == {"damaged"}
    assert set(rows) == {"cut", name}


def test_what_has_not_changed_is_not_read_again(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        shutil.copytree(shelf / "classify", tmp_path / name)
    library = Library(tmp_path)
    before = library.rows()
    read: list[str] = []
    module = sys.modules["fairtrial.explore.library"]
    whole = module.read_row
    monkeypatch.setattr(module, "read_row", lambda name, *rest: read.append(name) or whole(name, *rest))
    assert library.rows() == before
    assert not read
    (tmp_path / "two" / "result.json").unlink()
    assert [row["state"] for row in library.rows()] == ["finished", "running"]
    assert read == ["two"]


def test_a_person_finds_a_record_by_typing(open_page: Any) -> None:
    page = open_page("/")
    page.wait_for_selector("td a")
    until(lambda: page.locator("tbody tr").count() >= 3)
    page.keyboard.press("/")
    page.keyboard.type("language lm")
    until(lambda: page.locator("tbody tr").count() == 0)
    page.locator("input[type=search]").fill("lm")
    until(lambda: "filter=lm" in page.evaluate("location.search"))
    shown = page.locator("tbody tr").all_inner_texts()
    assert shown
    assert all("lm" in text for text in shown)
    page.reload()  # the address keeps it
    page.wait_for_selector("td a")
    assert page.locator("input[type=search]").input_value() == "lm"
    until(lambda: page.locator("tbody tr").all_inner_texts() == shown)


def test_a_new_record_appears_by_itself(open_page: Any, shelf: Path) -> None:
    page = open_page("/")
    page.wait_for_selector("td a")
    shutil.copytree(shelf / "classify", shelf / ".moving")
    (shelf / ".moving").rename(shelf / "new-one")
    try:
        page.wait_for_selector("text=new-one")
    finally:
        shutil.rmtree(shelf / "new-one")
    until(lambda: "new-one" not in page.inner_text("body"))


def test_a_running_trial_moves(open_page: Any, shelf: Path) -> None:
    stop, recipe = (
        threading.Event(),
        make_tiny("classify", shelf / "speechesdataset", "training.duration=1000000 steps"),
    )

    def train() -> None:
        with contextlib.suppress(Interrupted):
            run_trial(recipe, 5, shelf / "moving", stop=stop.is_set)

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    try:
        page = open_page("/?filter=moving")
        page.wait_for_selector(".chip.running")
        first = page.inner_text("tbody")
        until(lambda: page.inner_text("tbody") != first)
        assert "of 1000000" in page.inner_text("tbody")
    finally:
        stop.set()
        thread.join()
        shutil.rmtree(shelf / "moving")
