"""Numbers, times and parts as a reader sees them, in every medium alike."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from fairtrial.description import MISSING, Table, row
from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe

KINDS = {"classify": "encoder and classifier", "lm": "decoder language model", "mlm": "masked language model"}
MOST_DECIMALS = 4
SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def is_number(value: object) -> TypeGuard[float]:
    """A finite number; JSON may also hold null, NaN and infinities, which must not reach a page."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def decimals_for(low: float | None, high: float | None, *, least: int = 1, most: int = MOST_DECIMALS) -> int:
    """The interval decides: half of it keeps one digit, or two where it begins with 1 or 2."""
    half = abs(high - low) / 2 if is_number(low) and is_number(high) else 0.0
    if not half:  # also of two numbers too close for a number between them
        return max(1, least)
    power = math.floor(math.log10(half))
    kept = power - 1 if round(half / 10.0**power, 6) < 3 else power
    return min(most, max(least, -kept))


def plain_number(value: float | None, decimals: int, *, sign: bool = False) -> str:
    if not is_number(value):
        return MISSING
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    if abs(value) >= 1e15 or (value and decimals >= MOST_DECIMALS and not float(text.replace(",", ""))):
        return f"{value:{'+' if sign else ''}.2g}"
    return text.replace("-", "").replace("+", "") if float(text.replace(",", "")) == 0 else text  # no -0.0, no +0.0


def with_interval(
    value: float | None, low: float | None, high: float | None, *, sign: bool = False, least: int = 1
) -> str:
    """`85.2 [84.0, 86.4]`."""
    number = plain_number(value, decimals_for(low, high, least=least), sign=sign)
    interval = interval_text(low, high, sign=sign, least=least)
    return number if interval == MISSING else f"{number} {interval}"


def interval_text(low: float | None, high: float | None, *, sign: bool = False, least: int = 1) -> str:
    if not (is_number(low) and is_number(high)):
        return MISSING
    decimals = decimals_for(low, high, least=least)
    return f"[{plain_number(low, decimals, sign=sign)}, {plain_number(high, decimals, sign=sign)}]"


def probability(value: float | None) -> str:
    """`0.032`, `<0.001`: a p-value, never zero."""
    if not is_number(value):
        return MISSING
    if value < 0.001:
        return "<0.001"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def few_digits(value: float | None, digits: int = 3, *, whole_below: float = 1e7) -> str:
    """`576,467`, `1.24G`, `0.0123`: a size without an interval."""
    if not is_number(value):
        return MISSING
    if float(value).is_integer() and abs(value) < whole_below:
        return f"{int(value):,}"
    size, letter = next(((size, letter) for size, letter in SIZES if abs(value) >= size), (1, ""))
    text = f"{value / size:.{digits}g}"
    return (f"{value / size:,.0f}" if abs(value) >= 1000 * size or "e+" in text else text) + letter  # never 1e+03


def finite(values: Sequence[object]) -> list[float]:
    return [float(value) for value in values if is_number(value)]


def format_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def read_time(text: str) -> float:
    """`90s`, `20m`, `1h30m` -> seconds."""
    number = r"(\d+(?:\.\d+)?)"
    parts = re.fullmatch(rf"(?:{number}h)?(?:{number}m(?:in)?)?(?:{number}s)?", text.replace(" ", ""))
    if not parts or not any(parts.groups()):
        raise BadInput(f"{text!r} is not a time", "write it as 90s, 20m or 1h30m")
    hours, minutes, seconds = (float(group or 0) for group in parts.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if total <= 0:
        raise BadInput(f"a time must be positive, got {text!r}")
    return total


def format_parts(recipe: Recipe) -> str:
    if recipe.external:
        return format_part(recipe.model.name, recipe.model.options)
    return " + ".join(format_part(part.name, part.options) for part in recipe.parts) or "none"


def format_part(name: str, options: Mapping[str, object]) -> str:
    return name + (f" ({', '.join(f'{key} {value}' for key, value in options.items())})" if options else "")


def strides_note(contexts: Mapping[str, float]) -> str:
    """That test sets were scored with less than full context; empty where none was. `contexts`: by test set, the least
    share of a length that a token sees."""
    by_share: dict[float, list[str]] = {}
    for name, share in contexts.items():
        by_share.setdefault(share, []).append(name)
    return "".join(
        f" Scored in strides ({', '.join(names)}): each token sees at least {share:.0%} of the length, so scores are a"
        " little worse than exact ones."
        for share, names in by_share.items()
    )


def copies_text(copies: Mapping[str, float]) -> str:
    """`552 of 750 test items (73.6%) also occur in the training set (551 exact, 1 near duplicates); 198 are clean`: the
    training set is all that weights are trained on or chosen by, the validation set included."""
    items, exact, near, clean = (copies[name] for name in ("items", "exact", "near", "clean"))
    if not exact + near:
        return f"none of {items:,.0f} test items occurs in the training set"
    return (
        f"{exact + near:,.0f} of {items:,.0f} test items ({copies['share']:.1%}) also occur in the training set"
        f" ({exact:,.0f} exact, {near:,.0f} near duplicates); {clean:,.0f} are clean"
    )


def bracket(interval: Sequence[float] | None, form: str = ".1f") -> str:
    return "" if interval is None else f" [{interval[0]:{form}}, {interval[1]:{form}}]"


def number_text(value: float | None, form: str = ".1f") -> str:
    return MISSING if value is None else f"{value:{form}}"


def percent(value: float | None) -> str:
    return number_text(value, ".1%")


def confusion_table(title: str, confusion: Sequence[Sequence[int]], labels: Sequence[str]) -> Table:
    """Rows are true classes, columns guessed ones."""
    rows = tuple(row(label, *counts) for label, counts in zip(labels, confusion, strict=True))
    return Table(f"{title} (rows: true class, columns: guessed class)", ("true class", *labels), rows)
