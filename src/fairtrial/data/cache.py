"""What takes long to compute from texts, kept in a folder as arrays that are mapped into memory. A key is a checksum of
all that the arrays depend on, fairtrial's own code included, so nothing in the cache is ever out of date. What is
damaged is made again; what was not used for longest goes first when the folder is full. Files are safetensors."""

from __future__ import annotations

import hashlib
import json
import os
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cache
from itertools import chain, islice, pairwise
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import tokenizers

from fairtrial.data.corpus import Corpus, Document
from fairtrial.disk import sha256_of, write_bytes
from fairtrial.errors import DiskTrouble, FairtrialWarning
from fairtrial.recipe import Data

Arrays = Mapping[str, np.ndarray]

VARIABLE = "FAIRTRIAL_CACHE"  # the folder, or "off"
MOST_BYTES = 4_000_000_000  # of all files
LEAST_BYTES = 2_000_000  # of data that are cached: fewer are read again in no time
TYPES = {"I8": np.int8, "U8": np.uint8, "U32": np.uint32, "I32": np.int32, "I64": np.int64, "F64": np.float64}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
MOST_FILES, DEPTH = 20_000, 4  # of a source: folders of splits, of classes, files
PACKED = ("train", "validation", "tests", "course_lines", "key")  # fields of a corpus that are not stored as JSON
LEFT_BEHIND_SECONDS = 3600.0  # a file that is still being written after so long never will be


def folder() -> Path | None:
    """Where the cache is; None: it is switched off."""
    place = os.environ.get(VARIABLE, "")
    if place == "off":
        return None
    if place:
        return Path(place).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fairtrial"


