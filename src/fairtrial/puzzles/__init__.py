"""Attention by construction: choose queries and keys so that attention does what you ask, or learn why none can."""

from importlib import import_module
from typing import TYPE_CHECKING

from fairtrial.puzzles.course import course_questions
from fairtrial.puzzles.replace_key import Replacement, replace_key
from fairtrial.puzzles.sentences import lines_of, plain_of
from fairtrial.puzzles.solve import (
    Answer,
    average,
    average_target,
    identity,
    mix,
    mix_target,
    select,
    select_target,
)

if TYPE_CHECKING:
    from fairtrial.puzzles.heads import head_names, read_sequence

__all__ = [
    "Answer",
    "Replacement",
    "average",
    "average_target",
    "course_questions",
    "head_names",
    "identity",
    "lines_of",
    "mix",
    "mix_target",
    "plain_of",
    "read_sequence",
    "replace_key",
    "select",
    "select_target",
]


def __getattr__(name: str) -> object:
    """Lazily: a head made by hand needs torch."""
    if name not in ("head_names", "read_sequence"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.heads"), name)
