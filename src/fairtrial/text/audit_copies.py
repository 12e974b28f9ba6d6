"""D1 and D7: texts, and documents of one group, that stand on both sides of a split. A score on them tests memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fairtrial.text.copies import EXACT, NEAR, Copies, key
from fairtrial.text.corpus import Document
from fairtrial.text.finding import (
    AMBER,
    MANY,
    PASS,
    RED,
    REPORT,
    DataFinding,
    by_share,
    count_of,
    file_of,
    first_few,
    quote,
)

LIMIT = "0; red > 1%"


def audit_copies(
    name: str, known: Sequence[Document], items: Sequence[Document], copies: Copies, most: str = RED
) -> Iterator[DataFinding]:
    """One test set against all that training sees. `most`: the verdict on more than a few."""
    exact, near = (int((copies.status == kind).sum()) for kind in (EXACT, NEAR))
    same = f"; {copies.identical:,} to the letter" if exact else ""
    yield DataFinding(
        "D1",
        "copies from train",
        name,
        exact / len(items),
        count_of(exact, len(items)),
        LIMIT,
        by_share(exact, len(items), most),
        f"test items that stand in the training text, but for case and punctuation{same}: a score on them tests memory."
        if exact
        else "no test item stands in the training text.",
        _examples(copies, EXACT, known, items),
    )
    yield DataFinding(
        "D1n",
        "near copies from train",
        name,
        near / len(items),
        count_of(near, len(items)),
        LIMIT,
        by_share(near, len(items), most),
        "test items of 8 words or more that share half of their 3-word runs with a training text, stand in one or"
        " hold one."
        if near
        else "no test item is nearly a training text.",
        _examples(copies, NEAR, known, items),
    )


def audit_repeats(name: str, documents: Sequence[Document]) -> DataFinding:
    """Texts that stand more than once in one split."""
    counts = Counter(key(document.text) for document in documents)
    extra = len(documents) - len(counts)
    verdict = PASS if not extra else REPORT if name == "train" or extra <= MANY * len(documents) else AMBER
    meaning = "no text stands twice." if not extra else "texts that stand there before: they count more than once."
    often = (
        f"{count} times: {quote(next(each for each in documents if key(each.text) == text))}"
        for text, count in counts.most_common()
        if count > 1
    )
    return DataFinding(
        "D1r",
        "repeated inside the set",
        name,
        extra / len(documents),
        count_of(extra, len(documents)),
        "1%",
        verdict,
        meaning,
        first_few(often),
    )


def audit_groups(name: str, known: Sequence[Document], items: Sequence[Document]) -> DataFinding:
    groups = {document.group for document in known} - {""}
    named = any(document.group for document in items)
    straddling = [document for document in items if document.group in groups]
    if not groups or not named:
        meaning = "the data name no documents (a column or key `group`), so neighbours on both sides cannot be found."
        return DataFinding("D7", "documents on both sides", name, 0.0, "not known", "0; red > 1%", REPORT, meaning)
    meaning = (
        "test items whose document (group) is also trained on: its names and phrases are known."
        if straddling
        else "no document is on both sides."
    )
    return DataFinding(
        "D7",
        "documents on both sides",
        name,
        len(straddling) / len(items),
        count_of(len(straddling), len(items)),
        LIMIT,
        by_share(len(straddling), len(items)),
        meaning,
        first_few(f"group {document.group!r}: {quote(document)}" for document in straddling),
    )


def _examples(copies: Copies, kind: int, known: Sequence[Document], items: Sequence[Document]) -> tuple[str, ...]:
    places = np.flatnonzero(copies.status == kind)
    pairs = ((items[int(at)], known[int(copies.partner[at])]) for at in places)
    if kind == EXACT:
        return first_few(f"{quote(item)} = {file_of(other)}" for item, other in pairs)
    return first_few(f"{quote(item)} ~ {quote(other)}" for item, other in pairs)
