"""One comparison as plain values, for the verdict file."""

from __future__ import annotations

import math
from typing import Any

from scipy.special import stdtrit

from fairtrial.judge.compare import Comparison
from fairtrial.judge.crossed import Crossed
from fairtrial.judge.interval import wilson
from fairtrial.judge.second import multi_bootstrap
from fairtrial.judge.verdict import Verdict


def comparison_row(comparison: Comparison) -> dict[str, Any]:
    """What holds of a comparison before anything is decided."""
    found, metric = comparison.found, comparison.metric
    row: dict[str, Any] = {
        "variant": comparison.variant, "against": comparison.against, "set": comparison.set, "basis": comparison.basis,
        "metric": metric.name, "unit": metric.unit, "higher_is_better": metric.higher_is_better,
        "seeds": comparison.seeds, "items": comparison.items, "groups": comparison.groups, "paired": comparison.paired,
        "difference": comparison.difference, "low": None, "high": None, "p": None, "df": None,
    }  # fmt: skip
    if found is not None:
        row["low"], row["high"] = found.interval()
        row |= {"p": found.p, "df": found.df}
    if metric.name == "perplexity":
        row |= {name: _exp(row[key]) for name, key in RATIOS.items()}
    return row


RATIOS = {"ratio": "difference", "ratio_low": "low", "ratio_high": "high"}


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.kind,
        "why": list(verdict.why),
        "smallest_detectable": verdict.smallest,
        "more_seeds": None if verdict.more is None else str(verdict.more),
        "more_seeds_range": None if verdict.more is None else [verdict.more.low, verdict.more.high],  # null: over 100
        "more_seeds_for_observed": None if verdict.more_for_observed is None else str(verdict.more_for_observed),
        "more_items": verdict.more_items,
    }


def detail_row(comparison: Comparison) -> dict[str, Any]:
    """Printed beside the verdict, never deciding it: other questions, effect sizes, where the variation comes from."""
    found = comparison.found
    if found is None or comparison.differences is None:
        return {}
    gains = found.by_seed if comparison.metric.higher_is_better else -found.by_seed
    better = float((gains > 0).sum() + (gains == 0).sum() / 2)
    low, high = wilson(better, len(gains))
    total = found.shares.seed + found.shares.item + found.shares.rest
    shares = {key: getattr(found.shares, key) / total if total else 0.0 for key in ("seed", "item", "rest")}
    second = multi_bootstrap(comparison.differences)
    spread = float(found.by_seed.std(ddof=1))
    return {
        "by_seed": found.by_seed.tolist(),
        "on_these_items": _seeds_only(found),
        "share_of_seeds_better": {"share": better / len(gains), "low": low, "high": high},
        "effect_size": found.difference / spread if spread else None,  # in standard deviations over seeds
        "relative_error_change": _relative_error(comparison),
        "variance_shares": shares,
        "second_opinion": {"method": "Multi-Bootstrap, conservative", "low": second[0], "high": second[1]},
    }


def _seeds_only(found: Crossed) -> dict[str, float]:
    """The paired t interval over seed means: narrower, for it asks about these test items only."""
    error = float(found.by_seed.std(ddof=1)) / math.sqrt(found.seeds)
    half = float(stdtrit(found.seeds - 1, 0.975)) * error
    return {"low": found.difference - half, "high": found.difference + half}


def _relative_error(comparison: Comparison) -> float | None:
    """Change of the error rate as a share of the other's: -0.1 is a tenth fewer mistakes."""
    if comparison.metric.name != "accuracy" or comparison.level is None or comparison.difference is None:
        return None
    return -comparison.difference / (100 - comparison.level) if comparison.level < 100 else None


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(max(-700.0, min(700.0, value)))