@cache
def code() -> str:
    """A checksum of the code that texts go through, and of what it builds on."""
    whole = hashlib.sha256(f"{tokenizers.__version__} {unicodedata.unidata_version}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def key_of(*parts: object) -> str:
    return hashlib.sha256(json.dumps([*parts, code()], sort_keys=True).encode()).hexdigest()


def kept(key: str, what: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of this key, made and stored if they are not there. `what`: said when the cache is listed. An empty
    key: they are made, and not stored."""
    place = folder()
    if not key or place is None:
        return make()
    path = place / f"{key}.safetensors"
    found = _load(path)
    if found is None:
        found = make()
        try:
            place.mkdir(parents=True, exist_ok=True)
            _save(path, what, found)
            _make_room(path)
        except (DiskTrouble, OSError) as error:
            reason = error.what if isinstance(error, DiskTrouble) else f"{place}: {error.strerror}"
            warnings.warn(f"nothing is cached ({reason})", FairtrialWarning, stacklevel=2)
    return found


def _save(path: Path, what: str, arrays: Arrays) -> None:
    table, size = {}, 0
    arrays = dict(sorted(arrays.items(), key=lambda item: -item[1].itemsize))  # so that each begins where it may
    for name, array in arrays.items():
        table[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [size, size + array.nbytes],
        }
        size += array.nbytes
    content = [np.ascontiguousarray(array).data.cast("B") for array in arrays.values() if array.size]
    head = json.dumps(
        {"__metadata__": {"what": what, "sha256": _checksum(path.stem, table, content)}, **table}
    ).encode()
    head += b" " * (-len(head) % 8)
    # two processes may make the same file at once: each has a name of its own until it is whole
    write_bytes(path, len(head).to_bytes(8, "little"), head, *content, beside=f".{os.getpid()}-{get_ident()}.tmp")


def _checksum(key: str, table: Mapping[str, object], content: Sequence[Any]) -> str:
    whole = hashlib.sha256(json.dumps([key, table]).encode())
    for piece in content:
        whole.update(piece)
    return whole.hexdigest()


def _load(path: Path) -> Arrays | None:
    """None: there is no such file, or it is damaged."""
    try:
        raw = np.asarray(np.memmap(path, np.uint8, "r"))
        begin = 8 + int.from_bytes(raw[:8].tobytes(), "little")
        table = json.loads(raw[8:begin].tobytes())
        facts = table.pop("__metadata__")
        if _checksum(path.stem, table, [raw[begin:]]) != facts["sha256"]:
            raise ValueError("the checksum differs")
        found = {}
        for name, row in table.items():
            first, last = (begin + offset for offset in row["data_offsets"])
            found[name] = raw[first:last].view(TYPES[row["dtype"]]).reshape(row["shape"])
        os.utime(path)
        return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        with suppress(OSError):
            path.unlink()
        return None


def files() -> list[tuple[Path, os.stat_result]]:
    """What is in the cache, last used last."""
    place, found = folder(), []
    for path in place.glob("*.safetensors*") if place is not None and place.is_dir() else ():
        with suppress(OSError):  # another process may remove it meanwhile
            found.append((path, path.stat()))
    return sorted(found, key=lambda file: file[1].st_mtime)


def what_of(path: Path) -> str:
    """What a file of the cache holds."""
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            return str(json.loads(file.read(min(size, 1 << 20)))["__metadata__"]["what"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unreadable"


def clear() -> int:
    """Remove everything; the bytes that this freed. Who still uses a file keeps it until he ends."""
    freed = 0
    for path, facts in files():
        with suppress(OSError):
            path.unlink()
            freed += facts.st_size
    return freed


def _make_room(newest: Path) -> None:
    found = files()
    for path, facts in found:
        if path.suffix == ".tmp" and time.time() - facts.st_mtime > LEFT_BEHIND_SECONDS:
            with suppress(OSError):
                path.unlink()
    size = sum(facts.st_size for _, facts in found)
    for path, facts in found:
        if size <= MOST_BYTES:
            return
        if path != newest and path.suffix != ".tmp":
            with suppress(OSError):
                path.unlink()
            size -= facts.st_size


def pack_texts(texts: Sequence[str], name: str) -> Arrays:
    """Texts as arrays `name/...`, which may be mapped into memory."""
    raw = "".join(texts).encode()
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return {f"{name}/utf-8": np.frombuffer(raw, np.uint8), f"{name}/characters": sizes}


def unpack_texts(arrays: Arrays, name: str) -> Iterator[str]:
    whole = arrays[f"{name}/utf-8"].tobytes().decode()
    ends = np.append(0, np.cumsum(arrays[f"{name}/characters"])).tolist()
    return (whole[begin:end] for begin, end in pairwise(ends))


def source_key(data: Data, *how: str) -> str:
    """The key of what `how` makes of a source: of the names and contents of its files and of how they are read. Empty
    where they are not worth caching: few bytes, or so many files that reading them is what takes long."""
    path = Path(data.source).expanduser()
    try:
        found = sorted(_files_below(path, DEPTH))
        if folder() is None or len(found) > MOST_FILES or sum(file.stat().st_size for file in found) < LEAST_BYTES:
            return ""
        sums = [[file.relative_to(path.parent).as_posix(), sha256_of(file)] for file in found]
    except OSError:  # reading will say what is wrong
        return ""
    return key_of(sums, {**asdict(data), "source": ""}, *how)


def _files_below(path: Path, depth: int) -> Iterator[Path]:
    """Those that a reader might read; hidden ones are not."""
    if path.is_file():
        yield path
    elif depth and path.is_dir():
        for entry in path.iterdir():
            if not entry.name.startswith("."):
                yield from _files_below(entry, depth - 1)


def kept_corpus(key: str, source: str, make: Callable[[], Corpus]) -> Corpus:
    """A corpus with this key, from the cache if it is there. Locations are those of `source`, wherever it was read."""
    made: list[Corpus] = []

    def arrays() -> Arrays:
        made.append(make())
        return _pack_corpus(made[0], source)

    if not key:
        return make()
    found = kept(key, f"documents of {Path(source).name}", arrays)
    return replace(made[0] if made else _unpack_corpus(found, source), key=key)


def _pack_corpus(corpus: Corpus, source: str) -> Arrays:
    documents = [*corpus.train, *corpus.validation, *chain(*corpus.tests.values())]
    facts = {field.name: getattr(corpus, field.name) for field in fields(corpus) if field.name not in PACKED}
    facts |= {"train": len(corpus.train), "validation": len(corpus.validation)}
    facts |= {"tests": {name: len(found) for name, found in corpus.tests.items()}}
    places = [document.location.removeprefix(source).rpartition(":") for document in documents]
    lines = [int(line) if head + colon and line.isdecimal() else -1 for head, colon, line in places]
    heads = [
        head + colon if line >= 0 else head + colon + rest
        for (head, colon, rest), line in zip(places, lines, strict=True)
    ]
    arrays: dict[str, np.ndarray] = {"line": np.array(lines, np.int64)}
    columns = {"label": [document.label for document in documents], "group": [document.group for document in documents]}
    for name, values in {**columns, "head": heads}.items():
        distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
        arrays |= pack_texts(list(distinct), f"{name}s")
        arrays[name] = np.fromiter(map(distinct.__getitem__, values), np.int32, len(values))
    arrays |= pack_texts([document.text for document in documents], "texts")
    arrays |= pack_texts(corpus.course_lines, "course")
    return arrays | {"facts": np.frombuffer(json.dumps(facts).encode(), np.uint8)}


def _unpack_corpus(arrays: Arrays, source: str) -> Corpus:
    facts = json.loads(arrays["facts"].tobytes())
    columns = {name: list(unpack_texts(arrays, f"{name}s")) for name in ("label", "group", "head")}
    labels, groups = (map(columns[name].__getitem__, arrays[name].tolist()) for name in ("label", "group"))
    heads = [source + head for head in columns["head"]]
    places = zip(arrays["head"].tolist(), arrays["line"].tolist(), strict=True)
    locations = (f"{heads[head]}{line}" if line >= 0 else heads[head] for head, line in places)
    documents = map(Document, unpack_texts(arrays, "texts"), labels, groups, locations)
    train, validation = (tuple(islice(documents, facts.pop(name))) for name in ("train", "validation"))
    tests = {name: tuple(islice(documents, size)) for name, size in facts.pop("tests").items()}
    course = tuple(unpack_texts(arrays, "course"))
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    return Corpus(train, validation, tests, course_lines=course, **plain)
