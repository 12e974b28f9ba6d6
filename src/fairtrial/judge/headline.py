"""The one figure that a score is known by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADLINES = {"accuracy": 1, "window_perplexity": -1, "masked_perplexity": -1}  # figure -> whether more is better


def headline(score: Mapping[str, Any]) -> tuple[str, int]:
    """(the figure's name, 1 where more is better and -1 where less is)"""
    return next((name, sign) for name, sign in HEADLINES.items() if name in score)
