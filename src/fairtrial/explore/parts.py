"""The answers of the views of parts and puzzles: every part with its options, drawn; a query for keys as they are
dragged, heads made by hand."""

from __future__ import annotations

import inspect
from dataclasses import asdict

from fairtrial import catalogue
from fairtrial.errors import BadInput, FairtrialError
from fairtrial.explore.library import Library
from fairtrial.explore.requests import Plain, RequestParams
from fairtrial.inspection import plot_part
from fairtrial.model import parts as registered
from fairtrial.puzzles import Goals, average, head_names, mix, read_sequence, select

MOST_KEYS, MOST_WORDS = 40, 32


def parts(library: Library, params: RequestParams) -> Plain:
    """Those that are registered: no request loads a package."""
    rows = catalogue().rows()
    for row in rows:
        known, options = parameters_of(str(row["name"])), row["options"]
        assert isinstance(options, dict)
        row["options"] = [option_of(name, written, known.get(name)) for name, written in options.items()]
        row.pop("file")
    return {"parts": rows}


def parameters_of(part: str) -> dict[str, object]:
    """The options of a part with their types."""
    begun = registered.find(part).__init__
    try:
        return {name: each.annotation for name, each in inspect.signature(begun, eval_str=True).parameters.items()}
    except (NameError, TypeError, ValueError):  # of a part with odd annotations
        return {}


def option_of(name: str, written: str, kind: object) -> Plain:
    """What a control needs to know of an option, from its default as it is written, or its type where none is set."""
    if written in ("true", "false"):
        return {"name": name, "kind": "bool", "default": written == "true"}
    for word, read in (("int", int), ("float", float)):
        try:
            return {"name": name, "kind": word, "default": read(written)}
        except ValueError:
            continue
    if written[:1] in ("'", '"'):
        return {"name": name, "kind": "text", "default": written[1:-1]}
    types = {each.__name__ for each in getattr(kind, "__args__", ()) if each in (int, float, str)}
    return {"name": name, "kind": next((each for each in ("int", "float") if each in types), "text"), "default": None}


def draw(library: Library, params: RequestParams) -> Plain:
    """What a part does, measured on initial weights."""
    name = params.one_of("part", [each.name for each in catalogue().entries])
    heads, length = params.whole("heads", 1, 16, 4), params.whole("length", 2, 96, 24)
    options, causal = params.options("options"), params.flag("decoder", True)
    try:
        pictures = plot_part(name, heads=heads, length=length, causal=causal, **options)
    except (FairtrialError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{name} cannot be drawn with these options: {error}") from error
    return {"pictures": [asdict(picture) | {"range": picture.range} for picture in pictures]}


def solve(library: Library, params: RequestParams) -> Plain:
    """What attention should return, of these keys: the query, its weights and the certificate."""
    keys = params.rows("keys", None, MOST_KEYS)
    if not keys:
        raise BadInput("there are no keys")
    given = [row[0] for row in params.rows("shares", 1, MOST_KEYS)]
    shares = {place: share for place, share in enumerate(given) if share > 0}
    goals = Goals(precision=params.number("precision", 0.5, 0.9999, 0.999))
    ask = params.one_of("ask", ("select", "average", "mix"), "select")
    if not shares:
        raise BadInput("no key is wanted", "choose one")
    if ask == "mix":
        total = sum(shares.values())
        answer = mix(keys, {key: share / total for key, share in shares.items()}, goals)
    else:
        answer = average(keys, list(shares), goals) if ask == "average" else select(keys, next(iter(shares)), goals)
    return {"answer": answer.to_json(), "sentences": list(answer.describe().sentences)}


def head(library: Library, params: RequestParams) -> Plain:
    """A network whose head is written by hand, on a sequence that a person typed."""
    words = params.text("words", "a b c a b", 400).split()
    if not 2 <= len(words) <= MOST_WORDS:
        raise BadInput(f"type 2 to {MOST_WORDS} words, separated by blanks")
    name = params.one_of("head", head_names(), "induction")
    return read_sequence(name, words).to_json()
