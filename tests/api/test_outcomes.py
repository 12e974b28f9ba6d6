"""Outcomes of a study in one small file: judged from it, everything is as the study judged it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairtrial as ft
from course_text import write_course
from forked import auditing_here

pytestmark = pytest.mark.second


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> ft.Study:
    """Both tasks, several test sets."""
    folder, size = tmp_path_factory.mktemp("studies"), {"layers": 1, "width": 16, "hidden": 16}
    how: dict[str, Any] = {"seeds": 2, "steps": 3, "options": ft.StudyOptions(engine="here"), "quiet": True, **size}
    source = write_course(folder / "speechesdataset")
    with auditing_here():
        return ft.study(["none", "learned", "rope"], source, out=folder / "study", **how)


def test_what_is_stored_is_judged_as_the_study_was(study: ft.Study, tmp_path: Path) -> None:
    exact = ft.Outcomes.load(study.outcomes.save(tmp_path / "exact.npz"))
    assert exact.verdict().comparisons == study.verdict.comparisons
    assert exact.verdict().tasks == study.outcomes.verdict().tasks
    small = ft.Outcomes.load(study.outcomes.save(tmp_path / "small.npz", exact=False)).verdict()
    for ours, theirs in zip(small.comparisons, study.verdict.comparisons, strict=True):
        assert ours.difference.estimate == pytest.approx(theirs.difference.estimate, rel=1e-4, abs=1e-6)
    assert (tmp_path / "small.npz").stat().st_size < (tmp_path / "exact.npz").stat().st_size


def test_any_two_variants_are_judged_and_test_sets_are_pooled(study: ft.Study) -> None:
    whole = study.outcomes.tasks["lm"]
    (comparison,) = study.outcomes.pair("rope", "none", "lm", pooled=True).verdict().comparisons
    assert (comparison.variant, comparison.baseline) == ("rope", "none")
    assert len(whole.sets) == 3

    def mean(variant: str) -> float:
        nll, tokens = (
            np.concatenate([whole.variants[variant][name][array] for name in whole.sets], 1)
            for array in ("nll", "tokens")
        )
        return float((nll.sum(1) / tokens.sum(1)).mean())

    assert comparison.subset == "all", "nothing is left out here, so that the means are those of all items"
    assert comparison.difference.estimate == pytest.approx(mean("rope") - mean("none"))
    (other,) = study.outcomes.pair("none", "rope", "lm", pooled=True).verdict().comparisons
    assert other.difference.estimate == pytest.approx(-(comparison.difference.estimate or 0))
    with pytest.raises(ft.BadInput, match="no outcomes of 'alibi'"):
        study.outcomes.pair("alibi", "none")


def test_studies_are_joined_as_one_family(study: ft.Study) -> None:
    joined = ft.Outcomes.join("all", {"one": study.outcomes, "two": study.outcomes.pair("rope", "none", "classify")})
    assert list(joined.tasks) == ["one classify", "one lm", "two"]
    rows = [each for each in joined.verdict().comparisons if each.p_adjusted is not None]
    assert {each.family for each in rows} <= {len(rows)}


@pytest.mark.parametrize("content", [b"", b"nothing", None])
def test_files_that_are_none_are_refused(study: ft.Study, tmp_path: Path, content: bytes | None) -> None:
    path = study.outcomes.save(tmp_path / "outcomes.npz")
    if content is None:
        np.savez(path, header=np.frombuffer(b'{"name": "x", "tasks": {"lm": {"task": 3}}}', np.uint8))
    else:
        path.write_bytes(content)
    with pytest.raises(ft.BadInput, match="not a file of outcomes"):
        ft.Outcomes.load(path)
    with pytest.raises(ft.BadInput, match="cannot be read"):
        ft.Outcomes.load(tmp_path / "nowhere.npz")
