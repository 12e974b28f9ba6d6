"""Cleaning: which documents of a data set to leave out, so that no test item stands in training.

Files without some of their documents: what stays is copied byte for byte, whatever the format.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairtrial.data.corpus import Corpus, Document
from fairtrial.data.duplicates import CLEAN, EXACT, key, match
from fairtrial.data.readers import find_format, read
from fairtrial.data.splits import into_sentences
from fairtrial.disk import disk_errors
from fairtrial.errors import BadInput
from fairtrial.recipe import Data

Documents = tuple[Document, ...]
Tell = Callable[[str], None]
EXACT_COPY, NEAR_COPY, REPEATED, TORN = "exact copies", "near copies", "repeated texts", "texts under two labels"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What to take out, and from where."""

    drop: str = "train"  # 'train': copies leave training, test sets stay whole; 'test': the other way round
    near: bool = True
    across: bool = False  # the course's folder: between the tasks, too
    duplicates: bool = False
    conflicts: bool = False

    @property
    def inside(self) -> set[str]:
        return {why for why, asked in ((REPEATED, self.duplicates), (TORN, self.conflicts)) if asked}


def clean_data(source: str, out: Path, wish: Wish, tell: Tell = lambda what: None) -> dict[str, Any]:
    """Write a cleaned copy of `source` to `out`. The source is only read."""
    kind = find_format(Data(source=source))
    if kind == "sotu":
        raise BadInput("the embedded speeches are clean: no copy of a test sentence enters training")
    ensure_empty(out, Path(source).expanduser())
    tell("reading")
    corpora = read_all(source, kind)
    if not any(corpus.tests or corpus.validation for corpus in corpora) and not wish.inside:
        raise BadInput(
            "these data bring no test set: fairtrial carves one when it trains",
            "use --duplicates or --conflicts to clean the training texts themselves",
            path=source,
        )
    dropped: dict[str, Dropped] = {}  # by place
    for corpus in corpora:
        tell(f"looking for copies among {len(corpus.train):,} training documents")
        for training, tests in meetings(corpus):
            drop_copies(dropped, training, tests, wish, corpus.paragraphs)
    if wish.across and len(corpora) == 2:
        for one, other in (corpora, corpora[::-1]):
            drop_copies(dropped, one.train, all_tests(other), wish, paragraphs=False)
    inside: dict[str, Dropped] = {}
    for corpus in corpora:
        kept = [document for document in corpus.train if document.place not in dropped]
        inside |= {**repeated(kept), **torn(kept)}
    dropped |= {place: found for place, found in inside.items() if found.why in wish.inside}
    for corpus in corpora:
        refuse_emptied(corpus, dropped, source)
    tell("writing")
    documents = [document for corpus in corpora for document in (*corpus.train, *corpus.validation, *all_tests(corpus))]
    names = dict.fromkeys(chain.from_iterable(corpus.files for corpus in corpora))
    files = write_files(Path(source).expanduser(), out, list(names), documents, dropped)
    left = Counter(found.why for found in inside.values() if found.why not in wish.inside)
    return {"format": 1, "source": source, "out": str(out), "files": files, "left": dict(left)}


def read_all(source: str, kind: str) -> list[Corpus]:
    """The corpus of each task that has files of its own. Labels are read where there are any."""
    data = Data(source=source)
    if kind == "course":
        return [read(data, "classify"), read(data, "lm")]
    if kind in ("text", "lines"):
        return [read(data, "lm")]
    try:
        return [read(data, "classify")]
    except BadInput as mistake:
        try:
            return [read(data, "lm")]  # a table of texts without labels
        except BadInput:
            raise mistake from None


def all_tests(corpus: Corpus) -> Documents:
    return tuple(chain.from_iterable(corpus.tests.values()))


def meetings(corpus: Corpus) -> Iterator[tuple[Documents, Documents]]:
    """(what is trained or chosen on, what is tested on)"""
    yield corpus.train, all_tests(corpus)
    yield corpus.validation, all_tests(corpus)
    yield corpus.train, corpus.validation


def drop_copies(
    dropped: dict[str, Dropped], training: Documents, tests: Documents, wish: Wish, paragraphs: bool
) -> None:
    """A paragraph goes as a whole if one of its sentences is a copy, for sentences are what is trained and scored."""
    if paragraphs:
        training, tests = (tuple(chain.from_iterable(map(into_sentences, each))) for each in (training, tests))
    if not training or not tests:
        return
    copies = match([each.text for each in training], [each.text for each in tests])
    sides = (training, tests, copies.known_status, copies.known_partner)
    if wish.drop == "test":
        sides = (tests, training, copies.status, copies.partner)
    chosen, others, status, partner = sides
    for document, kind, at in zip(chosen, status, partner, strict=True):
        if kind == EXACT or (kind != CLEAN and wish.near):
            found = Dropped(EXACT_COPY if kind == EXACT else NEAR_COPY, others[int(at)].place)
            if found.why == EXACT_COPY or document.place not in dropped:
                dropped[document.place] = found


def repeated(documents: Sequence[Document]) -> dict[str, Dropped]:
    """Texts that stand before under the same label."""
    first: dict[tuple[str, str], str] = {}
    found = {}
    for document in documents:
        place = first.setdefault((key(document.text), document.label), document.place)
        if place != document.place:
            found[document.place] = Dropped(REPEATED, place)
    return found


def torn(documents: Sequence[Document]) -> dict[str, Dropped]:
    """All texts that stand under two labels: nobody knows which is right."""
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for document in documents:
        labels[key(document.text)].setdefault(document.label, document.place)
    found = {}
    for document in documents:
        others = [place for label, place in labels[key(document.text)].items() if label != document.label]
        if others:
            found[document.place] = Dropped(TORN, others[0])
    return found


def refuse_emptied(corpus: Corpus, dropped: dict[str, Dropped], source: str) -> None:
    for name, documents in {"training": corpus.train, **corpus.tests}.items():
        kept = [document for document in documents if document.place not in dropped]
        lost = {document.label for document in documents} - {document.label for document in kept}
        if documents and (not kept or (lost and name == "training")):
            what = f"class {sorted(lost)[0]!r} of the {name} set" if kept else f"the {name} set"
            raise BadInput(f"nothing of {what} would be left", "try the other --drop, or --exact", path=source)


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
