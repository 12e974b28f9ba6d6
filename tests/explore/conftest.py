"""One explorer for all tests of its package, on records of tiny trials; and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the explorer's extra: pip install -e '.[explore]'")
pytest.importorskip("uvicorn", reason="needs the explorer's extra: pip install -e '.[explore]'")

from client import WHILE_RUNNING, Client, until

import fairtrial as ft
from fairtrial.events import JobDone, JobStarted, StudyEvent
from fairtrial.explore import Explorer
from fairtrial.recipe import read_settings
from forked import auditing_here
from tiny import TINY


@pytest.fixture(scope="session")
def shelf(finished_records: dict[str, Path]) -> Path:
    """The folder that is explored: `classify`, `lm`, `unfinished`, and the data."""
    return finished_records["lm"].parent


@pytest.fixture(scope="session")
def explorer(shelf: Path) -> Iterator[Explorer]:
    with ft.explore(shelf, port=0, browser=False) as started:
        yield started


@pytest.fixture(scope="session")
def client(explorer: Explorer) -> Client:
    return Client(explorer)


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

    def states() -> set[str]:
        return {row["state"] for row in client.ask("library").json["rows"] if row["path"] == "study"}

    def on_event(event: StudyEvent) -> None:
        if isinstance(event, JobStarted | JobDone):
            begun = any((shelf / "study").glob("trials/*/*/*/trial.json"))
            WHILE_RUNNING.update(until(states) if begun else states())  # the list is read anew every few seconds

    with auditing_here():
        made = ft.study(
            ["learned", "rope"], data=str(grouped), task="classify", seeds=2, steps=8, **read_settings(settings),
            out=shelf / "study", options=ft.StudyOptions(engine="here", on_event=on_event),
        )  # fmt: skip
    return made.folder.name


@pytest.fixture
def open_page(browser: Any, explorer: Explorer) -> Iterator[Any]:
    """`open_page("/playground?a=lm", width=390)`: a tab that has been let in. Any error of its own fails the test."""
    contexts: list[Any] = []
    faults: list[str] = []

    def opened(path: str = "/", width: int = 1280, theme: str = "light", **more: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # no test fails for slowness alone
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on(
            "console",
            lambda said: faults.append(said.text) if said.type == "error" and "status of" not in said.text else None,
        )
        page.goto(explorer.url)
        if path != "/":
            page.goto(f"http://127.0.0.1:{explorer.port}{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not faults, faults
