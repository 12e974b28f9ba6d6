"""Tables of results -> columns of known names: which column is what, and what is wanted where that is not clear. A row
is one test item of one run, or, without items, one run or one step of it. Cells are numbered, and only distinct ones
are looked at, so that a million rows take no time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from fairtrial.data.tables import Table
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.statistics.crossed import Array, Counts, Mask
from fairtrial.statistics.outcomes import LARGEST, TIMES, direction_of, is_extreme, last_digit, name_words

COLUMNS = tuple("item variant value seed run step metric test group weight higher_is_better label prediction".split())
# other usual names, taken where the table lacks the very name
SYNONYMS: dict[str, tuple[str, ...]] = {
    "item": tuple("id idx index item_id example example_id sample_id question_id doc_id uid guid".split()),
    "variant": tuple("model system method model_name config submission arm condition setting algorithm".split()),
    "seed": ("random_seed", "training_seed", "train_seed", "rng_seed"),
    "run": tuple("run_id run_name runname mlflow.runname name id uuid trial replicate".split()),
    "step": tuple("global_step trainer/global_step iteration iter epoch".split()),
    "label": ("gold", "target", "answer", "truth", "gold_label", "true_label", "y_true"),
    "prediction": ("pred", "predicted", "predicted_label", "y_pred"),
}
GROUPS = ("group", "job_type", "experiment", "experiment_name")  # variants of runs, where no better column is there
RUN_NAMES = {"variant", "seed", "run", "run_name", "name", *SYNONYMS["variant"], *SYNONYMS["seed"], *GROUPS}
ANSWER_NAMES = {"label", "prediction", *SYNONYMS["label"], *SYNONYMS["prediction"]}
PREFIX = re.compile(r"^(config|params?|metrics?|summary|tags?|hparams)[./]|^_")  # of W&B and MLflow
NO_SETTING = frozenset(
    "state status notes user user_id created start_time end_time timestamp runtime sweep artifact_uri experiment_id"
    " lifecycle_stage steps wall_time".split()
)
SEED_IN_NAME = re.compile(r"(.+?)(?:[-_./ ]*(seed)|[-_./ ]+(?:run|s|r))[-_=. ]?(\d+)", re.IGNORECASE)
FINISHED = ("finished", "completed", "complete", "success")
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
SHAPE = (
    "a row is one run (variant, seed, score), or one test item of a run (variant, seed, item, value); where file names"
    " say the variant, give a pattern: 'runs/{variant}_seed{seed}.csv'"
)
Cells = dict[str, Sequence[object]]  # our names -> the cells of all rows


def joined(parts: Sequence[Cells]) -> Cells:
    """The rows of all; cells that a part lacks are None."""
    if len(parts) < 2:
        return parts[0] if parts else {}
    return {
        name: [cell for own in parts for cell in own.get(name, [None] * len(own["source"]))]
        for name in dict.fromkeys(name for own in parts for name in own)
    }


# numbered cells


@dataclass(frozen=True)
class Column:
    """Cells as numbers of the distinct ones, in the order in which these occur first."""

    codes: Counts  # [row]
    values: list[str | None]

    @classmethod
    def of(cls, cells: Sequence[object], clean: Callable[[object], str | None]) -> Column:
        try:
            distinct = dict[object, int].fromkeys(cells, 0)
        except TypeError:  # lists and objects of JSON
            cells = list(map(str, cells))
            distinct = dict[object, int].fromkeys(cells, 0)
        numbers: dict[str | None, int] = {}
        for cell in distinct:
            distinct[cell] = numbers.setdefault(clean(cell), len(numbers))
        return cls(np.fromiter(map(distinct.__getitem__, cells), np.intp, len(cells)), list(numbers))

    def at(self, row: int) -> str | None:
        return self.values[self.codes[row]]

    def kept(self, rows: Mask) -> Column:
        codes = self.codes[rows]
        there = np.bincount(codes, minlength=len(self.values)) > 0
        values = [value for value, kept in zip(self.values, there, strict=True) if kept]
        return Column((np.cumsum(there) - 1)[codes], values)

    def joined(self, other: Column) -> Column:
        """Both cells of each row as one."""
        both, codes = np.unique(self.codes * len(other.values) + other.codes, return_inverse=True)
        pairs = (divmod(int(each), len(other.values)) for each in both)
        return Column(codes, [f"{self.values[one] or ''} {other.values[two] or ''}" for one, two in pairs])


TEXTS = tuple("variant item seed run test metric column group label prediction".split())


@dataclass(frozen=True)
class Rows:
    """All rows. Without a column `item` each is a run, or a step of one."""

    texts: dict[str, Column]
    numbers: dict[str, Array]  # value, weight, higher_is_better, step [row]; NaN where there is none
    digits: Array  # the last digit of each value as it is written, such as 0.001 [row]; empty where there are items
    index: Counts  # of each row among all that were read [row]
    locate: Callable[[int], str]

    @classmethod
    def of(cls, cells: Cells) -> Rows:
        count, line = len(cells["source"]), cells.get("line")

        def locate(row: int) -> str:
            at = None if line is None else line[row]
            return str(cells["source"][row]) if at is None else f"{cells['source'][row]}:{at}"

        one = Column(np.zeros(count, np.intp), [None])
        texts = {name: one for name in TEXTS if name != "item"}
        texts |= {name: Column.of(cells[name], whole if name == "seed" else text) for name in TEXTS if name in cells}
        rows = cls(texts, {}, np.zeros(0), np.arange(count), locate)
        for name in ("value", "weight", "higher_is_better", "step"):
            column = Column.of(cells[name], text) if name in cells else one
            rows.numbers[name] = rows.read(name, column)
            if name == "value" and "item" not in texts:
                rows = replace(rows, digits=np.array([last_digit(cell) for cell in column.values])[column.codes])
        rows.numbers["weight"] = np.where(np.isnan(rows.numbers["weight"]), 1.0, rows.numbers["weight"])
        return rows

    def read(self, name: str, column: Column) -> Array:
        values = np.array([math.nan if cell is None else to_number(cell) for cell in column.values])
        bad = ~np.isfinite(values) & np.array([cell is not None for cell in column.values], bool)
        if bad[column.codes].any():
            row = int(bad[column.codes].argmax())
            what = f"{name} must be a finite number, or true and false, got {column.at(row)!r}"
            raise BadInput(f"{self.where(row)}: {what}")
        extreme = is_extreme(values)
        if extreme[column.codes].any():
            row = int(extreme[column.codes].argmax())
            what = f"{name} = {column.at(row)} is beyond what can be computed with"
            raise BadInput(f"{self.where(row)}: {what}", f"scale it to between {1 / LARGEST:g} and {LARGEST:g}")
        return values[column.codes]

    def __len__(self) -> int:
        return len(self.texts["variant"].codes)

    def __getitem__(self, name: str) -> Column:
        return self.texts[name]

    def where(self, row: int) -> str:
        return self.locate(int(self.index[row]))

    def kept(self, rows: Mask) -> Rows:
        return Rows(
            {name: column.kept(rows) for name, column in self.texts.items()},
            {name: own[rows] for name, own in self.numbers.items()},
            self.digits[rows] if len(self.digits) else self.digits,
            self.index[rows],
            self.locate,
        )

    def check_filled(self) -> None:
        for name in ("variant", "item"):
            if name in self.texts and None in self[name].values:
                row = int((self[name].codes == self[name].values.index(None)).argmax())
                raise BadInput(f"{self.where(row)}: {name} is empty")
        unscored = np.isnan(self.numbers["value"])
        if unscored.any():
            unscored &= self.lacks("label") | self.lacks("prediction")
        if unscored.any():
            row = int(unscored.argmax())
            whose = f"item {self['item'].at(row)!r}" if "item" in self.texts else f"a run of {self['variant'].at(row)}"
            hint = "leave it out for every variant and seed, or count it as wrong; a prediction needs a column label"
            raise BadInput(f"{self.where(row)}: {whose} has no value", hint * ("item" in self.texts))

    def lacks(self, name: str) -> Mask:
        """[row]"""
        return np.array([value is None for value in self[name].values], bool)[self[name].codes]


# columns of a table


def from_table(
    table: Table,
    columns: Mapping[str, str],
    metrics: Sequence[str] = (),
) -> tuple[Cells, list[str]]:
    """`columns` maps our names to the table's; one that the path tells is mapped to itself and may be absent. And what
    was assumed."""
    table, notes = finished_only(table)
    names = known_columns(table, columns)
    names |= run_columns(table, columns, names) if "item" not in names else {}
    answered = "prediction" in names and "value" not in names and not metrics  # beside it a score may be a confidence
    scores = {} if answered else score_columns(table, names, metrics)
    count = len(table.lines)
    cells: Cells = {name: table.columns[column] for name, column in names.items() if column in table.columns}
    cells |= {"source": [table.source] * count, "line": table.lines}
    if "item" not in names and "variant" in cells and "variant" not in columns:
        cells = cells | split_names(cells["variant"]) | {name: cells[name] for name in ("seed", "run") if name in cells}
    parts = []
    for name, column in scores.items():
        named = {} if "metric" in cells else {"metric" if len(scores) > 1 or metrics else "column": [name] * count}
        parts.append(cells | {"value": table.columns[column]} | named)
    return joined(parts or [cells]), notes + columns_note(table, columns, names, scores)


def finished_only(table: Table) -> tuple[Table, list[str]]:
    """Without runs that W&B or MLflow call crashed, failed or still running."""
    name = next((name for name in table.columns if name.strip().lower() in ("state", "status")), None)
    states = [] if name is None else [(text(cell) or "").lower() for cell in table.columns[name]]
    if not set(states) & set(FINISHED):
        return table, []
    others = sorted({state for state in states if state and state not in FINISHED})
    kept = [state not in others for state in states]
    note = f"Rows of runs that did not finish are left out: {kept.count(False)} ({', '.join(others)})."
    return (only(table, kept), [note]) if others else (table, [])


def only(table: Table, kept: Sequence[bool]) -> Table:
    columns: dict[str, Sequence[object]] = {name: list(compress(cells, kept)) for name, cells in table.columns.items()}
    return replace(table, columns=columns, lines=list(compress(table.lines, kept)))


def known_columns(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    """Our name -> the table's, of those that it has: those that are named, those of our names, and where these do not
    suffice those of usual names. Without an item, each row is a run or a step of one."""
    there = list(table.columns)
    for name, column in columns.items():
        if column not in there and column != name:
            meant = did_you_mean(column, there)
            raise BadInput(
                f"no column is called {column!r}{meant}", f"its columns are {', '.join(there)}", path=table.source
            )
    found = {name: column for name in COLUMNS if (column := columns.get(name, name)) in there}

    plain = set(map(plain_name, there))
    of_runs = "variant" not in columns and bool(plain & RUN_NAMES) and not plain & ANSWER_NAMES  # an id may be a run's

    def usual(name: str) -> dict[str, str]:
        if name in found or name in columns:
            return {}
        fitting = [column for column in there if plain_name(column) in (name, *SYNONYMS[name])]
        fitting = [column for column in fitting if column not in found.values()]
        if name == "item" and of_runs:
            fitting = [column for column in fitting if distinct(table, column) < len(table.lines)]
        if len(fitting) > 1 and name != "run":
            raise BadInput(
                f"columns {', '.join(fitting)} could all be the {name}", choose(name, fitting[0]), path=table.source
            )
        return {name: fitting[0]} if fitting else {}

    found |= usual("item") | usual("seed")
    if "item" not in found:
        for name in {"group", "label", "prediction", "weight"} - columns.keys():  # of items
            found.pop(name, None)
        return found | usual("step") | usual("run")
    found |= usual("variant")
    if "seed" not in found and "seed" not in columns and (run := (found | usual("run")).get("run")):
        found["seed"] = run
    answers = {} if "value" in found else usual("label") | usual("prediction")
    if "prediction" in answers.keys() | found.keys():
        found |= answers
    found.pop("run", None)
    if "variant" not in found and "variant" not in columns:
        raise missing(table, "variant")
    return found


def missing(table: Table, name: str) -> BadInput:
    hint = f"its columns are {', '.join(table.columns)}; {choose(name, 'NAME')}; {SHAPE}"
    return BadInput(f"there is no column {name}", hint, path=table.source)


def run_columns(table: Table, columns: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The column that tells variants of runs apart: one of a usual name, the only setting that differs, or the names of
    the runs."""
    if "variant" in names or "variant" in columns:
        return {}
    free = [column for column in table.columns if column not in names.values() or column == names.get("run")]
    constant: list[str] = []

    def chosen(fitting: Sequence[str]) -> dict[str, str]:
        varied = [column for column in fitting if distinct(table, column) > 1]
        constant.extend(fitting)
        if len(varied) > 1:
            what = f"columns {', '.join(varied)} could all tell the variants apart"
            raise BadInput(what, choose("variant", varied[0]), path=table.source)
        return {"variant": varied[0]} if varied else {}

    runs = distinct(table, names["run"]) if "run" in names else len(table.lines)
    for usual in (SYNONYMS["variant"], GROUPS):
        if found := chosen([column for column in free if plain_name(column) in usual]):
            return found
    settings = [
        column
        for column in free
        if column not in names.values() and plain_name(column) not in NO_SETTING and direction_of(column) is None
    ]
    if found := chosen([column for column in settings if 1 < distinct(table, column) < runs]):
        return found
    named = [column for column in free if plain_name(column) in SYNONYMS["run"][1:] or plain_name(column) == "run"]
    named = [column for column in named if distinct(table, column) > 1] or constant
    if not named:
        raise missing(table, "variant")
    return {"variant": named[-1]} | ({"run": ""} if named[-1] == names.get("run") else {})


