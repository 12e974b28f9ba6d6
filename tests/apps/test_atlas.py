"""An atlas of tiny studies: run, judged as one family, shown, gone on with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from course_text import write_course
from fairtrial.apps.atlas import run, scaling
from fairtrial.apps.atlas.run import Atlas, at_hand, make_atlas
from fairtrial.apps.atlas.scaling import make_scaling
from fairtrial.apps.markdown import BY_HAND
from fairtrial.engines.job import InProcess
from fairtrial.errors import BadInput
from fairtrial.statistics.multiplicity import holm
from forked import auditing_here

STUDY = """
name = "{task} on {data}"
tasks = ["{task}"]
data = "{data}"
seeds = 5
match = "parameters"
variants = ["learned", "none", "learned+swiglu"]
[set]
"shape.layers" = 1
"shape.width" = 16
"shape.heads" = 2
"shape.hidden" = 16
"shape.length" = 12
"shape.classifier_hidden" = 8
"training.batch" = 8
"training.duration" = "{steps} steps"
"training.learning_rate" = 0.01
"scoring.full_context" = 1.0
"""


def study_file(room: Path, name: str, task: str, data: str, steps: int = 30) -> Path:
    path = room / f"atlas-{name}.toml"
    path.write_text(STUDY.format(task=task, data=data, steps=steps))
    return path


def sizes_file(room: Path, steps: int, learning_rate: float) -> Path:
    """A study of two variants and two seeds, as every size runs it."""
    path = study_file(room, "sizes", "classify", "talk", steps)
    text = path.read_text().replace("seeds = 5", "seeds = 2").replace("0.01", str(learning_rate))
    path.write_text(re.sub(r"match.*|, .learned.swiglu.", "", text))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Atlas, list[Path], dict[str, Any]]]:
    room = tmp_path_factory.mktemp("atlas")
    write_course(room / "talk")
    files = [study_file(room, "who", "classify", "talk"), study_file(room, "words", "lm", "talk")]
    files.append(study_file(room, "elsewhere", "lm", "moon"))
    options: dict[str, Any] = {"data": room, "out": room / "out", "page": room / "page.md"}
    with auditing_here(), pytest.MonkeyPatch.context() as patch:
        for module in (run, scaling):
            patch.setattr(module, "open_engine", lambda *asked: InProcess())
        found = make_atlas(files, **options)
        assert found is not None
        yield found, files, options


def test_all_comparisons_of_all_studies_are_one_family(made: tuple[Atlas, list[Path], dict[str, Any]]) -> None:
    rows = [row for task in made[0].verdict["tasks"].values() for row in task["comparisons"]]
    judged = [row for row in rows if row["verdict"] != "not_comparable"]
    assert {row["set"] for row in judged} >= {"test", "obama"}  # both studies are in it
    assert {row["family"] for row in judged} == {len(judged)}
    assert [row["p_adjusted"] for row in judged] == pytest.approx(holm([row["p"] for row in judged]))


def test_the_page_has_every_idea_with_its_answer_and_its_cost(made: tuple[Atlas, list[Path], dict[str, Any]]) -> None:
    atlas, _, _ = made
    text = atlas.page.read_text()
    assert "| positions | **none** |" in text or "| nothing | **none** |" in text
    assert "| feed-forward layers | **swiglu** |" in text
    assert "https://arxiv.org/abs/2002.05202" in text
    assert text.count("**swiglu**") == 3  # as it is, at the same parameters, beside its paper
    assert "- elsewhere: its data, moon, are not here" in text
    assert "- **grouped-query**: with two heads" in text  # no study has it
    assert (atlas.page.with_suffix("") / "differences.svg").read_bytes().startswith(b"<?xml")
    assert sorted(name for names in atlas.answers.values() for name in names) == ["none", "swiglu"]
    assert "None" not in text.replace("**none**", "")


def test_the_same_command_goes_on_with_what_is_there(
    made: tuple[Atlas, list[Path], dict[str, Any]], tmp_path: Path
) -> None:
    atlas, files, options = made
    kept = {path: path.stat().st_mtime_ns for path in options["out"].rglob("result.json")}
    remark = f"{BY_HAND}\n\nRead with care.\n"
    (tmp_path / "again.md").write_text(f"an older page\n\n{remark}")
    again = make_atlas(files, **options | {"page": tmp_path / "again.md"})
    assert again is not None
    assert {path: path.stat().st_mtime_ns for path in options["out"].rglob("result.json")} == kept
    assert again.page.read_text() == atlas.page.read_text().replace("(page/", "(again/") + f"\n{remark}"


def test_a_trend_is_the_slope_of_the_differences(
    made: tuple[Atlas, list[Path], dict[str, Any]], tmp_path: Path
) -> None:
    """`made` keeps its audits and its engine in this process."""
    file = sizes_file(tmp_path, steps=30, learning_rate=0.01)
    asked: dict[str, Any] = {"widths": (8, 16), "shares": (0.5, 1.0), "data": made[2]["data"], "out": tmp_path / "out"}
    found = make_scaling(file, **asked)
    assert found is not None
    (one,) = found.found
    at = {cell: each.difference or 0.0 for cell, each in one.cells.items()}
    width, text = one.trends
    assert width.slope == pytest.approx((at[16, 0.5] + at[16, 1.0] - at[8, 0.5] - at[8, 1.0]) / 2)
    assert text.slope == pytest.approx((at[8, 1.0] + at[16, 1.0] - at[8, 0.5] - at[16, 0.5]) / 2)
    assert width.low < width.slope < width.high
    assert [width.p_adjusted, text.p_adjusted] == pytest.approx(holm([width.p, text.p]))
    sizes = {path.parent.name: path.read_text() for path in (tmp_path / "out").glob("*/study.toml")}
    assert set(sizes) == {"width-8-text-0.5", "width-8-text-1", "width-16-text-0.5", "width-16-text-1"}
    assert '"shape.hidden" = 8' in sizes["width-8-text-1"]  # as narrow as the width
    text = found.page.read_text()
    assert "corrected over all 2 trends" in text
    assert "| 8 | " in text
    with pytest.raises(BadInput, match="at least two widths"):
        make_scaling(file, **asked | {"widths": (8,)})


def test_sizes_at_which_nothing_was_learned_have_no_trend(
    made: tuple[Atlas, list[Path], dict[str, Any]], tmp_path: Path
) -> None:
    """`made` keeps its audits and its engine in this process."""
    file = sizes_file(tmp_path, steps=1, learning_rate=1e-9)
    with pytest.raises(BadInput, match="'none' has no trend on test: neither has learned"):
        make_scaling(file, widths=(8, 16), shares=(0.5, 1.0), data=made[2]["data"], out=tmp_path / "out")


def test_what_is_no_part_of_an_atlas_is_refused(tmp_path: Path) -> None:
    both = study_file(tmp_path, "both", "lm", "sotu")
    both.write_text(both.read_text().replace('["lm"]', '["lm", "classify"]'))
    with pytest.raises(BadInput, match="one task and no search"):
        at_hand([both], None, None)
    with pytest.raises(BadInput, match="nothing can be run: words: its data, moon, are not here"):
        at_hand([study_file(tmp_path, "words", "lm", "moon")], tmp_path, None)
    other = study_file(tmp_path, "other", "lm", "sotu")
    other.write_text(other.read_text().replace('["learned", "none"', '["rope", "none"'))
    with pytest.raises(BadInput, match="different baselines: learned, rope"):
        at_hand([study_file(tmp_path, "words", "lm", "sotu"), other], None, None)
