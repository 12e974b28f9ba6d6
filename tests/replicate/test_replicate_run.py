"""A whole replication of tiny models: run, answered, shown, gone on with."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.engines.cores import Cores
from fairtrial.replicate.library import studies_of
from fairtrial.replicate.page import write_page
from fairtrial.replicate.run import Replication, estimate, find_answers, run_all
from fairtrial.replicate.settings import Wanted, at_hand
from fairtrial.study.run import Wishes

SMALL = {
    "shape.layers": 2, "shape.width": 16, "shape.hidden": 16, "shape.length": 12, "shape.classifier_hidden": 8,
    "training.batch": 8, "training.duration": "6 steps", "scoring.curve_every": "3 steps",
}  # fmt: skip


def tiny(folder: Path, *reports: str) -> Wanted:
    wanted = at_hand(studies_of(reports), folder)
    studies = {key: replace(study, settings={**study.settings, **SMALL}) for key, study in wanted.studies.items()}
    return Wanted(studies, wanted.left_out)


def answered(wanted: Wanted, out: Path, *reports: str) -> Replication:
    return find_answers(
        list(reports), wanted, out, lambda text: None, seconds=61.0, width=2, quick=False, command="fairtrial replicate"
    )


@pytest.fixture(scope="module")
def replication(tmp_path_factory: pytest.TempPathFactory) -> tuple[Wanted, Path]:
    """Reports r0 and r1 on a small folder in the course's form."""
    from conftest import write_course

    room = tmp_path_factory.mktemp("replication")
    wanted = tiny(write_course(room / "speeches"), "r0", "r1")
    run_all(wanted, room / "out", Cores(2), Wishes(), lambda kind, facts: None, lambda: False)
    return wanted, room / "out"


def test_every_claim_is_answered_out_of_the_records(replication: tuple[Wanted, Path]) -> None:
    found = answered(*replication, "r0", "r1")
    outcomes = {each.claim.id: each.outcome for each in found.answers}
    assert outcomes.keys() == {"r0-rope", "r0-disentangled", "r0-obama", "r0-layers", "r1-window"}
    assert set(outcomes.values()) <= {"holds", "does not hold", "cannot be told"}
    window = next(each for each in found.answers if each.claim.id == "r1-window")
    assert window.decided is not None
    assert window.decided.comparison.items == 36  # 12 sentences of each of three speakers, as one
    assert window.decided.comparison.seeds == 5


def test_figures_are_those_of_the_records(replication: tuple[Wanted, Path]) -> None:
    wanted, out = replication
    found = answered(wanted, out, "r1")
    row = next(row for row in found.retried if row.figure.variant == "window 8" and row.figure.set == "obama")
    records = found.evidences["speeches-lm"].records["window 8"]
    assert row.by_seed == tuple(each.result["tests"]["obama"]["window_perplexity"] for each in records.values())
    picked = next(row for row in found.retried if row.figure.picked_on_test)
    last = next(row for row in found.retried if row.figure.measure == "accuracy" and not row.figure.picked_on_test)
    assert all(best >= end for best, end in zip(picked.by_seed, last.by_seed, strict=True))


def test_the_page_is_whole_and_says_the_same_twice(replication: tuple[Wanted, Path], tmp_path: Path) -> None:
    found = answered(*replication, "r0", "r1")
    page = write_page(found, tmp_path / "five-reports.md")
    text = page.read_text()
    for each in found.answers:
        assert each.claim.says in text
    for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (tmp_path / name).read_bytes().startswith(b"<?xml")
    assert str(tmp_path) not in text
    pictures = {path.name: path.read_bytes() for path in (tmp_path / "five-reports").iterdir()}
    assert len(pictures) == 4
    again = write_page(answered(*replication, "r0", "r1"), tmp_path / "again" / "five-reports.md")
    assert again.read_text() == text
    assert {path.name: path.read_bytes() for path in (tmp_path / "again" / "five-reports").iterdir()} == pictures


def test_what_is_there_is_not_run_again(replication: tuple[Wanted, Path]) -> None:
    wanted, out = replication
    plans = estimate(wanted, out, Cores(2), lambda kind, facts: None, lambda: False, write=False)
    assert {plan["left"] for plan in plans.values()} == {0}
    more = {key: study.with_seeds(6) for key, study in wanted.studies.items()}
    plans = estimate(Wanted(more, ()), out, Cores(2), lambda kind, facts: None, lambda: False, write=False)
    assert {key: plan["left"] for key, plan in plans.items()} == {
        key: len(study.variants) for key, study in more.items()
    }


def test_a_user_s_mistake_is_told(fairtrial: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, _, err = fairtrial("replicate", "r7", "--data", tmp_path)
    assert code == 2
    assert "no report is called 'r7'" in err
    code, _, err = fairtrial("replicate")
    assert code == 2
    assert "--quick" in err
    code, _, err = fairtrial("replicate", "--data", tmp_path / "nowhere")
    assert code == 2
    assert "is not a folder" in err
