"""Tables: .tsv (split at tabs, nothing quoted) or .csv (quoted as usual), a label and a text in each row."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.lines import TextFile, hashes, read_lines, source_files

TEXT_NAMES = ("text", "sentence", "content", "document", "review", "comment", "tweet", "message", "body", "phrase")
LABEL_NAMES = ("label", "class", "target", "category", "sentiment", "topic", "speaker", "author", "rating")
GROUP_NAME = "group"  # the speech, thread or book that a text comes from
ROW_NAMES = ("id", "idx", "index", "")
SUFFIXES = (".tsv", ".csv")
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
    for split, place in sorted(source_files(path, SUFFIXES).items(), key=lambda item: item[0] != "train"):
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
