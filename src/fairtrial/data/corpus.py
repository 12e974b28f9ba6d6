"""A corpus: documents as they were read, and how they are split. Plain values; no model, no torch."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Document:
    """One item: a sentence, a review, a paragraph."""

    text: str
    label: str = ""  # the class's name; empty for language modelling
    group: str = ""  # documents of one group never straddle two splits; empty: a group of its own
    place: str = ""  # file and line, for messages


@dataclass(frozen=True)
class Corpus:
    """What a reader found."""

    train: tuple[Document, ...]
    validation: tuple[Document, ...] = ()  # where the data brings one
    tests: dict[str, tuple[Document, ...]] = field(
        default_factory=dict
    )  # named test sets; empty: to be carved from train
    labels: tuple[str, ...] = ()  # class names, sorted; a label's number is its place here
    running: bool = (
        False  # documents follow one another in one running text (else each stands alone, with start and stop marks)
    )
    paragraphs: bool = False  # a document may hold several sentences
    spaced: bool = False  # the words are split by spaces already, punctuation too
    ordered: bool = False  # neighbours belong together: carve contiguous stretches, never single documents
    files: dict[str, str] = field(default_factory=dict)  # sha256 of every file read, by its name relative to the source
    course_lines: tuple[str, ...] = ()  # the course's folder: raw lines of both training files, labels included
    cite: str = ""  # the source to cite
    notes: tuple[str, ...] = ()  # what the reader noticed, for the record and the user


@dataclass(frozen=True)
class Splits:
    """A corpus, prepared out."""

    train: tuple[Document, ...]
    validation: tuple[Document, ...]
    tests: dict[str, tuple[Document, ...]]
    labels: tuple[str, ...]
    running: bool
