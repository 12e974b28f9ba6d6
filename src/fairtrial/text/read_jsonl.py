"""JSON lines: one object per line, {"text": ..., "label": ...}."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.text.corpus import Corpus, Document
from fairtrial.text.lines import TextFile, hashes, read_lines, source_files

TEXT_KEYS = ("text", "sentence", "content")
LABEL_KEYS = ("label", "class", "target")
GROUP_KEY = "group"  # the speech, thread or book that a text comes from
UNFIT = re.compile("[\0\ud800-\udfff]")
SUFFIXES = (".jsonl", ".ndjson")


def read_jsonl(path: Path, task: str) -> Corpus:
    files = {split: read_lines(file) for split, file in source_files(path, SUFFIXES).items()}
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
