"""The playground: what a page shows is what Python answers."""

from __future__ import annotations

import asyncio
import base64
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from client import Client, until

import fairtrial as ft
from fairtrial.explore.server import Pool

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


def test_an_untrained_network_answers_otherwise(client: Client) -> None:
    asked = {"model": "classify", "text": TEXT}
    trained = client.ask("read", asked).json["answer"]["shares"]
    assert client.ask("read", asked | {"untrained": True}).json["answer"]["shares"] != trained


def test_what_cannot_be_answered_is_said(client: Client) -> None:
    for asked, status in (
        ({"model": "lm", "text": ""}, 400), ({"model": "unfinished", "text": TEXT}, 400),
        ({"model": "x", "text": TEXT}, 404),
        ({"model": "lm", "text": "a" * 5000}, 400),
        ({"model": "lm", "text": 7}, 400), ({"text": TEXT}, 400),
    ):  # fmt: skip
        reply = client.ask("read", asked)
        assert reply.status == status, asked
        assert reply.json["what"]


def test_a_person_cannot_ask_too_much_or_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told = sys.modules["fairtrial.explore.server"]
    monkeypatch.setattr(told, "WAITING", 4)
    monkeypatch.setattr(told, "ANSWER_SECONDS", 0.3)
    busy = threading.Event()

    async def ask() -> list[Any]:
        pool = Pool()
        found = await asyncio.gather(*(pool.run(busy.wait) for _ in range(5)), return_exceptions=True)
        busy.set()
        while pool.waiting:
            await asyncio.sleep(0.01)
        found.append(await pool.run(lambda: "an answer"))
        pool.close()
        return found

    with ThreadPoolExecutor(1) as apart:  # this thread may have playwright's loop
        *late, refused, answer = apart.submit(lambda: asyncio.run(ask())).result()
    assert [type(each).__name__ for each in late] == ["TooSlow"] * 4
    assert type(refused).__name__ == "TooMuch"
    assert answer == "an answer"


def test_models_are_loaded_once(client: Client) -> None:
    library = client.explorer.library
    first = library.model("lm")
    assert library.model("lm") is first
    assert library.model("lm", untrained=True) is not first


def test_a_person_types_and_reads_maps(open_page: Any, shelf: Path) -> None:
    page = open_page("/playground?a=lm&b=classify")
    page.locator("textarea").fill("")
    page.locator("textarea").press_sequentially(TEXT)
    run = ft.load(shelf / "lm")
    perplexity = run.surprisal(TEXT).texts[0].perplexity
    until(lambda: f"Perplexity {perplexity:.1f}"[:16] in page.locator("[data-side=a] .perplexity").first.inner_text())
    page.wait_for_selector("[data-side=b] .bars")
    page.get_by_label("Show layer 0, head 1").first.click()
    page.locator("[data-side=a] svg[role=application]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("[data-side=a] >> text=reads")
    until(lambda: "head=0.1" in page.evaluate("location.search"))
    address = page.evaluate("location.href")
    page.goto(address)  # a link opens the same picture
    page.wait_for_selector("[data-side=b] .bars")
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


def test_maps_stand_above_the_fold_and_say_what_they_show(open_page: Any, shelf: Path) -> None:
    page = open_page("/playground?a=lm")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator("textarea").fill(TEXT)
    caption = ft.load(shelf / "lm").attention(TEXT).caption(0, 0)
    page.wait_for_selector(f'[data-side=a] figcaption:has-text("{caption}")')
    box = page.locator("[data-side=a] svg[role=application]").bounding_box()
    assert box["height"] > 100
    told = page.locator("[data-side=a] figcaption").first.bounding_box()
    assert max(each["y"] + each["height"] for each in (box, told)) <= 800
    page.locator("textarea").fill(f"{TEXT} " * 40)
    page.wait_for_selector("[data-side=a] .note:has-text('truncated between')")
    assert page.locator("[data-side=a] .note:has-text('truncated')").count() == 1
