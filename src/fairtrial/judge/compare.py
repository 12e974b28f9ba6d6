"""Two variants on one test set: which seeds make a pair, what is measured, and how sure the difference is."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fairtrial.judge.crossed import Crossed, crossed_t
from fairtrial.judge.measure import METRICS, Metric, measure
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
    groups: int | None = None  # clusters that the items fall into, if they do
    difference: float | None = None
    found: Crossed | None = None
    differences: np.ndarray | None = None  # linearised [seed unit]
    level: float | None = None  # score of `against`, to say what a difference is worth
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
    found = Comparison(*names, METRICS[metric], len(one.seeds), int(keep.sum()), paired)
    if one.items != other.items:
        return replace(found, hurdles=(f"they were scored on different items ({one.items:,} and {other.items:,})",))
    if metric == "perplexity":
        metric, hurdles = _common_measure(one, other, paired)
        found = replace(found, metric=METRICS[metric], hurdles=hurdles)
    ours, theirs = measure(metric, one, keep, clusters), measure(metric, other, keep, clusters)
    seeds, units = ours.values.shape
    found = replace(found, groups=None if clusters is None else units)
    if units < 2 or theirs.values.shape[1] != units:
        what = "test items" if clusters is None else "groups of test items"
        hurdle = f"too few {what} to compare on ({units})"
        return replace(found, hurdles=(*found.hurdles, hurdle))
    values = ours.linearised() - theirs.linearised()  # each with its own weights: tokenizers may count other bytes
    return replace(
        found,
        difference=float(values.mean()),
        found=crossed_t(values) if seeds > 1 else None,
        differences=values,
        level=float((theirs.values.sum(1) / theirs.weights.sum(1)).mean()),
    )


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
