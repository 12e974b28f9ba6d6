"""The study's page: valid HTML that needs no network, verdict first, stamped, escaped, whole or in part."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import html5lib
import numpy as np
import pytest
from html5lib.html5parser import ParseError
from policies import assert_policy
from studies import write_study

from fairtrial.errors import BadInput
from fairtrial.report.page import study_page, write_study_page
from fairtrial.results.study import StudyFiles
from fairtrial.stored import write_document

HOSTILE = "\"><script>alert('1')</script>"
SECTIONS = {
    "trials": "Training loss",
    "study.toml": "Save these lines as",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, finished_records: dict[str, Path]) -> Path:
    """To look at, not to change."""
    return write_study(tmp_path_factory.mktemp("study") / "mine", finished_records, seeds=6)


@pytest.fixture
def own(study: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(study, tmp_path / "own"))


@pytest.fixture(scope="module")
def page(study: Path) -> str:
    return study_page(StudyFiles.open(study))


def parsed(page: str) -> Element:
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def words_of(element: Element) -> str:
    return re.sub(r"\s+", " ", " ".join(element.itertext())).replace("−", "-").replace("\u00a0", " ")


def body_text(page: str) -> str:
    body = parsed(page).find("body")
    assert body is not None
    return words_of(body)


def rows_naming(tree: Element, name: str) -> Iterator[Element]:
    """Rows of tables whose first cell begins with the name."""
    for row in tree.iter("tr"):
        first = next(iter(row), None)
        if first is not None and words_of(first).split()[:1] == [name]:
            yield row


def change(folder: Path, edit: Callable[[dict[str, Any]], None], name: str = "verdict.json") -> None:
    value = json.loads((folder / name).read_text())
    del value["checksum"]
    edit(value)
    write_document(folder / name, value)


def test_the_page_is_valid_and_the_checker_can_refuse(page: str) -> None:
    parsed(page)
    for bad in ("<p>", "<!doctype html><table><p></table>", "<!doctype html><p></b>"):
        with pytest.raises(ParseError):
            parsed(bad)
    identities = re.findall(r'\bid="([^"]*)"', page)
    assert len(identities) == len(set(identities)) >= 1
    assert {target[1:] for target in re.findall(r'href="([^"]*)"', page)} <= set(identities)


def test_nothing_comes_from_outside_and_nothing_runs(page: str) -> None:
    for element in parsed(page).iter():
        tag = str(element.tag).split("}")[-1]
        assert tag not in {"script", "iframe", "link", "object", "embed", "img", "form"}
        assert not [name for name in element.attrib if str(name).startswith("on") or str(name) in ("src", "srcset")]
    assert not re.search(r"url\(|@import|https?:", page)
    assert_policy(page)


def test_the_verdict_comes_first_and_every_sentence_is_told(study: Path, page: str) -> None:
    text = body_text(page)
    verdict = json.loads((study / "verdict.json").read_text())
    told = [sentence["text"] for sentence in verdict["sentences"]]
    places = [text.index(sentence) for sentence in told]
    assert min(places) == places[0] < text.index("undecided")
    assert max(places) < text.index("Scores on")


def test_tables_stand_in_their_order(page: str) -> None:
    text = body_text(page)
    first = text[text.index("Difference from learned") : text.rindex("Decoder language model")]
    order = ["Difference from learned", "Scores on", "Training loss", "Compared with learned",
             "Compared with models that need no transformer", "Cost",
             "Test items that also occur in the training set", "Use of the test sets",
             "Leak audits", "Search"]  # fmt: skip
    places = [first.index(title) for title in order]
    assert places == sorted(places)
    assert "Trials that failed" in first
    assert "87.6 instead of 84.7" in first


def test_every_comparison_shows_its_figures_and_verdict(study: Path, page: str) -> None:
    tree = parsed(page)
    for task in json.loads((study / "verdict.json").read_text())["tasks"].values():
        for each in task["comparisons"]:
            shown = each["difference"]["estimate"]
            shown = 100 * np.expm1(shown) if each["metric"]["name"] == "perplexity" else shown
            rows = [words_of(row) for row in rows_naming(tree, each["variant"])]
            assert any(f"{shown:+.1f} [" in row for row in rows), (each["variant"], shown)


def test_every_chart_is_spoken_with_its_numbers(page: str) -> None:
    charts = [each for each in parsed(page).iter() if str(each.tag).endswith("svg") and each.get("role") == "img"]
    assert len(charts) == 10
    assert all(re.search(r"\d", chart.get("aria-label", "")) for chart in charts)
    silent = [each for each in parsed(page).iter() if str(each.tag).endswith("svg") and not each.get("role")]
    assert all(each.get("aria-hidden") == "true" or each.get("class") == "field" for each in silent)


def test_a_red_variant_is_stamped_in_every_row_and_chart(page: str) -> None:
    tree = parsed(page)
    rows = [words_of(row) for row in rows_naming(tree, "fade")]
    assert len(rows) > 20
    assert all("failed leak audit" in row for row in rows)
    assert not any("failed leak audit" in words_of(row) for row in rows_naming(tree, "rope"))
    labels = re.findall(r'aria-label="([^"]*fade[^"]*)"', page)
    strips = [label for label in labels if "95% interval" in label or "range over seeds" in label]
    assert len(strips) > 8
    assert all("fade [failed leak audit]" in label for label in strips)


def test_without_a_red_passport_nothing_is_stamped(own: Path) -> None:
    def forgive(verdict: dict[str, Any]) -> None:
        for task in verdict["tasks"].values():
            task["audits"]["fade"]["level"] = "pass"

    change(own, forgive)
    assert 'class="stamp"' not in study_page(StudyFiles.open(own))


@pytest.mark.parametrize("piece", SECTIONS)
def test_what_is_missing_is_left_out(page: str, own: Path, piece: str) -> None:
    assert SECTIONS[piece] in page
    shutil.rmtree(own / piece) if (own / piece).is_dir() else (own / piece).unlink()
    without = study_page(StudyFiles.open(own))
    parsed(without)
    assert SECTIONS[piece] not in without
    assert "Compared with" in without


def test_the_smallest_study_has_a_page(tmp_path: Path) -> None:
    for tasks in ({}, {"classify": {}}, {"new task": {"scores": {"a": {}}}}):
        write_document(tmp_path / "verdict.json", {"sentences": [], "tasks": tasks})
        parsed(study_page(StudyFiles.open(tmp_path)))


def test_names_and_texts_of_others_are_escaped(finished_records: dict[str, Path], tmp_path: Path) -> None:
    gains = {"learned": 0.0, "x<b>y": 1.0}
    folder = write_study(tmp_path / "study", finished_records, seeds=5, gains=gains)
    (folder / "study.toml").write_text(f"name = '{HOSTILE}'")

    def poison(verdict: dict[str, Any]) -> None:
        verdict["name"] = HOSTILE
        verdict["sentences"].append({"text": HOSTILE, "task": "classify"})
        task = verdict["tasks"]["classify"]
        task["failures"] = [{"variant": HOSTILE, "seed": 1, "error": HOSTILE}]
        task["scores"][HOSTILE] = task["scores"]["learned"]
        task["audits"][HOSTILE] = {"level": "red", "failed": [HOSTILE]}
        verdict["tasks"][HOSTILE] = task

    change(folder, poison)
    page = study_page(StudyFiles.open(folder))
    tree = parsed(page)
    assert not list(tree.iter("script"))
    assert len([each for each in tree.iter("b") if words_of(each).startswith("y")]) == 0
    assert words_of(tree).count("<script>alert('1')</script>") > 10


def test_numbers_without_a_value_never_reach_the_page(own: Path) -> None:
    def spoil(verdict: dict[str, Any]) -> None:
        each = verdict["tasks"]["classify"]["comparisons"][0]
        each["difference"].update(estimate=float("nan"), low=float("-inf"), high=None)
        score = verdict["tasks"]["classify"]["scores"]["rope"]["test"]["clean"]
        score["mean"]["estimate"] = float("inf")

    change(own, spoil)
    told = body_text(study_page(StudyFiles.open(own))).split("How to repeat it Save")[0]
    told = told.replace("loss is nan", "")  # the error of a trial that failed
    assert "rope" in told
    assert not re.search(r"\b(nan|inf|None)\b", told)


def test_a_study_of_two_tasks_stays_below_a_megabyte(page: str) -> None:
    """The records' curves are in it, too."""
    assert len(page.encode()) < 1_000_000


