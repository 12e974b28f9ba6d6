"""A corpus from tables. Which column holds the text, the label, the split and the group: those that the recipe names,
else those whose names leave no doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from fairtrial.data.corpus import Corpus, Document, corpus_of
from fairtrial.data.tables import (
    ARROW,
    JSON_LINES,
    SPLIT_NAMES,
    SUFFIXES,
    Table,
    hashes,
    read_table,
    source_files,
    suffix_of,
)
from fairtrial.errors import BadInput
from fairtrial.recipe import FOLDER_NAME, Data
from fairtrial.registry import did_you_mean

# each is also a usual name; a group is the speech, thread or book that a text comes from
KINDS = ("text", "label", "split", "group")
# other usual names
SYNONYMS = {
    "text": "sentence content document review comment tweet message body phrase utterance".split(),
    "label": "class target category sentiment topic speaker author rating stars emotion intent polarity".split(),
}
NONE = "none"  # for the split and the group: do not use such a column
MOST_TESTS = 50
INVALID = re.compile("[\0\ud800-\udfff]")
NAME_COLUMNS = "name the columns in a first row: text and label (or use --text-column and --label-column)"
TABLE_SUFFIXES, JSON_SUFFIXES = (".tsv", ".csv", *ARROW), (*JSON_LINES, ".json")

Columns = dict[str, str]  # kind of column -> its name in the table


def names_columns(data: Data) -> bool:
    """Whether the recipe names a column that must then be there."""
    return any(wanted_column(data, kind) not in ("", NONE) for kind in KINDS)


def wanted_column(data: Data, kind: str) -> str:
    return str(getattr(data, f"{kind}_column"))


def read_columns(path: Path, data: Data, task: str) -> Corpus:
    """A text, and a label to classify, in each row of one table or of several. Rows may name their split; else it is
    that of their file."""
    suffixes: tuple[str, ...] = {"jsonl": JSON_SUFFIXES, "table": TABLE_SUFFIXES}.get(data.format, SUFFIXES)
    sources = source_files(path, suffixes)
    documents: dict[str, list[Document]] = {}
    files: dict[Path, str] = {}
    notes: list[str] = []
    first, split_column = Columns(), ""
    unused: dict[str, dict[str, str]] = {}
    for file_split in sorted(sources, key=lambda split: split != "train"):
        for file in sources[file_split]:
            table = read_table(file, lambda names: names_columns(data) or looks_like_header(names), _suffix(file, data))
            files[file] = table.sha256
            # without headers train, which comes first, decides
            columns = choose_columns(table, data, task) if table.header else first or guess_columns(table, task)
            first = first or columns
            notes.append(columns_note(table, columns))
            split_column = columns.get("split", split_column)
            cells = {kind: texts_of(table, name, kind) for kind, name in columns.items()}
            for name in table.columns.keys() - columns.values() if table.header else ():
                rows = enumerate(table.columns[name])
                own = {table.location(row): str(value) for row, value in rows if isinstance(value, str | int)}
                unused.setdefault(name, {}).update(own)
            for row, text in enumerate(cells["text"]):
                split, label = file_split, cells["label"][row] if "label" in cells else ""
                if "split" in cells:
                    split = split_of(cells["split"][row], file_split, table.location(row))
                group = cells["group"][row] if "group" in cells else ""
                documents.setdefault(split, []).append(Document(text, label, group, table.location(row)))
    if "train" not in documents or len(documents) > MOST_TESTS:
        values = f"{len(documents)} values: {', '.join(list(documents)[:8])}{', ...' if len(documents) > 8 else ''}"
        what = f"the column {split_column!r} does not name the splits train, validation and test; it has {values}"
        raise BadInput(what, "write these names, or ignore the column with --split-column none", path=path)
    return corpus_of(
        {split: tuple(members) for split, members in documents.items()},
        files=hashes(path, files),
        notes=tuple(dict.fromkeys(filter(None, notes))),
        columns={name: unused[name] for name in sorted(unused)},
    )


def _suffix(file: Path, data: Data) -> str:
    """By the format that the recipe names, where the file's own suffix is not known."""
    suffix = suffix_of(file)
    return suffix if suffix in SUFFIXES else ".jsonl" if data.format == "jsonl" else ".tsv"


