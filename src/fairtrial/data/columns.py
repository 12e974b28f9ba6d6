"""A corpus from tables. Which column holds the text, the label, the split and the group: those that the recipe names,
else those whose names leave no doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from fairtrial.data.corpus import Corpus, Document, corpus_of
from fairtrial.data.tables import (
    JSON_LINES,
    SPLIT_NAMES,
    SUFFIXES,
    Table,
    entries,
    hashes,
    read_table,
    source_files,
    suffix_of,
)
from fairtrial.errors import BadInput
from fairtrial.recipe import FOLDER_NAME, Data
from fairtrial.registry import did_you_mean

KINDS = ("text", "label", "split", "group")  # each is also the name that needs no guess
# other usual names; a group is the speech, thread or book that a text comes from
SYNONYMS = {
    "text": "sentence content document review comment tweet message body phrase utterance".split(),
    "label": "class target category sentiment topic speaker author rating stars emotion intent polarity".split(),
    "split": ["partition", "subset", "fold", "set"],
    "group": [],
}
ROW_NAMES = ("id", "idx", "index", "uid", "guid", "")
NOT_THE_THING = {*ROW_NAMES, "count", "number", "length", "date", "time", "url", "link", "language", "title", "hash"}
NONE = "none"  # for the split and the group: do not use such a column
MOST_TESTS = 50
INVALID = re.compile("[\0\ud800-\udfff]")
NAME_COLUMNS = "name the columns in a first row: text and label (or say which they are: --text-column, --label-column)"
TABLE_SUFFIXES, JSON_SUFFIXES = (".tsv", ".csv", ".parquet"), (*JSON_LINES, ".json")

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
    called: dict[str, set[str]] = {}  # the names of each label
    unused: dict[str, dict[str, str]] = {}
    for file_split in sorted(sources, key=lambda split: split != "train"):
        for file in sources[file_split]:
            table = read_table(
                file, lambda names: names_columns(data) or looks_like_header(names, task), _suffix(file, data)
            )
            files[file] = table.sha256
            # without headers train, which comes first, decides
            columns = choose_columns(table, data, task) if table.header else first or guess_columns(table, task)
            first = first or columns
            notes.append(columns_note(table, columns))
            if not table.header and file_split == "train" and task == "classify":
                notes.append(header_warning(table, columns))
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
                if "name" in cells:
                    called.setdefault(label, set()).add(cells["name"][row])
                group = cells["group"][row] if "group" in cells else ""
                documents.setdefault(split, []).append(Document(text, label, group, table.location(row)))
    if "train" not in documents or len(documents) > MOST_TESTS:
        values = f"{len(documents)} values: {', '.join(list(documents)[:8])}{', ...' if len(documents) > 8 else ''}"
        what = f"the column {split_column!r} does not name the splits train, validation and test; it has {values}"
        raise BadInput(what, "write these names, or ignore the column with --split-column none", path=path)
    notes += unread_note(path, suffixes, list(files))
    return corpus_of(
        {split: tuple(members) for split, members in documents.items()},
        files=hashes(path, files),
        notes=tuple(dict.fromkeys(filter(None, notes))),
        class_names=one_name_each(called),
        columns={name: unused[name] for name in sorted(unused)},
    )


def _suffix(file: Path, data: Data) -> str:
    """By the format that the recipe names, where the file's own suffix is not known."""
    suffix = suffix_of(file)
    return suffix if suffix in SUFFIXES else ".jsonl" if data.format == "jsonl" else ".tsv"


def one_name_each(called: dict[str, set[str]]) -> dict[str, str]:
    """What to call each label, where its rows agree and no two labels share a name; else nothing."""
    names = {label: min(own) for label, own in called.items() if len(own) == 1 and "" not in own}
    return names if len(set(names.values())) == len(called) else {}


def unread_note(path: Path, suffixes: tuple[str, ...], read: Sequence[Path]) -> list[str]:
    """Files of a data folder that look like data and are of no split."""
    inside = [entry for place in (path, path / "data") if place.is_dir() for entry in entries(place)]
    unread = [entry for entry in inside if suffix_of(entry) in suffixes and entry not in read]
    names = [entry.relative_to(path).as_posix() for entry in unread]
    return [f"files not read: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"] if names else []


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


def looks_like_header(cells: Sequence[str], task: str) -> bool:
    """Names of a text and a label; or of one of them, beside nothing but names."""
    names = [cell.strip() for cell in cells]
    text, label = candidates("text", names), candidates("label", names)
    known = {*KINDS, *chain.from_iterable(SYNONYMS.values()), *ROW_NAMES}
    only_known = len(names) > 1 and {name.lower() for name in names} <= known
    only_names = all(re.fullmatch(r"[A-Za-z_]\w{0,30}|", name) for name in names)
    enough = len(names) > 2 or task != "classify"
    return bool(text and label) or (bool(text or label) and (only_known or (only_names and enough)))


