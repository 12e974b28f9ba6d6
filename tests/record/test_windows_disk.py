"""A trial on a disk that behaves like Windows': an open file is neither removed nor replaced, a folder with an open
file is not moved, nothing is moved onto a folder, a handle that was not opened as binary writes other line ends."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial import disk
from fairtrial.disk import locked, write_text
from fairtrial.errors import Busy, DiskTrouble, Interrupted
from fairtrial.recipe import Recipe
from fairtrial.trial import resume_trial, run_trial

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are found in /proc")
BINARY = 1 << 28  # no flag of Linux


def opened() -> Iterator[str]:
    """The files and folders that this process has open."""
    for handle in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{handle}")
        except FileNotFoundError:
            continue  # that of the listing


def refuse_open(path: Any) -> None:
    whole = os.path.realpath(path)
    if any(each == whole or each.startswith(whole + "/") for each in opened()):
        raise PermissionError(13, "it is used by another process", str(path))


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    really = SimpleNamespace(**{name: getattr(os, name) for name in ("open", "write", "replace", "rename", "unlink")})
    as_text: set[int] = set()

    def open_(path: Any, flags: int, *more: Any, **other: Any) -> int:
        folder = not other and os.path.isdir(path)
        if folder and sys._getframe(1).f_code.co_filename == disk.__file__:  # shutil has its own way there
            raise PermissionError(13, "a folder", str(path))
        handle = really.open(path, flags & ~BINARY, *more, **other)
        (as_text.discard if flags & BINARY else as_text.add)(handle)
        return int(handle)

    def write(handle: int, content: bytes) -> int:
        other = content.replace(b"\n", b"\r\n") if handle in as_text else content
        return int(really.write(handle, other)) and len(content)

    def replace(old: Any, new: Any) -> None:
        refuse_open(old)
        if os.path.exists(new):
            refuse_open(new)
        really.replace(old, new)

    def rename(old: Any, new: Any) -> None:
        refuse_open(old)
        if os.path.exists(new):
            raise FileExistsError(17, "it exists", str(new))
        really.rename(old, new)

    def unlink(path: Any, **other: Any) -> None:
        if not other:
            refuse_open(path)
        really.unlink(path, **other)

    def locking(handle: int, how: int, size: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "locked") from error

    for name, own in (("open", open_), ("write", write), ("replace", replace), ("rename", rename), ("unlink", unlink)):
        monkeypatch.setattr(os, name, own)
    monkeypatch.setattr(os, "O_BINARY", BINARY, raising=False)
    monkeypatch.setattr(disk, "WINDOWS", True)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))


def test_a_trial_is_trained_stopped_and_resumed_to_the_same_bytes(
    windows: None, tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    recipe = tiny_recipe("classify")
    run_trial(recipe, 0, tmp_path / "whole")
    (tmp_path / "stopped").mkdir()  # an empty folder may become a record
    asked = iter([False] * 4 + [True] * 100)
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "stopped", stop=lambda: next(asked))
    resume_trial(tmp_path / "stopped")
    files = [{each.name: each for each in (tmp_path / name).iterdir()} for name in ("whole", "stopped")]
    assert files[0].keys() == files[1].keys()
    for name in ("events.jsonl", "model.safetensors", "recipe.toml", "result.json", "tokenizer.json"):
        assert files[0][name].read_bytes() == files[1][name].read_bytes(), name
    assert b"\r" not in files[0]["events.jsonl"].read_bytes()
    left = [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert not left, "no lock and no draft is left beside a record"
    lock = files[0]["run.lock"]
    with locked(lock), pytest.raises(Busy), locked(lock):
        pass


def test_a_file_that_somebody_reads_is_replaced_once_it_is_closed(
    windows: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "verdict.json"
    write_text(path, "old")
    reader = path.open()
    threading.Timer(0.1, reader.close).start()
    write_text(path, "new")
    assert path.read_text() == "new"
    monkeypatch.setattr(disk, "PATIENCE_SECONDS", 0.05)
    with path.open(), pytest.raises(DiskTrouble, match="cannot write"):
        write_text(path, "newer")
    with pytest.raises(DiskTrouble) as trouble:
        write_text(tmp_path / ("a" * 300), "long")
    assert "too long for Windows" in trouble.value.hint
    assert [each.name for each in tmp_path.iterdir()] == ["verdict.json"]
    assert path.read_text() == "new"
