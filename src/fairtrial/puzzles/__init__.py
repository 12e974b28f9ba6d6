"""Attention by construction: choose a query so that attention does what you ask, or learn why none can."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.errors import BadInput
from fairtrial.registry import lazy

if TYPE_CHECKING:
    from fairtrial.description import Result
    from fairtrial.puzzles.heads import head as head
    from fairtrial.puzzles.heads import head_names as head_names
    from fairtrial.puzzles.heads import read_sequence as read_sequence
    from fairtrial.puzzles.solve import Answer as Answer
    from fairtrial.puzzles.solve import Goals as Goals
    from fairtrial.puzzles.solve import average as average
    from fairtrial.puzzles.solve import mix as mix
    from fairtrial.puzzles.solve import select as select

EXPORTS = {
    **dict.fromkeys(("Answer", "Goals", "average", "mix", "select"), "solve"),
    **dict.fromkeys(("head", "head_names", "read_sequence"), "heads"),
}
__all__ = ["puzzle", *EXPORTS]
__getattr__ = lazy(__name__, EXPORTS)
KINDS = ("select", "average", "mix", "head")


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

    select KEY, average KEY..., mix KEY:WEIGHT...: find the query. head NAME: a network whose head is written by hand
    (previous token, induction).

    Args:
        ask (ASK): select, average, mix or head.
        words (WORD...): Keys, each by its number from 0; or a head's name.
        keys (FILE.csv): Keys, one per line. Default: random keys.
        count (NUMBER): Number of random keys.
        width (NUMBER): Numbers in each random key.
        seed (NUMBER): Random seed of the keys.
        scale: Divide scores by the square root of the keys' width.
        precision (NUMBER): Minimum share of its wanted weight that a wanted key gets.
    """
    from fairtrial.recipe import one_of

    one_of("ASK", ask, KINDS)
    if ask == "head":
        from fairtrial.puzzles.heads import head

        return head(" ".join(words), seed=seed)
    from fairtrial.puzzles.solve import Goals, average, mix, random_keys, read_table, select

    if count < 1 or width < 1:
        raise BadInput(f"there must be at least 1 key of width 1, got {count} of width {width}")
    table = read_table(Path(keys)) if keys is not None else random_keys(count, width, seed)
    goals = Goals(scale=scale, precision=precision)
    if ask == "mix":
        return mix(table, shares_of(words, len(table)), goals)
    places = [place_of(word, len(table)) for word in words]
    if ask == "average":
        return average(table, places, goals)
    if len(places) != 1:
        raise BadInput(f"select takes one key, got {len(places)}", "average 0 1 2, or mix 0:0.5 2:0.5, takes several")
    return select(table, places[0], goals)


def place_of(word: str, count: int) -> int:
    if not word.isdecimal() or int(word) >= count:
        raise BadInput(f"there is no key {word!r}", f"name it by its number, 0 to {count - 1}")
    return int(word)


def shares_of(words: Sequence[str], count: int) -> dict[int, float]:
    """0:0.5 2:0.5"""
    shares: dict[int, float] = {}
    for word in words:
        name, mark, share = word.rpartition(":")
        try:
            weight = float(share)
        except ValueError:
            mark, weight = "", 0.0
        if not mark:
            raise BadInput(f"{word!r} is not a key with its weight", "write 0:0.5 2:0.3 3:0.2")
        if (place := place_of(name, count)) in shares:
            raise BadInput(f"key {name} is named twice", "give each key one weight")
        shares[place] = weight
    return shares
