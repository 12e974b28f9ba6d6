"""A passport as text."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from fairtrial.finding import FAIL, PASS, REPORT, Finding, markdown_row, summary, table_lines


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


def test_every_failure_is_told_those_that_block_first() -> None:
    assert summary([finding("M3", PASS), finding("M8", REPORT, "amber")]) == "PASS: 2 checks"
    assert summary([finding("M3", PASS), finding("M14", FAIL, "amber")]) == "FAIL: M14 check M14 (amber)"
    both = [finding("M14", FAIL, "amber"), finding("R1", FAIL)]
    assert summary(both) == "FAIL: R1 check R1, M14 check M14 (amber)"
    assert summary([finding("M3", FAIL), finding("M3", FAIL, task="classify")]) == "FAIL: M3 check M3"


def test_the_table_has_a_row_and_a_sentence_for_every_finding() -> None:
    lines = list(table_lines([finding("M6", PASS, task="classify"), finding("M3", FAIL, value=0.25)]))
    text = "\n".join(lines)
    assert text.index("in an encoder") < text.index("M6") < text.index("in a decoder") < text.index("M3")
    assert "Meaning of M6." in text
    row = next(line for line in lines if line.strip().startswith("M3"))
    assert row.split()[-4:] == ["red", "0.25", "1e-09", "FAIL"]


def test_long_sentences_are_wrapped() -> None:
    long = replace(finding("M3", PASS), meaning="word " * 80)
    assert max(map(len, table_lines([long], width=100))) <= 100


def test_a_markdown_row_names_what_is_wrong() -> None:
    assert markdown_row("rope", [finding("M3", PASS), finding("M6", PASS, task="classify")]) == (
        "| `rope` | encoder, decoder | PASS |  |"
    )
    assert "| FAIL | M3, M6 |" in markdown_row("reweight", [finding("M3", FAIL), finding("M6", FAIL)])
    assert "| FAIL | M11 (amber) |" in markdown_row("normed", [finding("M11", FAIL, "amber")])
    blind = finding("M8", REPORT, "amber", "classify")
    assert "sees no word order (encoder)" in markdown_row("none", [blind])


def test_a_finding_is_plain_json_whatever_was_measured() -> None:
    assert json.loads(json.dumps(finding("M1", FAIL, value=math.inf).to_dict(), allow_nan=False))["value"] is None
