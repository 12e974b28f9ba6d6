"""A language model is scored beyond its training length, or says why it cannot be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.record import Record
from fairtrial.trial import run_trial


@pytest.fixture
def records(tiny_recipe: Callable[..., Any], tmp_path: Path) -> dict[str, Record]:
    return {
        name: run_trial(tiny_recipe("lm", f'parts=["{name}"]'), 0, tmp_path / name)
        for name in ("rope", "alibi", "learned")
    }


def test_parts_without_a_table_go_to_eight_times_the_length(
    records: dict[str, Record], fairtrial: Callable[..., Any]
) -> None:
    for name in ("rope", "alibi"):
        said = fairtrial("inspect", "length", records[name].folder, "--json")
        assert said.code == 0, said.err
        rows = [json.loads(line) for line in said.out.splitlines()]
        assert [row["times"] for row in rows if row["test"] == "obama"] == [1, 2, 4, 8]
        assert all(math.isfinite(row["perplexity"]) for row in rows)
        once = next(row for row in rows if row["test"] == "obama" and row["times"] == 1)
        assert once["perplexity"] == pytest.approx(records[name].result.tests["obama"].perplexity, rel=1e-5)
        assert len({row["perplexity"] for row in rows if row["test"] == "obama"}) == 4  # longer texts do matter


def test_learned_positions_say_that_they_end(records: dict[str, Record], fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("inspect", "length", records["learned"].folder, "--times", "1,2")
    assert said.code == 0
    assert said.out.count("not possible: learned positions end at 12") == 3


def test_classifiers_and_odd_lists_are_refused(
    finished_records: dict[str, Path], records: dict[str, Record], fairtrial: Callable[..., Any]
) -> None:
    assert fairtrial("inspect", "length", finished_records["classify"]).code == 2
    assert "times must be whole numbers" in fairtrial("inspect", "length", records["rope"].folder, "--times", "1,x").err
    assert fairtrial("inspect", "length", records["rope"].folder, "--times", "0").code == 2


def test_damaged_weights_are_noticed(records: dict[str, Record], fairtrial: Callable[..., Any]) -> None:
    path = records["rope"].folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    said = fairtrial("inspect", "length", records["rope"].folder)
    assert said.code == 2
    assert "checksum differs" in said.err