def candidates(kind: str, names: Sequence[str]) -> list[str]:
    """The columns that could be meant: by the very name, else by a synonym, else by a word of the name, as in
    `review_body`."""
    others = {word for other in KINDS if other != kind for word in (other, *SYNONYMS[other])}
    usual = {kind, *SYNONYMS[kind]}

    def by_a_word(name: str) -> bool:
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
        return len(words) <= 3 and bool(words & usual) and not words & (others | NOT_THE_THING)

    own, known = ([name for name in names if name.strip().lower() in among] for among in ({kind}, usual))
    if own or known or not SYNONYMS[kind]:  # an `age_group` is not what texts come from
        return own or known
    return [name for name in names if by_a_word(name)]


def choose_columns(table: Table, data: Data, task: str) -> Columns:
    names, chosen = list(table.columns), Columns()
    for kind in sorted(KINDS, key=lambda kind: not wanted_column(data, kind)):  # what the recipe names is taken first
        if kind == "label" and task != "classify":
            continue
        if wanted := wanted_column(data, kind):
            same = [name for name in names if name == wanted]
            fitting = same or [name for name in names if name.lower() == wanted.strip().lower()]
            fitting = [] if wanted == NONE else fitting
            if not fitting and wanted != NONE:
                raise BadInput(f"no column is called {wanted!r}{did_you_mean(wanted, names)}", path=table.source)
        else:
            fitting = [name for name in candidates(kind, names) if name not in chosen.values()]
            if kind == "split" and fitting != [kind]:
                fitting = [name for name in fitting if says_train(table, name)]
        if len(fitting) > 1:
            none = f" (or {NONE})" if kind in ("split", "group") else ""
            hint = f"choose one with --{kind}-column NAME{none}, or data.{kind}_column in a recipe"
            raise BadInput(f"columns {', '.join(fitting)} could all be the {kind}", hint, path=table.source)
        if fitting:
            chosen[kind] = fitting[0]
        elif kind in ("text", "label"):
            hint = f"name it with --{kind}-column, or data.{kind}_column in a recipe"
            raise BadInput(f"no column is the {kind}; there is: {', '.join(names)}", hint, path=table.source)
    if "label" in chosen:
        usual = {f"{chosen['label'].lower()}_{word}" for word in ("text", "name", "names")}
        known = [name for name in names if name.lower() in usual and name not in chosen.values()]
        chosen |= {"name": known[0]} if len(known) == 1 else {}
    return {kind: chosen[kind] for kind in (*KINDS, "name") if kind in chosen}


def says_train(table: Table, name: str) -> bool:
    """Whether a row of this column calls itself training, as a split must."""
    values = (value.strip().lower() for value in table.columns[name] if isinstance(value, str))
    return any(SPLIT_NAMES.get(value) == "train" for value in values)


def columns_note(table: Table, columns: Columns) -> str:
    """What is read as what, and every column that is not used; empty where there is nothing to say."""
    unused = [name or "(no name)" for name in table.columns if name not in columns.values()]
    plain = all(name.lower() == kind for kind, name in columns.items())
    if not table.header or (plain and not unused and "split" not in columns):
        return ""
    read = [kind if name == kind else f"{kind} from {name!r}" for kind, name in columns.items()]
    read = [text.replace("name from", "names of classes from") for text in read]
    return f"columns: {', '.join(read)}" + (f"; not used: {', '.join(unused)}" if unused else "")


def guess_columns(table: Table, task: str) -> Columns:
    """Labels are few and short. Of two columns the label is the one with fewer distinct values and fewer characters;
    where one of the two is a tie the other decides, and where they disagree the user has to."""
    names = list(table.columns)
    if task != "classify" and len(names) == 1:
        return {"text": names[0]}
    if len(names) != 2:
        first = ", ".join(str(cells[0]).strip()[:30] for cells in table.columns.values())
        what = f"it is unclear which of its columns is the text; its first row is: {first}"
        raise BadInput(what, NAME_COLUMNS, path=table.location(0))
    cells = [[str(cell).strip() for cell in table.columns[name]] for name in names]
    distinct, characters = [len(set(own)) for own in cells], [sum(map(len, own)) for own in cells]
    votes = {pair.index(min(pair)) for pair in (distinct, characters) if pair[0] != pair[1]}
    if len(votes) != 1:
        raise BadInput("it is unclear which column is the label and which the text", NAME_COLUMNS, path=table.source)
    label = votes.pop()
    most = max(20, len(table.lines) // 2)
    if task == "classify" and distinct[label] > most:
        what = f"no column looks like a label: each has more than {most} different values"
        raise BadInput(what, NAME_COLUMNS, path=table.source)
    return {"text": names[1 - label]} | ({"label": names[label]} if task == "classify" else {})


def header_warning(table: Table, columns: Columns) -> str:
    """A header with unknown column names looks like a class of its own."""
    labels = table.columns[columns["label"]]
    if labels[0] in labels[1:] or len(labels) < 10:
        return ""
    return f"label {labels[0]!r} occurs only in the first row: if that row is a header, {NAME_COLUMNS}"


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
