"""Cleaning: a copy of a data set in which no test item occurs in training. What stays is copied byte for byte."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from fairtrial.data.corpus import Corpus, Document, Documents, into_sentences
from fairtrial.data.duplicates import CLEAN, EXACT, find_duplicates
from fairtrial.data.readers import find_format, read
from fairtrial.data.tables import ARROW
from fairtrial.disk import disk_errors, preparing, sweep_lock, whole_folder, write_bytes, write_text
from fairtrial.errors import BadInput
from fairtrial.recipe import Data

EXACT_DUPLICATE, NEAR_DUPLICATE = "exact duplicates", "near duplicates"
LIST = "dropped.tsv"


@dataclass(frozen=True)
class CleanedFile:
    """What was kept of one file."""

    documents: int = 0
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)  # by reason


@dataclass(frozen=True)
class Cleaned:
    """A cleaned copy of a data set."""

    source: str
    out: str
    files: Mapping[str, CleanedFile]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Dropped:
    why: str
    because: str  # file and line of the text that it duplicates


def clean_data(
    data: Data,
    out: Path,
    drop: str = "train",
    near: bool = True,
    on_progress: Callable[[str], None] = lambda what: None,
) -> Cleaned:
    """Write a cleaned copy of the data to `out`. Their source is only read. `drop`: 'train', duplicates leave training
    and test sets stay as they are; or 'test', the reverse."""
    source, kind = data.source, find_format(data)
    if kind == "sotu":
        raise BadInput("the embedded speeches are clean: no test sentence occurs in training")
    ensure_empty(out, Path(source).expanduser())
    on_progress("reading")
    corpora = read_all(data, kind)
    if not any(corpus.tests or corpus.validation for corpus in corpora):
        raise BadInput("the data have no test set: fairtrial splits one off when it trains", path=source)
    dropped: dict[str, Dropped] = {}  # by file and line
    for corpus in corpora:
        on_progress(f"searching {len(corpus.train):,} training documents for duplicates")
        tests = all_tests(corpus)
        for training, tested in ((corpus.train, tests), (corpus.validation, tests), (corpus.train, corpus.validation)):
            drop_duplicates(dropped, training, tested, drop, near, corpus.paragraphs)
    for corpus in corpora:
        check_emptied(corpus, dropped, source)
    on_progress("writing")
    documents = [document for corpus in corpora for document in (*corpus.train, *corpus.validation, *all_tests(corpus))]
    names = dict.fromkeys(chain.from_iterable(corpus.files for corpus in corpora))
    if packed := [name for name in names if name.lower().endswith((".gz", ".json", ".bin", *ARROW))]:
        raise BadInput(f"{packed[0]} cannot be cleaned line by line", "save it as CSV or JSON lines", path=source)
    files = write_files(Path(source).expanduser(), out, list(names), documents, dropped)
    notes = tuple(dict.fromkeys(note for corpus in corpora for note in corpus.notes))
    return Cleaned(source, str(out), files, notes)


def read_all(data: Data, kind: str) -> list[Corpus]:
    """The corpus of each task that has files of its own. Labels are read where there are any."""
    if kind == "course":
        return [read(data, "classify"), read(data, "lm")]
    try:
        return [read(data, "classify")]
    except BadInput as mistake:
        try:
            return [read(data, "lm")]  # texts without labels
        except BadInput:
            raise mistake from None


def all_tests(corpus: Corpus) -> Documents:
    return tuple(chain.from_iterable(corpus.tests.values()))


def drop_duplicates(
    dropped: dict[str, Dropped], training: Documents, tests: Documents, drop: str, near: bool, paragraphs: bool
) -> None:
    """A paragraph is dropped if one of its sentences is a duplicate: sentences are what is trained and scored."""
    if paragraphs:
        training, tests = (tuple(chain.from_iterable(map(into_sentences, part))) for part in (training, tests))
    if not training or not tests:
        return
    found = find_duplicates([document.text for document in training], [document.text for document in tests])
    if drop == "test":
        chosen, others, status, partner = tests, training, found.status, found.partner
    else:
        chosen, others, status, partner = training, tests, found.known_status, found.known_partner
    for document, kind, number in zip(chosen, status, partner, strict=True):
        if kind == EXACT:
            dropped[document.location] = Dropped(EXACT_DUPLICATE, others[number].location)
        elif kind != CLEAN and near:
            dropped.setdefault(document.location, Dropped(NEAR_DUPLICATE, others[number].location))


def check_emptied(corpus: Corpus, dropped: dict[str, Dropped], source: str) -> None:
    for name, documents in {"training": corpus.train, **corpus.tests}.items():
        kept = [document for document in documents if document.location not in dropped]
        lost = {document.label for document in documents} - {document.label for document in kept}
        if documents and (not kept or (lost and name == "training")):
            what = f"class {sorted(lost)[0]!r} of the {name} set" if kept else f"the {name} set"
            raise BadInput(f"nothing of {what} would remain", "try the other --drop, or --exact", path=source)


def ensure_empty(out: Path, source: Path) -> None:
    """A new or empty folder outside the source."""
    if out.resolve() == source.resolve() or source.resolve() in out.resolve().parents:
        raise BadInput("the cleaned copy must be outside the data", "choose another folder", path=out)
    if out.name in ("", ".."):
        raise BadInput("the cleaned copy needs a folder of its own", "choose a new folder", path=out)
    sweep_lock(out)  # refused as busy where another process is writing the copy
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput("already exists and is not an empty folder", "choose a new folder", path=out)


def write_files(
    source: Path, out: Path, names: Sequence[str], documents: Sequence[Document], dropped: Mapping[str, Dropped]
) -> dict[str, CleanedFile]:
    """Files without the dropped documents, and a list of these: all or nothing."""
    folder = source if source.is_dir() else source.parent
    by_file: defaultdict[Path, dict[int, str]] = defaultdict(dict)  # file -> line -> location
    for document in documents:
        path, line = split_location(document.location)
        by_file[path][line] = document.location
    counts: dict[str, CleanedFile] = {}
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    with preparing(out), whole_folder(out) as draft:
        for name in names:
            locations = by_file.get(folder / name, {})
            lost = {line: dropped[location] for line, location in locations.items() if location in dropped}
            if not locations or len(lost) < len(locations):  # an empty file is no data set
                with disk_errors(out):
                    (draft / name).parent.mkdir(parents=True, exist_ok=True)
                write_bytes(draft / name, without((folder / name).read_bytes(), sorted(locations), set(lost)))
            dropped_here = Counter(each.why for each in lost.values())
            counts[name] = CleanedFile(len(locations), len(locations) - len(lost), dict(dropped_here))
        write_text(draft / LIST, list_dropped(folder, dropped))
    return counts


def without(content: bytes, starts: Sequence[int], lost: set[int]) -> bytes:
    """The content without the documents that begin at the lost lines; each reaches to the start of the next."""
    lines = re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z", content)
    ends = [*starts[1:], len(lines) + 1]
    for start, end in zip(starts, ends, strict=True):
        if start in lost:
            lines[start - 1 : end - 1] = [b""] * (end - start)
    return b"".join(lines)


def split_location(location: str) -> tuple[Path, int]:
    """`file:12` -> file and line; 0 for a file that is one document."""
    path, colon, line = location.rpartition(":")
    return (Path(path), int(line)) if colon and line.isdigit() and not Path(location).is_file() else (Path(location), 0)


def list_dropped(folder: Path, dropped: Mapping[str, Dropped]) -> str:
    def short(location: str) -> str:
        path, line = split_location(location)
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
        return f"{name}:{line}" if line else name

    rows = sorted(dropped.items(), key=lambda row: split_location(row[0]))
    lines = [f"{short(location)}\t{found.why}\t{short(found.because)}\n" for location, found in rows]
    return "dropped\twhy\tbecause of\n" + "".join(lines)
