"""Findings: the worst of many, their table, and the JSON that is stored."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from fairtrial.finding import (
    AMBER,
    FAIL,
    PASS,
    RED,
    REPORT,
    Finding,
    Passport,
    summary,
    worst,
)
from fairtrial.results.audit import Audit
from fairtrial.typed import WrongValue


def finding(id: str, verdict: str, level: str = "red", task: str = "lm", value: float = 0.0) -> Finding:
    return Finding(
        id=id,
        name=f"check {id}",
        task=task,
        level=level,
        value=value,
        limit="1e-09",
        verdict=verdict,
        meaning=f"Meaning of {id}.",
    )


def test_the_summary_names_every_failure_red_ones_first() -> None:
    assert summary([finding("M3", PASS), finding("M8", REPORT, "amber")]) == "PASS: 2 checks"
    assert summary([finding("M3", PASS), finding("M14", FAIL, "amber")]) == "FAIL: M14 check M14 (amber)"
    both = [finding("M14", FAIL, "amber"), finding("R1", FAIL)]
    assert summary(both) == "FAIL: R1 check R1, M14 check M14 (amber)"
    assert summary([finding("M3", FAIL), finding("M3", FAIL, task="classify")]) == "FAIL: M3 check M3"


def test_the_table_has_a_row_and_a_sentence_for_every_finding() -> None:
    text = repr(Audit("rope", (finding("M6", PASS, task="classify"), finding("M3", FAIL, value=0.25))))
    assert text.startswith("rope: FAIL: M3 check M3")
    assert text.index("in an encoder") < text.index("M6") < text.index("in a decoder") < text.rindex("M3 ")
    assert "Meaning of M6." not in text  # what passed needs no explanation
    row = next(line for line in text.splitlines() if line.strip().startswith("M3"))
    assert row.split()[-7:] == ["red", "0.25", "1e-09", "FAIL", "Meaning", "of", "M3."]


def test_long_sentences_are_wrapped() -> None:
    long = replace(finding("M3", FAIL), meaning="word " * 80)
    assert max(map(len, repr(Audit("rope", (long,))).splitlines())) <= 120


def test_a_finding_is_plain_json_whatever_was_measured() -> None:
    assert json.loads(json.dumps(finding("M1", FAIL, value=math.inf).to_plain(), allow_nan=False))["value"] is None


def data_finding(id: str, verdict: str, **more: Any) -> Finding:
    fields = {"name": "duplicates", "where": "test", "value": 0.5, "shown": "1 of 2", "limit": "0", "meaning": "Bad."}
    return Finding(id=id, verdict=verdict, **fields | more)


def test_the_worst_finding_decides() -> None:
    assert worst([]) == worst([finding("M3", PASS), finding("M8", REPORT)]) == "pass"
    assert worst([finding("M3", PASS), finding("M14", FAIL, "amber")]) == "amber"
    assert worst([finding("M14", FAIL, "amber"), finding("M3", FAIL)]) == "red"
    assert worst([data_finding("D1", AMBER), data_finding("D3", PASS)]) == "amber"
    assert worst([data_finding("D1", AMBER), data_finding("D3", RED)]) == "red"
    assert Passport.of("rope", [finding("M14", FAIL, "amber")]).passed is False
    assert Passport.of("rope", [finding("M8", REPORT, "amber")]).passed is True


def test_of_data_the_summary_names_the_most_severe_and_the_table_shows_examples() -> None:
    found = [data_finding("D1", RED, examples=("test.tsv:1",)), data_finding("D3", AMBER), data_finding("D7", PASS)]
    assert summary(found) == "RED: D1 duplicates"
    assert summary(found[1:]) == "AMBER: D3 duplicates"
    assert "Bad. - test.tsv:1" in repr(Audit("data", tuple(found)))


def test_findings_are_read_as_they_were_written() -> None:
    network, data = finding("M3", FAIL, value=0.25), data_finding("D1", RED, examples=("a", "b"))
    stored = [json.loads(json.dumps(found.to_plain())) for found in (network, data)]
    assert stored[0].keys() == {"id", "name", "task", "level", "value", "limit", "verdict", "meaning"}
    assert stored[1].keys() == {"id", "name", "where", "value", "shown", "limit", "verdict", "meaning", "examples"}
    assert [Finding.from_plain(fields) for fields in stored] == [network, data]
    assert Finding.from_plain(stored[0] | {"value": None}).value == math.inf
    for damaged in ({}, {"id": "M3"}, stored[0] | {"value": "much"}):
        with pytest.raises(WrongValue):
            Finding.from_plain(damaged)