def test_links_out_of_the_folder_are_refused(own: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"sentence": "a secret"}')
    for name in ("study.toml",):
        copy = Path(shutil.copytree(own, tmp_path / name.replace("/", "-")))
        (copy / name).unlink()
        (copy / name).symlink_to(secret)
        with pytest.raises(BadInput, match="is a symlink"):
            study_page(StudyFiles.open(copy))


def test_the_command_writes_the_same_page_again(own: Path, page: str, fairtrial: Callable[..., Any]) -> None:
    first = write_study_page(own).read_bytes()
    said = fairtrial("verdict", own, "--out", own / "report.html")
    assert said.code == 0
    assert str((own / "report.html").resolve()) in said.out
    assert (own / "report.html").read_bytes() == first == page.encode()
    assert json.loads(fairtrial("verdict", own, "--out", own / "report.html", "--json").out)["bytes"] == len(first)


@pytest.mark.parametrize("name", ["report.pdf", "report.PNG", "report"])
def test_a_page_is_never_written_under_another_ending(own: Path, tmp_path: Path, name: str) -> None:
    study = StudyFiles.open(own)
    with pytest.raises(BadInput, match=r"\.html"):
        study.verdict.write_page(tmp_path / name)
    assert not (tmp_path / name).exists()
    assert study.verdict.write_page(tmp_path / "page.html").read_text().startswith("<!doctype html>")
