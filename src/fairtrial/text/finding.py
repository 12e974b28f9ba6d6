"""What an audit of data found: a measured value, its limit, a verdict, one plain sentence, and examples to look up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from fairtrial.text.corpus import Document

PASS, AMBER, RED, REPORT = "PASS", "AMBER", "RED", "REPORT"
MANY = 0.01  # a share of the test items above which a score on all of them is not believed
EXAMPLES = 3


@dataclass(frozen=True)
class DataFinding:
    id: str
    name: str
    where: str  # the test set or split that was looked at
    value: float
    shown: str  # the value as people read it
    limit: str
    verdict: str
    meaning: str
    examples: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"examples": list(self.examples)}


def by_share(count: int, of: int, most: str = RED) -> str:
    """PASS at none, AMBER above, `most` above one per cent."""
    if not count:
        return PASS
    return most if count > MANY * of else AMBER


def count_of(count: int, of: int) -> str:
    return f"{count:,} of {of:,} ({count / of:.1%})" if of else "0"


def quote(document: Document) -> str:
    """`test_CLS.tsv:12 "We will ..."`"""
    return f'{file_of(document)} "{shorten(document.text)}"'


def file_of(document: Document) -> str:
    """`test_CLS.tsv:12`"""
    return PurePath(document.place).name or "(no file)"


def shorten(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3].rstrip() + "..."


def first_few(lines: Iterable[str]) -> tuple[str, ...]:
    found = []
    for line in lines:
        found.append(line)
        if len(found) == EXAMPLES:
            break
    return tuple(found)
