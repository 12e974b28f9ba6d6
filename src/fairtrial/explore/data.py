"""The data view's answers: copies between training and test side by side, drift, lengths; and the cleaned copy."""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairtrial import audit_data, clean
from fairtrial.data import Document
from fairtrial.errors import BadInput
from fairtrial.explore.library import Library, is_name
from fairtrial.explore.requests import JobHandle, Plain, RequestParams
from fairtrial.prepare import Prepared, prepare, recipes_for, tasks_of
from fairtrial.progress import listening
from fairtrial.recipe import Data
from fairtrial.record import list_records
from fairtrial.stored_study import DataAudit

MOST_PAIRS = 25  # at a time
LEAST_TEXTS, MOST_TELLING = 5, 10  # of telling words
KINDS = {1: "exact", 2: "near"}
READ: OrderedDict[tuple[str, str], tuple[Prepared, DataAudit]] = OrderedDict()
MOST_READ = 3


def sources(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """The embedded speeches, what the user named, and what records here were trained on, where it may be read."""
    found = dict.fromkeys(["sotu", *library.data])
    for _, folder, kind in library.walk():
        handle.check()
        place = folder if kind == "record" else folder / "trials"
        for listed in list_records(place):
            if not listed.problem and library.allows(source := listed.record.recipe.data.source):
                found[source] = None
            break  # one of a study is enough
    return {"sources": [{"source": each, "tasks": tasks(each)} for each in found]}


def tasks(source: str) -> list[str]:
    try:
        return list(tasks_of(Data(source=source)))
    except BadInput:
        return []


def chosen(library: Library, params: RequestParams) -> tuple[str, str]:
    source = params.text("source", "sotu", 2000)
    if not library.allows(source):
        raise BadInput("these data are outside the explored folder", f"start with: fairtrial explore --data {source}")
    return source, params.one_of("task", tasks_of(Data(source=source)), tasks_of(Data(source=source))[0])


def audit(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """All findings of the audit, and what the sets look like."""
    source, task = chosen(library, params)

    def on_status(what: str) -> None:
        handle.check()
        handle.send({"status": what})

    with listening(on_status):
        prepared, audit = read(source, task)
    splits = prepared.splits
    sets = {"train": splits.train, "validation": splits.validation, **splits.tests}
    shown = {
        name: {
            "documents": len(documents),
            "lengths": lengths(documents),
            "classes": classes(documents, splits.class_names) if splits.labels else {},
        }
        for name, documents in sets.items()
        if documents
    }
    copies = {name: found.counts() for name, found in prepared.copies.items()}
    return {
        "findings": [finding.to_plain() for finding in audit.findings],
        "level": audit.level,
        "notes": list(audit.notes),
        "sets": shown,
        "copies": copies,
        "telling": telling_words(splits.train, splits.class_names) if splits.labels else {},
    }


def read(source: str, task: str) -> tuple[Prepared, DataAudit]:
    """Read and audited once."""
    key = (source, task)
    if key not in READ:
        audit = audit_data(source, task=task).data[task]
        READ[key] = prepare(recipes_for(source, task, None, ())[0], 0), audit
    READ.move_to_end(key)
    while len(READ) > MOST_READ:
        READ.popitem(last=False)
    return READ[key]


def classes(documents: Sequence[Document], names: Mapping[str, str]) -> dict[str, int]:
    counts = Counter(document.label for document in documents)
    return {names.get(label, label): counts[label] for label in sorted(counts)}


def telling_words(documents: Sequence[Document], names: Mapping[str, str]) -> dict[str, list[Plain]]:
    """By class: words of training texts by how much more likely one is in the class than outside it (log-odds of a text
    having it, each count one half more)."""
    sizes = Counter(document.label for document in documents)
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)  # word -> texts that hold it, by class
    for document in documents:
        for word in set(re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", document.text.lower())):
            held[word][document.label] += 1
    found = {}
    for label in sorted(sizes):
        rows: list[Plain] = []
        for word, counts in held.items():
            own, other = counts[label], counts.total() - counts[label]
            if own >= LEAST_TEXTS:
                odds = (own + 0.5) / (sizes[label] - own + 0.5)
                others = (other + 0.5) / (len(documents) - sizes[label] - other + 0.5)
                rows.append({"word": word, "log_odds": math.log(odds / others), "own": own, "other": other})
        found[names.get(label, label)] = sorted(rows, key=lambda row: (-row["log_odds"], row["word"]))[:MOST_TELLING]
    return found


def lengths(documents: Sequence[Document]) -> list[int]:
    """How many texts have 1, 2-3, 4-7 ... words."""
    counts = np.array([len(document.text.split()) for document in documents])
    return np.bincount(np.log2(np.maximum(1, counts)).astype(int), minlength=1).tolist()


def pairs(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """Test items with the training text that each is a copy of; the words of shared 3-word runs are marked."""
    source, task = chosen(library, params)
    with listening(handle.check):
        prepared, _ = read(source, task)
    test = params.one_of("set", list(prepared.copies), next(iter(prepared.copies)))
    offset, kind = params.whole("offset", 0, 10_000_000, 0), params.one_of("kind", ("all", "exact", "near"), "all")
    found, items = prepared.copies[test], prepared.splits.tests[test]
    places = [int(at) for at in np.flatnonzero(found.status) if kind in ("all", KINDS[int(found.status[at])])]
    names, rows = prepared.splits.class_names, []

    def named(document: Document) -> str:
        return names.get(document.label, document.label)

    for at in places[offset : offset + MOST_PAIRS]:
        item, other = items[at], prepared.known[int(found.partner[at])]
        one, two = marked(item.text, other.text)
        rows.append(
            {
                "kind": KINDS[int(found.status[at])],
                "share": float(found.share[at]) or None,
                "test": {"pieces": one, "where": file_of(item), "label": named(item)},
                "train": {"pieces": two, "where": file_of(other), "label": named(other)},
            }
        )
    return {"rows": rows, "count": len(places), "offset": offset, "sets": list(prepared.copies)}


def file_of(document: Document) -> str:
    return Path(document.location).name


def marked(one: str, other: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, with whether a piece is in a run of three words that both have.

    >>> marked("a b c, d", "x A B C")[1]
    [('x', False), (' ', False), ('A', True), (' ', True), ('B', True), (' ', True), ('C', True)]
    """
    cut = [re.findall(r"\w+|\W+", text) for text in (one, other)]
    words = [[(at, piece.lower()) for at, piece in enumerate(pieces) if piece[0].isalnum()] for pieces in cut]
    runs = [{tuple(word for _, word in row[at : at + 3]) for at in range(len(row) - 2)} for row in words]
    shared = runs[0] & runs[1]
    found = []
    for pieces, row in zip(cut, words, strict=True):
        inside = set()
        for at in range(len(row) - 2):
            if tuple(word for _, word in row[at : at + 3]) in shared:
                inside |= set(range(row[at][0], row[at + 2][0] + 1))
        found.append([(piece, at in inside) for at, piece in enumerate(pieces)])
    return found[0], found[1]


def cleaned(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """Write the cleaned copy, into the explored folder, under a name that is free."""
    source, _ = chosen(library, params)
    stem = Path(source).stem
    name = f"{stem if is_name(stem) else 'data'}-clean"
    out = next(
        path
        for number in range(1, 1000)
        if not (path := library.root / (name if number == 1 else f"{name}-{number}")).exists()
    )
    drop = params.one_of("drop", ("train", "test"), "train")
    with listening(handle.check):
        return clean(source, out, drop=drop)