def texts_of(table: Table, name: str, kind: str) -> list[str]:
    """The cells of a column as texts; one that cannot be a text, a label ... is refused with its line."""
    texts = []
    for row, value in enumerate(table.columns[name]):
        if isinstance(value, int) and kind != "text":
            value = json.dumps(value)  # true and false keep their JSON names
        text = "" if value is None else value
        message = ""
        if not isinstance(text, str):
            message = f"the {kind} must be a string{' or an integer' * (kind != 'text')}, got {str(value)[:40]}"
        elif INVALID.search(text):  # an escape can write what a UTF-8 file cannot hold
            message = f"the {kind} contains an escaped NUL or half a surrogate pair"
        elif not text.strip() and kind in ("text", "label"):
            message = f"the {kind} is missing"
        if message or not isinstance(text, str):
            raise BadInput(message, path=table.location(row))
        texts.append(text.strip())
    return texts


# which column is which


def looks_like_header(cells: Sequence[str]) -> bool:
    return bool(candidates("text", cells) or candidates("label", cells))


def candidates(kind: str, names: Sequence[str]) -> list[str]:
    """The columns that could be meant: by the very name, else by a synonym."""
    own = [name for name in names if name.strip().lower() == kind]
    return own or [name for name in names if name.strip().lower() in SYNONYMS.get(kind, ())]


def choose_columns(table: Table, data: Data, task: str) -> Columns:
    names, chosen = list(table.columns), Columns()
    for kind in sorted(KINDS, key=lambda kind: not wanted_column(data, kind)):  # what the recipe names is taken first
        if kind == "label" and task != "classify":
            continue
        wanted = wanted_column(data, kind)
        if wanted and wanted != NONE and wanted not in names:
            raise BadInput(f"no column is called {wanted!r}{did_you_mean(wanted, names)}", path=table.source)
        guessed = [name for name in candidates(kind, names) if name not in chosen.values()]
        fitting = [name for name in names if name == wanted] if wanted else guessed
        hint = f"choose one with --{kind}-column NAME, or data.{kind}_column in a recipe"
        if len(fitting) > 1:
            raise BadInput(f"columns {', '.join(fitting)} could all be the {kind}", hint, path=table.source)
        if not fitting and kind in ("text", "label"):
            raise BadInput(f"no column is the {kind}; there is: {', '.join(names)}", hint, path=table.source)
        if fitting:
            chosen[kind] = fitting[0]
    return {kind: chosen[kind] for kind in KINDS if kind in chosen}


def columns_note(table: Table, columns: Columns) -> str:
    """What is read as what, and every column that is not used; empty where there is nothing to say."""
    unused = [name or "(no name)" for name in table.columns if name not in columns.values()]
    plain = all(name.lower() == kind for kind, name in columns.items())
    if not table.header or (plain and not unused and "split" not in columns):
        return ""
    read = [kind if name == kind else f"{kind} from {name!r}" for kind, name in columns.items()]
    return f"columns: {', '.join(read)}" + (f"; not used: {', '.join(unused)}" if unused else "")


def guess_columns(table: Table, task: str) -> Columns:
    """The only column is the text. Of two the label is the one with fewer different values, or with shorter ones."""
    names = list(table.columns)
    if task != "classify" and len(names) == 1:
        return {"text": names[0]}
    cells = [[str(cell).strip() for cell in table.columns[name]] for name in names]
    sizes = [(len(set(own)), sum(map(len, own))) for own in cells]
    label = sizes.index(min(sizes))
    if len(names) != 2 or sizes[0] == sizes[1] or sizes[label][0] > max(20, len(table.lines) // 2):
        first = ", ".join(own[0][:30] for own in cells)
        what = f"it is unclear which of its columns is the text; its first row is: {first}"
        raise BadInput(what, NAME_COLUMNS, path=table.location(0))
    return {"text": names[1 - label]} | ({"label": names[label]} if task == "classify" else {})


def split_of(value: str, file_split: str, location: str) -> str:
    """The split of a row: train, validation, test, or the name of a further test set. `file_split`: that of its file;
    a training file may hold all splits, any other only its own."""
    if not FOLDER_NAME.fullmatch(value):
        what = f"{value!r} cannot be the name of a split" if value else "the split is missing"
        raise BadInput(what, "write train, validation, test, or the name of a test set", path=location)
    split = SPLIT_NAMES.get(value.lower(), value)
    if file_split != "train" and part_of(split) != part_of(file_split):
        what = f"this row is of the split {value!r}, and its file is of {file_split!r}"
        raise BadInput(what, "move it, or ignore the column with --split-column none", path=location)
    return split


def part_of(split: str) -> str:
    """train, validation or test."""
    return split if split in ("train", "validation") else "test"
