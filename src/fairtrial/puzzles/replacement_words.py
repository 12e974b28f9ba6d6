"""Replaced keys in sentences."""

from __future__ import annotations

import numpy as np

from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.words import bars, heading, listed, output_lines, result_line, top, vector, wrapped


def replacement_lines(answer: Replacement) -> list[str]:
    place = answer.names[answer.place]
    return [
        heading(answer),
        f"query {vector(answer.query)}, which stays; only {place} is replaced",
        "",
        *wrapped(why_replacement(answer)),
        "",
        f"new {place}  {vector(answer.key)}",
        f"length  {np.linalg.norm(answer.key):.4g}, {length_note(answer)}",
        "",
        *bars(answer.weights, answer.target, answer.names),
        result_line(answer),
        *output_lines(answer),
        "",
        *wrapped(simple_lines(answer)),
    ]


def length_note(answer: Replacement) -> str:
    if answer.needed is None:
        return "which makes no difference to this query"
    if answer.length is None and not answer.possible:
        return "the shortest that comes nearest"
    if answer.length is None:
        return "the shortest that will do; anything across the query may be added to it and changes nothing"
    return f"as it must be; the shortest key that will do has {answer.needed:.4g}"


def why_replacement(answer: Replacement) -> list[str]:
    place = answer.names[answer.place]
    if not answer.query.any():
        if answer.possible:
            return ["Possible, whatever the key: a query of zero scores every key alike, and alike is what is wanted."]
        return ["Impossible: a query of zero scores every key alike, whatever the keys are, so all weights are equal."]
    moves = f"The new key moves the score of {place} and no other"
    if answer.possible:
        if answer.target[answer.place] == 1:
            return [f"Possible. {moves}: far enough along the query, it outdoes them all."]
        return [f"Possible. {moves}: the others keep their proportions, which are right already."]
    if answer.wrong_proportions:
        off = [
            f"{answer.names[each]} ({answer.best[each]:.4g} at best, wanted {answer.target[each]:.4g})"
            for each in answer.wrong_proportions
        ]
        return [
            f"Impossible with this query. {moves}, so the others keep their proportions to one another, "
            f"and these are wrong. In the way: {listed(off)}. It takes another query.",
        ]
    lines = [
        f"Impossible at length {answer.length:g}: with this query the key must reach {answer.needed:.4g} along it."
    ]
    if answer.further:
        who = listed([f"{answer.names[each]} ({answer.reach[each]:.4g})" for each in answer.further])
        return [
            *lines,
            f"In the way: {who}, further along the query than that length goes. A longer query helps them more.",
        ]
    if answer.target[answer.place] == 1:
        return [*lines, "No other key is that far along the query, so a longer query in the same direction would do."]
    return lines


def simple_lines(answer: Replacement) -> list[str]:
    best = listed([f"{share:.4g} on {answer.names[place]}" for place, share in top(answer.simple_weights)])
    error = float(np.abs(answer.simple_weights - answer.target).sum() / 2)
    size = float(np.linalg.norm(answer.simple_key))
    return [
        f"The simple way instead, {answer.simple_way}: a key of length {size:.4g} gives {best}; "
        f"{error:.6f} of the attention is in the wrong place.",
    ]
