"""What a check found: a measured value, its limit, a verdict, and what it means in one plain sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fairtrial.environment import code_fingerprint

PASS, FAIL, REPORT = "PASS", "FAIL", "REPORT"


@dataclass(frozen=True)
class Measured:
    """What a check measured, before it has a name. `passed` None: there is nothing to pass, only to know."""

    value: float
    limit: str
    passed: bool | None
    meaning: str


@dataclass(frozen=True)
class Finding:
    id: str
    name: str
    task: str  # classify (encoder) or lm (decoder)
    level: str  # red blocks the verdict on a variant; amber is printed beside it
    value: float
    limit: str
    verdict: str
    meaning: str

    @property
    def blocks(self) -> bool:
        return self.level == "red" and self.verdict == FAIL

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows no infinity: a value that is not a finite number is null."""
        return asdict(self) | {"value": self.value if math.isfinite(self.value) else None}


def as_passport(what: str, findings: Sequence[Finding]) -> dict[str, Any]:
    """The passport as it is kept."""
    return {
        "format": 1,
        "what": what,
        "code": code_fingerprint(),
        "passed": not any(finding.verdict == FAIL for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
    }


def at_most(value: float, limit: float, good: str, bad: str) -> Measured:
    """Passes up to the limit; a value that is not a number fails."""
    passed = value <= limit
    return Measured(value, f"{limit:.0e}" if limit else "0", passed, good if passed else bad)


def more_than(value: float, limit: float, good: str, bad: str) -> Measured:
    passed = value > limit
    return Measured(value, f"> {limit:.0e}", passed, good if passed else bad)
