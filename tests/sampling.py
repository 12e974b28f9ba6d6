"""A handful of configurations instead of their full product."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest


def sample(count: int, **settings: Sequence[Any]) -> Any:
    """Parametrize with `count` combinations, drawn once, in which every value of every setting occurs."""
    rows = list(product(*(range(len(values)) for values in settings.values())))
    Random(0).shuffle(rows)
    missing = {(axis, value) for row in rows for axis, value in enumerate(row)}
    chosen = []
    for row in rows:
        if missing & set(enumerate(row)):
            missing -= set(enumerate(row))
            chosen.append(row)
    assert len(chosen) <= count, f"{len(chosen)} combinations are needed"
    chosen += [row for row in rows if row not in chosen][: count - len(chosen)]
    values = list(settings.values())
    found = [tuple(values[axis][value] for axis, value in enumerate(row)) for row in sorted(chosen)]
    return pytest.mark.parametrize(tuple(settings), found)
