"""The rules by which a comparison becomes a verdict: the first that applies, always in this order."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairtrial.judge.compare import Comparison
from fairtrial.judge.power import MoreSeeds, items_needed, more_seeds, seeds_needed, smallest_detectable

FEWEST_SEEDS = 5


@dataclass(frozen=True)
class Verdict:
    """`better`, `worse`, `same`, `undetected`, `too_few_seeds` or `not_comparable`, and what goes with it."""

    kind: str
    why: tuple[str, ...] = ()  # of not_comparable
    smallest: float | None = None  # difference that this study finds in 80% of cases
    more: MoreSeeds | None = None  # seeds to add to see the least difference of interest
    more_for_observed: MoreSeeds | None = None  # seeds to add to see a difference as large as the observed one
    more_items: int | None = None  # test items without which no number of seeds shows it


def may_be_judged(comparison: Comparison) -> bool:
    """Whether the comparison enters the family of claims."""
    return not comparison.hurdles and comparison.seeds >= FEWEST_SEEDS


def decide(comparison: Comparison, p_adjusted: float | None, alpha: float, least: float) -> Verdict:
    """`p_adjusted` over the family; `alpha` of this look; `least` in the comparison's own unit."""
    if comparison.hurdles:
        return Verdict("not_comparable", why=comparison.hurdles)
    found = comparison.found
    smallest = None if found is None else smallest_detectable(found)
    if comparison.seeds < FEWEST_SEEDS or found is None or p_adjusted is None:
        return Verdict("too_few_seeds", smallest=smallest)
    if p_adjusted < alpha:
        return Verdict("better" if comparison.gain > 0 else "worse", smallest=smallest)
    if found.variance == 0 and comparison.metric.name == "accuracy":
        return _never_differed(found.items, alpha, least)
    low, high = found.interval(1 - 2 * alpha)  # two one-sided tests: at one look the 90% interval
    if -least < low and high < least:
        return Verdict("same", smallest=smallest)
    observed = more_seeds(found, abs(found.difference))
    if seeds_needed(found.shares, found.items, least) is not None:
        return Verdict("undetected", (), smallest, more_seeds(found, least), observed)
    return Verdict("undetected", (), smallest, None, observed, items_needed(found.shares, least))


def _never_differed(items: int, alpha: float, least: float) -> Verdict:
    """No variation at all looks like certainty, but of all such items up to `unseen` points may still differ."""
    unseen = 100 * (1 - alpha ** (1 / items))
    if unseen < least:
        return Verdict("same", smallest=unseen)
    return Verdict("undetected", smallest=unseen, more_items=math.ceil(math.log(alpha) / math.log1p(-least / 100)))
