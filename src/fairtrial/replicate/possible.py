"""Can a printed accuracy be? Right answers out of so many items give only certain numbers (Brown and Heathers 2017,
https://doi.org/10.1177/1948550616673876)."""

from __future__ import annotations

import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal


def nearest_right(printed: str, items: int) -> tuple[int, str] | None:
    """Right answers that print as this per cent, and how: rounded, or cut off. None: no number does."""
    value = Decimal(printed)
    step = Decimal(1).scaleb(int(value.as_tuple().exponent))
    about = float(value) * items / 100
    for right in (math.floor(about), math.ceil(about)):
        exact = Decimal(100) * right / items
        for way, how in ((ROUND_HALF_UP, "rounded"), (ROUND_DOWN, "cut off")):
            if exact.quantize(step, way) == value:
                return right, how
    return None


def told(printed: str, items: int) -> str:
    found = nearest_right(printed, items)
    if found is None:
        below = math.floor(float(printed) * items / 100)
        near = " and ".join(f"{100 * right / items:.3f}" for right in (below, below + 1))
        return f"no number of right answers out of {items} gives it; the nearest are {near}"
    right, how = found
    return f"{right} of {items}, {how}"