def score_columns(table: Table, names: Mapping[str, str], metrics: Sequence[str]) -> dict[str, str]:
    """The name of each score -> its column."""
    if "value" in names:
        return {"" if names["value"] == "value" else names["value"]: names["value"]}
    free = {PREFIX.sub("", name): name for name in table.columns if name not in names.values()}
    if metrics and "metric" not in names:
        chosen = {name: free.get(name) or (name if name in free.values() else "") for name in metrics}
        if lost := [name for name, column in chosen.items() if not column]:
            known = ", ".join(name for name in free if numeric(table, free[name]))
            meant = did_you_mean(lost[0], list(free))
            raise BadInput(f"no column is called {lost[0]!r}{meant}", f"numbers are in: {known}", path=table.source)
        return chosen
    named = {name for name in free if likely_score(name)}  # one broken cell does not hide it: the cell is named later
    numbers = {name: column for name, column in free.items() if numeric(table, column, 0.5 if name in named else 1.0)}
    for least in (2, 1, 0):  # a validation loss rather than a training loss or a time, and these rather than any number
        fitting = {name: column for name, column in numbers.items() if likely_score(name) >= least}
        if fitting:
            break
    if ("item" in names and least == 0) or not fitting:
        raise missing(table, "value")
    if len(fitting) > 1:
        what = f"columns {', '.join(fitting)} could all be the score"
        first = next(iter(fitting))
        raise BadInput(what, f"say which: --metric {first}, in Python metric={first!r}", path=table.source)
    return fitting


