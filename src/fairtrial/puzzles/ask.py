"""The questions: select one key, select each, average some, mix some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from fairtrial.puzzles.frame import as_keys
from fairtrial.puzzles.solve import Answer, solve
from fairtrial.puzzles.target import average_target, mix_target, select_target


def select(keys: ArrayLike, chosen: int, **options: Any) -> Answer:
    """A query that attends to one key alone. Options: scale, norm, precision, values, names (see `solve`)."""
    table = as_keys(keys)
    return solve(f"select {chosen}", table, select_target(len(table), chosen), **options)


def identity(keys: ArrayLike, **options: Any) -> list[Answer]:
    """A query for each key that attends to it alone: stacked, they map every position to itself."""
    table = as_keys(keys)
    return [select(table, chosen, **options) for chosen in range(len(table))]


def average(keys: ArrayLike, chosen: Iterable[int], **options: Any) -> Answer:
    """A query that attends to the chosen keys alike, and to no other."""
    table, places = as_keys(keys), list(chosen)
    words = " ".join(str(place) for place in places)
    return solve(f"average {words}", table, average_target(len(table), places), **options)


def mix(keys: ArrayLike, shares: Mapping[int, float], **options: Any) -> Answer:
    """A query with these weights: `mix(keys, {0: 0.5, 2: 0.3, 3: 0.2})`."""
    table = as_keys(keys)
    words = " ".join(f"{place}:{share:g}" for place, share in shares.items())
    return solve(f"mix {words}", table, mix_target(len(table), shares), **options)
