"""Fixtures for all tests."""

from __future__ import annotations

import errno
import io
import math
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from course_text import write_course
from fairtrial import environment, progress
from tiny import TINY, make_tiny

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # no test fails for slowness alone
# folders of tests that train, or start processes
LONG = ["trial", "study", "golden", "engines", "apps", "cli", "codebase", "api"]
# what macOS and Windows lack, and what Windows lacks besides
LINUX = r"/proc\b|RLIMIT_|LD_PRELOAD|ulimit|wait4|prctl"
POSIX = (
    r"|SIGKILL|SIGALRM|killpg|start_new_session|import (fcntl|pty|resource)\b|mkfifo|os\.(fork|get.?uid)|import Forked"
    r"|symlink_to|\.chmod\(|/dev/"
)


environment.MOST_LOAD = math.inf  # no test waits for a calm machine
progress.STATUS_AFTER_SECONDS = math.inf  # what a busy machine takes long for is not said between expected lines


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny networks are slower on many threads. Where no torch was imported, none is."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shared_data() -> Path:
    """The folder of the course's speeches, SST-2 and the 1B files, which cannot be shipped with the code."""
    place = os.environ.get("FAIRTRIAL_DATA")
    if not place:
        pytest.skip("FAIRTRIAL_DATA is not set to the folder that holds speeches/, sst2/ and lm1b/")
    return Path(place)


@pytest.fixture
def course_folder(tmp_path: Path) -> Path:
    """A small folder in the course's form, with text of our own."""
    return write_course(tmp_path / "speechesdataset")


@pytest.fixture
def tiny() -> list[str]:
    """Settings that make any recipe small enough for a test."""
    return list(TINY)


@pytest.fixture
def tiny_recipe(course_folder: Path) -> Callable[..., Recipe]:
    """A recipe that trains in a fraction of a second: `tiny_recipe("lm", "training.keep=last")`."""
    return lambda task, *more: make_tiny(task, course_folder, *more)


@pytest.fixture(scope="session")
def finished_records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Records to look at, not to change: `classify`, `lm`, and one that is `unfinished`."""
    from fairtrial.errors import Interrupted
    from fairtrial.trial import run_trial

    workspace = tmp_path_factory.mktemp("records")
    source = write_course(workspace / "speechesdataset")
    folders = {name: workspace / name for name in ("classify", "lm", "unfinished")}
    run_trial(make_tiny("classify", source), 0, folders["classify"])
    run_trial(make_tiny("lm", source, "scoring.watch_test=true"), 1, folders["lm"])
    with pytest.raises(Interrupted):
        run_trial(make_tiny("classify", source), 2, folders["unfinished"], stop=lambda: True)
    return folders


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium: one for all tests of a process, as playwright's loop can run only once in it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[dev]'")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium, Debian's package `chromium`")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def audits_here() -> Iterator[None]:
    from forked import auditing_here

    with auditing_here():
        yield


@pytest.fixture
def plugins_leave() -> Iterator[Callable[[], None]]:
    from forked import leaving_plugins

    with leaving_plugins() as leave:
        yield leave


class Said(NamedTuple):
    code: int
    out: str
    err: str


built_once = cache(typer.main.get_command)  # typer builds all commands anew at each call, longer than most run


@pytest.fixture
def fairtrial(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """A command line, run in this process through the entry point."""
    from fairtrial.cli.main import run

    monkeypatch.setattr(typer.main, "get_command", built_once)

    def call(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["fairtrial", *map(str, words)])
        capsys.readouterr()
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(SystemExit) as ended:
            run()
        signal.signal(signal.SIGINT, before)  # a command that was stopped ends deaf to it
        return Said(int(ended.value.code or 0), *capsys.readouterr())

    return call


class BrokenDisk:
    """Counts writes, fsyncs and replaces of fairtrial's own, and fails the one that is chosen."""

    def __init__(self) -> None:
        self.fail_at, self.error, self.done = 0, errno.ENOSPC, list[str]()

    def fail(self, at: int, error: int = errno.ENOSPC) -> None:
        self.fail_at, self.error, self.done = at, error, []

    def step(self, what: str) -> None:
        self.done.append(what)
        if len(self.done) == self.fail_at:
            raise OSError(self.error, os.strerror(self.error))

    def __getattr__(self, name: str) -> Any:  # stands in for the os module
        if name not in ("write", "fsync", "replace"):
            return getattr(os, name)

        def call(*values: Any) -> Any:
            self.step(name)
            return getattr(os, name)(*values)

        return call


@pytest.fixture
def broken_disk(monkeypatch: pytest.MonkeyPatch) -> BrokenDisk:
    from fairtrial import disk, record

    broken, really_open = BrokenDisk(), Path.open

    class File(io.FileIO):
        def write(self, content: Any) -> int:
            broken.step("write")
            return super().write(content)

    def open_file(path: Path, mode: str = "r", *more: Any, **other: Any) -> Any:
        return File(path, mode) if mode == "xb" else really_open(path, mode, *more, **other)

    monkeypatch.setattr(disk, "os", broken)
    monkeypatch.setattr(record, "os", broken)
    monkeypatch.setattr(Path, "open", open_file)
    return broken


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Elsewhere than on Linux, files of tests that use what the system lacks; docs/platforms.md says which."""
    if sys.platform == "linux" or not collection_path.match("test_*.py"):
        return None
    lacking = LINUX + POSIX if sys.platform == "win32" else LINUX
    return bool(re.search(lacking, collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a browser or the wheel is of the second tier. Files that take longest begin first, so that no process
    is left alone with one of them at the end."""
    for item in items:
        if {"browser", "installed"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("second")
    items.sort(key=lambda item: [*LONG, item.path.parent.name].index(item.path.parent.name))
