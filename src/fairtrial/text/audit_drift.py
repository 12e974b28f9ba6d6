"""D6: how test sets differ from train, and rows that the files of one folder share. Things to know beside a score."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from fairtrial.recipe import Data
from fairtrial.text.copies import key, words
from fairtrial.text.corpus import Document, Splits
from fairtrial.text.finding import AMBER, REPORT, DataFinding, count_of
from fairtrial.text.reading import find_format, read

SHARES = 0.1  # total variation
LONGER = 1.5  # times


def audit_drift(splits: Splits) -> Iterator[DataFinding]:
    for name, documents in splits.tests.items():
        if splits.labels:
            yield _classes(name, splits, documents)
        yield _lengths(name, splits.train, documents)


def _classes(name: str, splits: Splits, documents: Sequence[Document]) -> DataFinding:
    train, test = (_shares(each, splits.labels) for each in (splits.train, documents))
    distance = sum(abs(one - other) for one, other in zip(train, test, strict=True)) / 2
    told = [
        f"{label}: {one:.1%} of train, {other:.1%} of {name}"
        for label, one, other in zip(splits.labels, train, test, strict=True)
    ]
    meaning = "share of items that would have to change class for the shares of train."
    verdict = AMBER if distance > SHARES else REPORT
    return DataFinding(
        "D6c", "class shares", name, distance, f"{distance:.1%}", f"{SHARES:.0%}", verdict, meaning, tuple(told[:12])
    )


def _shares(documents: Sequence[Document], labels: Sequence[str]) -> list[float]:
    counts = Counter(document.label for document in documents)
    return [counts[label] / len(documents) for label in labels]


def _lengths(name: str, train: Sequence[Document], documents: Sequence[Document]) -> DataFinding:
    one, other = (median(len(words(document.text)) for document in each) for each in (train, documents))
    ratio = (other + 1) / (one + 1)
    return DataFinding(
        "D6l",
        "length",
        name,
        ratio,
        f"{other:g} words (train {one:g})",
        f"{LONGER:g} times",
        REPORT if 1 / LONGER <= ratio <= LONGER else AMBER,
        "words in the middle document of each.",
    )


def audit_files(data: Data, task: str) -> Iterator[DataFinding]:
    """The course's folder has files for two tasks, and each task's training files hold the other's test rows."""
    if find_format(data) != "course":
        return
    other = "lm" if task == "classify" else "classify"
    here, there = read(data, task), read(data, other)
    from_there: defaultdict[str, set[str]] = defaultdict(set)
    for document in there.train:
        from_there[key(document.text)].add(document.label)
    name = {"classify": "train_CLS", "lm": "train_LM"}[other]
    for test, documents in here.tests.items():
        shared = sum(key(document.text) in from_there for document in documents)
        yield DataFinding(
            "D6f",
            f"rows shared with {name}",
            test,
            shared / len(documents),
            count_of(shared, len(documents)),
            "to know",
            REPORT,
            f"test items in the other task's training file: never train on it, nor fit a vocabulary on it, for {task}.",
        )
    if task == "lm":
        yield _speakers(here.train, from_there)


def _speakers(train: Sequence[Document], labelled: dict[str, set[str]]) -> DataFinding:
    """Whose sentences a language model is trained on, as far as the labelled file tells."""
    counts = Counter(label for document in train for label in labelled.get(key(document.text), ()))
    labels = sorted({label for found in labelled.values() for label in found})
    rows = sum(key(document.text) in labelled for document in train)
    told = ", ".join(f"{counts[label]:,} of class {label}" for label in labels)
    return DataFinding(
        "D6s",
        "whose text is in train_LM",
        "train",
        rows / len(train),
        count_of(rows, len(train)),
        "to know",
        REPORT,
        f"training rows that train_CLS labels: {told}. A speaker who is missing is harder to predict.",
    )
