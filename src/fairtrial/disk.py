"""Writing so that a file is whole or not there: never half, never silently wrong."""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput, Busy, DiskTrouble

JSON_BYTES = 256_000_000  # no file of ours is nearly as large
WINDOWS = os.name == "nt"
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a link that someone left would lead the pen elsewhere
SHORT_PATH = 220  # characters: with 260 and more, Windows says that there is no such file
PATIENCE_SECONDS = 2.0  # for a reader to close the file that is to be replaced, where an open one cannot be


def write_bytes(path: Path, *content: bytes | memoryview) -> None:
    """Fill a new file beside `path`, force it to the disk, then put it in place in one move."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    with disk_errors(path):
        try:
            with draft.open("xb") as file:
                for piece in content:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            _replace(draft, path)
            sync_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise


def _replace(draft: Path, path: Path) -> None:
    """Windows moves nothing over a file that anybody has open, be it a virus scanner."""
    until = time.monotonic() + (PATIENCE_SECONDS if WINDOWS else 0.0)
    while True:
        try:
            return os.replace(draft, path)
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)


def write_text(path: Path, content: str) -> None:
    """In UTF-8, its line ends as they are: checksums are the same on every system."""
    write_bytes(path, content.encode())


def append_line(path: Path, line: str) -> None:
    """One write of one line: a reader sees all of it or, after a crash, a torn last line that it drops."""
    content = (line + "\n").encode()
    with disk_errors(path):
        binary = getattr(os, "O_BINARY", 0)  # Windows would write another line end
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINK | binary, 0o644)
        try:
            size = _drop_torn_line(handle)
            if os.write(handle, content) < len(content):  # a disk that fills up takes a part without an error
                os.ftruncate(handle, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)


def _drop_torn_line(handle: int) -> int:
    """Cut what a crash left after the last line end, so that the next line does not grow from it; the size then."""
    size = os.fstat(handle).st_size
    os.lseek(handle, max(0, size - 1), os.SEEK_SET)
    if size == 0 or os.read(handle, 1) == b"\n":
        return size
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as file:
        whole = file.read().rfind(b"\n") + 1
    os.ftruncate(handle, whole)
    return whole


def sync_folder(folder: Path) -> None:
    if WINDOWS:  # it cannot open a folder, and needs no such step
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
            hint = "free some space, then run it again; what was saved before is intact"
            raise DiskTrouble(f"{path}: the disk is full", hint) from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        hint = "what was saved before is intact"
        if WINDOWS and len(os.path.abspath(path)) > SHORT_PATH:
            hint += "; this path may be too long for Windows: choose a shorter --out, or allow long paths"
        raise DiskTrouble(f"{path}: cannot write ({reason})", hint) from error


def ensure_room(folder: Path, needed: int) -> None:
    """Refuse before starting what could not be finished."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        what = f"{folder}: {free / 1e6:.1f} MB free on this disk, {needed / 1e6:.1f} MB needed"
        raise DiskTrouble(what, "free some space, then run it again")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which is moved to its place once it is whole. Whatever happens, nothing is left beside it."""
    beside = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(beside, ignore_errors=True)  # what kill -9 left
    try:
        with disk_errors(beside):
            beside.mkdir(parents=True)
        yield beside
        with disk_errors(folder):
            if WINDOWS and folder.is_dir():
                folder.rmdir()  # an empty one, which elsewhere is replaced
            beside.rename(folder)
    finally:  # after the move there is nothing
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
        yield Path(folder)


@cache
def process_folder() -> Path:
    """Where this process keeps what is gone at its end; first what killed processes left is removed. Its name tells its
    process."""
    for old in Path(tempfile.gettempdir()).glob("fairtrial-[0-9]*-*"):
        process = old.name.split("-")[1]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"fairtrial-{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_process_folder() -> None:
    """For a process that ends at once."""
    if process_folder.cache_info().currsize:
        shutil.rmtree(process_folder(), ignore_errors=True)


def is_running(process: int) -> bool:
    if WINDOWS:
        return True  # it is not known
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


@contextmanager
def preparing(folder: Path) -> Iterator[None]:
    """Hold the place where a folder is prepared, against a second process. The lock's file goes with its holder."""
    path = lock_beside(folder)
    try:
        with locked(path):
            try:
                yield
            finally:
                if not WINDOWS:  # once it is free, the next holder may have it
                    path.unlink(missing_ok=True)
    finally:
        if WINDOWS:  # an open file cannot be removed, not even by its holder; the next holder's stays
            with suppress(OSError):
                path.unlink()


def lock_beside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.new.lock")


def sweep_lock(folder: Path) -> None:
    """Drop the lock's file that kill -9 left beside a folder. `Busy` where a process holds it."""
    if lock_beside(folder).is_file():
        with preparing(folder):
            pass


@contextmanager
def locked(
    path: Path, doing: str = "writing this record", instead: str = "write another record with --out"
) -> Iterator[None]:
    """Hold a lock that the kernel frees even after kill -9. The second writer is refused at once."""
    with disk_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o644)
    try:
        try:
            _take(handle)
            if not os.path.samestat(os.fstat(handle), os.stat(path)):  # its last holder threw it away meanwhile
                raise BlockingIOError
        except (BlockingIOError, PermissionError, FileNotFoundError) as error:
            raise Busy(f"{path.parent}: another process is {doing}", f"wait for it, or {instead}") from error
        yield
    finally:
        os.close(handle)


def _take(handle: int) -> None:
    if WINDOWS:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def load_json(path: Path, hint: str = "") -> dict[str, Any]:
    """A JSON object; a file that holds none is refused."""
    try:
        if path.stat().st_size > JSON_BYTES:
            raise BadInput(f"{path} is too large ({path.stat().st_size / 1e6:,.0f} MB)", hint)
        found = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadInput(f"{path} is missing") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, not UTF-8, or a number of 5,000 digits
        raise BadInput(f"{path} is damaged: {error}", hint) from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} is damaged: not a JSON object", hint)
    return found


def parse_json(text: str) -> Any:
    """ValueError: not JSON, a name that is given twice, or text that could not be written again (a lone surrogate)."""
    found = json.loads(text, object_pairs_hook=named_once)
    if "\\ud" in text.lower():
        json.dumps(found, ensure_ascii=False).encode()
    return found


def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Readers differ in which of two values counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found
