"""Strict reading of text files: bytes become lines, and whatever is wrong is said with file and line."""

from __future__ import annotations

import errno
import hashlib
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from fairtrial.errors import BadInput

LINE_LIMIT = 1_000_000  # bytes: more is no sentence, and most often a binary file or one without line ends
CHUNK = 1 << 18  # below LINE_LIMIT, so that a line too long always began in an earlier chunk
PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"%PDF": "PDF",
}
SPLIT_NAMES = {
    "train": "train",
    "dev": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
}


@dataclass(frozen=True)
class TextFile:
    """The lines of one file, without line ends."""

    path: Path
    sha256: str
    lines: tuple[str, ...]

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Line numbers and lines, up to the last line that is not blank."""
        end = len(self.lines)
        while end and not self.lines[end - 1].strip():
            end -= 1
        yield from enumerate(self.lines[:end], start=1)

    def place(self, line: int) -> str:
        return f"{self.path}:{line}"


def read_lines(path: Path) -> TextFile:
    """The file as UTF-8 lines; only \\n, \\r\\n and \\r end a line."""
    need_file(path)
    try:
        data = _bytes(path)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=path) from error
    text = _decode(path, data)
    # str.splitlines would also break at U+2028, U+0085, form feeds ..., which stand inside texts
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not text.strip():
        raise BadInput("the file is empty", "each file needs at least one line of text", path=path)
    return TextFile(path, hashlib.sha256(data).hexdigest(), tuple(lines))


def hashes(source: Path, files: list[TextFile]) -> dict[str, str]:
    """sha256 of each file by its name relative to the source."""
    folder = source if source.is_dir() else source.parent
    return {file.path.relative_to(folder).as_posix(): file.sha256 for file in files}


def need_file(path: Path) -> None:
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise BadInput("a folder where a file should be", path=path)
    if not stat.S_ISREG(mode):
        raise BadInput("neither a file nor a folder (a pipe, a socket or a device)", "copy it to a file", path=path)


def need_folder(path: Path) -> None:
    if not stat.S_ISDIR(_mode(path)):
        raise BadInput("a file where a folder should be", path=path)


def is_folder(path: Path) -> bool:
    """Folder or file; anything else, and nothing at all, is refused."""
    if stat.S_ISDIR(_mode(path)):
        return True
    need_file(path)
    return False


def entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted by name, hidden entries left out."""
    need_folder(folder)
    try:
        found = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=folder) from error
    for entry in found:
        if not entry.name.isascii() and not entry.name.isprintable():
            raise BadInput(f"the name {entry.name!r} is not UTF-8", "rename it", path=folder)
    return found


def split_files(folder: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """The files of a folder that name a split, as in `train.tsv` or `news.dev.tokens`, by train, validation, test."""
    found: dict[str, Path] = {}
    for entry in entries(folder):
        split = SPLIT_NAMES.get(entry.stem.rsplit(".", 1)[-1].lower())
        if split is None or entry.suffix.lower() not in suffixes:
            continue
        if split in found:
            raise BadInput(
                f"two files could be the {split} set: {found[split].name} and {entry.name}",
                "keep one of them in this folder",
                path=folder,
            )
        found[split] = entry
    return found


def source_files(path: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """A file alone is the training set; a folder holds one file for each split."""
    if not is_folder(path):
        return {"train": path}
    found = split_files(path, suffixes)
    if "train" not in found:
        wanted = " or ".join(f"train{suffix}" for suffix in suffixes)
        raise BadInput(f"there is no {wanted} in this folder{_neighbours('train', path)}", path=path)
    return found


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except FileNotFoundError as error:
        if path.is_symlink():
            raise BadInput("a link to something that is not there", path=path) from error
        parent = path.parent
        if not parent.is_dir():
            raise BadInput(f"there is no such path, nor a folder {str(parent)!r}", path=path) from error
        raise BadInput(f"there is no such file or folder{_neighbours(path.name, parent)}", path=path) from error
    except OSError as error:
        what = "symlinks that lead in a circle" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise BadInput(what, path=path) from error
    except ValueError as error:
        raise BadInput(f"{str(path)!r} is not a path: {error}") from error


def _neighbours(name: str, folder: Path) -> str:
    """`; did you mean ...?` or the first few names that are there."""
    there = [entry.name for entry in entries(folder)]
    if close := get_close_matches(name, there, n=1, cutoff=0.5):
        return f"; did you mean {close[0]!r}?"
    if not there:
        return "; the folder is empty"
    return f"; there is: {', '.join(there[:8])}{', ...' if len(there) > 8 else ''}"


def _bytes(path: Path) -> bytearray:
    data, unfinished = bytearray(), 0  # bytes of the line that the last chunk left open
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if not data:
                _refuse_packed(path, chunk)
            first = re.search(rb"[\r\n]", chunk)
            if unfinished + (first.start() if first else len(chunk)) > LINE_LIMIT:
                raise BadInput(
                    f"this line is longer than {LINE_LIMIT:,} bytes",
                    "is it plain text? break it into lines, one document or paragraph each",
                    path=path,
                    line=_line_at(data, len(data)),
                )
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            unfinished = unfinished + len(chunk) if first is None else len(chunk) - last - 1
            data += chunk
    return data


def _refuse_packed(path: Path, start: bytes) -> None:
    for magic, kind in PACKED.items():
        if start.startswith(magic):
            raise BadInput(f"this is a {kind} file, not plain text", "unpack or export it first", path=path, line=1)


def _decode(path: Path, data: bytearray) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        hint = f"convert it: iconv -f UTF-16 -t UTF-8 {path.name}"
        raise BadInput("this is UTF-16; UTF-8 is expected", hint, path=path, line=1)
    if (nul := data.find(0)) >= 0:
        looks_wide = len(data) > 3 and data.count(0) > len(data) // 4
        raise BadInput(
            f"byte {_byte_in_line(data, nul)} of this line is NUL; plain UTF-8 text is expected",
            f"it looks like UTF-16; convert it: iconv -f UTF-16LE -t UTF-8 {path.name}" if looks_wide else "remove it",
            path=path,
            line=_line_at(data, nul),
        )
    begin = 3 if data.startswith(b"\xef\xbb\xbf") else 0  # a byte order mark, as Windows editors write it
    try:
        return data[begin:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = begin + error.start
        around = bytes(data[max(0, at - 12) : at + 12]).decode("latin-1")
        excerpt = re.split(r"[\r\n]", around[: min(12, at)])[-1] + re.split(r"[\r\n]", around[min(12, at) :])[0]
        raise BadInput(
            f"byte {_byte_in_line(data, at)} of this line, 0x{data[at]:02X}, is not UTF-8",
            f"if it is Latin-1, it reads {excerpt!r}; then convert it: iconv -f LATIN1 -t UTF-8 {path.name}",
            path=path,
            line=_line_at(data, at),
        ) from error


def _line_at(data: bytearray, at: int) -> int:
    head = data[:at]
    return head.count(b"\n") + head.count(b"\r") - head.count(b"\r\n") + 1


def _byte_in_line(data: bytearray, at: int) -> int:
    return at - max(data.rfind(b"\n", 0, at), data.rfind(b"\r", 0, at))
