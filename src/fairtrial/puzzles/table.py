"""Keys, queries and values out of CSV files; what is wrong is said with file and line."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.puzzles.frame import Array
from fairtrial.streams import dice
from fairtrial.text.lines import read_lines

MOST_ROWS, MOST_NUMBERS = 2_000, 1_000_000


@dataclass(frozen=True)
class Table:
    numbers: Array  # [row width]
    names: tuple[str, ...] | None  # of the rows, where the first column holds words


def read_table(path: Path) -> Table:
    """One row on each line, numbers parted by commas, semicolons, tabs or blanks. A first line without numbers is a
    heading; a first column of words names the rows."""
    rows: list[list[float]] = []
    names: list[str] = []
    first = 0  # line of the first row: what it looks like, all others must
    for number, line in read_lines(path).numbered():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip().strip('"') for cell in cells_of(line)]
        if not rows and not first and not any(is_number(cell) for cell in cells):
            first = -number
            continue
        named = len(cells) > 1 and not is_number(cells[0])
        if named:
            names.append(cells.pop(0))
        rows.append([read_number(cell, path, number) for cell in cells])
        first = first if first > 0 else number
        if len(rows[-1]) != len(rows[0]):
            hint = f"line {first} has {len(rows[0])}; every row must have as many"
            raise BadInput(f"this row has {len(rows[-1])} numbers", hint, path=path, line=number)
        if len(names) not in (0, len(rows)):
            what = "this row has a name" if named else "this row has no name"
            raise BadInput(
                f"{what}, the rows before are not like that", "name all rows or none", path=path, line=number
            )
        if len(rows) > MOST_ROWS or len(rows) * len(rows[0]) > MOST_NUMBERS:
            raise BadInput(f"more than {MOST_ROWS:,} rows, or a million numbers", path=path, line=number)
    if not rows:
        raise BadInput("there are no numbers in this file", "write one row on each line, such as 0.5,-1,2", path=path)
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"two rows are named {double!r}", "give every row a name of its own", path=path)
    return Table(np.array(rows), tuple(names) or None)


def cells_of(line: str) -> list[str]:
    for mark in (",", ";", "\t"):
        if mark in line:
            return line.split(mark)
    return re.split(r"\s+", line.strip())


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_number(cell: str, path: Path, line: int) -> float:
    if not is_number(cell):
        what = f"{cell!r} is not a number" if cell else "a number is missing"
        raise BadInput(what, "write numbers such as 0.5 or -1e-3", path=path, line=line)
    if not math.isfinite(number := float(cell)):
        raise BadInput(f"{cell} will not do", "every number must be finite", path=path, line=line)
    return number


def random_keys(count: int, width: int, seed: int) -> Array:
    """Keys from a standard normal distribution."""
    return dice(seed, "puzzle keys").normal(size=(count, width))
