"""What a part says of itself: its line, options, verbs, claims, definition and paper, read from its own file."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import dataclass

from fairtrial.model.part import Part, parts

VERBS = ("embed", "prefix", "turn", "bias", "score", "allow", "merge", "carry", "pool")
CLAIMS = {"sees_order": "sees order", "relative": "by distance alone"}


@dataclass(frozen=True)
class Entry:
    name: str
    line: str
    options: dict[str, str]  # each with its default, as TOML would write it
    options_help: str
    verbs: tuple[str, ...]
    claims: tuple[str, ...]
    definition: str
    papers: tuple[str, ...]
    file: str


def catalogue() -> list[Entry]:
    return [describe(name) for name in parts.list()]


def describe(name: str) -> Entry:
    kind = parts.find(name)
    own = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    whole = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")
    definition = "\n\n".join(text for text in (own, whole) if text)
    return Entry(
        name=name,
        line=first_sentence(own or whole) or "says nothing of itself",
        options={option.name: written(option.default) for option in options_of(kind)},
        options_help=" ".join((kind.__init__.__doc__ or "").split()) if "__init__" in vars(kind) else "",
        verbs=tuple(verb for verb in VERBS if kind.owns(verb)),
        claims=tuple(words for claim, words in CLAIMS.items() if getattr(kind, claim)),
        definition=definition,
        papers=tuple(dict.fromkeys(re.findall(r"https?://[^\s,;)]+", own or whole))),
        file=inspect.getsourcefile(kind) or "",
    )


def first_sentence(text: str) -> str:
    """`Rope: queries and keys are turned (Su et al. 2021, https://...). More.` -> `queries and keys are turned`"""
    text = re.sub(r"\s*\([^()]*(https?://|et al\.)[^()]*\)", "", " ".join(text.split()))
    text = re.sub(r"^[A-Z][\w-]*: (?=\S)", "", text)
    text = re.split(r"(?<=\.)\s|: ", text, maxsplit=1)[0].removesuffix(".")
    return text[:1].lower() + text[1:] if re.match(r"[A-Z][a-z ]", text) else text


def options_of(kind: type[Part]) -> list[inspect.Parameter]:
    named = list(inspect.signature(kind.__init__).parameters.values())[2:]  # after self and shape
    return [
        option for option in named if option.kind is not option.VAR_KEYWORD and option.kind is not option.VAR_POSITIONAL
    ]


def written(default: object) -> str:
    if default is inspect.Parameter.empty:
        return "must be given"
    if default is None:
        return "not set"
    return str(default).lower() if isinstance(default, bool) else repr(default)
