"""Results show themselves: as text, in a notebook, as Markdown, LaTeX, a frame, a figure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import html5lib
import pytest

import fairtrial as ft
from fairtrial.description import Result
from fairtrial.finding import Finding
from fairtrial.report.page import study_page
from fairtrial.results.audit import Audit
from fairtrial.results.study import Study

TEXT = "a warm and funny film"
MAKERS: dict[str, Callable[[dict[str, Any]], Result]] = {
    "run": lambda got: got["classifier"],
    "study": lambda got: got["finished"],
    "verdict": lambda got: got["finished"].verdict,
    "audit": lambda got: ft.audit_data(got["reviews"]),
    "baselines": lambda got: ft.baseline(got["reviews"], task="classify"),
    "attention": lambda got: got["language_model"].attention(TEXT),
    "parameters": lambda got: got["language_model"].parameters(),
    "surprisal": lambda got: got["language_model"].surprisal(TEXT),
    "predictions": lambda got: got["classifier"].predict([TEXT, "dull"]),
    "generation": lambda got: got["language_model"].generate("warm", tokens=4),
    "look": lambda got: got["classifier"].look([TEXT]),
    "comparison": lambda got: ft.compare([[1, 0, 1, 1]] * 5, [[0, 0, 1, 1]] * 5),
    "power": lambda got: ft.power(),
    "catalogue": lambda got: ft.catalogue("alibi"),
}
WITHOUT_PLOT = {"audit", "generation"}


@pytest.fixture(params=MAKERS)
def result(request: pytest.FixtureRequest, library: dict[str, Any]) -> tuple[str, Result]:
    return request.param, MAKERS[request.param](library)


def test_a_result_shows_itself(result: tuple[str, Result]) -> None:
    name, shown = result
    assert dataclasses.is_dataclass(shown)
    with pytest.raises(dataclasses.FrozenInstanceError):
        shown.folder = "elsewhere"  # type: ignore[attr-defined]
    text = repr(shown)
    assert text.strip()
    assert " object at 0x" not in text
    assert max(map(len, text.splitlines())) <= 120
    html = shown._repr_html_()
    html5lib.HTMLParser(strict=True).parseFragment(html)
    assert not re.search(r"<script|\bon\w+=|(?:src|href)\s*=\s*[\"']?(?!#)|@import|url\(", html, re.IGNORECASE)
    assert shown.to_markdown().strip()
    assert shown.to_latex().startswith("% needs")
    frame = shown.to_frame()
    assert len(frame) == len(shown.rows()) > 0
    if name in WITHOUT_PLOT:
        with pytest.raises(ft.FairtrialError, match="has no plot"):
            shown.plot()
    else:
        assert shown.plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_a_verdict_in_a_notebook_begins_as_the_page_does(library: dict[str, Any]) -> None:
    finished = library["finished"]
    page, shown = study_page(finished.files), finished._repr_html_()
    lead = re.search(r'<p class="first">.*?</p>', page)
    assert lead is not None
    assert lead[0] in shown
    assert 'class="chart"' in shown
    plain = library["classifier"]._repr_html_()
    assert ".chip" in shown.split("</style>")[0]
    assert ".chip" not in plain, "an output stores the style of what it shows, and no other"


def test_the_style_of_one_output_does_not_reach_another(library: dict[str, Any]) -> None:
    model = library["language_model"]
    maps, table = model.attention(TEXT)._repr_html_(), model.parameters()._repr_html_()
    own, other = (re.findall(r'^<div class="([\w-]+)"><style>\.([\w-]+) \{', html)[0] for html in (maps, table))
    assert own[0] == own[1] != other[0] == other[1], "else a later output would paint every cell of the maps"


def test_a_study_is_written_as_its_verdict_is(library: dict[str, Any]) -> None:
    study = library["finished"]
    assert study.to_latex() == study.verdict.to_latex()
    assert study.to_markdown() == study.verdict.to_markdown()


def test_numbers_are_plain_attributes(library: dict[str, Any]) -> None:
    run, verdict = library["classifier"], library["finished"].verdict
    assert 0.5 < run.metrics["test"].accuracy <= 1
    assert next(iter(run.curves)).name == "loss"
    (row,) = verdict.comparisons
    assert row.difference.low <= row.difference.estimate <= row.difference.high
    frame = verdict.to_frame()
    assert frame.loc[0, "difference"] == row.difference.estimate, "all digits"
    assert library["finished"].run("none", seed=1).metrics["test"].items == run.metrics["test"].items


def test_an_audit_has_passed_where_nothing_is_amber_or_red() -> None:
    def found(verdict: str, level: str) -> Finding:
        return Finding("M1", "check", 0.0, "0", verdict, "", task="lm", level=level)

    good, amber, red = found("PASS", "red"), found("FAIL", "amber"), found("FAIL", "red")
    for findings, level in (((good,), "pass"), ((good, amber), "amber"), ((red, amber), "red")):
        audit = Audit("x", findings)
        assert (audit.level, audit.passed) == (level, level == "pass")


def test_what_a_user_wrote_cannot_become_markup(library: dict[str, Any]) -> None:
    html = library["language_model"].surprisal("<script>alert(1)</script> warm")._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    html5lib.HTMLParser(strict=True).parseFragment(html)  # also where each token stands in an element of its own


def test_a_plan_is_shown_where_nothing_was_run(library: dict[str, Any], tmp_path: Any) -> None:
    plan = library["finished"].plan
    planned = Study(tmp_path, plan)
    assert "plan: 10 trials (2 variants x 5 seeds x 1 task)" in repr(planned)
    assert "10 trials" in planned._repr_html_()
    with pytest.raises(ft.BadInput):
        planned.verdict  # noqa: B018
    for folder, words in (
        (tmp_path, "it has no verdict.json"),
        (library["classifier"].folder, "is the record of one trial"),
    ):
        assert words in " ".join(repr(ft.Study(folder)).split())
        assert words in ft.Study(folder)._repr_html_()
    with pytest.raises(ft.BadInput, match="is a study, not a record"):
        ft.load(library["finished"].folder)
