"""Data that are given as Python values: written once as JSON lines, named by their content, so that a record can be
resumed and other processes can read them. Columns keep their names; which of them is read, the recipe says."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtrial.data.lines import SPLIT_NAMES
from fairtrial.disk import disk_errors, write_bytes
from fairtrial.errors import BadInput

HOW = (
    "give a path, a list of texts, a list of (label, text), a data frame, a Dataset,"
    " or a dict of them by split: {'train': ..., 'test': ...}"
)
HALF = re.compile("[\ud800-\udfff]")
Row = dict[str, object]


def save_dataset(data: object, folder: Path) -> str:
    """The file in `folder` that holds these data."""
    lines = [json_line(row) for row in rows_of(data)]
    if not lines:
        raise BadInput("the data are empty", HOW)
    content = "\n".join(lines) + "\n"
    path = folder / f"given-{hashlib.sha256(content.encode()).hexdigest()[:12]}.jsonl"
    if not path.is_file():
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        # others may write it, too
        write_bytes(path, content.encode(), beside=f".{os.getpid()}-{threading.get_ident()}.tmp")
    return str(path)


def json_line(row: Row) -> str:
    """Half a surrogate pair is written as an escape, which a reader refuses with its line."""
    line = json.dumps(row, ensure_ascii=False, default=str)
    return json.dumps(row, default=str) if HALF.search(line) else line


def rows_of(data: object) -> Iterator[Row]:
    """Plain rows. Those of a dict name their split."""
    if not isinstance(data, Mapping):
        yield from table_rows(data)
        return
    if not any(SPLIT_NAMES.get(str(name).lower()) == "train" for name in data):
        named = ", ".join(map(repr, data)) or "nothing"
        raise BadInput(f"a dict of data names its splits, one of them 'train'; it has {named}", HOW)
    for name, given in data.items():
        for row in table_rows(given):
            yield {"split": str(name), **{key: value for key, value in row.items() if key != "split"}}


def table_rows(data: Any) -> Iterator[Row]:
    if hasattr(data, "iter_rows"):  # polars
        rows: Iterable[Any] = data.iter_rows(named=True)
    elif hasattr(data, "iterrows"):  # pandas
        rows = data.to_dict("records")
    elif hasattr(data, "column_names") and hasattr(data, "features"):  # a Dataset of Hugging Face
        rows = with_class_names(data)
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        rows = data
    else:
        raise BadInput(f"data of the type {type(data).__name__} cannot be read", HOW)
    if isinstance(rows, Sequence):
        check_swapped(rows)
    for number, row in enumerate(rows, 1):
        yield plain_row(row, number)


def check_swapped(rows: Sequence[object]) -> None:
    """(text, label) is as common elsewhere as (label, text) is here."""
    pairs = [row for row in rows if isinstance(row, tuple | list) and len(row) == 2]
    if len(pairs) < len(rows) or not all(isinstance(each, str) for pair in pairs for each in pair):
        return
    first, second = ({pair[side] for pair in pairs} for side in (0, 1))
    if 4 * len(second) < len(first) and max(map(len, second), default=0) < max(map(len, first), default=0):
        what = f"the data look like (text, label): {len(first):,} labels for {len(second):,} texts"
        raise BadInput(what, f"give (label, text), such as ({min(second)!r}, ...)")


def with_class_names(dataset: Any) -> Iterator[Row]:
    """Classes are stored as numbers; their names are what a reader understands."""
    names = {key: kind.names for key, kind in dataset.features.items() if getattr(kind, "names", None)}
    for row in dataset:
        named = {key: names[key][row[key]] for key in names if isinstance(row[key], int) and row[key] >= 0}
        yield {**row, **named}


def plain_row(row: object, number: int) -> Row:
    if isinstance(row, str):
        return {"text": row}
    if isinstance(row, Mapping):
        return {str(key): plain_value(value) for key, value in row.items()}
    if isinstance(row, Sequence) and len(row) == 2 and isinstance(row[1], str):
        return {"label": plain_value(row[0]), "text": row[1]}
    raise BadInput(f"item {number} of the data is neither a text nor (label, text): {str(row)[:60]!r}", HOW)


def plain_value(value: object) -> object:
    """numpy's numbers as Python's; what is missing (None, NaN) as null, which a reader reports with its line."""
    value = value.item() if hasattr(value, "item") and getattr(value, "shape", ()) == () else value
    return None if isinstance(value, float) and value != value else value
