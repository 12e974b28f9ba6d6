"""Cleaning: which documents of a data set to leave out, so that no test item stands in training."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.recipe import Data
from fairtrial.text.cleaned_files import Dropped, ensure_empty, write_files
from fairtrial.text.copies import CLEAN, EXACT, key, match
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.reading import find_format, read
from fairtrial.text.shaping import into_sentences

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
