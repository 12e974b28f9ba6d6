"""Words back to text: which of them take a space before them. The undoing of `words.py`, as far as it can be undone."""

from __future__ import annotations

import re
from collections.abc import Iterable

LEANS_BACK = re.compile(r"[,.;:!?%)\]}»”’]+|\.\.+|''|'|'(?:[sSmMdD]|ll|LL|re|RE|ve|VE)|n't|N'T")
LEANS_AHEAD = re.compile(r"[(\[{«“‘#$]|``")
ENDINGS = re.compile(r"(?:s|t|m|d|ll|re|ve)", re.IGNORECASE)  # of don’t, it’s, we’ll with a curved apostrophe
HALVES = {("gim", "me"), ("gon", "na"), ("got", "ta"), ("lem", "me"), ("wan", "na"), ("d", "'ye"), ("'t", "is")}
HALVES |= {("'t", "was"), ("can", "not")}


def gap(before: str, word: str) -> str:
    """What stands between two words: a space, or nothing."""
    halves = (before.lower(), word.lower()) in HALVES or (before == "’" and ENDINGS.fullmatch(word))
    return "" if halves or LEANS_BACK.fullmatch(word) or LEANS_AHEAD.fullmatch(before) else " "


def spelled(word: str) -> str:
    """A word as it is written: the splitter tells opening and closing quotes apart."""
    return '"' if word in ("``", "''") else word


def join(words: Iterable[str]) -> str:
    text, before = "", None
    for word in words:
        text += ("" if before is None else gap(before, word)) + spelled(word)
        before = word
    return text
