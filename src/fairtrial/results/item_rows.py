"""Tables of results, one row for each test item, variant and seed -> columns of known names: which column is what, and
what is wanted where that is not clear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairtrial.data.tables import Table
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
SHAPE = (
    "each row is one test item of one variant and seed, not a column for each model; label and prediction will do"
    " instead of value; where file names say the variant, give a pattern: 'runs/{variant}_seed{seed}.csv'"
)


class Row(NamedTuple):
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


ItemColumns = dict[str, Sequence[object]]  # the fields of a row -> their values in all rows


def columns_of(rows: Iterable[Row]) -> ItemColumns:
    return dict(zip(Row._fields, zip(*rows, strict=True), strict=False))


def from_table(
    table: Table, columns: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> tuple[ItemColumns, str]:
    """`columns` maps our names to the table's; one that the path tells is mapped to itself and may be absent. And which
    columns were taken, where that is not plain."""
    names = known_columns(table, columns)
    count = len(table.lines)
    cells = {name: list(map(text, table.columns[column])) for name, column in names.items()}
    where = [f"{table.source}:{line}" for line in table.lines]
    found: ItemColumns = {name: [default] * count for name, default in Row._field_defaults.items()}
    found |= {"variant": [""] * count, "value": [None] * count, "where": where}
    found |= {name: own for name, own in cells.items() if name in ("item", "variant", "group", "label", "prediction")}
    found |= {name: [cell or "" for cell in cells[name]] for name in ("test", "metric") if name in cells}
    found |= {
        name: numbers(cells[name], name, where) for name in ("value", "weight", "higher_is_better") if name in cells
    }
    if "seed" in cells:
        found["seed"] = list(map(whole, cells["seed"]))
    if "weight" in cells:
        found["weight"] = [1.0 if weight is None else weight for weight in found["weight"]]
    if labels and "label" not in cells:
        found["label"] = [labels.get(str(item)) for item in found["item"]]
    for name in ("item",) if "variant" in columns else ("item", "variant"):
        if None in found[name]:
            raise BadInput(f"{where[found[name].index(None)]}: {name} is empty")
    for row, scored in enumerate(zip(found["value"], found["label"], found["prediction"], strict=True)):
        if scored[0] is None and None in scored[1:]:
            hint = (
                "an item that was not scored is left out for every variant and seed, or counts as wrong: you decide;"
                " where only predictions are stored, give the true labels with --labels FILE, labels= in Python"
            )
            raise BadInput(f"{where[row]}: item {found['item'][row]!r} has no value", hint)
    return {name: found[name] for name in Row._fields}, columns_note(names, columns, table)


def known_columns(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """Our name -> the table's, of those that it has: those that are named, those of our names, and where these do not
    suffice those of usual names."""
    there = list(table.columns)
    for name, column in columns.items():
        if column not in there and column != name:
            meant = did_you_mean(column, there)
            raise BadInput(
                f"no column is called {column!r}{meant}", f"its columns are {', '.join(there)}", path=table.source
            )
    found = {name: column for name in COLUMNS if (column := columns.get(name, name)) in there}

    def usual(name: str) -> dict[str, str]:
        if name in found or name in columns:
            return {}
        fitting = [column for column in there if column.strip().lower() in (name, *SYNONYMS[name])]
        fitting = [column for column in fitting if column not in found.values()]
        if len(fitting) > 1:
            what = f"columns {', '.join(fitting)} could all be the {name}"
            raise BadInput(what, choose(name, fitting[0]), path=table.source)
        return {name: fitting[0]} if fitting else {}

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
        hint = f"its columns are {', '.join(there)}; {choose(lost[0], 'NAME')}; {SHAPE}"
        raise BadInput(f"there is no column {' or '.join(lost)}", hint, path=table.source)
    return found


def choose(name: str, column: str) -> str:
    return f"say which is which: --column {name}={column}, in Python columns={{{name!r}: {column!r}}}"


def columns_note(names: Mapping[str, str], columns: Mapping[str, str], table: Table) -> str:
    """What was taken by a usual name."""
    if all(column == name or name in columns for name, column in names.items()):
        return ""
    taken = [name if name == column else f"{name} from {column!r}" for name, column in names.items()]
    unused = [column for column in table.columns if column not in names.values()]
    return f"Columns: {', '.join(taken)}{'; not used: ' * bool(unused)}{', '.join(unused)}."


def text(value: object) -> str | None:
    """None where nothing is there."""
    if type(value) is str:
        return value.strip() or None
    return None if value is None or value != value else str(value).strip()


def whole(value: str | None) -> str | None:
    """A data frame with a gap has made 3.0 of a seed 3."""
    return value[:-2] if value and value.endswith(".0") and value[:-2].isdigit() else value


def numbers(cells: Sequence[str | None], name: str, where: Sequence[str]) -> list[float | None]:
    try:
        values = [None if cell is None else float(cell) for cell in cells]
    except ValueError:
        values = [None if cell is None else to_number(cell) for cell in cells]
    for row, value in enumerate(values):
        if value is not None and not math.isfinite(value):
            what = f"{name} must be a finite number, or true and false, got {cells[row]!r}"
            raise BadInput(f"{where[row]}: {what}")
    return values


def to_number(cell: str) -> float:
    try:
        return TRUTH[cell.lower()] if cell.lower() in TRUTH else float(cell)
    except ValueError:
        return math.nan
