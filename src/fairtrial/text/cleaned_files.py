"""Files without some of their documents: what stays is copied byte for byte, whatever the format."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors
from fairtrial.errors import BadInput
from fairtrial.text.corpus import Document

LIST = "dropped.tsv"


@dataclass(frozen=True)
class Dropped:
    why: str
    because: str  # the place of the text that it copies or contradicts


def ensure_empty(out: Path, source: Path) -> None:
    """A new or empty folder, apart from the source."""
    if out.resolve() == source.resolve() or source.resolve() in out.resolve().parents:
        raise BadInput("the cleaned copy must stand outside of the data", "name another folder", path=out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput("is there already and not an empty folder", "name a new folder", path=out)


def write_files(
    source: Path, out: Path, names: Sequence[str], documents: Sequence[Document], dropped: Mapping[str, Dropped]
) -> dict[str, Any]:
    """The files of `names` without the dropped documents, and the list of these. All of it, or nothing."""
    folder = source if source.is_dir() else source.parent
    by_file: defaultdict[Path, dict[int, str]] = defaultdict(dict)  # file -> line -> place
    for document in documents:
        path, line = split_place(document.place)
        by_file[path][line] = document.place
    told: dict[str, Any] = {}
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
        try:
            for name in names:
                places = by_file.get(folder / name, {})
                lost = {line: dropped[place] for line, place in places.items() if place in dropped}
                whole = 0 in lost  # a file that is one document
                if not whole:
                    (beside / name).parent.mkdir(parents=True, exist_ok=True)
                    (beside / name).write_bytes(without((folder / name).read_bytes(), sorted(places), set(lost)))
                group = name if len(names) < 50 else Path(name).parent.as_posix()
                _count(told, group, len(places), [found.why for found in lost.values()])
            (beside / LIST).write_text(listed(folder, dropped), encoding="utf-8", newline="\n")
            beside.chmod(0o755)
            os.replace(beside, out)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    return told


def _count(told: dict[str, Any], name: str, documents: int, reasons: list[str]) -> None:
    counts = told.setdefault(name, {"documents": 0, "kept": 0, "dropped": {}})
    counts["documents"] += documents
    counts["kept"] += documents - len(reasons)
    counts["dropped"] = dict(Counter(counts["dropped"]) + Counter(reasons))


def without(content: bytes, starts: Sequence[int], lost: set[int]) -> bytes:
    """The content but for the documents that begin at the lost lines; each reaches to the beginning of the next."""
    lines = re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", content)
    ends = [*starts[1:], len(lines) + 1]
    for start, end in zip(starts, ends, strict=True):
        if start in lost:
            lines[start - 1 : end - 1] = [b""] * (end - start)
    return b"".join(lines)


def split_place(place: str) -> tuple[Path, int]:
    """`file:12` -> file and line; a file that is one document has no line."""
    path, colon, line = place.rpartition(":")
    return (Path(path), int(line)) if colon and line.isdigit() and not Path(place).is_file() else (Path(place), 0)


def listed(folder: Path, dropped: Mapping[str, Dropped]) -> str:
    def short(place: str) -> str:
        path, line = split_place(place)
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
        return f"{name}:{line}" if line else name

    rows = sorted((split_place(place), place, found) for place, found in dropped.items())
    return "dropped\twhy\tbecause of\n" + "".join(
        f"{short(place)}\t{found.why}\t{short(found.because)}\n" for _, place, found in rows
    )
