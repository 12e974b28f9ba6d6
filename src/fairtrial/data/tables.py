"""Reading files and tables: the files of a data folder, text files as lines, and tables from anywhere as named columns
(CSV, TSV, JSON lines, JSON, Parquet and Arrow files, and what Python holds in memory). Data to train on and results to
judge are both read here; every mistake is a BadInput with file and line."""

from __future__ import annotations

import csv
import gc
import gzip
import hashlib
import json
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors, parse_json, sha256_of, write_bytes
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean

LINE_LIMIT = 1_000_000  # characters: a longer line is most often a binary file or one without line ends
SPLIT_NAMES = {  # the usual spellings of each split
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev", "development"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})")  # as Hugging Face names the files of one split
Sources = dict[str, list[Path]]  # files by split


@dataclass(frozen=True)
class TextFile:
    """The lines of one file, without line ends."""

    path: Path
    sha256: str
    lines: tuple[str, ...]

    def numbered(self) -> Iterator[tuple[int, str]]:
        """(line number, line) up to the last line that is not blank"""
        end = max((number for number, line in enumerate(self.lines, start=1) if line.strip()), default=0)
        return enumerate(self.lines[:end], start=1)

    def location(self, line: int) -> str:
        return f"{self.path}:{line}"


def suffix_of(path: Path) -> str:
    """In small letters; of `a.csv.gz` it is .csv."""
    return bare(path).suffix.lower()


def bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def read_lines(path: Path) -> TextFile:
    """The file, which may be gzipped, as UTF-8 lines; only \\n, \\r\\n and \\r end a line."""
    require_file(path)
    try:
        data = path.read_bytes()
        text = decode(path, gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error
    # str.splitlines would also break at U+2028, U+0085, form feeds ..., which occur inside texts
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not text.strip():
        raise BadInput("the file is empty", "add at least one line of text, or remove the file", path=path)
    if max(map(len, lines)) > LINE_LIMIT:
        line = next(number for number, line in enumerate(lines, 1) if len(line) > LINE_LIMIT)
        hint = "if it is plain text, break it into lines of one document or paragraph"
        raise BadInput(f"this line is longer than {LINE_LIMIT:,} characters", hint, path=path, line=line)
    return TextFile(path, hashlib.sha256(data).hexdigest(), tuple(lines))


def decode(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")  # Windows editors begin a file with a byte order mark
        at = text.find("\0")
        if at < 0:
            return text
        what, before = "a NUL byte: it is not plain text", text[:at].encode()
    except UnicodeDecodeError as error:
        what, before = f"byte 0x{data[error.start]:02X} is not UTF-8", data[: error.start]
    hint = f"save it as UTF-8, for example: iconv -f LATIN1 (or UTF-16) -t UTF-8 {path.name}"
    raise BadInput(what, hint, path=path, line=len(re.findall(rb"\r\n|\r|\n", before)) + 1)


def hashes(source: Path, files: Mapping[Path, str]) -> dict[str, str]:
    """The sha256 of each file by its name relative to the source."""
    folder = source if source.is_dir() else source.parent
    return {path.relative_to(folder).as_posix(): sha256 for path, sha256 in files.items()}


def require_file(path: Path) -> None:
    mode = _mode(path)
    if stat.S_ISDIR(mode):
        raise BadInput("expected a file, found a folder", path=path)
    if not stat.S_ISREG(mode):
        raise BadInput("neither a file nor a folder (a pipe, a socket or a device)", "copy it to a file", path=path)


def is_folder(path: Path) -> bool:
    """Folder or file; anything else is refused."""
    folder = stat.S_ISDIR(_mode(path))
    if not folder:
        require_file(path)
    return folder


def entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted by name, without hidden entries."""
    if not stat.S_ISDIR(_mode(folder)):
        raise BadInput("expected a folder, found a file", path=folder)
    try:
        found = sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=folder) from error
    for entry in found:
        if not entry.name.isascii() and not entry.name.isprintable():
            raise BadInput(f"the file name {entry.name!r} is not UTF-8", "rename it", path=folder)
    return found


def split_files(folder: Path, suffixes: tuple[str, ...]) -> Sources:
    """The files of a folder that name a split: `train.tsv`, `news.dev.tokens`, `test_easy.csv` (a test set of its own),
    `data/train-00000-of-00002.jsonl`, or any in a folder `train/`."""
    found: Sources = {}
    inside = [entry for entry in entries(folder) if entry.is_dir() and not entry.suffix]
    for place in (folder, *(entry for entry in inside if entry.name == "data" or entry.name.lower() in SPLIT_NAMES)):
        of_place = SPLIT_NAMES.get(place.name.lower()) if place != folder else None
        for file in entries(place):
            split = of_place or split_name(SHARD.sub(r"\1", split_part(file)))
            if split and suffix_of(file) in suffixes:
                found.setdefault(split, []).append(file)
    for split, files in found.items():
        shards = [SHARD.fullmatch(split_part(file)) for file in files]
        if shards[0] and all(shards) and int(shards[0][3]) != len(files):
            what = f"{files[0].name} is one of {int(shards[0][3])} files of the {split} set; {len(files)} are here"
            raise BadInput(what, "add the others", path=folder)
        in_one_folder = {SPLIT_NAMES.get(file.parent.name.lower()) if file.parent != folder else "" for file in files}
        if in_one_folder != {split} and not all(shards):
            check_single(split, files, folder)
    return found


def saved_files(folder: Path) -> Sources:
    """The Arrow files of a Dataset or a DatasetDict that Hugging Face's `save_to_disk` wrote, in their order; none
    where it is another folder."""
    if (folder / "state.json").is_file():
        return {"train": listed_files(folder)}
    if not (folder / "dataset_dict.json").is_file():
        return {}
    names = saved_json(folder / "dataset_dict.json", "splits")["splits"]
    found: Sources = {}
    for name in names:
        if (split := split_name(name) or name) in found:
            raise BadInput(f"two splits are the {split} set: {', '.join(names)}", "save one of them", path=folder)
        found[split] = listed_files(folder / name)
    if "train" not in found:
        raise BadInput(f"no split is called 'train': {', '.join(names)}", "rename one, and save again", path=folder)
    return found


def listed_files(folder: Path) -> list[Path]:
    return [
        folder / Path(each["filename"]).name for each in saved_json(folder / "state.json", "_data_files")["_data_files"]
    ]


def saved_json(path: Path, key: str) -> dict[str, Any]:
    """A file that describes those beside it, and must have this key."""
    require_file(path)
    try:
        found = parse_json(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"invalid JSON: {error}", path=path) from error
    if not isinstance(found, dict) or key not in found:
        raise BadInput(f"expected a JSON object with {key!r}", path=path)
    return found


def split_part(file: Path) -> str:
    """`dev` of news.dev.tokens"""
    return bare(file).stem.rsplit(".", 1)[-1]


def split_name(name: str) -> str | None:
    """train, validation or test; a further test set by its own name, which begins with test; None: not a split."""
    further = name if re.fullmatch(r"(?i)test[_-].+", name) else None
    return SPLIT_NAMES.get(name.lower(), further)


def check_single(split: str, files: Sequence[Path], folder: Path) -> None:
    if len(files) > 1:
        what = f"{files[0].name} and {files[1].name} could both be the {split} set"
        raise BadInput(what, "keep one of them in this folder", path=folder)


def source_files(path: Path, suffixes: tuple[str, ...]) -> Sources:
    """Files by split: a single file is the training set, a folder has files for each split."""
    if not is_folder(path):
        return {"train": [path]}
    found = saved_files(path) or split_files(path, suffixes)
    if "train" not in found:
        names = " or ".join(f"train{suffix}" for suffix in suffixes)
        raise BadInput(f"there is no {names} in this folder{_suggestion('train', path)}", path=path)
    return found


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except FileNotFoundError as error:
        raise BadInput(f"no such file or folder{_suggestion(path.name, path.parent)}", path=path) from error
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", path=path) from error
    except ValueError as error:
        raise BadInput(f"{str(path)!r} is not a path: {error}") from error


def _suggestion(name: str, folder: Path) -> str:
    """`; did you mean ...?` or what is in the folder."""
    return did_you_mean(name, [entry.name for entry in entries(folder)]) if folder.is_dir() else ""


# tables

JSON_LINES = (".jsonl", ".ndjson")
ARROW = (".parquet", ".arrow", ".feather")  # what pyarrow reads
SUFFIXES = (".csv", ".tsv", *JSON_LINES, ".json", *ARROW)
HOW = (
    "give a path, a list of texts, a list of (label, text), a data frame, a Dataset,"
    " or a dict of them by split: {'train': ..., 'test': ...}"
)
Record = Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """Columns of equal length. The cells of CSV and TSV are texts; others are what JSON or Arrow hold."""

    source: str
    columns: dict[str, Sequence[object]]
    lines: Sequence[int]  # where each row begins; where there are no lines, its number
    sha256: str = ""
    header: bool = True  # False: the columns are named 1, 2, ...

    def location(self, row: int) -> str:
        return f"{self.source}:{self.lines[row]}"


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Of millions of rows none is garbage, and the collector would walk through all of them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def any_header(names: Sequence[str]) -> bool:
    return True


def read_table(path: Path, has_header: Callable[[Sequence[str]], bool] = any_header, suffix: str = "") -> Table:
    """The table in a file, by its suffix. `has_header`: whether these cells of a first row are names."""
    suffix = suffix or suffix_of(path)
    return arrow_table(path, suffix) if suffix in ARROW else text_table(read_lines(path), has_header, suffix)


@no_garbage_collection()
def text_table(file: TextFile, has_header: Callable[[Sequence[str]], bool], suffix: str) -> Table:
    if suffix in JSON_LINES:
        numbered = [(number, line) for number, line in enumerate(file.lines, 1) if line.strip()]
        objects = json_objects(file.path, numbered)
        return Table(str(file.path), by_name(objects), [number for number, _ in numbered], file.sha256)
    if suffix == ".json":
        objects = json_list(file)
        return Table(str(file.path), by_name(objects), range(1, len(objects) + 1), file.sha256)
    rows = list(separated_cells(file, suffix))
    if not rows:
        raise BadInput("the table is empty", "add rows", path=file.path)
    (start, first), header = rows[0], has_header(rows[0][1])
    names = [name.strip() if header else str(number) for number, name in enumerate(first, 1)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadInput(f"two columns are called {twice[0]!r}", "rename one of them", path=file.path, line=start)
    for line, cells in rows:
        if len(cells) != len(names):
            what = f"expected {len(names)} column{'s' * (len(names) != 1)}, found {len(cells)}"
            hint = "put cells that contain commas in quotes" if suffix == ".csv" else "replace tabs inside a text"
            raise BadInput(what, hint, path=file.path, line=line)
    if header and len(rows) == 1:
        raise BadInput("there is a header but no row", "add rows", path=file.path)
    columns = zip(*(cells for _, cells in rows[header:]), strict=True)
    named: dict[str, Sequence[object]] = dict(zip(names, columns, strict=True))
    return Table(str(file.path), named, [line for line, _ in rows[header:]], file.sha256, header)


DECIMAL_COMMA = re.compile(r"^([+-]?\d+),(\d+)$")  # where semicolons separate cells


def separator_of(file: TextFile, suffix: str) -> str:
    if suffix != ".csv":
        return "\t"
    first = next(line for line in file.lines if line.strip())
    return ";" if ";" in first and "," not in first else ","


def separated_cells(file: TextFile, suffix: str) -> Iterator[tuple[int, list[str]]]:
    """Rows and their first lines. In .csv cells may be quoted; in any other file tabs separate them, whatever quotes
    there are: quoting would merge rows at a text that begins with a quote."""
    separator = separator_of(file, suffix)
    if suffix != ".csv":
        yield from ((number, line.split(separator)) for number, line in enumerate(file.lines, 1) if line.strip())
        return
    reader = csv.reader((line + "\n" for line in file.lines), delimiter=separator, strict=True)
    start = 1  # a quoted cell may hold line ends
    try:
        for cells in reader:
            if any(cells):
                yield start, [DECIMAL_COMMA.sub(r"\1.\2", cell) for cell in cells] if separator == ";" else cells
            start = reader.line_num + 1
    except csv.Error as error:
        hint = 'quote a text that contains commas or quotes, and double each quote in it: "a ""fine"" film"'
        raise BadInput(f"invalid CSV: {error}", hint, path=file.path, line=start) from error


def json_objects(path: Path, numbered: Sequence[tuple[int, str]]) -> list[Record]:
    """One for each line."""
    objects: list[Record] = []
    for number, line in numbered:
        try:
            value = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"invalid JSON: {error}", path=path, line=number) from error
        if not isinstance(value, dict):
            hint = 'write lines such as {"text": "A fine film.", "label": "good"}'
            raise BadInput("expected a JSON object in braces", hint, path=path, line=number)
        objects.append(value)
    return objects


def json_list(file: TextFile) -> list[Record]:
    try:
        objects = parse_json("\n".join(file.lines))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"invalid JSON: {error}", path=file.path) from error
    objects = [objects] if isinstance(objects, dict) else objects  # one row, such as the metrics of one run
    if not isinstance(objects, list) or not objects or not all(isinstance(each, dict) for each in objects):
        raise BadInput("expected a list of JSON objects", "write one object for each row", path=file.path)
    return objects


def arrow_table(path: Path, suffix: str) -> Table:
    """Of a Parquet file, or of Arrow's own format, as a file or as a stream, which is what Hugging Face saves."""
    from pyarrow import ArrowException, ipc
    from pyarrow.parquet import read_table as read_parquet

    require_file(path)
    try:
        if suffix == ".parquet":
            table = read_parquet(path)
        else:
            with path.open("rb") as file:
                read = ipc.open_file if file.read(6) == b"ARROW1" else ipc.open_stream
                file.seek(0)
                table = read(file).read_all()
        sha256 = sha256_of(path)
    except (ArrowException, OSError) as error:
        raise BadInput(
            f"is not {'a Parquet' if suffix == '.parquet' else 'an Arrow'} file: {error}", path=path
        ) from error
    columns = table.to_pydict()
    for name, classes in class_names(path, table.schema.metadata or {}).items():
        if name in columns:
            columns[name] = [named(classes, cell) for cell in columns[name]]
    return Table(str(path), columns, range(1, table.num_rows + 1), sha256)


def class_names(path: Path, metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """The names of classes that Hugging Face stores as numbers, by column: told inside the file, or beside it."""
    beside = path.with_name("dataset_info.json")
    features: Any = {}
    if b"huggingface" in metadata:
        with suppress(ValueError, KeyError, TypeError):
            features = parse_json(metadata[b"huggingface"].decode())["info"]["features"]
    elif beside.is_file():
        features = saved_json(beside, "features")["features"]
    found = {name: kind.get("names") for name, kind in (features or {}).items() if isinstance(kind, dict)}
    return {name: classes for name, classes in found.items() if isinstance(classes, list)}


def named(classes: Sequence[str], cell: object) -> object:
    """The name of a class; what is no class, such as the -1 of an unlabelled text, stays."""
    return classes[cell] if isinstance(cell, int) and 0 <= cell < len(classes) else cell


def by_name(rows: Sequence[Record]) -> dict[str, Sequence[object]]:
    names = dict.fromkeys(chain.from_iterable(rows))
    return {name: [row.get(name) for row in rows] for name in names}


# in memory


def table_of(data: Any) -> Table:
    """A data frame of pandas or polars, a Dataset of Hugging Face, an Arrow table, or rows: texts, (label, text) or
    dicts."""
    if hasattr(data, "iter_rows"):  # polars
        columns = data.to_dict(as_series=False)
    elif hasattr(data, "iterrows"):  # pandas
        columns = data.to_dict("list")
    elif hasattr(data, "to_pydict"):  # Arrow
        columns = data.to_pydict()
    elif hasattr(data, "column_names") and hasattr(data, "features"):
        columns = by_name(list(with_class_names(data)))
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        columns = by_name([as_record(row, number) for number, row in enumerate(data, 1)])
    else:
        raise BadInput(f"data of the type {type(data).__name__} cannot be read", HOW)
    plain: dict[str, Sequence[object]] = {str(name): list(map(plain_value, cells)) for name, cells in columns.items()}
    return Table("the data", plain, range(1, len(next(iter(plain.values()), ())) + 1))


def with_class_names(dataset: Any) -> Iterator[Record]:
    """Classes are stored as numbers; their names are what a reader understands."""
    names = {key: kind.names for key, kind in dataset.features.items() if getattr(kind, "names", None)}
    for row in dataset:
        yield {**row, **{key: named(classes, row[key]) for key, classes in names.items()}}


def as_record(row: object, number: int) -> Record:
    if isinstance(row, str):
        return {"text": row}
    if isinstance(row, Mapping):
        return row
    if isinstance(row, Sequence) and len(row) == 2 and isinstance(row[1], str):
        return {"label": row[0], "text": row[1]}
    raise BadInput(f"item {number} of the data is neither a text nor (label, text): {str(row)[:60]!r}", HOW)


def plain_value(value: Any) -> object:
    """numpy's numbers as Python's; what is missing (None, NaN) as None."""
    if type(value) in (str, int, bool):
        return value
    value = value.item() if hasattr(value, "item") and getattr(value, "shape", ()) == () else value
    return None if isinstance(value, float) and value != value else value


def save_dataset(data: object, folder: Path) -> str:
    """The file in `folder` that holds these data: JSON lines named by their content, written once, so that a record
    can be resumed and other processes can read them."""
    lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows_of(data)]
    if not lines:
        raise BadInput("the data are empty", HOW)
    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")  # which the reader refuses
    path = folder / f"given-{hashlib.sha256(content).hexdigest()[:12]}.jsonl"
    if not path.is_file():
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)  # others may write it, too
    return str(path)


def rows_of(data: object) -> Iterator[Record]:
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


def table_rows(data: object) -> Iterator[Record]:
    columns = table_of(data).columns
    return (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
