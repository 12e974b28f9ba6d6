"""The puzzles view's answers: a query for keys as they are dragged, the course's questions, heads made by hand."""

from __future__ import annotations

from typing import Any

from fairtrial import puzzles
from fairtrial.errors import BadInput
from fairtrial.explore.library import Library
from fairtrial.explore.requests import JobHandle, Plain, RequestParams

MOST_KEYS, MOST_WORDS = 40, 32
COURSE: dict[int, Plain] = {}


def solve(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """What attention should return, of these keys: the query, its weights and the certificate."""
    keys = params.rows("keys", None, MOST_KEYS)
    if not keys:
        raise BadInput("there are no keys")
    shares = {place: share for place, share in enumerate(numbers(params, "shares")) if share > 0}
    precision, scale = params.number("precision", 0.5, 0.9999, 0.999), params.flag("scale", True)
    how: Plain = {"scale": scale, "precision": precision}
    longest = params.number("norm", 0, 1e6, 0.0) or None
    ask = params.one_of("ask", ("select", "average", "mix", "replace"), "select")
    if not shares:
        raise BadInput("no key is wanted", "choose one")
    chosen, total = list(shares), sum(shares.values())
    if ask == "replace":
        place = params.whole("place", 0, len(keys) - 1, 0)
        target = puzzles.mix_target(len(keys), {key: share / total for key, share in shares.items()})
        found: Any = puzzles.replace_key(keys, place, target, numbers(params, "query"), norm=longest, **how)
    elif ask == "select":
        found = puzzles.select(keys, chosen[0], norm=longest, **how)
    elif ask == "average":
        found = puzzles.average(keys, chosen, norm=longest, **how)
    else:
        found = puzzles.mix(keys, {key: share / total for key, share in shares.items()}, norm=longest, **how)
    return {"answer": puzzles.plain_of(found), "lines": puzzles.lines_of(found)}


def numbers(params: RequestParams, name: str) -> list[float]:
    return [row[0] for row in params.rows(name, 1, MOST_KEYS)]


def course(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """The course's six questions, solved, explained and checked in real attention."""
    seed = params.whole("seed", 0, 1_000_000, 0)
    if seed not in COURSE:
        questions = puzzles.course_questions(seed)
        told = [each.plain() | {"lesson": each.lesson, "lines": puzzles.lines_of(each.answers)} for each in questions]
        COURSE.clear()
        COURSE[seed] = {"questions": told}
    return COURSE[seed]


def head(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """A network whose head is written by hand, on a sequence that a person typed."""
    words = params.text("words", "a b c a b", 400).split()
    if not 2 <= len(words) <= MOST_WORDS:
        raise BadInput(f"type 2 to {MOST_WORDS} words, separated by blanks")
    name = params.one_of("head", puzzles.head_names(), "induction")
    return puzzles.read_sequence(name, words)
