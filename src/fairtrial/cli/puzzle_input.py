"""What `fairtrial puzzle` is given: keys, values and queries out of files or dice, keys by number or name."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def gather(
    keys: Path | None, values: Path | None, count: int | None, width: int | None, seed: int, kind: str
) -> dict[str, Any]:
    """Keys, their names and values, out of files or dice."""
    from fairtrial.errors import BadInput
    from fairtrial.puzzles.table import random_keys, read_table

    need_kind(kind)
    if keys is not None and (count is not None or width is not None):
        raise BadInput("--count and --width are for random keys", "leave them out, or leave out --keys")
    names = None
    if keys is None:
        table = random_keys(count or 4, width or 3, seed)
    else:
        read = read_table(keys)
        table, names = read.numbers, read.names
    held = None if values is None else read_table(values).numbers
    if held is not None and len(held) != len(table):
        raise BadInput(
            f"{len(held)} values for {len(table)} keys", "one value on each line, one for each key", path=values
        )
    return {"keys": table, "names": names, "values": held}


def need_kind(kind: str) -> None:
    from fairtrial.errors import BadInput

    if kind not in ("png", "svg"):
        raise BadInput(f"--format {kind} will not do", "take png or svg")


def place_of(word: str, given: dict[str, Any]) -> int:
    """A key's number, or its name."""
    from fairtrial.errors import BadInput
    from fairtrial.puzzles.target import need_place

    names, count = given["names"] or (), len(given["keys"])
    if word in names:
        return names.index(word)
    try:
        return need_place(int(word), count)
    except ValueError as error:
        hint = f"name it by its number, 0 to {count - 1}" + (f", or as {', '.join(names[:6])}" if names else "")
        raise BadInput(f"there is no key {word!r}", hint) from error


def shares_of(words: list[str], given: dict[str, Any]) -> dict[int, float]:
    from fairtrial.errors import BadInput

    shares: dict[int, float] = {}
    for word in words:
        name, mark, share = word.rpartition(":")
        try:
            weight = float(share)
        except ValueError:
            mark = ""
        if not mark:
            raise BadInput(f"{word!r} is not a key with its weight", "write 0:0.5 2:0.3 3:0.2")
        place = place_of(name, given)
        if place in shares:
            raise BadInput(f"key {name} is named twice", "give each key one weight")
        shares[place] = weight
    return shares


def target_of(to: str, words: list[str], given: dict[str, Any]) -> Any:
    from fairtrial.errors import BadInput
    from fairtrial.puzzles.target import average_target, mix_target, select_target

    count = len(given["keys"])
    if to == "select" and len(words) == 1:
        return select_target(count, place_of(words[0], given))
    if to == "average":
        return average_target(count, [place_of(word, given) for word in words])
    if to == "mix":
        return mix_target(count, shares_of(words, given))
    raise BadInput(
        f"--to {' '.join([to, *words])} will not do", "--to select 2, --to average 0 1 2 or --to mix 0:0.5 2:0.5"
    )


def fixed_query(
    path: Path | None, place: int, given: dict[str, Any], scale: bool, precision: float
) -> tuple[list[str], Any]:
    """The query that stays, and a line about it where it was not given."""
    from fairtrial.errors import BadInput
    from fairtrial.puzzles.ask import average
    from fairtrial.puzzles.table import read_table

    width = given["keys"].shape[1]
    if path is not None:
        numbers = read_table(path).numbers
        if numbers.size != width or 1 not in numbers.shape:
            raise BadInput(f"a query of {width} numbers is needed, as wide as the keys", path=path)
        return [], numbers.reshape(-1)
    first = [other for other in range(len(given["keys"])) if other != place][:2]
    if not first:
        raise BadInput("there is one key only", "give a query: --query q.csv")
    said = " and ".join(map(str, first))
    return [f"No query is given: taken is one that averages keys {said}, as near as it can.", ""], average(
        given["keys"], first, scale=scale, precision=precision
    ).query
