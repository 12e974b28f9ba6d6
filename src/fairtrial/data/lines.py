"""Strict reading of text files as lines, with file and line in every error, and the files of a data folder."""

from __future__ import annotations

import gzip
import hashlib
import re
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from fairtrial.errors import BadInput

LINE_LIMIT = 1_000_000  # characters: a longer line is most often a binary file or one without line ends
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


def suffix_of(path: Path) -> str:
    """In small letters; of `a.csv.gz` it is .csv."""
    return bare(path).suffix.lower()


def bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def read_lines(path: Path) -> TextFile:
    """The file, which may be gzipped, as UTF-8 lines; only \\n, \\r\\n and \\r end a line."""
    require_file(path)
    try:
        data = path.read_bytes()
        text = decode(path, gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error
    # str.splitlines would also break at U+2028, U+0085, form feeds ..., which occur inside texts
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not text.strip():
        raise BadInput("the file is empty", "add at least one line of text, or remove the file", path=path)
    if max(map(len, lines)) > LINE_LIMIT:
        line = next(number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT)
        hint = "if it is plain text, break it into lines of one document or paragraph"
        raise BadInput(f"this line is longer than {LINE_LIMIT:,} characters", hint, path=path, line=line)
    return TextFile(path, hashlib.sha256(data).hexdigest(), tuple(lines))


def decode(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")  # Windows editors begin a file with a byte order mark
        at = text.find("\0")
        if at < 0:
            return text
        what, before = "a NUL byte: it is not plain text", text[:at].encode()
    except UnicodeDecodeError as error:
        what, before = f"byte 0x{data[error.start]:02X} is not UTF-8", data[: error.start]
    hint = f"save it as UTF-8, for example: iconv -f LATIN1 (or UTF-16) -t UTF-8 {path.name}"
    raise BadInput(what, hint, path=path, line=len(re.findall(rb"\r\n|\r|\n", before)) + 1)


def hashes(source: Path, files: Mapping[Path, str]) -> dict[str, str]:
    """The sha256 of each file by its name relative to the source."""
    folder = source if source.is_dir() else source.parent
    return {path.relative_to(folder).as_posix(): sha256 for path, sha256 in files.items()}


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
        of_place = SPLIT_NAMES.get(place.name.lower()) if place != folder else None
        for file in entries(place):
            split = of_place or split_name(SHARD.sub(r"\1", split_part(file)))
            if split and suffix_of(file) in suffixes:
                found.setdefault(split, []).append(file)
    for split, files in found.items():
        shards = [SHARD.fullmatch(split_part(file)) for file in files]
        in_one_folder = {SPLIT_NAMES.get(file.parent.name.lower()) if file.parent != folder else "" for file in files}
        if in_one_folder == {split}:
            continue
        if shards[0] and all(shards):
            if int(shards[0][3]) != len(files):
                what = f"{files[0].name} is one of {int(shards[0][3])} files of the {split} set; {len(files)} are here"
                raise BadInput(what, "add the others", path=folder)
        elif len(files) > 1:
            raise _two("files", split, files[0], files[1], folder)
    return found


def split_part(file: Path) -> str:
    """`dev` of news.dev.tokens"""
    return bare(file).stem.rsplit(".", 1)[-1]


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
        parent = path.parent
        if not parent.is_dir():
            raise BadInput(f"no such path; there is no folder {str(parent)!r} either", path=path) from error
        raise BadInput(f"no such file or folder{_suggestion(path.name, parent)}", path=path) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=path) from error
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
