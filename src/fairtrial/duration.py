"""A length of training: `15 epochs` or `500 steps`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from fairtrial.errors import BadInput


@dataclass(frozen=True)
class Duration:
    count: float
    unit: str

    @classmethod
    def read(cls, text: str) -> Duration:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(epochs?|steps?)\s*", str(text))
        if not found:
            raise BadInput(f"{text!r} is not a length of training", "write it as '15 epochs' or '500 steps'")
        count, unit = float(found[1]), found[2].rstrip("s") + "s"
        if count > 1e15:
            raise BadInput(f"{text[:40]!r} is too long: nobody would live to see its end")
        if unit == "steps" and count != int(count):
            raise BadInput(f"{text!r}: there are no parts of a step")
        return cls(count, unit)

    def steps(self, steps_per_epoch: int) -> int:
        """As whole optimizer steps."""
        return int(self.count) if self.unit == "steps" else math.ceil(Decimal(str(self.count)) * steps_per_epoch)

    def __str__(self) -> str:
        return f"{Decimal(repr(float(self.count))).normalize():f} {self.unit}"  # all digits, never as 1e+06
