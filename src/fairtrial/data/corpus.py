"""A corpus: documents as they were read, and their splits. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.data.splits import TextIndex


@dataclass(frozen=True, slots=True)
class Document:
    """One item: a sentence, a review, a paragraph."""

    text: str
    label: str = ""  # the class; empty for language modelling
    group: str = ""  # documents of one group never straddle two splits; empty: a group of its own
    location: str = ""  # file and line, for messages


Documents = tuple[Document, ...]
TEST_SEED = 0  # of test sets that are carved out: all trials share their items


@dataclass(frozen=True)
class Corpus:
    """What a reader gives."""

    train: Documents
    validation: Documents = ()  # where the data bring one
    tests: dict[str, Documents] = field(default_factory=dict)  # by name; empty: to be carved from train
    labels: tuple[str, ...] = ()  # sorted; a label's number is its index here
    class_names: dict[str, str] = field(default_factory=dict)  # label -> what people call it, where the data say
    running: bool = False  # documents form one running text; else each is separate, with start and stop marks
    paragraphs: bool = False  # a document may hold several sentences
    spaced: bool = False  # words and punctuation are separated by spaces already
    ordered: bool = False  # neighbours belong together: carve contiguous sections, never single documents
    files: dict[str, str] = field(default_factory=dict)  # sha256 of every file read, by its name relative to the source
    course_lines: tuple[str, ...] = ()  # the course's folder: raw lines of both training files, labels included
    columns: dict[str, dict[str, str]] = field(default_factory=dict)  # those not used: name -> location -> value
    cite: str = ""  # the source to cite
    notes: tuple[str, ...] = ()  # for the record and the user


def corpus_of(documents: Mapping[str, Documents], **more: Any) -> Corpus:
    """A corpus from the documents of each split; those of other names are further test sets."""
    names = sorted(set(documents) - {"train", "validation"}, key=lambda name: (name != "test", name))
    tests = {name: documents[name] for name in names}
    return Corpus(documents["train"], documents.get("validation", ()), tests, **more)


@dataclass(frozen=True)
class Splits:
    """A corpus, split. `index`: what is known about all its texts."""

    train: Documents
    validation: Documents
    tests: dict[str, Documents]
    labels: tuple[str, ...]
    running: bool
    ordered: bool
    index: TextIndex = field(compare=False, repr=False)
    class_names: dict[str, str] = field(default_factory=dict)
