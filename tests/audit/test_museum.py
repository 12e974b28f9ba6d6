"""The museum: exhibits name checks that exist and scripts that can be read; what counts is caught and mended."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairtrial.audit.run import CHECKS
from fairtrial.finding import FAIL, PASS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import museum  # noqa: E402


def test_exhibits_are_whole() -> None:
    assert len({each.name for each in museum.EXHIBITS}) == len(museum.EXHIBITS)
    assert {each.fault for each in museum.EXHIBITS} == museum.FAULTS.keys()
    for exhibit in museum.EXHIBITS:
        assert set(exhibit.checks) <= {check.id for check in CHECKS}
        assert "fairtrial" not in exhibit.script
        compile(exhibit.script, exhibit.name, "exec")
        compile(exhibit.file, exhibit.name, "exec")


def passport(exhibit: museum.Exhibit, *failed: str, value: float | None = 1.0) -> dict[str, Any]:
    ids = dict.fromkeys((*exhibit.checks, *failed, "S1"))
    rows = [{"id": id, "verdict": FAIL if id in failed else PASS, "value": value, "meaning": "so."} for id in ids]
    return {"script": "it changes by 0", "findings": rows}


def test_caught_is_what_fails_every_check_of_a_fault_and_none_of_them_when_mended() -> None:
    exhibit = next(each for each in museum.EXHIBITS if len(each.checks) > 1 and each.mended)
    faulty, mended = exhibit.releases
    caught, clean = passport(exhibit, *exhibit.checks), passport(exhibit)
    assert museum.is_caught(exhibit, {faulty: caught, mended: clean})
    assert museum.is_caught(exhibit, {faulty: caught, mended: passport(exhibit, "S1")})
    raised = passport(exhibit, *exhibit.checks, value=None)
    for one, other in (
        (passport(exhibit, exhibit.checks[0]), clean), (raised, clean), (caught, passport(exhibit, exhibit.checks[-1])),
        (caught, {"error": "cannot be installed"}), ({"error": "cannot be installed"}, clean),
    ):  # fmt: skip
        assert not museum.is_caught(exhibit, {faulty: one, mended: other})


def test_the_page_counts_only_what_is_clean_and_tells_what_could_not_be_shown() -> None:
    found = {
        each.name: {each.faulty: passport(each, *each.checks)} | ({each.mended: passport(each)} if each.mended else {})
        for each in museum.EXHIBITS
    }
    never = [each for each in museum.EXHIBITS if not each.mended]
    first, second = (each for each in museum.EXHIBITS[:2])
    found[first.name][first.mended] = passport(first, "S1")
    found[second.name][second.faulty] = {"error": "cannot be installed: no wheel"}
    page = museum.page(found)
    count = len(museum.EXHIBITS)
    assert (
        f"{count - 1} networks with a released fault; {count - 2 - len(never)} of them have no finding at all" in page
    )
    assert f"- {second.package} {second.faulty}, {second.name}: {second.faulty}: cannot be installed" in page
    assert f"| `{second.shown}` |" not in page


def test_an_exhibit_that_is_done_is_not_run_again_unless_it_asks_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exhibit, asked = museum.EXHIBITS[0], []

    def ask(exhibit: Any, release: str, folder: Path, findings: Any) -> dict[str, Any]:
        asked.append(findings)
        return passport(exhibit, *exhibit.checks)

    monkeypatch.setattr(museum, "ask", ask)
    found, new = museum.look_at(exhibit, exhibit.faulty, tmp_path)
    assert museum.look_at(exhibit, exhibit.faulty, tmp_path) == (found, False)
    assert new
    other = replace(exhibit, asks="print(1)")  # another script: the passport stays
    museum.look_at(other, exhibit.faulty, tmp_path)
    museum.look_at(replace(other, config={}), exhibit.faulty, tmp_path)
    assert asked == [None, found["findings"], None]
