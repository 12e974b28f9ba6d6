"""Reading text: the one door. Finds out the format, calls its reader, and checks what every corpus must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fairtrial import recipe
from fairtrial.errors import BadInput
from fairtrial.names import near
from fairtrial.text.corpus import Corpus
from fairtrial.text.lines import entries, is_folder, split_files
from fairtrial.text.read_course import is_course, read_course
from fairtrial.text.read_folder import read_folder
from fairtrial.text.read_jsonl import SUFFIXES as JSONL_SUFFIXES
from fairtrial.text.read_jsonl import read_jsonl
from fairtrial.text.read_sotu import read_sotu
from fairtrial.text.read_table import SUFFIXES as TABLE_SUFFIXES
from fairtrial.text.read_table import read_table
from fairtrial.text.read_text import read_sentences, read_text

READERS: dict[str, Callable[[Path, str], Corpus]] = {
    "course": read_course,
    "table": read_table,
    "jsonl": read_jsonl,
    "folder": read_folder,
    "text": read_text,
    "lines": read_sentences,
}
FORMATS = ("auto", *READERS, "sotu")
SUFFIXES = {
    **dict.fromkeys(TABLE_SUFFIXES, "table"),
    **dict.fromkeys(JSONL_SUFFIXES, "jsonl"),
    ".tokens": "lines",
    ".txt": "text",
}
HINT = "set data.format to one of: " + ", ".join(READERS)


def read(data: recipe.Data, task: str) -> Corpus:
    """The corpus at `data.source`, its labels numbered; every mistake in it is a BadInput with file and line."""
    recipe.one_of("data.format", data.format, FORMATS)
    recipe.one_of("task", task, recipe.TASKS)
    chosen = find_format(data)
    if chosen == "sotu":
        return _checked(read_sotu(data, task), data, task)
    return _checked(READERS[chosen](Path(data.source).expanduser(), task), data, task)


def find_format(data: recipe.Data) -> str:
    """The format that was asked for, or the one that the source has."""
    if data.format == "sotu" or (data.format == "auto" and data.source == "sotu"):
        return "sotu"
    if not data.source:
        raise BadInput("data.source is empty", "name a file, a folder, or 'sotu' for the embedded corpus")
    return detect(Path(data.source).expanduser()) if data.format == "auto" else data.format


def detect(path: Path) -> str:
    """The format of a file by its name's ending, of a folder by what it holds."""
    if not is_folder(path):
        if path.suffix.lower() not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise BadInput(f"cannot tell the format from the name's ending; known are {known}", HINT, path=path)
        return SUFFIXES[path.suffix.lower()]
    if is_course(path):
        return "course"
    for suffixes, found in ((TABLE_SUFFIXES, "table"), (JSONL_SUFFIXES, "jsonl"), ((".tokens",), "lines")):
        if split_files(path, suffixes):
            return found
    if any(entry.is_dir() for entry in entries(path)):
        return "folder"
    if split_files(path, (".txt",)):
        return "text"
    there = [entry.name for entry in entries(path)]
    what = f"there is: {', '.join(there[:8])}" if there else "the folder is empty"
    hint = "a folder holds train.tsv (.csv, .jsonl, .txt, .tokens), one folder per class, or the course's files"
    raise BadInput(f"no known format: {what}", hint, path=path)


def _checked(corpus: Corpus, data: recipe.Data, task: str) -> Corpus:
    for name in corpus.tests:
        if name in ("", "train", "training", "validation"):
            what = f"a test set cannot be called {name!r}: its text would be taken for that of another split"
            raise BadInput(what, "give its file another name", path=data.source)
    if task != "classify":
        return corpus
    labels = tuple(sorted({document.label for document in corpus.train}))
    if len(labels) < 2:
        what = f"the training set has only one class, {labels[0]!r}"
        raise BadInput(what, "at least two are needed to tell apart", path=data.source)
    notes = list(corpus.notes)
    for name, documents in {"validation": corpus.validation, **corpus.tests}.items():
        for document in documents:
            if document.label not in labels:
                what = f"label {document.label!r} does not occur in the training set"
                raise BadInput(
                    what + near(document.label, list(labels)),
                    "is it misspelt, or is its class missing from training?",
                    path=document.place,
                )
        absent = set(labels) - {document.label for document in documents}
        if documents and absent:
            notes.append(f"no document of class {', '.join(sorted(absent))} in {name}")
    return replace(corpus, labels=labels, notes=tuple(notes))
