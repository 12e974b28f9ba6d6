"""Writing so that a file is whole or not there: never half, never silently wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fairtrial.errors import Busy, DiskTrouble


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a neighbour of `path`, force it to the disk, then put it in place in one move."""
    beside = path.with_name(path.name + ".tmp")
    with disk_errors(path):
        try:
            write(beside)
            with beside.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(beside, path)
            sync_folder(path.parent)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def write_bytes(path: Path, content: bytes) -> None:
    write_whole(path, lambda beside: _fill(beside, content))


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def _fill(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def append_line(path: Path, line: str) -> None:
    """One write of one line: a reader sees all of it or, after a crash, a torn last line that it drops."""
    with disk_errors(path):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, (line + "\n").encode())
        finally:
            os.close(handle)


def sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder, and needs no such step
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """A full, broken or forbidden disk is said by name."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space, then resume; what was saved before is intact"
            raise DiskTrouble(f"{path}: the disk is full", hint) from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DiskTrouble(f"{path}: cannot write ({reason})", "what was saved before is intact") from error


def ensure_room(folder: Path, needed: int) -> None:
    """Refuse before starting what could not be finished."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        what = f"{folder}: {free / 1e6:.1f} MB free on this disk, {needed / 1e6:.1f} MB needed"
        raise DiskTrouble(what, "free some space or write the record elsewhere with --out")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that the kernel frees even after kill -9. The second writer is refused at once."""
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _take(handle)
        except (BlockingIOError, PermissionError) as error:
            hint = "wait for it, or write another record with --out"
            raise Busy(f"{path.parent}: another process is writing this record", hint) from error
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
