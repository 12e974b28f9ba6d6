"""The course's folder: labelled sentences (train_CLS.tsv, test_CLS.tsv), running text (train_LM.txt, test_LM_*.txt).

Tables: .tsv (split at tabs, nothing quoted) or .csv (quoted as usual), a label and a text in each row.

JSON lines: one object per line, {"text": ..., "label": ...}.

One folder per class, one text file per document; train/ and test/ (and dev/) above the classes are honoured.

Unlabelled text: a novel in paragraphs (`text`), or sentences that stand alone, one per line (`lines`).

Reading text: the one door. Finds out the format, calls its reader, and checks what every corpus must hold.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial import recipe
from fairtrial.data.corpus import Corpus, Document
from fairtrial.data.lines import (
    SPLIT_NAMES,
    TextFile,
    entries,
    hashes,
    is_folder,
    read_lines,
    source_files,
    split_files,
)
from fairtrial.data.sotu import read_sotu
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean

TRAIN_CLS, TEST_CLS, TRAIN_LM, TEST_LM = "train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_"


def is_course(folder: Path) -> bool:
    """Any one of the files will do, so that an incomplete copy is told what it lacks."""
    names = [entry.name for entry in entries(folder)]
    return any(name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) or name.startswith(TEST_LM) for name in names)


def read_course(folder: Path, task: str) -> Corpus:
    names = [entry.name for entry in entries(folder)]
    test_names = [name for name in names if name.startswith(TEST_LM) and name.endswith(".txt")]
    missing = [name for name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) if name not in names]
    missing += [] if test_names else [f"{TEST_LM}*.txt"]
    if missing:
        hint = f"the course's folder holds {TRAIN_CLS}, {TEST_CLS}, {TRAIN_LM} and {TEST_LM}<speaker>.txt"
        raise BadInput(f"{', '.join(missing)} is missing from this folder", hint, path=folder)

    train_cls, train_lm = read_lines(folder / TRAIN_CLS), read_lines(folder / TRAIN_LM)
    course_lines = train_cls.lines + train_lm.lines
    if task == "classify":
        test_cls = read_lines(folder / TEST_CLS)
        return Corpus(
            train=_labelled(train_cls),
            tests={"test": _labelled(test_cls)},
            files=hashes(folder, [train_cls, train_lm, test_cls]),
            course_lines=course_lines,
        )
    tests = {name[len(TEST_LM) : -len(".txt")]: read_lines(folder / name) for name in test_names}
    return Corpus(
        train=one_per_line(train_lm),
        tests={speaker: one_per_line(file) for speaker, file in tests.items()},
        running=True,
        files=hashes(folder, [train_cls, train_lm, *tests.values()]),
        course_lines=course_lines,
    )


def _labelled(file: TextFile) -> tuple[Document, ...]:
    """`label<TAB>text`; a quote is a character, for csv quoting would merge rows at a text that opens with one."""
    documents = []
    for number, line in file.numbered():
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 2:
            what = f"{len(cells)} column{'s' if len(cells) > 1 else ''} where label<TAB>text is expected"
            raise BadInput(what, "one tab, between label and text", path=file.path, line=number)
        label, text = cells
        if not label or not text:
            raise BadInput(f"the {'text' if label else 'label'} is missing", path=file.path, line=number)
        documents.append(Document(text, label=label, place=file.place(number)))
    return tuple(documents)


TEXT_NAMES = ("text", "sentence", "content", "document", "review", "comment", "tweet", "message", "body", "phrase")
LABEL_NAMES = ("label", "class", "target", "category", "sentiment", "topic", "speaker", "author", "rating")
GROUP_NAME = "group"  # the speech, thread or book that a text comes from
ROW_NAMES = ("id", "idx", "index", "")
TABLE_SUFFIXES = (".tsv", ".csv")
NAME_THEM = "name the columns in a first row: text and label"

Row = tuple[int, list[str]]  # line number, cells


@dataclass(frozen=True)
class Columns:
    """Which column is what; `label` is None where there is none (language modelling)."""

    count: int
    text: int
    label: int | None
    group: int | None = None


def read_table(path: Path, task: str) -> Corpus:
    files: list[TextFile] = []
    documents: dict[str, tuple[Document, ...]] = {}
    notes: tuple[str, ...] = ()
    columns: Columns | None = None
    for split, place in sorted(source_files(path, TABLE_SUFFIXES).items(), key=lambda item: item[0] != "train"):
        file = read_lines(place)
        files.append(file)
        rows = _rows(file)
        header = _header(file, rows[0], task)
        if header and len(rows) == 1:
            raise BadInput("there is only a header, no rows", path=place)
        rows = rows[1:] if header else rows
        columns = header or columns or _guess(file, rows, task)  # train comes first, and decides where no header does
        documents[split] = _documents(file, rows, columns, task)
        if split == "train" and not header:
            notes = _doubt(documents[split])
    return Corpus(
        train=documents["train"],
        validation=documents.get("validation", ()),
        tests={"test": documents["test"]} if "test" in documents else {},
        files=hashes(path, files),
        notes=notes,
    )


def _rows(file: TextFile) -> list[Row]:
    if file.path.suffix.lower() != ".csv":
        return [(number, line.split("\t")) for number, line in file.numbered()]
    rows: list[Row] = []
    reader = csv.reader((line + "\n" for _, line in file.numbered()), strict=True)
    start = 1  # a quoted cell may hold line ends: a row is known by its first line
    try:
        for cells in reader:
            rows.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        hint = 'put a text that holds commas or quotes in quotes, and write each quote in it twice: "a ""fine"" film"'
        raise BadInput(f"not a row of CSV: {error}", hint, path=file.path, line=start) from error
    return rows


def _header(file: TextFile, row: Row, task: str) -> Columns | None:
    """A first row that names both columns is a header; other columns may stand beside them."""
    number, cells = row
    names = [cell.strip().lower() for cell in cells]
    text = next((names.index(name) for name in TEXT_NAMES if name in names), None)
    label = next((names.index(name) for name in LABEL_NAMES if name in names), None)
    group = names.index(GROUP_NAME) if GROUP_NAME in names else None
    bare = set(names) <= {*TEXT_NAMES, *ROW_NAMES, GROUP_NAME}
    if text is not None and (label is not None or (task != "classify" and bare)):
        return Columns(len(cells), text, label, group)
    if len(names) > 1 and set(names) <= {*TEXT_NAMES, *LABEL_NAMES, *ROW_NAMES} and any(names):
        lacking = "text" if text is None else "label"
        raise BadInput(f"the header names no {lacking} column", NAME_THEM, path=file.path, line=number)
    return None


def _guess(file: TextFile, rows: list[Row], task: str) -> Columns:
    """Labels are few and short. Of two columns the label is the one with fewer distinct values and fewer characters;
    where one of the two signs is a draw the other decides, and where they disagree the user does."""
    line, first = rows[0]
    if task != "classify" and len(first) == 1:
        return Columns(1, 0, None)
    if len(first) != 2:
        raise _wrong_count(file, line, first, 2)
    whole = [cells for _, cells in rows if len(cells) == 2]
    distinct = [len({cells[column].strip() for cells in whole}) for column in (0, 1)]
    characters = [sum(len(cells[column].strip()) for cells in whole) for column in (0, 1)]
    votes = {_smaller(distinct), _smaller(characters)} - {None}
    if len(votes) != 1:
        raise BadInput("cannot tell which column is the label and which the text", NAME_THEM, path=file.path)
    label = votes.pop()
    assert label is not None
    if task == "classify" and distinct[label] > max(20, len(whole) // 2):
        what = f"no column looks like a label: each has more than {max(20, len(whole) // 2)} different values"
        raise BadInput(what, NAME_THEM, path=file.path)
    return Columns(2, 1 - label, label)


def _smaller(pair: list[int]) -> int | None:
    return None if pair[0] == pair[1] else pair.index(min(pair))


def _documents(file: TextFile, rows: list[Row], columns: Columns, task: str) -> tuple[Document, ...]:
    documents = []
    for number, cells in rows:
        if len(cells) != columns.count:
            raise _wrong_count(file, number, cells, columns.count)
        text, label = cells[columns.text].strip(), ""
        if task == "classify":
            assert columns.label is not None
            label = cells[columns.label].strip()
            if not label:
                raise BadInput("the label is missing", path=file.path, line=number)
        if not text:
            raise BadInput("the text is missing", path=file.path, line=number)
        group = "" if columns.group is None else cells[columns.group].strip()
        documents.append(Document(text, label=label, group=group, place=file.place(number)))
    return tuple(documents)


def _wrong_count(file: TextFile, line: int, cells: list[str], expected: int) -> BadInput:
    found = "the line is empty" if not any(cells) else f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
    mark = "comma" if file.path.suffix.lower() == ".csv" else "tab"
    hint = f"label and text, with one {mark} between them"
    if len(cells) > expected:
        remedy = "put the text in quotes" if mark == "comma" else "replace a tab inside the text by a space"
        hint = f"{remedy}, or, if there are more columns, {NAME_THEM}"
    return BadInput(f"{found}; {expected} columns are expected", hint, path=file.path, line=line)


def _doubt(documents: tuple[Document, ...]) -> tuple[str, ...]:
    """A header with names we do not know looks like a class of its own."""
    first = documents[0].label
    if not first or any(document.label == first for document in documents[1:]) or len(documents) < 10:
        return ()
    return (f"label {first!r} occurs only in the first row: if that row is a header, {NAME_THEM}",)


TEXT_KEYS = ("text", "sentence", "content")
LABEL_KEYS = ("label", "class", "target")
GROUP_KEY = "group"  # the speech, thread or book that a text comes from
UNFIT = re.compile("[\0\ud800-\udfff]")
JSONL_SUFFIXES = (".jsonl", ".ndjson")


def read_jsonl(path: Path, task: str) -> Corpus:
    files = {split: read_lines(file) for split, file in source_files(path, JSONL_SUFFIXES).items()}
    documents = {
        split: tuple(_document(file, number, line, task) for number, line in file.numbered())
        for split, file in files.items()
    }
    return Corpus(
        train=documents["train"],
        validation=documents.get("validation", ()),
        tests={"test": documents["test"]} if "test" in documents else {},
        files=hashes(path, list(files.values())),
    )


def _document(file: TextFile, number: int, line: str, task: str) -> Document:
    def refuse(what: str, hint: str = 'each line is like {"text": "A fine film.", "label": "good"}') -> BadInput:
        return BadInput(what, hint, path=file.path, line=number)

    try:
        item = json.loads(line)
    except json.JSONDecodeError as error:
        raise refuse(f"not JSON: {error.msg} at character {error.colno}") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of open brackets
        raise refuse("not JSON that can be read: a number too long or brackets too deep") from error
    if not isinstance(item, dict):
        raise refuse("not a JSON object in braces")

    text = _first(item, TEXT_KEYS)
    if text is None:
        raise refuse(f"the text is missing (one of the keys {', '.join(TEXT_KEYS)})")
    if not isinstance(text, str):
        raise refuse(f"the text is {json.dumps(text)[:40]}, not a string")
    label = _first(item, LABEL_KEYS) if task == "classify" else ""
    if label is None:
        raise refuse(f"the label is missing (one of the keys {', '.join(LABEL_KEYS)})")
    if not isinstance(label, str | int):
        raise refuse(f"the label is {json.dumps(label)[:40]}; a string or a whole number is expected")
    name = label if isinstance(label, str) else json.dumps(label)  # true and false keep their JSON names
    for kind, value in (("text", text), ("label", name)):
        # an escape can spell what a UTF-8 file cannot hold
        if UNFIT.search(value):
            raise refuse(f"the {kind} holds a NUL or half a surrogate pair, written as an escape", "remove it")
    if not text.strip():
        raise refuse("the text is empty")
    if task == "classify" and not name.strip():
        raise refuse("the label is empty")
    group = item.get(GROUP_KEY)
    if not isinstance(group, str | int | None):
        raise refuse(f"the group is {json.dumps(group)[:40]}; a string or a whole number is expected")
    return Document(
        text.strip(), label=name.strip(), group="" if group is None else str(group), place=file.place(number)
    )


def _first(item: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def read_folder(folder: Path, task: str) -> Corpus:
    splits: dict[str, Path] = {}
    for entry in _folders(folder):
        split = SPLIT_NAMES.get(entry.name.lower())
        if split is None:
            continue
        if split in splits:
            what = f"two folders could be the {split} set: {splits[split].name} and {entry.name}"
            raise BadInput(what, "keep one of them", path=folder)
        splits[split] = entry
    if "train" not in splits:
        splits = {"train": folder}  # then its folders are the classes

    files: list[TextFile] = []
    notes: list[str] = []
    documents = {split: _classes(place, task, files, notes) for split, place in splits.items()}
    return Corpus(
        train=documents["train"],
        validation=documents.get("validation", ()),
        tests={"test": documents["test"]} if "test" in documents else {},
        files=hashes(folder, files),
        notes=tuple(notes),
    )


def _classes(folder: Path, task: str, files: list[TextFile], notes: list[str]) -> tuple[Document, ...]:
    classes = _folders(folder)
    if not classes:
        raise BadInput("there is no class folder in it", "one folder per class, text files in each", path=folder)
    if beside := len(entries(folder)) - len(classes):
        notes.append(f"{beside} file{'s' if beside > 1 else ''} beside the class folders of {folder.name} not read")
    documents = []
    for place in classes:
        texts = entries(place)
        if not texts:
            raise BadInput("this class is empty: its folder holds no text file", "fill or remove it", path=place)
        for path in texts:
            file = read_lines(path)
            files.append(file)
            label = place.name.strip() if task == "classify" else ""
            documents.append(Document("\n".join(file.lines).strip(), label=label, place=str(path)))
    return tuple(documents)


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if entry.is_dir()]


LINE_SUFFIXES = (".tokens", ".txt")


def read_text(path: Path, task: str) -> Corpus:
    """One plain text file, or a folder of train.txt, valid.txt, test.txt: running text in reading order."""
    _refuse_classes(path, task)
    files = {split: read_lines(file) for split, file in source_files(path, (".txt",)).items()}
    return Corpus(
        train=paragraphs(files["train"]),
        validation=paragraphs(files["validation"]) if "validation" in files else (),
        tests={"test": paragraphs(files["test"])} if "test" in files else {},
        running=True,
        paragraphs=True,
        ordered=True,
        files=hashes(path, list(files.values())),
    )


def read_sentences(path: Path, task: str) -> Corpus:
    """One sentence per line: a file, or a folder of *.train.tokens, *.dev.tokens, *.test.tokens."""
    _refuse_classes(path, task)
    notes: tuple[str, ...] = ()
    found = split_files(path, LINE_SUFFIXES) if is_folder(path) else {}
    if set(found) == {"validation", "test"}:
        notes = (f"there is no training file: trained on {found['validation'].name}, tested on {found['test'].name}",)
        found = {"train": found["validation"], "test": found["test"]}
    files = {split: read_lines(file) for split, file in (found or source_files(path, LINE_SUFFIXES)).items()}
    if "train" not in files:
        raise BadInput(f"there is only a {next(iter(files))} file here, nothing to train on", path=path)
    return Corpus(
        train=one_per_line(files["train"]),
        validation=one_per_line(files["validation"]) if "validation" in files else (),
        tests={"test": one_per_line(files["test"])} if "test" in files else {},
        spaced=files["train"].path.suffix == ".tokens",
        files=hashes(path, list(files.values())),
        notes=notes,
    )


def one_per_line(file: TextFile) -> tuple[Document, ...]:
    """Each line a document; blank lines hold none."""
    return tuple(Document(line.strip(), place=file.place(n)) for n, line in file.numbered() if line.strip())


def paragraphs(file: TextFile) -> tuple[Document, ...]:
    """Stretches between blank lines; where there is no blank line, each line. Line ends inside a paragraph stay."""
    numbered = list(file.numbered())
    start = next(n for n, line in numbered if line.strip())  # blank lines at the top separate nothing
    if all(line.strip() for _, line in numbered[start - 1 :]):
        return one_per_line(file)
    found: list[Document] = []
    open_lines: list[str] = []
    for number, line in [*numbered, (len(numbered) + 1, "")]:
        if line.strip():
            open_lines.append(line.rstrip())
        elif open_lines:
            text = "\n".join(open_lines).strip()
            found.append(Document(text, place=file.place(number - len(open_lines))))
            open_lines = []
    return tuple(found)


def _refuse_classes(path: Path, task: str) -> None:
    if task == "classify":
        hint = "classify needs a label for each text: a .tsv, .csv or .jsonl file, or one folder per class"
        raise BadInput("plain text has no labels", f"{hint}; or choose task = 'lm'", path=path)


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
                    what + did_you_mean(document.label, list(labels)),
                    "is it misspelt, or is its class missing from training?",
                    path=document.place,
                )
        absent = set(labels) - {document.label for document in documents}
        if documents and absent:
            notes.append(f"no document of class {', '.join(sorted(absent))} in {name}")
    return replace(corpus, labels=labels, notes=tuple(notes))
