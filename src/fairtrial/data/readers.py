"""Reading a data source: `read` finds the format, calls its reader and checks the corpus. docs/data.md lists the
formats. Every mistake in the data is a BadInput with file and line."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.pre_tokenizers import ByteLevel

from fairtrial import recipe
from fairtrial.data.columns import JSON_SUFFIXES, TABLE_SUFFIXES, names_columns, read_columns, texts_of
from fairtrial.data.corpus import TEST_SEED, Corpus, Document, Documents, corpus_of
from fairtrial.data.probe_tasks.brackets import brackets
from fairtrial.data.probe_tasks.counting import counting
from fairtrial.data.probe_tasks.induction import induction
from fairtrial.data.probe_tasks.order import read_order
from fairtrial.data.probe_tasks.recall import recall
from fairtrial.data.sotu import read_sotu
from fairtrial.data.tables import (
    SPLIT_NAMES,
    Sources,
    TextFile,
    check_single,
    entries,
    hashes,
    is_folder,
    read_lines,
    saved_files,
    saved_json,
    source_files,
    split_files,
    suffix_of,
    text_table,
)
from fairtrial.data.tokenizer import SPECIAL
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.rng import generator_for

TRAIN_CLS, TEST_CLS, TRAIN_LM, TEST_LM = "train_CLS.tsv", "test_CLS.tsv", "train_LM.txt", "test_LM_"
SPEAKERS = {"0": "Obama", "1": "W. Bush", "2": "H. W. Bush"}  # the course's labels
LINE_SUFFIXES = (".tokens", ".txt")
DEFAULT_SIZE = recipe.Tokens.size  # of a vocabulary: nobody has said another
ID_BLOCK = 128  # tokens of a document


def read(data: recipe.Data, task: str, size: int = DEFAULT_SIZE) -> Corpus:
    """The corpus at `data.source`, its labels numbered. `size`: of the vocabulary that token ids are from."""
    recipe.one_of("data.format", data.format, FORMATS)
    recipe.one_of("task", task, recipe.TASKS)
    if data.format in PROBES:
        return _checked(PROBES[data.format](data), data, task)
    chosen, path = find_format(data), Path(data.source).expanduser()
    if chosen == "ids":
        if task != "lm":
            raise BadInput("token ids are for language models", "choose task 'lm'", path=path)
        return _checked(read_ids(path, size), data, task)
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
        if suffix_of(path) not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise BadInput(f"the format cannot be detected from the suffix; known are {known}", HINT, path=path)
        return SUFFIXES[suffix_of(path)]
    if is_course(path):
        return "course"
    if saved_files(path):
        return "table"
    for found, suffixes in SPLIT_SUFFIXES.items():
        if split_files(path, suffixes):
            return found
    if any(entry.is_dir() for entry in entries(path)):
        return "folder"
    if split_files(path, (".txt",)):
        return "text"
    names = [entry.name for entry in entries(path)]
    what = f"the folder contains {', '.join(names[:8])}" if names else "the folder is empty"
    hint = "expected train.tsv (.csv, .jsonl, .txt, .tokens, .arrow, .bin), one folder per class, or the course's files"
    raise BadInput(f"unknown format: {what}", hint, path=path)


def look_alike_labels(labels: Sequence[str]) -> list[str]:
    """Labels that a reader cannot tell apart: they differ in their Unicode form, invisible signs, spaces or case."""
    seen: dict[str, list[str]] = {}
    for label in labels:
        signs = (sign for sign in unicodedata.normalize("NFKC", label) if unicodedata.category(sign) != "Cf")
        seen.setdefault(" ".join("".join(signs).casefold().split()), []).append(label)
    alike = [" and ".join(map(ascii, own)) for own in seen.values() if len(own) > 1]
    return [
        f"labels {pair} differ only in spelling, but are two classes; if they are one class, spell them alike"
        for pair in alike
    ]


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
        raise BadInput(what, "check the label column: it may hold ids, names or numbers, one per row", path=data.source)
    if len(labels) < 2:
        what = f"the training set has only one class, {labels[0]!r}"
        raise BadInput(what, "classification needs at least two classes", path=data.source)
    names = corpus.class_names if corpus.class_names.keys() >= set(labels) else {}
    notes = [*corpus.notes, *look_alike_labels(labels)]
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


def _parsed(path: Path, sources: Sources, parse: Callable[[TextFile], Documents], **more: object) -> Corpus:
    """A corpus whose files are of one split each."""
    files = {split: [read_lines(file) for file in files] for split, files in sources.items()}
    documents = {split: tuple(chain.from_iterable(map(parse, found))) for split, found in files.items()}
    return corpus_of(documents, files=_hashes(path, list(chain.from_iterable(files.values()))), **more)


def _hashes(source: Path, files: Sequence[TextFile]) -> dict[str, str]:
    return hashes(source, {file.path: file.sha256 for file in files})


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
        files=_hashes(folder, [train_cls, train_lm, *tests.values()]),
        course_lines=train_cls.lines + train_lm.lines,
        class_names=SPEAKERS if task == "classify" else {},
    )


def _labelled(file: TextFile) -> Documents:
    """`label<TAB>text`"""
    table = text_table(file, lambda cells: False, ".tsv")
    if len(table.columns) != 2:
        what = f"expected label<TAB>text, found {len(table.columns)} column{'s' * (len(table.columns) > 1)}"
        raise BadInput(what, "use exactly one tab, between label and text", path=table.location(0))
    labels, texts = texts_of(table, "1", "label"), texts_of(table, "2", "text")
    rows = zip(texts, labels, table.lines, strict=True)
    return tuple(Document(text, label, "", file.location(line)) for text, label, line in rows)


def read_folder(folder: Path, data: recipe.Data, task: str) -> Corpus:
    """One folder per class, one text file per document; train/, dev/ and test/ may be above the classes."""
    splits: Sources = {}
    for entry in _folders(folder):
        splits.setdefault(SPLIT_NAMES.get(entry.name.lower(), ""), []).append(entry)
    named = {split: found for split, found in splits.items() if split}
    for split, found in named.items():
        check_single(split, found, folder)
    if "train" not in named:
        named = {"train": [folder]}  # then its folders are the classes
    files: list[TextFile] = []
    documents = {split: _classes(entry, task, files) for split, (entry,) in named.items()}
    return corpus_of(documents, files=_hashes(folder, files))


def _classes(folder: Path, task: str, files: list[TextFile]) -> Documents:
    classes = _folders(folder)
    if not classes:
        raise BadInput("no class folder was found", "create one folder per class, with text files in it", path=folder)
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


def read_ids(path: Path, size: int) -> Corpus:
    """Token ids as nanoGPT writes them, one running text: a file, or a folder of train.bin, val.bin. `meta.json` beside
    them tells the size of the vocabulary and may spell its entries; the pickle of that name is never read."""
    sources, folder = source_files(path, (".bin",)), path if path.is_dir() else path.parent
    files = {file: sha256_of(file) for found in sources.values() for file in found}
    meta, spelled = folder / "meta.json", None
    if meta.is_file():
        table = saved_json(meta, "vocab_size")
        told, spelled = table["vocab_size"], table.get("itos")
        if type(told) is not int or told < 1 or size not in (told, DEFAULT_SIZE):
            said = f"; tokens.size is {size:,}" if type(told) is int else ", not a number of entries"
            raise BadInput(f"vocab_size is {told}{said}", "correct one of them", path=meta)
        size, files[meta] = told, sha256_of(meta)
    elif size == DEFAULT_SIZE:
        pickled = "; meta.pkl is not read, because a pickle can run code" * (folder / "meta.pkl").is_file()
        hint = 'write {"vocab_size": 65} into a meta.json next to it, or add --set tokens.size=65'
        raise BadInput(f"unknown vocabulary size{pickled}", hint, path=path)
    entries = spellings(spelled, size, meta) if spelled else tuple(map(str, range(size)))
    blocks = {
        split: tuple(chain.from_iterable(id_blocks(file, entries) for file in sources[split])) for split in sources
    }
    return corpus_of(
        blocks, running=True, ordered=True, files=hashes(path, files), entries=entries, named=bool(spelled)
    )


def spellings(given: Any, size: int, path: Path) -> tuple[str, ...]:
    """The text of each token as one word: its bytes, in the alphabet of GPT-2, where a space is a letter, too."""
    try:
        rows: list[str] = [given[str(number)] for number in range(size)] if isinstance(given, dict) else list(given)
        spelled = tuple("".join(piece for piece, _ in ByteLevel(False).pre_tokenize_str(row)) for row in rows)
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"itos is not a text for each entry ({error!r})", "correct it or leave it out", path=path
        ) from error
    if len(spelled) != size or len({*spelled, ""}) <= size:
        what = f"itos must spell {size:,} entries, each in its own way: {len({*spelled} - {''}):,} differ"
        raise BadInput(what, "correct it or leave it out", path=path)
    return tuple(f"\\{each}" if each in SPECIAL else each for each in spelled)


def id_blocks(path: Path, entries: Sequence[str]) -> Iterator[Document]:
    """Blocks of neighbours, whose ids are words."""
    kind = np.dtype("<u2" if len(entries) <= 1 << 16 else "<u4")
    count, rest = divmod(path.stat().st_size, kind.itemsize)
    if rest or not count:
        what = f"{path.stat().st_size:,} bytes are not ids of {kind.itemsize} bytes each"
        raise BadInput(
            what, "a vocabulary of up to 65,536 entries is written as uint16, a larger one as uint32", path=path
        )
    ids = np.fromfile(path, kind)
    if kind.itemsize == 2 and count >= 16 and not ids[1::2].any():
        hint = "a vocabulary of up to 65,536 entries is written as uint16: numpy's astype(numpy.uint16)"
        raise BadInput("every second id is 0: these are larger numbers than uint16", hint, path=path)
    if len(beyond := np.flatnonzero(ids >= len(entries))):
        first = beyond[0]
        what = f"token {first:,} is {ids[first]:,}, and the vocabulary has {len(entries):,} entries"
        raise BadInput(what, "give its true size; above 65,536 entries ids are read as uint32", path=path)
    words = np.array(entries, object)
    for begin in range(0, count, ID_BLOCK):
        yield Document(" ".join(words[ids[begin : begin + ID_BLOCK]]), location=f"{path}:token {begin:,}")


# probes: tasks with exact answers that need what attention and positions are for, one file in `probe_tasks/` each

Item = tuple[list[str], str]  # words, the right answer
Generate = Callable[[np.random.Generator, bool], Item]  # `True`: longer than any text of training

TRAINING, TESTED = 20_000, 600  # items


def synthetic(generate: Generate, name: str, data: recipe.Data) -> Corpus:
    """Texts with one right answer each, which follows from their order or content. `inside` has the lengths of
    training, `beyond` longer texts. All trials of a study share the items."""

    def items(split: str, count: int, *, beyond: bool = False) -> Iterator[Document]:
        rng = generator_for(TEST_SEED, "probe", name, split)
        for number in range(count):
            words, answer = generate(rng, beyond)
            yield Document(" ".join(words), answer, location=f"{name}, {split} item {number + 1}")

    train = tuple(items("train", TRAINING))
    seen = {document.text for document in train}
    tests = {
        "inside": tuple(document for document in items("inside", TESTED) if document.text not in seen),
        "beyond": tuple(items("beyond", TESTED, beyond=True)),
    }
    return Corpus(train, tests=tests, spaced=True)


PROBES: dict[str, Callable[[recipe.Data], Corpus]] = {
    "order": read_order,
    "recall": partial(synthetic, recall, "recall"),
    "induction": partial(synthetic, induction, "induction"),
    "brackets": partial(synthetic, brackets, "brackets"),
    "counting": partial(synthetic, counting, "counting"),
}

READERS: dict[str, Callable[[Path, recipe.Data, str], Corpus]] = {
    "course": read_course,
    "table": read_columns,
    "jsonl": read_columns,
    "folder": read_folder,
    "text": read_text,
    "lines": read_sentences,
}
FORMATS = ("auto", *READERS, "ids", "sotu", *PROBES)
SPLIT_SUFFIXES = {"table": TABLE_SUFFIXES, "jsonl": JSON_SUFFIXES, "lines": (".tokens",), "ids": (".bin",)}
SUFFIXES = {suffix: name for name, suffixes in SPLIT_SUFFIXES.items() for suffix in suffixes} | {".txt": "text"}
MOST_LABELS = 1000
HINT = "set data.format to one of: " + ", ".join(READERS)
