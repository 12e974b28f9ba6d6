"""Attention by construction: choose queries and keys so that attention does what you ask, or learn why none can."""

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
    from fairtrial.puzzles.keys import Array
    from fairtrial.puzzles.keys import Goals as Goals
    from fairtrial.puzzles.questions import Course as Course
    from fairtrial.puzzles.questions import course as course
    from fairtrial.puzzles.replacement import Replacement as Replacement
    from fairtrial.puzzles.replacement import replace_key as replace_key
    from fairtrial.puzzles.solve import Answer as Answer
    from fairtrial.puzzles.solve import Answers as Answers
    from fairtrial.puzzles.solve import average as average
    from fairtrial.puzzles.solve import average_target as average_target
    from fairtrial.puzzles.solve import identity as identity
    from fairtrial.puzzles.solve import mix as mix
    from fairtrial.puzzles.solve import mix_target as mix_target
    from fairtrial.puzzles.solve import select as select
    from fairtrial.puzzles.solve import select_target as select_target

SOLVED = ("Answer", "Answers", "average", "average_target", "identity", "mix", "mix_target", "select", "select_target")
EXPORTS = {
    "Goals": "keys",
    **dict.fromkeys(SOLVED, "solve"),
    **dict.fromkeys(("Replacement", "replace_key"), "replacement"),
    **dict.fromkeys(("Course", "course"), "questions"),
    **dict.fromkeys(("head", "head_names", "read_sequence"), "heads"),
}
__all__ = ["puzzle", *EXPORTS]
__getattr__ = lazy(__name__, EXPORTS)
KINDS = ("select", "identity", "average", "mix", "replace-key", "course", "head")


def puzzle(
    ask: str,
    words: Sequence[str] = (),
    *,
    keys: str | Path | None = None,
    count: int = 4,
    width: int = 3,
    seed: int = 0,
    scale: bool = True,
    norm: float | None = None,
    precision: float = 0.999,
    to: str | None = None,
    query: str | Path | None = None,
) -> Result:
    """Make attention do what you ask, by construction; or learn why no query can.

    select KEY, identity, average KEY..., mix KEY:WEIGHT...: find the query. replace-key KEY --to select|average|mix
    KEY...: the query stays, one key changes. course: six questions, solved and checked. head NAME: a network whose
    head is written by hand (previous token, first token, same word before, induction).

    Args:
        ask (ASK): select, identity, average, mix, replace-key, course or head.
        words (WORD...): Keys, each by its number from 0 or its name in the file; or a head's name.
        keys (FILE.csv): Keys, one per line. Default: random keys.
        count (NUMBER): Number of random keys.
        width (NUMBER): Numbers in each random key.
        seed (NUMBER): Random seed of the keys.
        scale: Divide scores by the square root of the keys' width.
        norm (NUMBER): Maximum length of the query; of replace-key, the length of the new key.
        precision (NUMBER): Minimum share of its wanted weight that a wanted key gets.
        to (NAME): replace-key: what attention should do then (select, average or mix).
        query (FILE.csv): replace-key: the fixed query. Default: one that averages two other keys.
    """
    import fairtrial.puzzles as own
    from fairtrial.puzzles.keys import Goals, random_keys, read_table
    from fairtrial.recipe import one_of

    one_of("ASK", ask, KINDS)
    if ask == "head":
        return own.head(" ".join(words), seed=seed)
    if ask == "course":
        return own.course(seed, precision=precision)
    if count < 1 or width < 1:
        raise BadInput(f"there must be at least 1 key of width 1, got {count} of width {width}")
    table, names = read_table(Path(keys)) if keys is not None else (random_keys(count, width, seed), None)
    goals = Goals(scale=scale, norm=norm, precision=precision, names=names)
    if ask == "identity":
        return own.identity(table, goals)
    if ask == "replace-key":
        if not words:
            raise BadInput("no key to replace", "fairtrial puzzle replace-key 2 --to average 0 1 2")
        place, target = place_of(words[0], names, len(table)), target_of(to or "", words[1:], names, len(table))
        return own.replace_key(table, place, target, fixed_query(query, table, place, goals), goals)
    from fairtrial.puzzles.solve import solve

    target = target_of(ask, words, names, len(table))
    wanted = " ".join(name for name, share in zip(goals.named(len(table)), target, strict=True) if share)
    return solve(f"{ask} {wanted}", table, target, goals)


def place_of(word: str, names: Sequence[str] | None, count: int) -> int:
    """A key's number, or its name."""
    if names and word in names:
        return names.index(word)
    if not word.isdecimal() or int(word) >= count:
        hint = f"name it by its number, 0 to {count - 1}" + (f", or as {', '.join(names[:6])}" if names else "")
        raise BadInput(f"there is no key {word!r}", hint)
    return int(word)


def target_of(ask: str, words: Sequence[str], names: Sequence[str] | None, count: int) -> Array:
    """The wanted weights."""
    from fairtrial.puzzles.solve import average_target, mix_target, select_target

    if ask == "select" and len(words) == 1:
        return select_target(count, place_of(words[0], names, count))
    if ask == "average":
        return average_target(count, [place_of(word, names, count) for word in words])
    if ask != "mix":
        what = f"one key to select, or average or mix with several: got {' '.join([ask, *words])}"
        raise BadInput(what, "select 2, average 0 1 2 or mix 0:0.5 2:0.5")
    shares: dict[int, float] = {}
    for word in words:
        name, mark, share = word.rpartition(":")
        try:
            weight = float(share)
        except ValueError:
            mark, weight = "", 0.0
        if not mark:
            raise BadInput(f"{word!r} is not a key with its weight", "write 0:0.5 2:0.3 3:0.2")
        if (place := place_of(name, names, count)) in shares:
            raise BadInput(f"key {name} is named twice", "give each key one weight")
        shares[place] = weight
    return mix_target(count, shares)


def fixed_query(path: str | Path | None, keys: Array, place: int, goals: Goals) -> Array:
    """From a file; else one that averages the first two other keys as well as it can."""
    from fairtrial.puzzles.keys import as_query, read_table
    from fairtrial.puzzles.solve import average

    if path is not None:
        return as_query(read_table(Path(path))[0], keys.shape[1])
    others = [other for other in range(len(keys)) if other != place][:2]
    if not others:
        raise BadInput("there is one key only", "give a query: --query q.csv")
    return average(keys, others, goals.without_norm()).query