def likely_score(name: str) -> int:
    words = name_words(name)
    if direction_of(name) is None:
        return 0
    return 1 if words & {"train", "training", *TIMES} else 2


def numeric(table: Table, column: str, share: float = 1.0) -> bool:
    """Whether at least this share of its first cells are numbers."""
    cells = [cell for cell in map(text, table.columns[column][:1000]) if cell is not None]
    return bool(cells) and sum(math.isfinite(to_number(cell)) for cell in cells) >= share * len(cells)


def distinct(table: Table, column: str) -> int:
    return len(set(map(text, table.columns[column])) - {None})


def plain_name(column: str) -> str:
    """`params.arch` -> arch; `Run ID`, as pages of MLflow export it, -> run_id."""
    return PREFIX.sub("", column.strip().lower()).replace(" ", "_")


def split_names(names: Sequence[object]) -> Cells:
    """`rope-seed3` -> variant rope and seed 3, where all names end so and some differ in it alone."""
    parts = {name: SEED_IN_NAME.fullmatch(text(name) or "") for name in dict.fromkeys(names)}
    found = {name: match for name, match in parts.items() if match}
    if len(found) < len(parts) or len({match[1] for match in found.values()}) == len(found):
        return {}
    label = "seed" if all(match[2] for match in found.values()) else "run"
    return {"variant": [found[name][1] for name in names], label: [found[name][3] for name in names]}


