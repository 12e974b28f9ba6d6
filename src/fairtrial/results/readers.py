"""Tables of results (CSV, TSV, JSON lines, Parquet, a data frame) -> plain rows. Nothing in a file is ever run.

A pattern such as `runs/{variant}/seed-{seed}.csv` says which file is whose.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from fairtrial.data.tables import (
    SUFFIXES,
    Table,
    no_garbage_collection,
    read_table,
    suffix_of,
    table_of,
)
from fairtrial.disk import sha256_of
from fairtrial.errors import BadInput
from fairtrial.registry import did_you_mean
from fairtrial.results.item_rows import COLUMNS, Cells, Rows, from_table, joined, only, text
from fairtrial.statistics.outcomes import numbers_of

FIELD = re.compile(r"\{(\w+)\}")
IN_PATHS = ("variant", "seed", "test", "metric")  # what a pattern can say
TABLES = tuple(suffix for suffix in SUFFIXES if suffix != ".json")  # looked for in a folder
OURS = ("verdict.json", "study.toml", "plan.json", "trial.json")  # beside them lies nothing of others
HOW = "`Results of your own` in the documentation lists what can be read"


@dataclass(frozen=True)
class Results:
    cells: Cells
    files: dict[str, str] = field(default_factory=dict)  # sha256 of each
    notes: tuple[str, ...] = ()
    name: str = "results"

    @cached_property
    def rows(self) -> Rows:
        with no_garbage_collection():
            return Rows.of(self.cells)


@dataclass(frozen=True)
class Reading:
    """How tables are to be read. `columns`: what a table calls the columns, `{"value": "score"}`; `metrics`: the
    only ones that are wanted; `where`: rows that count."""

    columns: Mapping[str, str] = field(default_factory=dict)
    metrics: Sequence[str] = ()
    where: Mapping[str, str] = field(default_factory=dict)

    def cells(self, table: Table, told: Mapping[str, str] | None = None) -> tuple[Cells, list[str]]:
        for name, wanted in self.where.items():
            if name not in table.columns:
                known = did_you_mean(name, list(table.columns))
                raise BadInput(f"no column is called {name!r}{known}", path=table.source)
            table = only(table, [text(cell) == wanted for cell in table.columns[name]])
        if not table.lines:
            raise BadInput("no row is left" if self.where else "the results are empty", HOW, path=table.source)
        names = {name: name for name in told or {}}
        return from_table(table, {**self.columns, **names}, self.metrics)


@no_garbage_collection()
def read_results(
    given: object,
    columns: Mapping[str, str] | None = None,
    metrics: Sequence[str] = (),
    where: Mapping[str, str] | None = None,
) -> Results:
    """`given`: paths, a pattern, a folder, a data frame, rows, or scores by variant."""
    names = check_columns(columns or {})
    how = Reading(names, metrics, where or {})
    if isinstance(given, str | Path):
        given = [given]
    if isinstance(given, Mapping):
        cells = joined([scores_of(str(name), one) for name, one in given.items()])
        results = Results(cells | {"metric": [*metrics[:1], "score"][:1] * len(cells.get("item", ()))})
    elif isinstance(given, Sequence) and given and all(isinstance(one, str | Path) for one in given):
        results = read_files([each for one in given for each in places(str(one))], how)
    else:
        try:
            table = table_of(given)
        except BadInput as error:
            raise BadInput(
                error.what, "give files, a data frame, a list of dicts, or a dict of arrays by variant"
            ) from error
        cells, notes = how.cells(table)
        results = Results(cells, notes=tuple(notes))
    if not results.cells.get("source"):
        raise BadInput("the results are empty", HOW)
    return results


def check_columns(columns: Mapping[str, str]) -> dict[str, str]:
    for name in columns:
        if name not in COLUMNS:
            what = f"{name!r} is not a column of results{did_you_mean(name, list(COLUMNS))}"
            raise BadInput(what, f"known are {', '.join(COLUMNS)}; a mapping is value=score: ours, then the file's")
    return dict(columns)


# files


def places(what: str) -> list[tuple[Path, dict[str, str]]]:
    """Files, each with what its path says of it."""
    if FIELD.search(what):
        return matching(what)
    path = Path(what).expanduser()
    if path.is_dir():
        inside = inside_of(path)
        if not inside:
            raise BadInput(f"no results were found (looked for {', '.join(TABLES)})", HOW, path=path)
        return [(each, {}) for each in inside]
    if not path.is_file():
        raise BadInput("does not exist", HOW, path=path)
    return [(path, {})]


def inside_of(folder: Path) -> list[Path]:
    """Tables in a folder, but not those of a study or a record."""
    tables = [each for each in folder.rglob("*") if suffix_of(each) in TABLES and each.is_file()]
    return sorted(each for each in tables if not any((each.parent / name).exists() for name in OURS))


def matching(pattern: str) -> list[tuple[Path, dict[str, str]]]:
    """`runs/{variant}/seed-{seed}/*.jsonl`: every file that it fits."""
    names = FIELD.findall(pattern)
    for name in names:
        if name not in IN_PATHS or names.count(name) > 1:
            what = f"a pattern names {', '.join(IN_PATHS)}, each once; not {name!r}"
            raise BadInput(what, "example: 'runs/{variant}/seed-{seed}/samples.jsonl'")
    pieces = FIELD.split(str(Path(pattern).expanduser()))
    shape = "".join(f"(?P<{piece}>[^/]+)" if at % 2 else wildcards(piece) for at, piece in enumerate(pieces))
    found = []
    for path in sorted(glob.glob("".join("*" if at % 2 else piece for at, piece in enumerate(pieces)))):
        fits = re.fullmatch(shape, path.replace("\\", "/"))
        if fits and Path(path).is_file():
            found.append((Path(path), fits.groupdict()))
    if not found:
        raise BadInput(f"no file matches the pattern {pattern}", "quote it, so that the shell does not expand it")
    return found


def wildcards(piece: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter)) for letter in piece)


def read_files(found: Sequence[tuple[Path, dict[str, str]]], how: Reading) -> Results:
    parts = []
    notes: dict[str, None] = {}
    for path, told in found:
        if suffix_of(path) not in SUFFIXES:
            suffix = suffix_of(path) or "without a suffix"
            raise BadInput(f"results of the kind {suffix} cannot be read", HOW, path=path)
        own, assumed = how.cells(read_table(path), told)
        notes |= dict.fromkeys(assumed)
        own |= {name: [value] * len(own["source"]) for name, value in told.items()}
        if "step" in own and not {"run", "seed"} & own.keys():  # a file is a run
            own["run"] = own["source"]
        parts.append(own)
    if len({"item" in own for own in parts}) > 1:
        raise BadInput("some files have test items and others do not", "judge them one by one")
    name = found[0][0].stem if len(found) == 1 else common_name([path for path, _ in found])
    return Results(joined(parts), {str(path): sha256_of(path) for path, _ in found}, tuple(notes), name)


def common_name(paths: Sequence[Path]) -> str:
    """The last folder that they share."""
    parts = [path.resolve().parent.parts for path in paths]
    shared = [names[0] for names in zip(*parts, strict=False) if len(set(names)) == 1]
    return shared[-1] if len(shared) > 1 else "results"


def scores_of(variant: str, given: object) -> Cells:
    """One seed, scores [item]; or several, an array or a list [seed item]."""
    if not isinstance(given, Iterable):
        raise BadInput(f"{variant}: {type(given).__name__} holds no results", "give an array [seed item]")
    seeds = list(given)
    several = not (seeds and (isinstance(seeds[0], int | float) or getattr(seeds[0], "ndim", None) == 0))
    parts: list[Cells] = []
    for number, one in enumerate(seeds if several else [seeds]):
        where = f"{variant}, seed {number}" if several else variant
        values = numbers_of(one, where)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise BadInput(f"{where} must hold one finite number for each item", "give an array [seed item]")
        count = len(values)
        own: Cells = {"variant": [variant] * count, "source": [where] * count, "value": values.tolist()}
        own |= {"item": list(map(str, range(count))), "seed": [str(number) if several else None] * count}
        parts.append(own)
    return joined(parts)
