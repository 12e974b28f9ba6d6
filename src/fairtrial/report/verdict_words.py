"""How a verdict's words and numbers are told, once for tables and page."""

from __future__ import annotations

import math
from typing import Any

from fairtrial.report.rounding import MISSING, is_number, plain_number, with_interval
from fairtrial.report.table import Cell
from fairtrial.report.words import KINDS

BASES = ("all", "clean", "contaminated")
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "same": "practically equal",
    "undetected": "no detectable difference",
    "too_few_seeds": "too few seeds",
    "not_comparable": "not comparable",
    "loses": "loses",
    "beats": "beats it",
    "above": "above, not clearly",
    "below": "below, not clearly",
    "equal": "the same",
}


def task_title(name: str) -> str:
    return KINDS[name].capitalize() if name in KINDS else name


def is_perplexity(task: dict[str, Any]) -> bool:
    return task.get("metric", "accuracy") == "perplexity"


def metric_text(task: dict[str, Any]) -> str:
    return "perplexity, lower is better" if is_perplexity(task) else f"{task.get('metric', 'accuracy')} in %"


def difference_unit(task: dict[str, Any]) -> str:
    return "% of perplexity" if is_perplexity(task) else task.get("unit", "points")


def stamp_of(task: dict[str, Any], variant: str) -> str:
    """What stands beside a variant's name wherever it appears."""
    passport = task.get("passports", {}).get(variant, {})
    if passport.get("level") != "red":
        return ""
    return "failed passport, accepted" if passport.get("accepted") else "failed passport"


def named(task: dict[str, Any], variant: str) -> Cell:
    return Cell(variant, stamp_of(task, variant))


def verdict_cell(comparison: dict[str, Any]) -> Cell:
    verdict = comparison.get("verdict", "")
    return Cell(VERDICTS.get(verdict, verdict or MISSING), kind=verdict if verdict in VERDICTS else "")


def estimate_text(estimate: dict[str, Any]) -> str:
    """A mean in the hundreds is a perplexity: its decimals mean nothing unless the interval is narrow."""
    mean = estimate.get("mean")
    least = 0 if mean is not None and is_number(mean) and mean > 100 else 1
    return with_interval(mean, estimate.get("low"), estimate.get("high"), least=least)


def shown_difference(
    task: dict[str, Any], comparison: dict[str, Any]
) -> tuple[float | None, float | None, float | None]:
    """Difference, low and high as a reader sees them: points, or per cent of the other's perplexity."""
    keys = ("difference", "low", "high")
    values = [comparison.get(key) for key in keys]
    if not is_perplexity(task) or comparison.get("metric", "perplexity") != "perplexity":
        return values[0], values[1], values[2]
    ratios = [comparison.get(key) for key in ("ratio", "ratio_low", "ratio_high")]
    shown = [percent_change(ratio, value) for ratio, value in zip(ratios, values, strict=True)]
    return shown[0], shown[1], shown[2]


def percent_change(ratio: float | None, log_ratio: float | None) -> float | None:
    if ratio is None or not is_number(ratio):
        if log_ratio is None or not is_number(log_ratio) or log_ratio > 700:
            return None
        ratio = math.exp(log_ratio)
    return 100 * (ratio - 1)


def shown_least(task: dict[str, Any], value: float | None) -> float | None:
    """A smallest difference, which has no sign, in the unit of `shown_difference`."""
    if value is None or not is_number(value):
        return None
    return percent_change(None, value) if is_perplexity(task) else value


def least_text(task: dict[str, Any], value: float | None) -> str:
    shown = shown_least(task, value)
    if shown is None:
        return MISSING
    return plain_number(shown, 1 if shown >= 0.095 else 2)