def choose(name: str, column: str) -> str:
    return f"say which is which: --column {name}={column}, in Python columns={{{name!r}: {column!r}}}"


def columns_note(
    table: Table, columns: Mapping[str, str], names: Mapping[str, str], scores: Mapping[str, str]
) -> list[str]:
    """What was taken by a usual name."""
    names = {name: column for name, column in names.items() if column}
    values = {"value": ", ".join(scores.values())} if scores and "value" not in names else {}
    if all(column == name or name in columns for name, column in (names | values).items()):
        return []
    taken = [name if name == column else f"{name} from {column!r}" for name, column in (names | values).items()]
    used = {*names.values(), *scores.values()}
    unused = [column for column in table.columns if column not in used]
    return [f"Columns: {', '.join(taken)}{'; not used: ' * bool(unused)}{', '.join(unused)}."]


def text(value: object) -> str | None:
    """None where nothing is there."""
    if type(value) is str:
        return value.strip() or None
    return None if value is None or value != value else str(value).strip()


def whole(value: object) -> str | None:
    """A data frame with a gap has made 3.0 of a seed 3."""
    cell = text(value)
    return cell[:-2] if cell and cell.endswith(".0") and cell[:-2].isdigit() else cell


def to_number(cell: str) -> float:
    """NaN where it is none."""
    try:
        return float(cell)
    except ValueError:
        return TRUTH.get(cell.lower(), math.nan)
