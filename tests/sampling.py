"""Tables of cases that are one test, and a handful of configurations instead of their full product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from itertools import product
from random import Random
from typing import Any

import pytest


def cases(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `parametrize`, as one test, for rows that would repeat each other's fault. Fixtures are shared; a failure
    names its row; a row may be skipped, but not all."""
    names, table = names.replace(",", " ").split() if isinstance(names, str) else list(names), list(rows)
    assert table

    def wrap(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            skipped = 0
            for row in table:
                values = dict(zip(names, row if len(names) > 1 else [row], strict=True))
                try:
                    test(**fixtures, **values)
                except pytest.skip.Exception:
                    skipped += 1
                    if skipped == len(table):
                        raise
                except Exception as error:
                    error.add_note(f"with {values}")
                    raise

        asked = signature(test)
        left = [parameter for name, parameter in asked.parameters.items() if name not in names]
        run.__signature__ = asked.replace(parameters=left)  # type: ignore[attr-defined]  # what pytest looks at
        return run

    return wrap


def sample(count: int, **settings: Sequence[Any]) -> Any:
    """`count` combinations, drawn once, in which every value of every setting occurs."""
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
    return cases(
        list(settings), [tuple(values[axis][value] for axis, value in enumerate(row)) for row in sorted(chosen)]
    )
