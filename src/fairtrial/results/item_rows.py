"""Tables of results, one row for each test item, variant and seed -> plain rows: which column is what, and what is
wanted where that is not clear."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.disk import parse_json
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean

REQUIRED = ("item", "variant", "value")
OPTIONAL = ("seed", "metric", "test", "group", "weight", "higher_is_better", "label", "prediction")
COLUMNS = REQUIRED + OPTIONAL
# other usual names, taken where the table lacks the very name. A value is right and wrong, or a score of which more is
# better: one called `loss` must be named, with its direction
SYNONYMS: dict[str, tuple[str, ...]] = {
    "item": tuple("id idx index item_id example example_id sample_id question_id doc_id uid guid".split()),
    "variant": ("model", "system", "method", "model_name"),
    "seed": ("run", "random_seed", "training_seed"),
    "label": ("gold", "target", "answer", "truth", "gold_label", "true_label", "y_true"),
    "prediction": ("pred", "predicted", "predicted_label", "y_pred"),
    "value": ("correct", "is_correct", "score"),
}
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
WHOLE = "scores of a whole test set are not enough: how much a difference depends on the items, only single items show"
LONG = "one row for each item, variant and seed is wanted, not a column for each model: item, variant, seed and"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one item."""

    variant: str
    item: str
    value: float | None  # None: right or wrong by label and prediction
    seed: str | None = None  # of training
    test: str = ""
    metric: str = ""
    group: str | None = None
    weight: float = 1.0
    higher_is_better: bool | None = None
    label: str | None = None
    prediction: str | None = None
    repeat: str = ""  # of the evaluation alone: another sample, other examples in the prompt
    content: str = ""  # says whether two items of one name are the same item
    where: str = ""


def read_table_file(path: Path, columns: Mapping[str, str], labels: Mapping[str, str]) -> tuple[list[Row], str]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        rows: Iterable[tuple[int, Mapping[str, object]]] = enumerate(parquet_rows(path), 1)
    elif suffix in (".jsonl", ".ndjson"):
        rows = json_rows(path)
    else:
        rows = separated_rows(path, "\t" if suffix == ".tsv" else ",")
    return from_table(rows, str(path), columns, labels)


def separated_rows(path: Path, separator: str) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            heads = next(reader, [])
            if len(set(heads)) < len(heads):
                raise BadInput("two columns have the same name", path=path, line=1)
            for cells in reader:
                if not any(cells):
                    continue
                if len(cells) != len(heads):
                    what = f"{len(cells)} cells, {len(heads)} columns"
                    raise BadInput(what, "quote cells that hold a comma", path=path, line=reader.line_num)
                yield reader.line_num, dict(zip(heads, cells, strict=True))
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8", "save it as UTF-8", path=path) from error
    except csv.Error as error:
        raise BadInput(f"is not a table: {error}", path=path, line=reader.line_num) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = parse_json(line)
                if not isinstance(row, dict):
                    raise BadInput("not a JSON object", path=path, line=number)
                yield number, row
    except UnicodeDecodeError as error:
        raise BadInput("is not UTF-8", path=path) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not a JSON line: {error}", path=path, line=number) from error
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error


def parquet_rows(path: Path) -> list[dict[str, object]]:
    try:
        from pyarrow.parquet import read_table
    except ImportError:
        try:
            from polars import read_parquet
        except ImportError as error:
            hint = "pip install pyarrow (or polars); or save it as CSV"
            raise BadInput("Parquet needs pyarrow or polars, and neither is installed", hint, path=path) from error
        return read_parquet(path).to_dicts()
    from pyarrow import ArrowException

    try:
        found: list[dict[str, object]] = read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise BadInput(f"is not a Parquet file: {error}", path=path) from error
    return found


def from_table(
    rows: Iterable[tuple[int, Mapping[str, object]]],
    source: str,
    columns: Mapping[str, str],
    labels: Mapping[str, str] | None = None,
) -> tuple[list[Row], str]:
    """`columns` maps our names to the table's; one that the path tells is mapped to itself and may be absent. And which
    columns were taken, where that is not plain."""
    found, names, note = list[Row](), dict[str, str](), ""
    for number, cells in rows:
        if not names:
            names = known_columns(cells, source, columns)
            note = columns_note(names, columns, cells)
        own = {name: text(cells.get(column)) for name, column in names.items()}
        where = f"{source}:{number}"
        label = own.get("label") if own.get("label") is not None else (labels or {}).get(own.get("item") or "")
        prediction = own.get("prediction")
        value = None if own.get("value") is None else to_number(own["value"], "value", where)
        if value is None and (label is None or prediction is None):
            hint = "an item that was not scored is left out for every variant and seed, or counts as wrong: you decide"
            raise BadInput(f"{where}: item {own.get('item')!r} has no value", hint)
        if own.get("item") is None or ("variant" not in columns and own.get("variant") is None):
            raise BadInput(f"{where}: {'item' if own.get('item') is None else 'variant'} is empty")
        row = Row(
            variant=own.get("variant") or "",
            item=own["item"] or "",
            value=value,
            seed=whole(own.get("seed")),
            test=own.get("test") or "",
            metric=own.get("metric") or "",
            group=own.get("group"),
            weight=1.0 if own.get("weight") is None else to_number(own["weight"], "weight", where),
            higher_is_better=None if own.get("higher_is_better") is None else direction(own["higher_is_better"], where),
            label=label,
            prediction=prediction,
            where=where,
        )
        found.append(row)
    return found, note


