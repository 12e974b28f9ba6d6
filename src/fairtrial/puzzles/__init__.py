"""Attention by construction: choose a query so that attention does what you ask, or learn why none can."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.errors import BadInput
from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.description import Result
    from fairtrial.puzzles.solve import Answer as Answer
    from fairtrial.puzzles.solve import average as average
    from fairtrial.puzzles.solve import select as select

EXPORTS = dict.fromkeys(("Answer", "average", "select"), "solve")
__all__ = ["puzzle", *EXPORTS]
__getattr__ = lazy(__name__, EXPORTS)


def puzzle(
    ask: str,
    words: Sequence[str] = (),
    *,
    keys: str | Path | None = None,
    count: int = 4,
    width: int = 3,
    seed: int = 0,
    scale: bool = True,
    precision: float = 0.999,
) -> Result:
    """Make attention do what you ask, by construction; or learn why no query can.

    Args:
        ask (ASK): select (one key) or average (several).
        words (KEY...): Keys, each by its number from 0.
        keys (FILE.csv): Keys, one per line. Default: random keys.
        count (NUMBER): Number of random keys.
        width (NUMBER): Numbers in each random key.
        seed (NUMBER): Random seed of the keys.
        scale: Divide scores by the square root of the keys' width.
        precision (NUMBER): Minimum share of its wanted weight that a wanted key gets.
    """
    from fairtrial.recipe import one_of

    one_of("ASK", ask, ("select", "average"))
    from fairtrial.puzzles.solve import average, random_keys, read_table, select

    if count < 1 or width < 1:
        raise BadInput(f"there must be at least 1 key of width 1, got {count} of width {width}")
    table = read_table(Path(keys)) if keys is not None else random_keys(count, width, seed)
    if wrong := [word for word in words if not word.isdecimal()]:
        raise BadInput(f"there is no key {wrong[0]!r}", "name keys by their numbers, from 0")
    places = [int(word) for word in words]
    if ask == "average":
        return average(table, places, scale=scale, precision=precision)
    if len(places) != 1:
        raise BadInput(f"select takes one key, got {len(places)}", "average 0 1 2 takes several")
    return select(table, places[0], scale=scale, precision=precision)
