"""The playground: what a page shows is what Python answers, and a fast typist never waits for stale work."""

from __future__ import annotations

import asyncio
import base64
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from client import Client, until

import fairtrial as ft
from fairtrial.explore.library import Models
from fairtrial.explore.requests import JobHandle, Pool
from fairtrial.inspection import head_off

TEXT = "we will not forget the brave men"


def weights_of(maps: dict[str, Any]) -> np.ndarray:
    size = len(maps["words"])
    flat = np.frombuffer(base64.b64decode(maps["weights"]), "<u2") / 65535
    return flat.reshape(maps["layers"], maps["heads"], size, size)


def test_a_language_model_is_read_as_python_reads_it(client: Client, shelf: Path) -> None:
    run = ft.load(shelf / "lm")
    told = client.ask("read", {"model": "lm", "text": TEXT}).json
    maps, found = run.attention(TEXT), run.surprisal(TEXT).texts[0]
    assert told["maps"]["words"] == list(maps.words)
    np.testing.assert_allclose(weights_of(told["maps"]), maps.weights, atol=1e-5)
    assert [token["nll"] for token in told["answer"]["tokens"]] == [token.nll for token in found.tokens]
    assert told["answer"]["perplexity"] == found.perplexity
    chances = [row["probability"] for row in told["answer"]["next"]]
    assert chances == sorted(chances, reverse=True)
    events = client.events("generate", {"model": "lm", "text": TEXT, "tokens": 5, "seed": 3, "top_k": 8})
    assert events[-1]["text"] == run.generate(TEXT, tokens=5, seed=3, top_k=8).text
    assert "".join(event["piece"] for event in events[:-1]) == events[-1]["text"]


def test_heads_go_off_and_come_back(client: Client, shelf: Path) -> None:
    run, off = ft.load(shelf / "classify"), [[0, 1], [0, 0]]
    before = client.ask("read", {"model": "classify", "text": TEXT}).json["answer"]["shares"]
    told = client.ask("read", {"model": "classify", "text": TEXT, "off": off}).json
    with head_off(run.network, 0, 1), head_off(run.network, 0, 0):
        assert told["answer"]["shares"] == list(run.predict(TEXT).predictions[0].shares)
    assert told["before"]["shares"] == before != told["answer"]["shares"]
    assert client.ask("read", {"model": "classify", "text": TEXT}).json["answer"]["shares"] == before
    untrained = client.ask("read", {"model": "classify", "text": TEXT, "untrained": True}).json
    assert untrained["answer"]["shares"] != before


def test_what_cannot_be_answered_is_said(client: Client) -> None:
    for asked, status in (
        ({"model": "lm", "text": ""}, 400), ({"model": "unfinished", "text": TEXT}, 400),
        ({"model": "x", "text": TEXT}, 404),
        ({"model": "lm", "text": "a" * 5000}, 400), ({"model": "lm", "text": TEXT, "off": [[9, 9]]}, 400),
        ({"model": "lm", "text": 7}, 400), ({"model": "lm", "text": TEXT, "off": "x"}, 400), ({"text": TEXT}, 400),
    ):  # fmt: skip
        reply = client.ask("read", asked)
        assert reply.status == status, asked
        assert reply.json["what"]


