"""The puzzles view's answers: a query for keys as they are dragged, the course's questions, heads made by hand."""

from __future__ import annotations

from functools import cache

from fairtrial.errors import BadInput
from fairtrial.explore.library import Library
from fairtrial.explore.requests import JobHandle, Plain, RequestParams
from fairtrial.puzzles import (
    Answer,
    Goals,
    Replacement,
    average,
    head_names,
    mix,
    mix_target,
    read_sequence,
    replace_key,
    select,
)
from fairtrial.puzzles import course as puzzle_course

MOST_KEYS, MOST_WORDS = 40, 32


def solve(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """What attention should return, of these keys: the query, its weights and the certificate."""
    keys = params.rows("keys", None, MOST_KEYS)
    if not keys:
        raise BadInput("there are no keys")
    shares = {place: share for place, share in enumerate(numbers(params, "shares")) if share > 0}
    goals = Goals(precision=params.number("precision", 0.5, 0.9999, 0.999))
    ask = params.one_of("ask", ("select", "average", "mix", "replace"), "select")
    if not shares:
        raise BadInput("no key is wanted", "choose one")
    chosen, total = list(shares), sum(shares.values())
    weights = {key: share / total for key, share in shares.items()}
    found: Answer | Replacement
    if ask == "replace":
        place = params.whole("place", 0, len(keys) - 1, 0)
        target = mix_target(len(keys), weights)
        found = replace_key(keys, place, target, numbers(params, "query"), goals)
    elif ask == "select":
        found = select(keys, chosen[0], goals)
    elif ask == "average":
        found = average(keys, chosen, goals)
    else:
        found = mix(keys, weights, goals)
    return {"answer": found.to_json(), "sentences": list(found.describe().sentences)}


def numbers(params: RequestParams, name: str) -> list[float]:
    return [row[0] for row in params.rows(name, 1, MOST_KEYS)]


def course(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """The course's six questions, solved, explained and checked in real attention."""
    return {"questions": solved_course()}


@cache
def solved_course() -> list[dict[str, object]]:
    return puzzle_course().to_json()


def head(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """A network whose head is written by hand, on a sequence that a person typed."""
    words = params.text("words", "a b c a b", 400).split()
    if not 2 <= len(words) <= MOST_WORDS:
        raise BadInput(f"type 2 to {MOST_WORDS} words, separated by blanks")
    name = params.one_of("head", head_names(), "induction")
    return read_sequence(name, words).to_json()
