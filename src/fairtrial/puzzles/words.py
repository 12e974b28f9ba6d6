"""Answers in sentences: what was asked, whether it can be had, why, and what the obvious way gives."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import numpy as np

from fairtrial.puzzles.frame import Array
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.solve import Answer

BAR, WIDE = 30, 110
MOST_ROWS = 24  # of weights that are told one by one


def wrapped(lines: Sequence[str]) -> list[str]:
    """Sentences broken where a terminal ends."""
    return [part for line in lines for part in (wrap(line, WIDE, break_long_words=False) or [""])]


def answer_lines(answer: Answer) -> list[str]:
    return [
        heading(answer),
        "",
        *wrapped(why(answer)),
        "",
        f"query   {vector(answer.query)}",
        f"length  {round(answer.norm, 12):.4g}, {length_note(answer)}",
        "",
        *bars(answer.weights, answer.target, answer.names),
        result_line(answer),
        *output_lines(answer),
        "",
        *wrapped(least_squares_lines(answer)),
    ]


def heading(answer: Answer | Replacement) -> str:
    count, width = answer.keys.shape
    scale = f"scores divided by sqrt({width})" if answer.scaled else "scores as they are"
    asked = answer.ask if len(answer.ask) <= 80 else answer.ask[:76] + " ..."
    return f"{asked}: {count} keys of width {width}, {scale}"


def why(answer: Answer) -> list[str]:
    if answer.possible:
        return why_possible(answer)
    return why_impossible(answer)


def why_possible(answer: Answer) -> list[str]:
    wanted, certificate = np.flatnonzero(answer.target > 0), answer.certificate
    if len(wanted) == len(answer.target):
        if np.ptp(answer.target) < 1e-12:
            return ["Possible exactly. A query of zero scores every key alike, and alike is what is wanted."]
        return [
            "Possible exactly. The logarithms of the wanted weights, up to one number for all, are scores of a query."
        ]
    who = listed([answer.names[place] for place in wanted])
    lead, way = f"by {certificate.lead:.4g}", vector(certificate.direction)
    if len(wanted) == 1:
        told = f"{who} is a corner of the keys' hull: in the direction {way} it leads all others {lead}."
    else:
        told = (
            f"{who} are all the keys on one face of the keys' hull: in the direction {way} "
            f"they score alike and lead all others {lead}."
        )
    lines = [
        "Possible to any precision. " + told,
        "A longer query in this direction leaves the others ever further behind.",
    ]
    if len(wanted) > 1 and np.ptp(answer.target[wanted]) > 1e-12:
        lines.append(
            f"Their proportions come from a part of the query that tells them apart: {vector(certificate.base)}."
        )
    return lines


def why_impossible(answer: Answer) -> list[str]:
    balance = answer.certificate.balance
    assert balance is not None
    names, target = answer.names, answer.target
    carried = np.abs(balance) > 1e-10 * np.abs(balance).max()
    left, right = np.where(carried & (balance > 0), balance, 0), np.where(carried & (balance < 0), -balance, 0)
    left, right = left / (left.sum() or 1.0), right / (right.sum() or 1.0)
    equation = f"{mixture(left, names)} = {mixture(right, names)}"
    way = listed([names[place] for place in answer.in_the_way])
    twins = (left > 0).sum() == 1 and (right > 0).sum() == 1
    unwanted = bool((target[answer.in_the_way] == 0).all())
    if twins and unwanted:
        reason = [f"{way} is a copy of {mixture(right, names)}: every query scores both alike."]
    elif unwanted:
        reason = [
            f"In the way: {way}. For {equation}, and scores are linear: no query raises one side without the other.",
            f"Whatever it is, {mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}.",
            "The wanted weights would make the left side minus infinity and leave the right one finite.",
        ]
    else:
        sides = [float(side[target > 0] @ np.log(target[target > 0])) for side in (left, right)]
        reason = [
            f"{way} are bound to one another: {equation}.",
            f"So whatever the query, {mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}.",
            f"The wanted weights give {sides[0]:.4g} on the left and {sides[1]:.4g} on the right.",
        ]
    best = listed([f"{share:.4g} on {names[place]}" for place, share in top(answer.nearest)])
    return ["Impossible.", *reason, f"The best that any query comes near to (least divergence): {best}."]


def top(weights: Array, most: int = 6) -> list[tuple[int, float]]:
    order = np.argsort(-weights, kind="stable")[:most]
    return [(int(place), float(weights[place])) for place in order if weights[place] > 5e-5]


def length_note(answer: Answer) -> str:
    asked, least = answer.wanted_precision, answer.smallest_norm
    goal = "what is wanted" if answer.possible else "these best weights"
    if answer.budget is not None:
        verdict = "enough" if answer.budget >= least * (1 - 1e-6) else "too short"
        return f"{verdict}: {answer.budget:g} is allowed, a precision of {asked:g} towards {goal} needs {least:.4g}"
    if answer.exact:
        return f"exact; a precision of {asked:g} towards {goal} needs {least:.4g}"
    return f"the shortest that reaches a precision of {asked:g} towards {goal}"


def result_line(answer: Answer | Replacement) -> str:
    return f"precision {answer.precision:.6f}, share of the attention in the wrong place {answer.error:.6f}"


def least_squares_lines(answer: Answer) -> list[str]:
    beside = answer.least_squares
    shown = answer.names[: len(beside.scores)]
    wished = ", ".join(f"{score:.3g}" for score in beside.scores[:MOST_ROWS])
    best = listed([f"{share:.4g} on {shown[place]}" for place, share in top(beside.weights)])
    return [
        f"Least squares instead, wishing for the scores {wished}{', ...' if len(shown) > MOST_ROWS else ''}:",
        f"query {vector(beside.query)} of length {np.linalg.norm(beside.query):.4g} gives {best}; "
        f"{beside.error:.6f} of the attention is in the wrong place.",
    ]


def output_lines(answer: Answer | Replacement) -> list[str]:
    if answer.output is None or answer.wanted_output is None:
        return []
    miss = float(np.abs(answer.output - answer.wanted_output).max())
    return [f"output  {vector(answer.output)}, wanted {vector(answer.wanted_output)}: off by at most {miss:.3g}"]


def identity_lines(answers: Sequence[Answer]) -> list[str]:
    """All rows of a query matrix, and those that cannot be."""
    count, width = answers[0].keys.shape
    failed = [answer for answer in answers if not answer.possible]
    lines = [f"identity: a query matrix of {count} x {width}, row i attends to key i alone", ""]
    if not failed:
        lines.append("Possible to any precision: every key is a corner of the keys' hull.")
    else:
        who = listed([answer.names[int(answer.target.argmax())] for answer in failed])
        lines.append(f"Impossible: {who} {'are' if len(failed) > 1 else 'is'} no corner of the keys' hull, or a copy.")
    for answer in failed[:4]:
        lines += ["", f"{answer.ask}:", *wrapped(why(answer)[1:])]
    lines += ["", "row  length   own weight  least squares'  query"]
    for number, answer in enumerate(answers[:MOST_ROWS]):
        own, other = answer.weights[number], answer.least_squares.weights[number]
        lines.append(f"{number:>3}  {answer.norm:>7.4g}  {own:>10.4f}  {other:>14.4f}  {vector(answer.query)}")
    return lines + left_out(len(answers))


def bars(weights: Array, target: Array, names: Sequence[str]) -> list[str]:
    wide = max(len(name) for name in names[:MOST_ROWS])
    return [
        f"{name:<{wide}}  {weight:7.4f} {'█' * round(BAR * weight):<{BAR}}  wanted {share:.4g}".rstrip()
        for name, weight, share in zip(names[:MOST_ROWS], weights, target, strict=False)
    ] + left_out(len(names))


def left_out(count: int) -> list[str]:
    return [f"... and {count - MOST_ROWS} more"] if count > MOST_ROWS else []


def mixture(shares: Array, names: Sequence[str], before: str = "", after: str = "") -> str:
    """0.4 key 1 + 0.6 key 5"""
    terms = [(float(share), names[place]) for place, share in enumerate(shares) if share > 0]
    said = [
        f"{before}{name}{after}" if share > 1 - 1e-9 else f"{share:.3g} {before}{name}{after}" for share, name in terms
    ]
    return " + ".join(said[:8]) + (f" + {len(said) - 8} more" if len(said) > 8 else "")


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    words = [*words[:8], f"{len(words) - 8} more"] if len(words) > 9 else list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def vector(numbers: Array | None) -> str:
    shown = [] if numbers is None else [f"{number + 0.0:.4g}" for number in np.round(numbers, 10)]
    return "[" + ", ".join(shown[:12]) + (f", ... {len(shown)} numbers]" if len(shown) > 12 else "]")
