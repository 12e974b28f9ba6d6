"""Parts and puzzles: the page shows what Python says, and a person can use every view."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from client import WHILE_RUNNING, Client, until

from fairtrial import puzzles
from fairtrial.explore.server import RequestParams, plain, to_json
from fairtrial.results.study import read_verdict

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
NAMED = {"tasks", "sets", "scores", "variants", "classes", "copies", "files", "curves"}  # tables by names of others
DECIDING = {"kind", "state", "task", "verdict", "level", "metric", "items", "set", "variant", "against", "baseline"}
MARKED = {
    "/": "td a", f"/playground?a=lm{quote(HOSTILE)}&b=classify{quote(HOSTILE)}": "[data-side=b] .maps canvas",
    "/parts?part=alibi": "figure svg", "/puzzles": "text=possible",
}  # fmt: skip


def test_a_study_is_shown_as_its_verdict_says(client: Client, study: str, shelf: Path) -> None:
    assert "running" in WHILE_RUNNING

    def finished() -> list[Any]:  # a listing may be a moment old
        rows = client.ask("library").json["rows"]
        return [row for row in rows if (row["path"], row["state"]) == (study, "finished")]

    (row,) = until(finished)
    assert row["done"] == 4
    verdict = read_verdict(shelf / study / "verdict.json").tasks["classify"]
    for own, shown in zip(verdict.comparisons, row["headlines"], strict=True):
        difference = own.difference
        expected = {"difference": difference.estimate, "low": difference.low, "high": difference.high, "p": own.p}
        assert {name: shown[name] for name in expected} == pytest.approx(expected)
        assert (shown["variant"], shown["seeds"], shown["verdict"]) == (own.variant, own.seeds, own.verdict)
    read = client.ask("read", {"model": f"{study}/{row['first']}", "text": "my fellow americans"})
    assert read.json["task"] == "classify"


def test_every_part_can_be_drawn(client: Client) -> None:
    parts = client.ask("parts").json["parts"]
    assert len(parts) > 20
    for part in parts:
        asked = {"part": part["name"], "decoder": "pool" not in part["hooks"]}
        reply = client.ask("draw", asked)
        assert reply.status in (200, 400), part["name"]
        assert reply.status == 200 or reply.json["what"]
    (drawn,) = client.ask("draw", {"part": "window", "length": 8, "options": {"size": 2}}).json["pictures"]
    widths = [sum(filter(None, row)) for row in drawn["panels"][0]["values"]]
    assert len(set(widths[3:])) == 1  # every later query sees as many
    wider = client.ask("draw", {"part": "window", "length": 8, "options": {"size": 3}}).json["pictures"][0]
    assert sum(filter(None, wider["panels"][0]["values"][7])) == widths[7] + 1
    for options in ({"slope": "x"}, {"__class__": 1}, {"slope": [1]}, {"nothing": 1}, {"heads": 9}, {"part": "none"}):
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
    for bad in ([], [[1, 2], [3]], [["x", 1]], [[1e300, 1]] * 3, [[1]] * 1000, "x"):
        assert client.ask("solve", {"keys": bad, "shares": [[1]]}).status == 400


def test_a_person_uses_parts_and_puzzles(open_page: Any) -> None:
    page = open_page("/")
    page.get_by_role("link", name="Parts").click()
    page.wait_for_selector("figure svg")
    page.get_by_label("Part", exact=True).select_option("window")
    page.wait_for_selector("text=what is visible")
    page.get_by_label("size", exact=True).fill("3")
    until(lambda: "o_size=3" in page.evaluate("location.search"))
    page.get_by_label("Part", exact=True).select_option("alibi")
    page.wait_for_selector("text=head 3")  # the paper's slopes, one for each head
    page.get_by_label("slope", exact=True).fill("0.5")
    page.wait_for_selector("figure >> text=all heads")
    page.locator("figure svg").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("text=query 1, key 0: -0.50")
    page.get_by_role("link", name="Puzzles").click()
    page.wait_for_selector("text=possible")
    page.get_by_label("Attention should").select_option("average")
    page.locator("[data-key='5']").focus()
    page.keyboard.press("Enter")
    until(lambda: "impossible" in page.inner_text("main"))  # it lies inside the hull
    box = until(lambda: page.locator("[data-key='5'] circle").bounding_box())  # None while it is drawn again
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    page.mouse.move(*middle)
    page.mouse.down()
    for step in range(20):
        page.mouse.move(middle[0] + 2 * step, middle[1] - 8 * step)
    page.mouse.up()
    until(lambda: "impossible" not in page.inner_text("main"))  # now it is a corner


@pytest.mark.slow
def test_what_is_copied_runs(
    open_page: Any, fairtrial: Any, study: str, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    audits_here: None,
) -> None:  # fmt: skip
    """As Python and as commands, of every view; also the saved numbers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    page = open_page("/", permissions=["clipboard-read", "clipboard-write"])
    plane = [f"/puzzles?ask={ask}&wanted=0,1" for ask in ("select", "average")]
    views = {
        "/": "td a", "/playground?a=lm&b=classify": "[data-side=b] .maps canvas",
        "/parts?part=window&o_size=3": "figure svg", **dict.fromkeys(plane, ".chip.pass"),
    }  # fmt: skip
    for view, ready in views.items():
        page.goto(page.evaluate("location.origin") + view)
        page.wait_for_selector(ready)
        page.wait_for_timeout(300)
        copied = {}
        for kind in ("link", "as Python", "as command"):
            page.get_by_role("button", name=f"Copy {kind}").click()
            page.wait_for_selector("#said.on >> text=Copied")
            copied[kind] = page.evaluate("navigator.clipboard.readText()")
        assert copied["link"] == page.evaluate("location.href")
        names: dict[str, Any] = {}
        exec(copied["as Python"], names)
        if "explorer" in names:
            names["explorer"].stop()
        for line in copied["as command"].splitlines():
            if line.startswith("printf"):
                subprocess.run(["bash", "-c", line], check=True)
                continue
            said = fairtrial(*shlex.split(line)[1:], *(["--out", "look"] if " look " in line else []))
            assert said.code == 0, (line, said)
            assert not line.startswith("fairtrial puzzle") or "Possible" in said.out
            shutil.rmtree("cleaned", ignore_errors=True)
            shutil.rmtree("look", ignore_errors=True)
        for kind, begins in {"SVG": b"<svg", "PNG": b"\x89PNG", "CSV": b"", "JSON": b""}.items():
            with page.expect_download() as saved:
                page.get_by_role("button", name=f"Save {kind}").click()
            content = saved.value.path().read_bytes()
            assert content.startswith(begins), (view, kind)
            assert kind != "JSON" or json.loads(content)


