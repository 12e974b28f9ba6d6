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
    target = select_target(len(table), chosen)
    return solve(f"select {_spoken(chosen, options)}", table, target, **options)


def identity(keys: ArrayLike, **options: Any) -> list[Answer]:
    """A query for each key that attends to it alone: stacked, they map every position to itself."""
    table = as_keys(keys)
    return [select(table, chosen, **options) for chosen in range(len(table))]


def average(keys: ArrayLike, chosen: Iterable[int], **options: Any) -> Answer:
    """A query that attends to the chosen keys alike, and to no other."""
    table, places = as_keys(keys), list(chosen)
    target = average_target(len(table), places)
    return solve("average " + " ".join(_spoken(place, options) for place in places), table, target, **options)


def mix(keys: ArrayLike, shares: Mapping[int, float], **options: Any) -> Answer:
    """A query with these weights: `mix(keys, {0: 0.5, 2: 0.3, 3: 0.2})`."""
    table = as_keys(keys)
    target = mix_target(len(table), shares)
    words = " ".join(f"{_spoken(place, options)}:{share:g}" for place, share in shares.items())
    return solve(f"mix {words}", table, target, **options)


def _spoken(place: int, options: Mapping[str, Any]) -> str:
    return str(options["names"][place] if options.get("names") else place)
