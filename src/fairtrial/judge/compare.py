"""Two variants on one test set: which seeds make a pair, what is measured, and how sure the difference is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairtrial.judge.crossed import Crossed, crossed_t
from fairtrial.judge.measure import METRICS, Metric, Sums, measure
from fairtrial.judge.outcomes import SetOutcomes


@dataclass(frozen=True)
class Comparison:
    """`variant` minus `against`. Where statistics cannot be had (one seed, one item) `found` is None and only the
    difference stands."""

    variant: str
    against: str
    set: str
    basis: str
    metric: Metric
    seeds: int
    items: int
    paired: bool
    difference: float | None
    found: Crossed | None
    differences: np.ndarray | None  # linearised [seed unit]
    level: float | None  # score of `against`, to say what a difference is worth
    hurdles: tuple[str, ...] = ()  # why the two cannot be compared at all

    @property
    def gain(self) -> float:
        """The difference, counted so that more is better."""
        assert self.difference is not None
        return self.difference if self.metric.higher_is_better else -self.difference


def pair(one: SetOutcomes, other: SetOutcomes) -> tuple[SetOutcomes, SetOutcomes, bool]:
    """Rows that belong together: the seeds that both have; if they share none, the first with the first."""
    shared = tuple(seed for seed in one.seeds if seed in other.seeds)
    if shared:
        return one.rows(shared), other.rows(shared), True
    count = min(len(one.seeds), len(other.seeds))
    return one.rows(one.seeds[:count]), other.rows(other.seeds[:count]), False


def compare(
    names: tuple[str, str, str, str],
    metric: str,
    outcomes: tuple[SetOutcomes, SetOutcomes],
    keep: np.ndarray,
    clusters: np.ndarray | None = None,
) -> Comparison:
    """`names`: variant, against, test set, basis. `outcomes`: of the variant, of the other."""
    one, other, paired = pair(*outcomes)
    hurdles: tuple[str, ...] = ()
    if one.items != other.items:
        hurdle = f"they were scored on different items ({one.items:,} and {other.items:,})"
        return Comparison(*names, METRICS[metric], len(one.seeds), 0, paired, None, None, None, None, (hurdle,))
    if metric == "perplexity":
        metric, hurdles = _common_measure(one, other, paired)
    chosen = METRICS[metric]
    ours, theirs = measure(metric, one, keep, clusters), measure(metric, other, keep, clusters)
    seeds, units = ours.values.shape
    if units < 2 or theirs.values.shape[1] != units:
        hurdle = f"only {units} test {'item is' if units == 1 else 'items are'} left to compare on"
        return Comparison(*names, chosen, seeds, units, paired, None, None, None, None, (*hurdles, hurdle))
    level = _log_or_plain(theirs)
    values = ours.minus(theirs).linearised()
    found = crossed_t(values) if seeds > 1 else None
    return Comparison(*names, chosen, seeds, units, paired, float(values.mean()), found, values, level, hurdles)


def _common_measure(one: SetOutcomes, other: SetOutcomes, paired: bool) -> tuple[str, tuple[str, ...]]:
    """Perplexity compares only what was cut into the same tokens; else bits per byte, if no word is hidden."""
    same_tokens = np.array_equal(one["tokens"], other["tokens"])
    # with draws of their own, two variants carve validation differently, and so their vocabularies differ by chance
    same_unknown = not paired or np.array_equal(one["unknown"], other["unknown"])
    if same_tokens and same_unknown:
        return "perplexity", ()
    if not (one["unknown"].any() or other["unknown"].any()):
        return "bits per byte", ()
    shares = [f"{float(each['unknown'].sum() / each['tokens'].sum()):.1%}" for each in (one, other)]
    hurdle = f"their vocabularies differ and hide different words (unknown: {shares[0]} and {shares[1]})"
    return "bits per byte", (hurdle,)


def least_for(comparison: Comparison, least: float, outcomes: SetOutcomes) -> float:
    """The least difference of interest in the comparison's unit: nats per token are worth fewer bits per byte."""
    if comparison.metric.name != "bits per byte":
        return least
    return least * float(outcomes["tokens"].sum() / outcomes["bytes"].sum()) / math.log(2)


def _log_or_plain(sums: Sums) -> float:
    return float((sums.values.sum(1) / sums.weights.sum(1)).mean())
