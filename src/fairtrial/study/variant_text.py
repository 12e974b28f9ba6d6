"""Variants as one types them: `rope`, `alibi+rope`, `window:size=8`, `mine.toml`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput

HOW = "write a part (rope), its options (window:size=8), several parts (alibi+rope), or a recipe file (mine.toml)"


def read_variant(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a variant and its table, as it would stand in a study file."""
    if text.endswith(".toml"):
        return Path(text).stem, {"recipe": text}
    parts = [_part(word, text) for word in re.split(r"\+(?![\d.])", text)]  # 1e+3 is a number
    return "+".join(_name(part) for part in parts), {"parts": parts}


def _part(word: str, whole: str) -> Any:
    name, colon, options = word.strip().partition(":")
    if not re.fullmatch(r"[\w-]+", name) or (colon and not options):
        raise BadInput(f"{whole!r} is no variant", HOW)
    if not colon:
        return name
    found: dict[str, Any] = {"name": name}
    for option in options.split(","):
        key, equals, value = (piece.strip() for piece in option.partition("="))
        if not equals or not key or not value:
            raise BadInput(f"{whole!r}: {option!r} is no option", HOW)
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _name(part: Any) -> str:
    """Readable, and fit to be a folder's name on any system."""
    if isinstance(part, str):
        return part
    return f"{part['name']} " + " ".join(f"{key}={value}" for key, value in part.items() if key != "name")
