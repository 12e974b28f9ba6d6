"""Pages in a real browser: on a desk and on a phone no table is cut, and a finger reads what a mouse reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from studies import write_study
from test_look_page import some_album
from test_page import records_page

from fairtrial.inspection.classifier import errors
from fairtrial.inspection.heads import look_page
from fairtrial.record import Record
from fairtrial.report.page import result_page, study_page
from fairtrial.results.study import StudyFiles
from fairtrial.trial import load

WIDTHS = (1280, 390)
# what is wider than the window, or than a box that hides the rest and cannot be scrolled
CUT = """() => [...document.querySelectorAll("table, svg, canvas, pre, select")].filter((part) => {
  const { right, width } = part.getBoundingClientRect();
  let edge = document.documentElement.clientWidth;
  for (let box = part; box !== document.body; box = box.parentElement) {
    const hides = getComputedStyle(box).overflowX;
    if (hides === "auto" || hides === "scroll") return box.getBoundingClientRect().right > edge + 1;
    if (hides !== "visible" && box !== part) edge = Math.min(edge, box.getBoundingClientRect().right);
  }
  return width && right > edge + 1;
}).map((part) => part.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory, finished_records: dict[str, Path]) -> dict[str, str]:
    """Every kind of page, with long names and many columns."""
    study = write_study(tmp_path_factory.mktemp("browser") / "study", finished_records, seeds=6)
    names = ("Franklin Delano Roosevelt", "Abraham Lincoln", "Internationalisation")
    found = errors(load(finished_records["classify"]), names=names)
    return {
        "study": study_page(StudyFiles.open(study)),
        "records": records_page([Record.open(finished_records[name]) for name in ("classify", "lm")], "Records"),
        "errors": result_page(found.describe()),
        "look": look_page(some_album(("we", "will", "not", "stay") * 8), Record.open(finished_records["lm"])),
    }


def opened(browser: Any, page: str, width: int, **more: Any) -> Any:
    """The page in a window of its own. What it reports as an error is one here, too."""
    shown = browser.new_page(viewport={"width": width, "height": 800}, **more)
    shown.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    shown.set_content(page)
    return shown


@pytest.mark.parametrize("kind", ["study", "records", "errors", "look"])
def test_nothing_is_cut_on_a_desk_or_a_phone(browser: Any, pages: dict[str, str], kind: str) -> None:
    for width in WIDTHS:
        shown = opened(browser, pages[kind], width)
        shown.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.evaluate(CUT) == [], width
        shown.evaluate("document.querySelectorAll('.table').forEach((box) => { box.style.overflow = 'hidden'; })")
        if kind == "study":  # the control: tables that cannot be scrolled would be cut
            assert bool(shown.evaluate(CUT)) == (width == 390)
        shown.close()
