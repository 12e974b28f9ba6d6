"""What takes long to compute from texts, kept in a folder as arrays. A key is a checksum of all that the arrays depend
on, fairtrial's own code included, so nothing in the cache is ever out of date. What is damaged is made again; what was
not used for longest goes first when the folder is full. Files are safetensors."""

from __future__ import annotations

import hashlib
import json
import os
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import tokenizers
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fairtrial.data.corpus import Corpus
from fairtrial.disk import write_bytes
from fairtrial.errors import DiskTrouble, FairtrialWarning
from fairtrial.recipe import Data

Arrays = Mapping[str, np.ndarray]

VARIABLE = "FAIRTRIAL_CACHE"  # the folder, or "off"
MOST_BYTES = 4_000_000_000  # of all files
LEAST_CHARACTERS = 2_000_000  # of a corpus about which something is cached: of less it is made again in no time
LEFT_BEHIND_SECONDS = 3600.0  # a file that is still being written after so long never will be


def folder() -> Path | None:
    """Where the cache is; None: it is switched off."""
    place = os.environ.get(VARIABLE) or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/fairtrial"
    return None if place == "off" else Path(place).expanduser()


@cache
def code() -> str:
    """A checksum of the code that texts go through, and of what it builds on."""
    whole = hashlib.sha256(f"{tokenizers.__version__} {unicodedata.unidata_version}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def key_of(*parts: object) -> str:
    return hashlib.sha256(json.dumps([*parts, code()], sort_keys=True).encode()).hexdigest()


def corpus_key(corpus: Corpus, data: Data, *how: str) -> str:
    """The key of what is cached about a corpus: of its files' contents and of how they are read. Empty where that is
    not worth it."""
    documents = (document for part in (corpus.train, corpus.validation, *corpus.tests.values()) for document in part)
    if folder() is None or sum(len(document.text) for document in documents) < LEAST_CHARACTERS:
        return ""
    return key_of(corpus.files, {**asdict(data), "source": ""}, *how)


def kept(key: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays of this key, made and stored if they are not there. An empty key: they are made, and not stored."""
    place = folder()
    if not key or place is None:
        return make()
    path = place / f"{key}.safetensors"
    arrays = _load(path)
    if arrays is None:
        arrays = make()
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_bytes(path, save(dict(arrays), {"sha256": _checksum(key, arrays)}))
            _make_room(path)
        except (DiskTrouble, OSError) as error:
            reason = error.what if isinstance(error, DiskTrouble) else f"{place}: {error.strerror}"
            warnings.warn(f"nothing is cached ({reason})", FairtrialWarning, stacklevel=2)
    return arrays


def _checksum(key: str, arrays: Arrays) -> str:
    whole = hashlib.sha256(key.encode())
    for name, array in sorted(arrays.items()):
        whole.update(f"{name} {array.dtype} {array.shape} ".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()


def _load(path: Path) -> Arrays | None:
    """None: there is no such file, or it is damaged."""
    try:
        with safe_open(path, "numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if _checksum(path.stem, arrays) == (file.metadata() or {}).get("sha256"):
                os.utime(path)
                return arrays
    except (OSError, ValueError, SafetensorError):
        pass
    return None


def files() -> list[tuple[Path, os.stat_result]]:
    """What is in the cache, last used last."""
    place, found = folder(), []
    for path in place.glob("*.safetensors*") if place is not None and place.is_dir() else ():
        with suppress(OSError):  # another process may remove it meanwhile
            found.append((path, path.stat()))
    return sorted(found, key=lambda file: file[1].st_mtime)


def clear() -> int:
    """Remove everything; the bytes that this freed."""
    return sum(_remove(path, facts.st_size) for path, facts in files())


def _remove(path: Path, size: int) -> int:
    with suppress(OSError):
        path.unlink()
        return size
    return 0


def _make_room(newest: Path) -> None:
    """Remove what was left behind and, while all is too large, what was not used for longest."""
    found = files()
    size = sum(facts.st_size for _, facts in found)
    for path, facts in found:
        being_written = path.suffix == ".tmp"
        left_behind = being_written and time.time() - facts.st_mtime > LEFT_BEHIND_SECONDS
        if left_behind or (size > MOST_BYTES and path != newest and not being_written):
            size -= _remove(path, facts.st_size)


def pack_texts(texts: Sequence[str], name: str) -> Arrays:
    """Texts as arrays `name/...`"""
    raw = "".join(texts).encode()
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    return {f"{name}/utf-8": np.frombuffer(raw, np.uint8), f"{name}/characters": sizes}


def unpack_texts(arrays: Arrays, name: str) -> Iterator[str]:
    whole = arrays[f"{name}/utf-8"].tobytes().decode()
    ends = np.append(0, np.cumsum(arrays[f"{name}/characters"])).tolist()
    return (whole[begin:end] for begin, end in pairwise(ends))
