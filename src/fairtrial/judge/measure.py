"""Metrics: how the outcomes of items become numbers that can be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairtrial.judge.influence import macro_f1_values
from fairtrial.judge.outcomes import SetOutcomes
from fairtrial.judge.ratio import linearised, summed


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    higher_is_better: bool


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "points", True),
        Metric("macro-F1", "points", True),
        Metric("log loss", "nats per item", False),
        Metric("perplexity", "nats per token", False),
        Metric("bits per byte", "bits per byte", False),
    )
}


@dataclass(frozen=True)
class Sums:
    """What each unit (an item, or a cluster of items) adds to a metric, and its weight: both [seed unit]."""

    values: np.ndarray
    weights: np.ndarray

    def linearised(self) -> np.ndarray:
        return linearised(self.values, self.weights)


def measure(metric: str, outcomes: SetOutcomes, keep: np.ndarray, clusters: np.ndarray | None = None) -> Sums:
    """The kept items of a test set; `keep` [item]. Units without weight (documents of no token) are left out."""
    kept = {name: array[:, keep] for name, array in outcomes.arrays.items()}
    groups = None if clusters is None else clusters[keep]
    if metric == "macro-F1":
        classes = 1 + max(int(outcomes[what].max()) for what in ("label", "guess"))  # the same for all seeds and items
        values = 100 * macro_f1_values(kept["label"], kept["guess"], classes, groups)
        return Sums(values, np.ones_like(values))
    items, weights = _per_item(metric, kept)
    values, weights = summed(items, groups), summed(weights, groups)
    counted = weights.sum(0) > 0
    return Sums(values[:, counted], weights[:, counted])


def _per_item(metric: str, kept: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    if metric == "accuracy":
        right = 100.0 * (kept["guess"] == kept["label"])
        return right, np.ones_like(right)
    if metric == "log loss":
        return -kept["log_p"], np.ones_like(kept["log_p"])
    if metric == "perplexity":
        return kept["nats"], kept["tokens"].astype(float)
    if metric == "bits per byte":
        return kept["nats"] / math.log(2), kept["bytes"].astype(float)
    raise ValueError(f"no metric is called {metric!r}")
