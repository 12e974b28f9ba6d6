"""Strict reading of text files as lines, with file and line in every error, and the files of a data folder."""

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

LINE_LIMIT = 1_000_000  # bytes: a longer line is most often a binary file or one without line ends
CHUNK = 1 << 18  # below LINE_LIMIT, so that a line that is too long always began in an earlier chunk
BINARY = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"%PDF": "PDF",
    b"PAR1": "Parquet",
}
SPLIT_NAMES = {  # the usual spellings of each split
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")  # as Hugging Face names the files of one split
Sources = dict[str, list[Path]]  # files by split


@dataclass(frozen=True)
class TextFile:
    """The lines of one file, without line ends."""

    path: Path
    sha256: str
    lines: tuple[str, ...]

    def numbered(self) -> Iterator[tuple[int, str]]:
        """(line number, line) up to the last line that is not blank"""
        end = max((number for number, line in enumerate(self.lines, start=1) if line.strip()), default=0)
        return enumerate(self.lines[:end], start=1)

    def location(self, line: int) -> str:
        return f"{self.path}:{line}"


def read_lines(path: Path) -> TextFile:
    """The file as UTF-8 lines; only \\n, \\r\\n and \\r end a line."""
    require_file(path)
    try:
        data = _read_bytes(path)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=path) from error
    text = _decode(path, data)
    # str.splitlines would also break at U+2028, U+0085, form feeds ..., which occur inside texts
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not text.strip():
        raise BadInput("the file is empty", "add at least one line of text, or remove the file", path=path)
    return TextFile(path, hashlib.sha256(data).hexdigest(), tuple(lines))


def hashes(source: Path, files: list[TextFile]) -> dict[str, str]:
    """sha256 of each file by its name relative to the source."""
    folder = source if source.is_dir() else source.parent
    return {file.path.relative_to(folder).as_posix(): file.sha256 for file in files}


def require_file(path: Path) -> None:
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise BadInput("expected a file, found a folder", path=path)
    if not stat.S_ISREG(mode):
        raise BadInput("neither a file nor a folder (a pipe, a socket or a device)", "copy it to a file", path=path)


def is_folder(path: Path) -> bool:
    """Folder or file; anything else is refused."""
    folder = stat.S_ISDIR(_mode(path))
    if not folder:
        require_file(path)
    return folder


def entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted by name, without hidden entries."""
    if not stat.S_ISDIR(_mode(folder)):
        raise BadInput("expected a folder, found a file", path=folder)
    try:
        found = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=folder) from error
    for entry in found:
        if not entry.name.isascii() and not entry.name.isprintable():
            raise BadInput(f"the file name {entry.name!r} is not UTF-8", "rename it", path=folder)
    return found


def split_files(folder: Path, suffixes: tuple[str, ...]) -> Sources:
    """The files of a folder that name a split: `train.tsv`, `news.dev.tokens`, `test_easy.csv` (a test set of its own),
    `data/train-00000-of-00002.jsonl`, or any in a folder `train/`."""
    found: Sources = {}
    inside = [entry for entry in entries(folder) if entry.is_dir() and not entry.suffix]
    for place in (folder, *(entry for entry in inside if entry.name == "data" or entry.name.lower() in SPLIT_NAMES)):
        files = [entry for entry in entries(place) if entry.suffix.lower() in suffixes]
        of_place = SPLIT_NAMES.get(place.name.lower()) if place != folder else None
        named = {file: file.stem.rsplit(".", 1)[-1] for file in files}
        shards = {file: SHARD.fullmatch(name) for file, name in named.items()}
        own: Sources = {}
        for file, name in named.items():
            shard = shards[file]
            split = of_place or split_name(shard[1] if shard else name)
            if split and split in own and not of_place and not (shard and shards[own[split][0]]):
                raise _two("files", split, own[split][0], file, folder)
            if split:
                own.setdefault(split, []).append(file)
        for split, group in own.items():
            if split in found:
                raise _two("files", split, found[split][0], group[0], folder)
            total = next((int(shard[3]) for file in group if (shard := shards[file])), len(group))
            if not of_place and total != len(group):
                what = f"{group[0].name} is one of {total} files of the {split} set, and {len(group)} are there"
                raise BadInput(what, "add the others", path=folder)
            found[split] = group
    return found


def split_name(name: str) -> str | None:
    """train, validation or test; a further test set by its own name, which begins with test; None: not a split."""
    further = name if re.fullmatch(r"(?i)test[_-].+", name) else None
    return SPLIT_NAMES.get(name.lower(), further)


def by_split(folder: Path, kind: str, names: dict[Path, str]) -> dict[str, Path]:
    """The entries whose name is that of a split."""
    found: dict[str, Path] = {}
    for entry, name in names.items():
        split = SPLIT_NAMES.get(name.lower())
        if split in found:
            raise _two(kind, split, found[split], entry, folder)
        if split is not None:
            found[split] = entry
    return found


def _two(kind: str, split: str, one: Path, other: Path, folder: Path) -> BadInput:
    what = f"two {kind} could be the {split} set: {one.name} and {other.name}"
    return BadInput(what, "keep one of them in this folder", path=folder)


def source_files(path: Path, suffixes: tuple[str, ...]) -> Sources:
    """Files by split: a single file is the training set, a folder has files for each split."""
    if not is_folder(path):
        return {"train": [path]}
    found = split_files(path, suffixes)
    if "train" not in found:
        names = " or ".join(f"train{suffix}" for suffix in suffixes)
        raise BadInput(f"there is no {names} in this folder{_suggestion('train', path)}", path=path)
    return found


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except FileNotFoundError as error:
        if path.is_symlink():
            raise BadInput("broken symlink", path=path) from error
        parent = path.parent
        if not parent.is_dir():
            raise BadInput(f"no such path; there is no folder {str(parent)!r} either", path=path) from error
        raise BadInput(f"no such file or folder{_suggestion(path.name, parent)}", path=path) from error
    except OSError as error:
        what = "symlink loop" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
        raise BadInput(what, path=path) from error
    except ValueError as error:
        raise BadInput(f"{str(path)!r} is not a path: {error}") from error


def _suggestion(name: str, folder: Path) -> str:
    """`; did you mean ...?` or the first few names in the folder."""
    names = [entry.name for entry in entries(folder)]
    if close := get_close_matches(name, names, n=1, cutoff=0.5):
        return f"; did you mean {close[0]!r}?"
    if not names:
        return "; the folder is empty"
    return f"; the folder contains: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"


def _read_bytes(path: Path) -> bytearray:
    data, unfinished = bytearray(), 0  # bytes of the line that the last chunk left open
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            kind = None if data else next((BINARY[magic] for magic in BINARY if chunk.startswith(magic)), None)
            if kind:
                hint = "pandas.read_parquet(FILE).to_json(NEW, orient='records', lines=True) writes JSON lines"
                hint = hint if kind == "Parquet" else "unpack it or export text"
                raise BadInput(f"this is a {kind} file, not plain text", hint, path=path, line=1)
            first = re.search(rb"[\r\n]", chunk)
            if unfinished + (first.start() if first else len(chunk)) > LINE_LIMIT:
                what = f"this line is longer than {LINE_LIMIT:,} bytes"
                hint = "if it is plain text, break it into lines of one document or paragraph"
                raise BadInput(what, hint, path=path, line=_place(data, len(data))[0])
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            unfinished = unfinished + len(chunk) if first is None else len(chunk) - last - 1
            data += chunk
    return data


def _decode(path: Path, data: bytearray) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        hint = f"convert it: iconv -f UTF-16 -t UTF-8 {path.name}"
        raise BadInput("expected UTF-8, found UTF-16", hint, path=path, line=1)
    if (nul := data.find(0)) >= 0:
        line, byte = _place(data, nul)
        looks_wide = len(data) > 3 and data.count(0) > len(data) // 4
        wide = f"it looks like UTF-16; convert it: iconv -f UTF-16LE -t UTF-8 {path.name}"
        what = f"expected plain UTF-8 text, but byte {byte} of this line is NUL"
        raise BadInput(what, wide if looks_wide else "remove it", path=path, line=line)
    begin = 3 if data.startswith(b"\xef\xbb\xbf") else 0  # a byte order mark, as Windows editors write it
    try:
        return data[begin:].decode("utf-8")
    except UnicodeDecodeError as error:
        at = begin + error.start
        around = bytes(data[max(0, at - 12) : at + 12]).decode("latin-1")
        excerpt = re.split(r"[\r\n]", around[: min(12, at)])[-1] + re.split(r"[\r\n]", around[min(12, at) :])[0]
        line, byte = _place(data, at)
        what = f"byte {byte} of this line, 0x{data[at]:02X}, is not UTF-8"
        hint = f"as Latin-1 it would read {excerpt!r}; then convert it: iconv -f LATIN1 -t UTF-8 {path.name}"
        raise BadInput(what, hint, path=path, line=line) from error


def _place(data: bytearray, at: int) -> tuple[int, int]:
    """(line, byte in the line), both from 1"""
    before = re.split(rb"\r\n|\r|\n", data[:at])
    return len(before), len(before[-1]) + 1
