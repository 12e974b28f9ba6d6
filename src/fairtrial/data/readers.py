"""Reading a data source: `read` finds the format, calls its reader and checks the corpus. docs/data.md lists the
formats. Every mistake in the data is a BadInput with file and line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from fairtrial import recipe
from fairtrial.data.columns import (
    KINDS,
    MOST_TESTS,
    ROW_NAMES,
    SYNONYMS,
    Columns,
    candidates,
    choose_columns,
    names_columns,
    split_of,
)
from fairtrial.data.corpus import Corpus, Document, Documents
from fairtrial.data.lines import (
    SPLIT_NAMES,
    Sources,
    TextFile,
    by_split,
    entries,
    hashes,
    is_folder,
    read_lines,
    source_files,
    split_files,
)
from fairtrial.data.sotu import read_sotu
from fairtrial.errors import BadInput
from fairtrial.progress import follow
from fairtrial.registry import did_you_mean

TRAIN_CLS, TEST_CLS, TRAIN_LM, TEST_LM = "train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_"
SPEAKERS = {"0": "Obama", "1": "W. Bush", "2": "H. W. Bush"}  # the course's labels
INVALID = re.compile("[\0\ud800-\udfff]")
TABLE_SUFFIXES, JSONL_SUFFIXES, LINE_SUFFIXES = (".tsv", ".csv"), (".jsonl", ".ndjson"), (".tokens", ".txt")
NAME_COLUMNS = "name the columns in a first row: text and label (or say which they are: --text-column, --label-column)"

Row = tuple[int, list[str]]  # line number, cells
Values = tuple[int, dict[str, str]]  # line number, value by kind of column


def read(data: recipe.Data, task: str) -> Corpus:
    """The corpus at `data.source`, its labels numbered."""
    recipe.one_of("data.format", data.format, FORMATS)
    recipe.one_of("task", task, recipe.TASKS)
    chosen, path = find_format(data), Path(data.source).expanduser()
    if chosen in ("text", "lines") and task == "classify":
        hint = "classify needs a label for each text: use a .tsv, .csv or .jsonl file, or one folder per class"
        raise BadInput("plain text has no labels", f"{hint}; or choose task 'lm'", path=path)
    if names_columns(data) and chosen not in ("table", "jsonl"):
        what = f"a column is named, and data of the format {chosen!r} have none"
        raise BadInput(what, "columns are those of .csv, .tsv and .jsonl files", path=data.source)
    return _checked(read_sotu(data, task) if chosen == "sotu" else READERS[chosen](path, data, task), data, task)


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
            known, hint = ", ".join(SUFFIXES), CONVERSIONS.get(path.suffix.lower(), HINT)
            raise BadInput(f"the format cannot be detected from the suffix; known are {known}", hint, path=path)
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
    names = corpus.class_names if corpus.class_names.keys() >= set(labels) else {}
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
            missing = ", ".join(names.get(label, label) for label in sorted(absent))
            notes.append(f"no document of class {missing} in {name}")
    return replace(corpus, labels=labels, notes=tuple(notes), class_names=names)


def _corpus(path: Path, files: list[TextFile], documents: dict[str, Documents], **more: Any) -> Corpus:
    """A corpus from the documents of each split; those of other names are further test sets."""
    names = sorted(set(documents) - {"train", "validation"}, key=lambda name: (name != "test", name))
    tests = {name: documents[name] for name in names}
    return Corpus(documents["train"], documents.get("validation", ()), tests, files=hashes(path, files), **more)


def _parsed(path: Path, sources: Sources, parse: Callable[[TextFile], Documents], **more: object) -> Corpus:
    """A corpus whose files are of one split each."""
    files = {split: [read_lines(file) for file in files] for split, files in sources.items()}
    documents = {split: tuple(chain.from_iterable(map(parse, found))) for split, found in files.items()}
    return _corpus(path, list(chain.from_iterable(files.values())), documents, **more)


def is_course(folder: Path) -> bool:
    """Any one of the files is enough, so that an incomplete copy gets an error that names what is missing."""
    names = [entry.name for entry in entries(folder)]
    return any(name in (TRAIN_CLS, TEST_CLS, TRAIN_LM) or name.startswith(TEST_LM) for name in names)


def read_course(folder: Path, data: recipe.Data, task: str) -> Corpus:
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
        class_names=SPEAKERS if task == "classify" else {},
    )


def read_table(path: Path, data: recipe.Data, task: str) -> Corpus:
    """A text, and a label to classify, in each row: .tsv (split at tabs, nothing quoted) or .csv (quoted as usual)."""
    first: Columns | None = None

    def parse(file: TextFile) -> tuple[Columns, list[Values]]:
        nonlocal first
        rows = _rows(file)
        header = _header(file, rows, data, task)
        if header and len(rows) == 1:
            raise BadInput("there is a header but no row", "add rows", path=file.path)
        rows = rows[1:] if header else rows
        first = columns = (
            header or first or _guess(file, rows, task)
        )  # without headers train, which comes first, decides
        return columns, [(number, _values(file, number, cells, columns)) for number, cells in rows]

    return _by_columns(path, TABLE_SUFFIXES, parse, task)


def _by_columns(
    path: Path, suffixes: tuple[str, ...], parse: Callable[[TextFile], tuple[Columns, list[Values]]], task: str
) -> Corpus:
    """A corpus whose rows may name their split; else that of their file."""
    sources = source_files(path, suffixes)
    files: list[TextFile] = []
    documents: dict[str, list[Document]] = {}
    notes: list[str] = []
    named = ""  # the column that names splits
    called: dict[str, set[str]] = {}  # the names of each label
    for file_split, source in sorted(
        ((split, source) for split, found in sources.items() for source in found), key=lambda item: item[0] != "train"
    ):
        files.append(read_lines(source))
        columns, rows = parse(files[-1])
        notes.append(columns.note())
        if not columns.names and file_split == "train" and task == "classify":
            notes.append(_header_warning([values["label"] for _, values in rows]))
        named = columns.names[columns.split] if columns.split is not None else named
        for line, values in rows:
            location = files[-1].location(line)
            if "" in (values["text"], values.get("label")):
                raise BadInput(f"the {'label' if values['text'] else 'text'} is missing", path=location)
            split = split_of(values["split"], file_split, location) if "split" in values else file_split
            if "name" in values:
                called.setdefault(values["label"], set()).add(values["name"])
            document = Document(values["text"], values.get("label", ""), values.get("group", ""), location)
            documents.setdefault(split, []).append(document)
    if "train" not in documents or len(documents) > MOST_TESTS:
        count = len(documents)
        found = f"{count} values: {', '.join(list(documents)[:8])}{', ...' if count > 8 else ''}"
        what = f"the column {named!r} does not name the splits train, validation and test; it has {found}"
        raise BadInput(what, "write these names, or ignore the column with --split-column none", path=path)
    notes += [misspelled_note(split, named) for split in documents if named]
    notes += unread_note(path, suffixes, [file.path for file in files])
    whole = {split: tuple(found) for split, found in documents.items()}
    return _corpus(
        path, files, whole, notes=tuple(dict.fromkeys(filter(None, notes))), class_names=one_name_each(called)
    )


def misspelled_note(split: str, column: str) -> str:
    """A further test set that may have been meant as another split; `test2` and `hard-test` speak for themselves."""
    near = get_close_matches(split.lower(), ("train", "validation", "test"), n=1)
    if any(usual in split.lower() for usual in SPLIT_NAMES) or not near:
        return ""
    return f"{split!r} in the column {column!r} is read as a further test set; did you mean {near[0]!r}?"


def one_name_each(called: dict[str, set[str]]) -> dict[str, str]:
    """What to call each label, where its rows agree and no two labels share a name; else nothing."""
    names = {label: min(found) for label, found in called.items() if len(found) == 1 and "" not in found}
    return names if len(set(names.values())) == len(called) else {}


def unread_note(path: Path, suffixes: tuple[str, ...], read: Sequence[Path]) -> list[str]:
    """Files of a data folder that look like data and are of no split."""
    found = [entry for place in (path, path / "data") if place.is_dir() for entry in entries(place)]
    unread = [entry for entry in found if entry.suffix.lower() in suffixes and entry not in read]
    names = [entry.relative_to(path).as_posix() for entry in unread]
    return [f"files not read: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"] if names else []


def _labelled(file: TextFile) -> Documents:
    """`label<TAB>text`; quotes are plain characters: CSV quoting would merge rows at a text that begins with one."""
    rows = _rows(file)
    for number, cells in rows:
        if len(cells) != 2:
            what = f"expected label<TAB>text, found {len(cells)} column{'s' if len(cells) > 1 else ''}"
            raise BadInput(what, "use exactly one tab, between label and text", path=file.path, line=number)
        if not all(cell.strip() for cell in cells):
            missing = "text" if cells[0].strip() else "label"
            raise BadInput(f"the {missing} is missing", path=file.path, line=number)
    return tuple(Document(text.strip(), label.strip(), "", file.location(number)) for number, (label, text) in rows)


def _rows(file: TextFile) -> list[Row]:
    if file.path.suffix.lower() != ".csv":
        return [(number, line.split("\t")) for number, line in follow(file.numbered(), len(file.lines))]
    rows: list[Row] = []
    reader = csv.reader((line + "\n" for _, line in file.numbered()), strict=True)
    start = 1  # a quoted cell may hold line ends: a row is known by its first line
    try:
        for cells in follow(reader, len(file.lines)):
            rows.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        hint = 'quote a text that contains commas or quotes, and double each quote in it: "a ""fine"" film"'
        raise BadInput(f"invalid CSV: {error}", hint, path=file.path, line=start) from error
    return rows


def _header(file: TextFile, rows: list[Row], data: recipe.Data, task: str) -> Columns | None:
    """The columns, where the first row names them. A recipe that names columns says that it does."""
    number, cells = rows[0]
    names = [cell.strip() for cell in cells]
    if not names_columns(data) and not _looks_like_header(names, task):
        return None

    def says_train(place: int) -> bool:
        found = (cells[place].strip().lower() for _, cells in rows[1:] if len(cells) == len(names))
        return any(SPLIT_NAMES.get(value) == "train" for value in found)

    return choose_columns(names, data, task, says_train, file.location(number))


def _looks_like_header(names: list[str], task: str) -> bool:
    """Names of a text and a label; or of one of them, beside nothing but names."""
    text, label = candidates("text", names), candidates("label", names)
    known = {*KINDS, *chain.from_iterable(SYNONYMS.values()), *ROW_NAMES}
    only_known = len(names) > 1 and {name.lower() for name in names} <= known
    only_names = all(re.fullmatch(r"[A-Za-z_]\w{0,30}|", name) for name in names)
    enough = len(names) > 2 or task != "classify"
    return bool(text and label) or (bool(text or label) and (only_known or (only_names and enough)))


def _guess(file: TextFile, rows: list[Row], task: str) -> Columns:
    """Labels are few and short. Of two columns the label is the one with fewer distinct values and fewer characters;
    where one of the two is a tie the other decides, and where they disagree the user has to."""
    line, first = rows[0]
    if task != "classify" and len(first) == 1:
        return Columns((), 0)
    if len(first) > 2 and len(rows) > 1 and all(len(cells) == len(first) for _, cells in rows):  # a table, clearly
        which = "the text and which the label" if task == "classify" else "the text"
        shown = ", ".join(cell.strip()[:30] for cell in first[:12])
        what = f"it is unclear which of its {len(first)} columns is {which}; its first row is: {shown}"
        say = "--text-column NAME" + (" --label-column NAME" if task == "classify" else "")
        raise BadInput(what, f"if that row names the columns, say which: {say}", path=file.path, line=line)
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
    return Columns((), 1 - label, label if task == "classify" else None)


def _values(file: TextFile, number: int, cells: list[str], columns: Columns) -> dict[str, str]:
    expected = len(columns.names) or (1 if columns.places() == {"text": 0} and len(cells) == 1 else 2)
    if len(cells) != expected:
        raise _wrong_count(file, number, cells, expected)
    return {kind: cells[place].strip() for kind, place in columns.places().items()}


def _wrong_count(file: TextFile, line: int, cells: list[str], expected: int) -> BadInput:
    found = f"{len(cells)} column{'s' if len(cells) != 1 else ''}" if any(cells) else "an empty line"
    separator = "comma" if file.path.suffix.lower() == ".csv" else "tab"
    hint = f"write label and text with one {separator} between them"
    if len(cells) == 1 and separator == "comma" and ";" in cells[0]:
        hint = "its columns seem to be separated by semicolons: save it with commas, or with tabs as .tsv"
    if len(cells) > expected:
        remedy = "put the text in quotes" if separator == "comma" else "replace tabs inside the text by spaces"
        hint = f"{remedy}, or, if there are more columns, {NAME_COLUMNS}"
    return BadInput(f"expected {expected} columns, found {found}", hint, path=file.path, line=line)


def _header_warning(labels: list[str]) -> str:
    """A header with unknown column names looks like a class of its own."""
    if labels[0] in labels[1:] or len(labels) < 10:
        return ""
    return f"label {labels[0]!r} occurs only in the first row: if that row is a header, {NAME_COLUMNS}"


def read_jsonl(path: Path, data: recipe.Data, task: str) -> Corpus:
    """One JSON object per line; its keys are the columns."""

    def parse(file: TextFile) -> tuple[Columns, list[Values]]:
        numbered = follow(file.numbered(), len(file.lines))
        items = [(number, _json_object(file, number, line)) for number, line in numbered]
        names = list(dict.fromkeys(chain.from_iterable(item for _, item in items)))

        def says_train(place: int) -> bool:
            found = (item.get(names[place]) for _, item in items)
            return any(isinstance(value, str) and SPLIT_NAMES.get(value.strip().lower()) == "train" for value in found)

        columns = choose_columns(names, data, task, says_train, str(file.path))
        keys = {kind: names[place] for kind, place in columns.places().items()}
        return columns, [
            (number, {kind: _json_value(file, number, item, kind, key) for kind, key in keys.items()})
            for number, item in items
        ]

    return _by_columns(path, JSONL_SUFFIXES, parse, task)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError(next(key for key, _ in pairs if [other for other, _ in pairs].count(key) > 1))
    return found


JSON = json.JSONDecoder(object_pairs_hook=_once)  # json.loads makes one for every line


def _json_object(file: TextFile, number: int, line: str) -> dict[str, object]:
    def refuse(what: str, hint: str = 'write lines such as {"text": "A fine film.", "label": "good"}') -> BadInput:
        return BadInput(what, hint, path=file.path, line=number)

    try:
        item = JSON.decode(line)
    except KeyError as error:
        raise refuse(f"the key {error.args[0]!r} occurs more than once", "keep one of them") from None
    except json.JSONDecodeError as error:
        raise refuse(f"invalid JSON: {error.msg} at character {error.colno}") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, thousands of open brackets
        raise refuse("this JSON cannot be read: a number is too long or brackets are nested too deep") from error
    if not isinstance(item, dict):
        raise refuse("expected a JSON object in braces")
    return item


def _json_value(file: TextFile, number: int, item: dict[str, object], kind: str, key: str) -> str:
    value = item.get(key)
    if kind == "name":
        return value.strip() if isinstance(value, str) and not INVALID.search(value) else ""
    if value is None and kind == "group":
        return ""
    types, expected = (str, "a string") if kind == "text" else (str | int, "a string or an integer")
    # true and false keep their JSON names
    text = value if isinstance(value, str) else str(value) if type(value) is int else json.dumps(value)
    what = ""
    if value is None:
        what = f"the {kind} is missing (key {key!r})"
    elif not isinstance(value, types):
        what = f"the {kind} must be {expected}, got {text[:40]}"
    elif INVALID.search(text):  # an escape can write what a UTF-8 file cannot hold
        what = f"the {kind} contains an escaped NUL or half a surrogate pair"
    elif not text.strip() and kind != "group":
        what = f"the {kind} is empty"
    if what:
        raise BadInput(what, path=file.path, line=number)
    return text.strip()


def read_folder(folder: Path, data: recipe.Data, task: str) -> Corpus:
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


def read_text(path: Path, data: recipe.Data, task: str) -> Corpus:
    """One plain text file, or a folder of train.txt, valid.txt, test.txt: running text in reading order."""
    return _parsed(path, source_files(path, (".txt",)), paragraphs, running=True, paragraphs=True, ordered=True)


def read_sentences(path: Path, data: recipe.Data, task: str) -> Corpus:
    """One sentence per line: a file, or a folder of *.train.tokens, *.dev.tokens, *.test.tokens."""
    notes: tuple[str, ...] = ()
    found = split_files(path, LINE_SUFFIXES) if is_folder(path) else {}
    if set(found) == {"validation", "test"}:
        dev, test = (", ".join(file.name for file in found[split]) for split in ("validation", "test"))
        notes = (f"no training file: trained on {dev}, tested on {test}",)
        found = {"train": found["validation"], "test": found["test"]}
    found = found or source_files(path, LINE_SUFFIXES)
    if "train" not in found:
        raise BadInput(f"there is only a {next(iter(found))} file, nothing to train on", "add one", path=path)
    return _parsed(path, found, one_per_line, spaced=found["train"][0].suffix == ".tokens", notes=notes)


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


READERS: dict[str, Callable[[Path, recipe.Data, str], Corpus]] = {
    "course": read_course,
    "table": read_table,
    "jsonl": read_jsonl,
    "folder": read_folder,
    "text": read_text,
    "lines": read_sentences,
}
FORMATS = ("auto", *READERS, "sotu")
SPLIT_SUFFIXES = {"table": TABLE_SUFFIXES, "jsonl": JSONL_SUFFIXES, "lines": (".tokens",)}
SUFFIXES = {suffix: name for name, suffixes in SPLIT_SUFFIXES.items() for suffix in suffixes} | {".txt": "text"}
MOST_LABELS = 1000
CONVERSIONS = {  # what people have at hand that is no plain text
    **dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "save the sheet as CSV (UTF-8)"),
    **dict.fromkeys((".docx", ".doc", ".odt", ".rtf", ".pdf", ".epub"), "save it as plain text (.txt, UTF-8)"),
    **dict.fromkeys((".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z"), "unpack it and name the file or folder inside"),
    ".json": "write one object per line (.jsonl): pandas.read_json(FILE).to_json(OUT, orient='records', lines=True)",
    ".parquet": "make JSON lines of it: pandas.read_parquet(FILE).to_json(OUT, orient='records', lines=True)",
}
HINT = "set data.format to one of: " + ", ".join(READERS)
