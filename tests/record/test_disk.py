"""A file is whole or not there, a line is one write, a lock has one holder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fairtrial import disk
from fairtrial.disk import append_line, ensure_room, locked, write_bytes, write_text
from fairtrial.errors import Busy, DiskTrouble

STEPS = ["write", "fsync", "replace", "fsync"]  # the file, then its folder


def test_a_file_is_written_forced_to_the_disk_moved_and_its_folder_forced(tmp_path: Path, broken_disk: Any) -> None:
    write_text(tmp_path / "a.json", "grün")
    assert broken_disk.done == STEPS
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "grün"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("at", range(1, len(STEPS) + 1))
@pytest.mark.parametrize(("error", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "cannot write")])
def test_a_write_that_fails_at_any_step_leaves_a_whole_file(
    at: int, error: int, said: str, tmp_path: Path, broken_disk: Any
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    broken_disk.fail(at, error)
    with pytest.raises(DiskTrouble, match=said) as trouble:
        write_bytes(path, b"new")
    assert trouble.value.exit_code == 5
    assert str(path) in trouble.value.what
    assert path.read_bytes() == (b"new" if at == 4 else b"old")  # after the move the new one is in place
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_that_is_not_there_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(DiskTrouble, match=r"none/a: cannot write \(No such file or directory\)"):
        write_bytes(tmp_path / "none" / "a", b"x")


def test_a_stop_in_the_middle_of_a_write_leaves_nothing_beside_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disk.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"a": b"old"}


@pytest.mark.skipif(disk.WINDOWS, reason="Windows moves no file that is open")
def test_two_writers_of_one_file_take_turns(tmp_path: Path) -> None:
    path, contents = tmp_path / "a", [bytes([number]) * (1000 + number) for number in range(8)]

    def write(content: bytes) -> None:
        for _ in range(20):
            write_bytes(path, content[:500], content[500:])
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, contents))
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_line_is_one_write(tmp_path: Path, broken_disk: Any) -> None:
    append_line(tmp_path / "log", "one")
    append_line(tmp_path / "log", "zwölf")
    assert broken_disk.done == ["write", "write"]
    assert (tmp_path / "log").read_text(encoding="utf-8") == "one\nzwölf\n"


def test_a_line_that_the_disk_takes_only_a_part_of_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    append_line(path, "one")
    really = os.write
    with monkeypatch.context() as patch:
        patch.setattr(disk.os, "write", lambda handle, content: really(handle, content[:2]))
        with pytest.raises(DiskTrouble, match="the disk is full"):
            append_line(path, "two")
    append_line(path, "three")
    assert path.read_text() == "one\nthree\n"


@pytest.mark.parametrize(("torn", "kept"), [("one\ntw", "one\n"), ("o", ""), ("one\n", "one\n"), ("", "")])
def test_a_new_line_does_not_grow_from_a_torn_one(torn: str, kept: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(torn)
    append_line(path, "next")
    assert path.read_text() == kept + "next\n"


def test_too_little_room_is_refused_with_both_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = disk.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: usage._replace(free=2_000_000))
    ensure_room(tmp_path, 2_000_000)
    with pytest.raises(DiskTrouble, match=r"2\.0 MB free on this disk, 3\.5 MB needed") as trouble:
        ensure_room(tmp_path, 3_500_000)
    assert str(tmp_path) in trouble.value.what
    assert trouble.value.exit_code == 5


def test_a_lock_has_one_holder_and_is_free_again_after_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with locked(path), pytest.raises(Busy, match="another process is writing this record") as busy, locked(path):
        pass
    assert busy.value.exit_code == 3
    with locked(path):
        pass


def test_a_lock_whose_file_was_thrown_away_meanwhile_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.lock"
    really = disk._take

    def take_late(handle: int) -> None:
        path.unlink()  # by the holder before us
        path.touch()  # by somebody who comes after
        really(handle)

    monkeypatch.setattr(disk, "_take", take_late)
    with pytest.raises(Busy), locked(path):
        pass


def test_a_lock_holds_against_another_process_and_dies_with_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    code = f"from pathlib import Path\nfrom fairtrial.disk import locked\nwith locked(Path({str(path)!r})):\n    "
    holder = subprocess.Popen(
        [sys.executable, "-c", code + "print('held', flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(Busy), locked(path):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with locked(path):
        refused = subprocess.run([sys.executable, "-c", code + "pass"], capture_output=True, text=True)
    assert refused.returncode == 1
    assert "Busy" in refused.stderr
