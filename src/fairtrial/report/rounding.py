"""Numbers for readers: an interval decides how many digits mean something."""

from __future__ import annotations

import math
from collections.abc import Sequence

MISSING = "–"


def is_number(value: object) -> bool:
    """A finite number; JSON may also hold null, NaN and infinities, which have no place on a page."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def decimals_for(low: float | None, high: float | None, *, least: int = 1, most: int = 4) -> int:
    """So many decimals that half the interval keeps one digit, or two where it begins with 1 or 2."""
    if not (is_number(low) and is_number(high)) or low == high:
        return max(1, least)
    half = abs(high - low) / 2  # type: ignore[operator]
    power = math.floor(math.log10(half))
    kept = power - 1 if round(half / 10.0**power, 6) < 3 else power
    return min(most, max(least, -kept))


def plain_number(value: float | None, decimals: int, *, sign: bool = False) -> str:
    if value is None or not is_number(value):
        return MISSING
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    return text.replace("-", "").replace("+", "") if float(text.replace(",", "")) == 0 else text  # no -0.0, no +0.0


def with_interval(value: float | None, low: float | None, high: float | None, *, least: int = 1) -> str:
    """`85.2 [84.0, 86.4]`."""
    told = plain_number(value, decimals_for(low, high, least=least))
    inside = interval_text(low, high, least=least)
    return told if inside == MISSING else f"{told} {inside}"


def interval_text(low: float | None, high: float | None, *, sign: bool = False, least: int = 1) -> str:
    if not (is_number(low) and is_number(high)):
        return MISSING
    decimals = decimals_for(low, high, least=least)
    return f"[{plain_number(low, decimals, sign=sign)}, {plain_number(high, decimals, sign=sign)}]"


def probability(value: float | None) -> str:
    """`0.032`, `<0.001`: a p-value, never zero."""
    if value is None or not is_number(value):
        return MISSING
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def few_digits(value: float | None, digits: int = 3, *, whole_below: float = 1e7) -> str:
    """`576,467` whole, `1.2G` short, `0.0123`: a size that has no interval."""
    if value is None or not is_number(value):
        return MISSING
    if float(value).is_integer() and abs(value) < whole_below:
        return f"{int(value):,}"
    for power, letter in ((12, "T"), (9, "G"), (6, "M")):
        if abs(value) >= 10.0**power:
            return f"{significant(value / 10.0**power, digits)}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else significant(value, digits)


def significant(value: float, digits: int) -> str:
    """Never as 1e+03."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text


def share(part: float | None, whole: float | None) -> str:
    if not (is_number(part) and is_number(whole)) or not whole:
        return MISSING
    return f"{part / whole:.1%}"  # type: ignore[operator]


def finite(values: Sequence[object]) -> list[float]:
    return [float(value) for value in values if is_number(value)]  # type: ignore[arg-type]
