"""Answers in sentences: what was asked, whether it is possible, why, and what the obvious method gives; and as plain
values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np

from fairtrial.puzzles.keys import Array
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.solve import Answer, misplaced

BAR, WIDE = 30, 110
MOST_ROWS = 24  # of weights that are listed


def wrapped(lines: Sequence[str]) -> list[str]:
    """Sentences broken where a terminal ends."""
    return [part for line in lines for part in (wrap(line, WIDE, break_long_words=False) or [""])]


Found = Answer | Replacement | list[Answer]  # a query, a new key, or the rows of a query matrix


def lines_of(found: Found) -> list[str]:
    if isinstance(found, list):
        return identity_lines(found)
    return answer_lines(found) if isinstance(found, Answer) else replacement_lines(found)


def plain_of(found: Found) -> Any:
    """Values for JSON."""
    if isinstance(found, list):
        return [plain_of(answer) for answer in found]
    plain: dict[str, Any] = {"ask": found.ask, "possible": found.possible, "scaled": found.scaled, "keys": found.keys}
    plain |= {"names": found.names, "query": found.query, "wanted": found.target, "weights": found.weights}
    plain |= {"precision": found.precision, "wanted_precision": found.wanted_precision, "misplaced": found.error}
    plain |= {"in_the_way": found.in_the_way}
    if isinstance(found, Replacement):
        plain |= {"place": found.place, "key": found.key, "key_length": float(np.linalg.norm(found.key))}
        plain |= {"length_asked": found.length, "smallest_length": found.needed, "best_weights": found.best}
        simple_way = {"what": found.simple_way, "key": found.simple_key, "weights": found.simple_weights}
        return _with_lists({**plain, "simple_way": simple_way})
    shown, squares = found.certificate, found.least_squares
    plain |= {"exact": found.exact, "query_length": found.norm, "length_allowed": found.budget}
    plain |= {"smallest_length": found.smallest_norm, "best_weights": found.nearest}
    # every key wanted: there is no other key to lead
    lead = shown.lead if shown.possible and np.isfinite(shown.lead) else None
    certificate = {"direction": shown.direction, "lead": lead, "base": shown.base, "balance": shown.balance}
    simple = {"scores": squares.scores, "query": squares.query, "weights": squares.weights, "misplaced": squares.error}
    return _with_lists({**plain, "certificate": certificate, "least_squares": simple})


def _with_lists(value: object) -> object:
    if isinstance(value, dict):
        return {name: _with_lists(each) for name, each in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def answer_lines(answer: Answer) -> list[str]:
    found = [f"query   {vector(answer.query)}", f"length  {round(answer.norm, 12):.4g}, {length_note(answer)}"]
    return _lines(answer, "", why(answer), found, least_squares_lines(answer))


def replacement_lines(answer: Replacement) -> list[str]:
    place = answer.names[answer.place]
    fixed = f"query {vector(answer.query)}, unchanged; only {place} is replaced"
    length = f"length  {np.linalg.norm(answer.key):.4g}, {replacement_length_note(answer)}"
    simple = f"The simple method instead, {answer.simple_way}: a key of length {np.linalg.norm(answer.simple_key):.4g}"
    simple += f" gives {greatest(answer.simple_weights, answer.names)}; "
    simple += f"{misplaced(answer.simple_weights, answer.target):.6f} of the attention is in the wrong place."
    return _lines(answer, fixed, why_replacement(answer), [f"new {place}  {vector(answer.key)}", length], [simple])


def _lines(
    answer: Answer | Replacement, given: str, reasons: Sequence[str], found: Sequence[str], simple: Sequence[str]
) -> list[str]:
    """`given`: what stays as it is; `found`: the answer itself; `simple`: what the obvious method gives."""
    count, width = answer.keys.shape
    scale = f"scores divided by sqrt({width})" if answer.scaled else "scores not scaled"
    asked = answer.ask if len(answer.ask) <= 80 else answer.ask[:76] + " ..."
    lines = [f"{asked}: {count} keys of width {width}, {scale}", *([given] if given else []), ""]
    lines += [*wrapped(reasons), "", *found, "", *bars(answer.weights, answer.target, answer.names)]
    lines += [f"precision {answer.precision:.6f}, share of the attention in the wrong place {answer.error:.6f}"]
    return [*lines, "", *wrapped(simple)]


def why(answer: Answer) -> list[str]:
    if not answer.possible:
        return why_impossible(answer)
    wanted, certificate = np.flatnonzero(answer.target > 0), answer.certificate
    if len(wanted) == len(answer.target):
        if np.ptp(answer.target) < 1e-12:
            return ["Possible exactly. A query of zero scores every key equally, as wanted."]
        return ["Possible exactly. The logarithms of the wanted weights, up to a constant, are scores of a query."]
    who = listed([answer.names[place] for place in wanted])
    lead, way = f"by {certificate.lead:.4g}", vector(certificate.direction)
    reason = f"{who} is a corner of the keys' hull: in the direction {way} it leads all others {lead}."
    if len(wanted) > 1:
        reason = f"{who} are all the keys on one face of the keys' hull: in the direction {way} "
        reason += f"they score equally and lead all others {lead}."
    longer = "A longer query in this direction leaves the others further behind."
    lines = [f"Possible to any precision. {reason}", longer]
    if len(wanted) > 1 and np.ptp(answer.target[wanted]) > 1e-12:
        lines.append(f"Their proportions come from this component of the query: {vector(certificate.base)}.")
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
    copies = (left > 0).sum() == 1 and (right > 0).sum() == 1
    unwanted = bool((target[answer.in_the_way] == 0).all())
    if copies and unwanted:
        reason = [f"{way} is a copy of {mixture(right, names)}: every query scores both equally."]
    elif unwanted:
        reason = [
            f"In the way: {way}. Since {equation} and scores are linear, no query raises one side without the other.",
            f"For every query, {mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}.",
            "The wanted weights would make the left side minus infinity and the right side finite.",
        ]
    else:
        sides = [float(side[target > 0] @ np.log(target[target > 0])) for side in (left, right)]
        reason = [
            f"{way} depend on each other: {equation}.",
            f"So for every query, {mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}.",
            f"The wanted weights give {sides[0]:.4g} on the left and {sides[1]:.4g} on the right.",
        ]
    best = greatest(answer.nearest, names)
    return ["Impossible.", *reason, f"The best that queries can approach (least divergence): {best}."]


def greatest(weights: Array, names: Sequence[str], most: int = 6) -> str:
    """0.6 on key 1 and 0.4 on key 5"""
    order = np.argsort(-weights, kind="stable")[:most]
    return listed([f"{weights[place]:.4g} on {names[place]}" for place in order if weights[place] > 5e-5])


def length_note(answer: Answer) -> str:
    asked, least = answer.wanted_precision, answer.smallest_norm
    goal = "what is wanted" if answer.possible else "these best weights"
    if answer.budget is not None:
        verdict = "enough" if answer.budget >= least * (1 - 1e-6) else "too short"
        return f"{verdict}: {answer.budget:g} is allowed, a precision of {asked:g} towards {goal} needs {least:.4g}"
    if answer.exact:
        return f"exact; a precision of {asked:g} towards {goal} needs {least:.4g}"
    return f"the shortest that reaches a precision of {asked:g} towards {goal}"


def least_squares_lines(answer: Answer) -> list[str]:
    found, names = answer.least_squares, answer.names
    length, best = np.linalg.norm(found.query), greatest(found.weights, names)
    desired = ", ".join(f"{score:.3g}" for score in found.scores[:MOST_ROWS])
    return [
        f"Least squares instead, for the scores {desired}{', ...' if len(names) > MOST_ROWS else ''}:",
        f"query {vector(found.query)} of length {length:.4g} gives {best}; "
        f"{found.error:.6f} of the attention is in the wrong place.",
    ]


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
    parts = [(share, f"{before}{name}{after}") for share, name in zip(shares, names, strict=True) if share > 0]
    terms = [part if share > 1 - 1e-9 else f"{share:.3g} {part}" for share, part in parts]
    return " + ".join(terms[:8]) + (f" + {len(terms) - 8} more" if len(terms) > 8 else "")


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    words = [*words[:8], f"{len(words) - 8} more"] if len(words) > 9 else list(words)
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def vector(numbers: Array | None) -> str:
    shown = [] if numbers is None else [f"{number + 0.0:.4g}" for number in np.round(numbers, 10)]
    return "[" + ", ".join(shown[:12]) + (f", ... {len(shown)} numbers]" if len(shown) > 12 else "]")


def replacement_length_note(answer: Replacement) -> str:
    if answer.needed is None:
        return "which changes nothing for this query"
    if answer.length is None and not answer.possible:
        return "the shortest that comes closest"
    if answer.length is None:
        return "the shortest that works; any component orthogonal to the query may be added"
    return f"as required; the shortest key that works has {answer.needed:.4g}"


def why_replacement(answer: Replacement) -> list[str]:
    place = answer.names[answer.place]
    if not answer.query.any():
        if answer.possible:
            return ["Possible with any key: a query of zero scores every key equally, as wanted."]
        return ["Impossible: a query of zero scores every key equally, so all weights are equal."]
    moves = f"The new key moves the score of {place} and no other"
    if answer.possible:
        if answer.target[answer.place] == 1:
            return [f"Possible. {moves}: far enough along the query, it exceeds them all."]
        return [f"Possible. {moves}: the others keep their proportions, which are right already."]
    if answer.wrong_proportions:
        wrong = [(answer.names[each], answer.best[each], answer.target[each]) for each in answer.wrong_proportions]
        off = listed([f"{name} ({best:.4g} at best, wanted {wanted:.4g})" for name, best, wanted in wrong])
        kept = f"Impossible with this query. {moves}, so the others keep their proportions to one another, "
        return [f"{kept}and these are wrong. In the way: {off}. It takes another query."]
    short = f"Impossible at length {answer.length:g}: with this query the key must reach {answer.needed:.4g} along it."
    if answer.further:
        who = listed([f"{answer.names[each]} ({answer.reach[each]:.4g})" for each in answer.further])
        way = f"In the way: {who}, further along the query than that length goes. A longer query helps them more."
        return [short, way]
    if answer.target[answer.place] == 1:
        return [short, "No other key is that far along the query, so a longer query in the same direction would work."]
    return [short]
