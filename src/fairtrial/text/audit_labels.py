"""D3 and D5: texts under two labels, and words that give the label away."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from fairtrial.text.copies import key, words
from fairtrial.text.corpus import Document
from fairtrial.text.finding import AMBER, PASS, REPORT, DataFinding, count_of, first_few, quote

ROWS = 20  # a word in fewer texts may be of one class by chance
PURE = 0.99
CHANCE = 1e-6  # that all its texts are of one class although it says nothing of classes


def audit_conflicts(splits: Mapping[str, Sequence[Document]]) -> Iterator[DataFinding]:
    """The same text under two labels: inside train, inside each test set, and between them."""
    train = splits["train"]
    for name, documents in splits.items():
        yield _conflicts(name, documents, documents)
        if name != "train":
            yield _conflicts(f"{name} and train", documents, train)


def _conflicts(where: str, documents: Sequence[Document], others: Sequence[Document]) -> DataFinding:
    labels: defaultdict[str, dict[str, Document]] = defaultdict(dict)
    for document in others:
        labels[key(document.text)].setdefault(document.label, document)
    against = [
        (document, other)
        for document in documents
        for label, other in labels.get(key(document.text), {}).items()
        if label != document.label
    ]
    torn = {document.place: document for document, _ in against}
    told = (f"{one.label!r} {quote(one)}, {other.label!r} {quote(other)}" for one, other in against)
    return DataFinding(
        "D3",
        "one text, two labels",
        where,
        len(torn) / len(documents),
        count_of(len(torn), len(documents)),
        "0",
        AMBER if torn else PASS,
        "texts that stand under another label, too: at most one of the two can be guessed."
        if torn
        else "no text stands under two labels.",
        first_few(told),
    )


def audit_leaks(train: Sequence[Document], labels: Sequence[str]) -> Iterator[DataFinding]:
    """Words that almost alone tell the class."""
    classes = Counter(document.label for document in train)
    rows: Counter[str] = Counter()
    by_class: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for document in train:
        for word in set(words(document.text)):
            rows[word] += 1
            by_class[word][document.label] += 1
    telling = []
    for word, count in rows.most_common():
        if count < ROWS:
            break
        label, own = by_class[word].most_common(1)[0]
        if own >= PURE * count and (classes[label] / len(train)) ** own < CHANCE:
            telling.append(f"{word!r}: {own} of its {count} texts are {label!r}")
    yield DataFinding(
        "D5",
        "words that tell the class",
        "train",
        float(len(telling)),
        f"{len(telling)} words",
        "0",
        AMBER if telling else PASS,
        f"words in at least {ROWS} texts, {PURE:.0%} of them of one class: is that the task, or a trace of how the data"
        " were made?"
        if telling
        else f"no word of {ROWS} texts or more stands for one class alone.",
        first_few(telling),
    )
    yield _spelled(train, labels, by_class)


def _spelled(train: Sequence[Document], labels: Sequence[str], by_class: Mapping[str, Counter[str]]) -> DataFinding:
    """A label's own name in its texts."""
    own = any_class = 0
    for label in labels:
        spelled = words(label)
        if len(spelled) == 1 and spelled[0] in by_class:
            own += by_class[spelled[0]][label]
            any_class += by_class[spelled[0]].total()
    leaks = own >= ROWS and own >= 0.9 * any_class
    return DataFinding(
        "D5n",
        "label named in its text",
        "train",
        own / len(train),
        count_of(own, len(train)),
        f"{ROWS} texts",
        AMBER if leaks else REPORT if own else PASS,
        f"texts that name their own label; {any_class - own:,} texts name another."
        if own
        else "no text names its label.",
    )