class NoColumn(BadInput):
    """A table that lacks what a result needs."""

    def __init__(self, lost: Sequence[str], cells: Mapping[str, object], source: str, opening: str, hint: str) -> None:
        self.lost, self.source, self.more = lost, source, hint
        named = f"{', '.join(lost[:-1])} or {lost[-1]}" if len(lost) > 1 else lost[0]
        self.opening = f"{opening}there is no column {named}"
        super().__init__(self.opening, f"its columns are {', '.join(map(str, cells))}; {hint}", path=source)

    def named_by(self, pattern: str) -> BadInput:
        """The same, where the files' names fit a pattern that says the variant."""
        say = "variant and seed" if "{seed}" in pattern else "the variant"
        hint = f"where the files' names say {say}: fairtrial verdict '{pattern}' (in Python ft.verdict(\"{pattern}\"))"
        return BadInput(self.opening, hint + (f"; {self.more}" if self.lost != ["variant"] else ""), path=self.source)


def known_columns(cells: Mapping[str, object], source: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Our name -> the table's, of those that it has: those that are named, those of our names, and where these do not
    suffice those of usual names."""
    for name, column in columns.items():
        if column not in cells and column != name:
            there = ", ".join(map(str, cells))
            meant = did_you_mean(column, list(map(str, cells)))
            raise BadInput(f"no column is called {column!r}{meant}", f"its columns are {there}", path=source)
    found = {name: column for name in COLUMNS if (column := columns.get(name, name)) in cells}

    def usual(name: str) -> dict[str, str]:
        if name in found or name in columns:
            return {}
        there = [column for column in cells if str(column).strip().lower() in (name, *SYNONYMS[name])]
        there = [column for column in there if column not in found.values()]
        if len(there) > 1:
            what = f"columns {', '.join(map(str, there))} could all be the {name}"
            raise BadInput(what, choose(name, str(there[0])), path=source)
        return {name: there[0]} if there else {}

    for name in ("item", "variant", "seed"):
        found |= usual(name)
    answers = {} if "value" in found else usual("label") | usual("prediction")
    if "prediction" in answers.keys() | found.keys():
        found |= answers
    if not {"label", "prediction"} <= found.keys():  # beside them a score may be a confidence
        found |= usual("value")
    lost = [name for name in ("item", "variant") if name not in found and name not in columns]
    lost += [] if "value" in found or "prediction" in found else ["value"]
    if lost:
        raise NoColumn(lost, cells, source, *what_is_wanted(lost, found | answers, cells))
    return found


def choose(name: str, column: str) -> str:
    return f"say which is which: --column {name}={column}, in Python columns={{{name!r}: {column!r}}}"


def what_is_wanted(lost: Sequence[str], found: Mapping[str, str], cells: Mapping[str, object]) -> tuple[str, str]:
    """How a refusal begins, and its hint."""
    other = [str(column) for column in cells if column not in found.values()]
    numbered = [name for name in other if re.fullmatch(r".*[^\W\d].*\d", name)]
    hint = choose(lost[0], "NAME")
    hint += "; each row is one test item" * ("item" in lost)
    hint += "; label and prediction will do instead of value" * ("value" in lost)
    if {"variant", "value"} <= set(lost) and "seed" not in found:
        answer = "prediction" if "label" in found else "value"
        kept = [found[name] for name in ("item", "label") if name in found]
        long = f"{LONG} {answer} (pandas: frame.melt(id_vars={kept}, var_name='variant', value_name={answer!r}))"
        if len(numbered) > 1:
            return f"a column for each model ({', '.join(numbered[:3])}) cannot be read; ", long
        hint += f"; {long}" * ("item" in found and len(other) > 1)
    scores = "item" in lost and "variant" in found and not {"label", "prediction"} & found.keys()
    return f"{WHOLE}; " * scores, hint


def columns_note(names: Mapping[str, str], columns: Mapping[str, str], cells: Mapping[str, object]) -> str:
    """What was taken by a usual name."""
    if all(column == name or name in columns for name, column in names.items()):
        return ""
    taken = [name if name == column else f"{name} from {column!r}" for name, column in names.items()]
    unused = [str(column) for column in cells if column not in names.values()]
    return f"Columns: {', '.join(taken)}{'; not used: ' * bool(unused)}{', '.join(unused)}."


def text(value: object) -> str | None:
    """None where nothing is there."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(value).strip()


def whole(value: str | None) -> str | None:
    """A data frame with a gap has made 3.0 of a seed 3."""
    return value[:-2] if value and value.endswith(".0") and value[:-2].isdigit() else value


def to_number(value: str | None, name: str, where: str) -> float:
    lowered = (value or "").lower()
    if lowered in TRUTH:
        return TRUTH[lowered]
    try:
        found = float(lowered)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise BadInput(f"{where}: {name} must be a finite number, or true and false, got {value!r}")
    return found


def direction(value: str | None, where: str) -> bool:
    number = to_number(value, "higher_is_better", where)
    if number not in (0.0, 1.0):
        raise BadInput(f"{where}: higher_is_better must be true or false, got {value!r}")
    return bool(number)


# what other programs write
