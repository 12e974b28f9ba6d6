"""One variant's score on a test set: its mean over seeds, and an interval for a new seed and new items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairtrial.judge.crossed import crossed_t
from fairtrial.judge.interval import wilson
from fairtrial.judge.measure import Sums, measure
from fairtrial.judge.outcomes import CLEAN, SetOutcomes

FEWEST = 5  # items (or groups of them) that an interval can be told from


def bases(status: np.ndarray | None, items: int) -> dict[str, np.ndarray]:
    """Which items count, three ways: all, clean, contaminated; where nothing was found, all only."""
    every = {"all": np.ones(items, bool)}
    if status is None or not (status != CLEAN).any():
        return every
    return {**every, "clean": status == CLEAN, "contaminated": status != CLEAN}


def three_ways(
    metric: str, outcomes: SetOutcomes, status: np.ndarray | None, clusters: np.ndarray | None = None
) -> dict[str, Any]:
    """`{"all": score, "clean": score, "contaminated": score}`; a basis without items is absent."""
    found = {}
    for basis, keep in bases(status, outcomes.items).items():
        if keep.any():
            found[basis] = score(metric, outcomes, keep, clusters)
    return found


def score(metric: str, outcomes: SetOutcomes, keep: np.ndarray, clusters: np.ndarray | None = None) -> dict[str, Any]:
    """Mean, interval and the figure of each seed: accuracy in per cent, perplexity as such (the mean is of logs)."""
    sums = measure(metric, outcomes, keep, clusters)
    if not sums.values.size:  # documents without a single counted token
        return {"mean": None, "low": None, "high": None, "by_seed": [], "items": 0, "seeds": list(outcomes.seeds)}
    by_seed = sums.values.sum(1) / sums.weights.sum(1)
    mean, interval = float(by_seed.mean()), _interval(metric, sums)
    shown = {"mean": mean, "low": None, "high": None, "by_seed": by_seed.tolist(), "items": int(keep.sum())}
    if interval is not None:
        shown["low"], shown["high"] = interval
    if metric == "perplexity":
        shown |= {key: _exp(shown[key]) for key in ("mean", "low", "high")}
        shown["by_seed"] = [_exp(value) for value in by_seed]
        bits = measure("bits per byte", outcomes, keep, clusters)
        shown["bits_per_byte"] = float((bits.values.sum(1) / bits.weights.sum(1)).mean())
        shown["unknown_share"] = float(outcomes["unknown"][:, keep].sum() / outcomes["tokens"][:, keep].sum())
    return {**shown, "seeds": list(outcomes.seeds)}


def _interval(metric: str, sums: Sums) -> tuple[float, float] | None:
    """Over seeds and items; of a single seed over items only. None of a handful: it would reach from 0 to millions."""
    seeds, units = sums.values.shape
    if units < FEWEST:
        return None
    values = sums.linearised()
    if metric == "accuracy" and (values.mean() in (0.0, 100.0) or (seeds == 1 and units == sums.weights.sum())):
        low, high = wilson(float(values[0].sum()) / 100, units)  # no spread among equals: t would claim certainty
        return 100 * low, 100 * high
    if seeds == 1:
        half = float(stdtrit(units - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(units)
        low, high = float(values.mean()) - half, float(values.mean()) + half
    else:
        low, high = crossed_t(values).interval()
    return (max(0.0, low), min(100.0, high)) if metric in ("accuracy", "macro-F1") else (low, high)


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(min(700.0, value))