def poisoned(value: Any, every: bool, name: str = "") -> Any:
    """An answer with markup in every text that it holds, also in names; `every`: in what the pages decide by, too."""
    if isinstance(value, dict):
        names = {key: key + HOSTILE if name in NAMED else key for key in value}
        return {names[key]: poisoned(each, every, key) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each, every, name) for each in value]
    packed = name in ("weights", "spread", "open")
    return value + HOSTILE if isinstance(value, str) and not packed and (every or name not in DECIDING) else value


def count(page: Any) -> int:
    """How often the markup stands on the page as text."""
    return page.evaluate("document.body.textContent.split('onerror').length - 1")


@pytest.mark.parametrize("every", [False, True])
def test_markup_in_every_field_is_shown_as_text(
    open_page: Any, client: Client, study: str, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a record, a study, a data set or a part brings: no element, no script, no attempt at one."""
    honest = RequestParams.read

    def read(body: bytes) -> RequestParams:
        return honest(body.replace(json.dumps(HOSTILE)[1:-1].encode(), b""))

    page = open_page("/")
    monkeypatch.setattr(RequestParams, "read", read)
    told = sys.modules["fairtrial.explore.server"]
    monkeypatch.setattr(told, "to_json", lambda value: to_json(poisoned(plain(value), every)))
    page.context.add_init_script(
        "window.refused = [];"
        " addEventListener('securitypolicyviolation', (event) => refused.push(event.violatedDirective));"
    )
    for view, ready in MARKED.items():
        page.goto(page.evaluate("location.origin") + view)
        page.wait_for_selector("main h1, main .problem")
        if not every:
            page.wait_for_selector(ready)
            until(lambda: count(page) >= 3)  # the control: it is shown
        page.wait_for_timeout(500)
        assert page.locator("img, iframe, object, main script, [onerror], a[href^='javascript:']").count() == 0, view
        assert page.title() != "1"
        assert page.evaluate("refused") == [], view


def test_names_and_texts_on_disk_are_shown_as_text(open_page: Any, shelf: Path) -> None:
    place = shelf / HOSTILE.replace("/", "")
    shutil.copytree(shelf / "classify", place)
    (shelf / "x-damaged").mkdir()
    (shelf / "x-damaged" / "trial.json").write_text(json.dumps({"seed": HOSTILE}))
    try:
        page = open_page("/")
        page.wait_for_selector("text=onerror")
        views = "playground?a=classify&text ?filter parts?part"
        for view in views.split():
            page.goto(f"{page.evaluate('location.origin')}/{view}={quote(HOSTILE)}")
            page.wait_for_selector("main h1, main .problem")
            page.wait_for_timeout(300)
            assert page.locator("main img, main script").count() == 0
            assert page.title() != "1"
        page.goto(f"{page.evaluate('location.origin')}/playground?a=classify&text={quote(HOSTILE)}")
        page.wait_for_selector(".maps canvas")
        with page.expect_download() as saved:
            page.get_by_role("button", name="Save SVG").click()
        tags = {node.tag.rpartition("}")[2] for node in ElementTree.parse(saved.value.path()).iter()}
        assert tags <= {"svg", "g", "rect", "image", "text", "title", "line", "circle"}
    finally:
        shutil.rmtree(place)
        shutil.rmtree(shelf / "x-damaged")
