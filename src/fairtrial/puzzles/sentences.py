"""Answers in sentences: what was asked, whether it is possible, why, and what least squares gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairtrial.description import BarChart, Description, Table, row
from fairtrial.puzzles.keys import Array
from fairtrial.puzzles.replacement import Replacement
from fairtrial.puzzles.solve import Answer, Reached

BAR, MOST_ROWS = 30, 24  # letters of a bar; weights that are listed


def describe_answer(answer: Answer) -> Description:
    squares = answer.least_squares
    query = f"The query {vector(answer.query)} has length {round(answer.norm, 12):.4g}, {length_note(answer)}."
    simple = (
        f"Least squares instead gives {greatest(squares.weights, answer.names)};"
        f" {squares.error:.6f} of the attention is in the wrong place."
    )
    return described(answer, [*why(answer), query, simple])


def describe_replacement(answer: Replacement) -> Description:
    key = f"The new key {vector(answer.key)} has length {np.linalg.norm(answer.key):.4g}, {key_length_note(answer)}."
    fixed = f"The query {vector(answer.query)} stays; only {answer.names[answer.place]} is replaced."
    return described(answer, [*why_replacement(answer), key, fixed])


def described(answer: Reached, reasons: Sequence[str]) -> Description:
    count, width = answer.keys.shape
    scale = f"scores divided by sqrt({width})" if answer.scaled else "scores not scaled"
    shown = list(zip(answer.names, answer.weights.tolist(), answer.target.tolist(), strict=True))
    rows = tuple(
        row(name, f"{weight:.4f}", bar_of(weight), f"{share:.4g}") for name, weight, share in shown[:MOST_ROWS]
    )
    note = f"Precision {answer.precision:.6f}; share of the attention in the wrong place {answer.error:.6f}."
    note += f" {count - MOST_ROWS} more keys are not shown." * (count > MOST_ROWS)
    table = Table("", ("key", "weight", "", "wanted"), rows, note)
    chart = BarChart(answer.ask[:80], "weight", tuple((name, weight) for name, weight, _ in shown[:MOST_ROWS]))
    about = f"{answer.ask[:80]}: {count} keys of width {width}, {scale}."
    return Description([*reasons, about], [table], charts=[chart])


def bar_of(share: float) -> str:
    return ("█" * round(BAR * share)).ljust(BAR, "·")


def describe_identity(answers: Sequence[Answer]) -> Description:
    """All rows of a query matrix, and those that cannot be."""
    failed = [answer for answer in answers if not answer.possible]
    sentences = ["Possible to any precision: every key is a corner of the keys' hull."]
    if failed:
        who = listed([answer.names[int(answer.target.argmax())] for answer in failed])
        sentences = [f"Impossible: {who} {'are' if len(failed) > 1 else 'is'} no corner of the keys' hull, or a copy."]
    for answer in failed[:4]:
        sentences += [f"{answer.ask}: {' '.join(why(answer)[1:])}"]
    rows = tuple(
        row(
            answer.names[at],
            f"{answer.norm:.4g}",
            f"{answer.weights[at]:.4f}",
            f"{answer.least_squares.weights[at]:.4f}",
            vector(answer.query),
        )
        for at, answer in enumerate(answers[:MOST_ROWS])
    )
    note = f"{len(answers) - MOST_ROWS} more rows are not shown." if len(answers) > MOST_ROWS else ""
    columns = ("attends to", "length", "weight", "by least squares", "query")
    weights = tuple((answer.names[at], float(answer.weights[at])) for at, answer in enumerate(answers[:MOST_ROWS]))
    charts = [BarChart("identity: weight of the wanted key", "weight", weights)]
    return Description(sentences, [Table("", columns, rows, note)], charts=charts)


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
    logs = f"{mixture(left, names, 'log w(', ')')} = {mixture(right, names, 'log w(', ')')}"
    way = listed([names[place] for place in answer.in_the_way])
    copies = (left > 0).sum() == 1 and (right > 0).sum() == 1
    unwanted = bool((target[answer.in_the_way] == 0).all())
    if copies and unwanted:
        reason = [f"{way} is a copy of {mixture(right, names)}: every query scores both equally."]
    elif unwanted:
        reason = [
            f"In the way: {way}. Since {equation} and scores are linear, no query raises one side without the other.",
            f"For every query, {logs}. The wanted weights would make the left side minus infinity.",
        ]
    else:
        sides = [float(side[target > 0] @ np.log(target[target > 0])) for side in (left, right)]
        reason = [
            f"{way} depend on each other: {equation}. So for every query, {logs}.",
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


def key_length_note(answer: Replacement) -> str:
    if answer.needed is None:
        return "which changes nothing for this query"
    if answer.length is not None:
        return f"as required; the shortest key that works has {answer.needed:.4g}"
    return "the shortest that works" if answer.possible else "the shortest that comes closest"


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
        return [short, f"In the way: {who}, further along the query than that length goes."]
    if answer.target[answer.place] == 1:
        return [short, "No other key is that far along the query, so a longer query in the same direction would work."]
    return [short]