def test_a_newer_question_ends_the_older_one() -> None:
    begun: list[str] = []
    busy = threading.Event()

    def wait(handle: JobHandle) -> None:
        busy.wait()

    def named(name: str) -> Any:
        def job(handle: JobHandle) -> str:
            begun.append(name)
            while name == "runs":
                handle.check()
                time.sleep(0.01)
            return name

        return job

    async def type_fast() -> list[Any]:
        pool = Pool()
        runs = asyncio.ensure_future(pool.run(named("runs"), "pane"))
        while not begun:
            await asyncio.sleep(0.01)
        both = [asyncio.ensure_future(pool.run(wait)) for _ in range(2)]  # all threads have something to do
        await asyncio.sleep(0)
        older = [asyncio.ensure_future(pool.run(named("older"), "pane", turn=n)) for n in range(20)]
        newest = asyncio.ensure_future(pool.run(named("newest"), "pane", turn=30))
        await asyncio.sleep(0)
        late = asyncio.ensure_future(pool.run(named("late"), "pane", turn=25))  # asked before the newest
        await asyncio.sleep(0)
        busy.set()
        found = await asyncio.gather(runs, *older, late, newest, *both, return_exceptions=True)
        pool.close()
        return found

    with ThreadPoolExecutor(1) as apart:  # this thread may have playwright's loop
        *stale, newest, _, _ = apart.submit(lambda: asyncio.run(type_fast())).result()
    assert newest == "newest"
    assert {type(each).__name__ for each in stale} == {"Stale"}
    assert begun == ["runs", "newest"]  # those that waited were never begun


def test_models_are_loaded_once_and_leave(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    library = client.explorer.library
    models = Models()
    first = models.get(library, "lm")
    assert models.get(library, "lm") is first
    monkeypatch.setattr(sys.modules["fairtrial.explore.library"], "MOST_MODELS", 2)
    for name, untrained in (("classify", False), ("lm", True), ("lm", False)):
        models.get(library, name, untrained)
    assert len(models.loaded) == 2
    assert models.get(library, "lm") is not first


def test_one_network_answers_many_at_once(client: Client) -> None:
    """A head that is off in one tab is on in the other."""
    asked = {"model": "classify", "text": TEXT}
    whole, without = (client.ask("read", asked | {"off": off}).json["answer"]["shares"] for off in ([], [[0, 0]]))
    found: list[tuple[bool, Any]] = []

    def many(off: list[Any]) -> None:
        for _ in range(5):
            found.append((bool(off), client.ask("read", asked | {"off": off}).json["answer"]["shares"]))

    threads = [threading.Thread(target=many, args=([[0, 0]] * (n % 2),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(shares == (without if off else whole) for off, shares in found)


def test_a_person_types_switches_a_head_off_and_generates(open_page: Any, shelf: Path) -> None:
    page = open_page("/playground?a=lm&b=classify")
    page.locator("textarea").fill("")
    page.locator("textarea").press_sequentially(TEXT)
    run = ft.load(shelf / "lm")
    perplexity = run.surprisal(TEXT).texts[0].perplexity
    until(lambda: f"Perplexity {perplexity:.1f}"[:16] in page.locator("[data-side=a] .perplexity").first.inner_text())
    until(lambda: page.locator("[data-side=b] .words button").count() == len(TEXT.split()))
    page.locator("[data-side=b] .strip.words button").nth(2).hover()
    page.wait_for_selector("text=adds")
    before = page.locator("[data-side=b] .bars").first.inner_text()
    box = page.get_by_label("Layer 0, head 1 is on").last
    box.focus()
    page.keyboard.press("Space")
    page.wait_for_selector("[data-side=b] >> text=all heads")
    assert page.locator("[data-side=b] .bars").first.inner_text() != before
    until(lambda: "off_b=0.1" in page.evaluate("location.search"))
    page.get_by_label("Show layer 0, head 1").first.click()
    page.locator("[data-side=a] svg[role=application]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("[data-side=a] >> text=reads")
    page.get_by_role("button", name="Generate").click()
    text = run.generate(TEXT, seed=0).text
    until(lambda: page.locator(".generated").inner_text().split() == text.split())
    address = page.evaluate("location.href")
    page.goto(address)  # a link opens the same picture
    page.wait_for_selector("[data-side=b] >> text=Off: 0.1")
    assert page.locator("textarea").input_value() == TEXT
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save CSV").click()
    assert saved.value.path().read_text().startswith("model,layer,head,query,key,from,to,weight")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save SVG").click()
    assert "<svg" in saved.value.path().read_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save PNG").click()
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"
