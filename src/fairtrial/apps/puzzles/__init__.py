"""Attention by construction: choose queries and keys so that attention does what you ask, or learn why none can."""

from fairtrial.apps.puzzles.replace_key import Replacement, replace_key
from fairtrial.apps.puzzles.solve import (
    Answer,
    average,
    average_target,
    identity,
    mix,
    mix_target,
    select,
    select_target,
)

__all__ = [
    "Answer", "Replacement", "average", "average_target", "identity", "mix", "mix_target", "replace_key", "select",
    "select_target",
]  # fmt: skip
