"""How often the judge is right and wrong in worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.stats import binom, binomtest, ttest_1samp
from worlds import GroupWorld, TextWorld, World

from fairtrial.statistics.crossed import Crossed, crossed_t, linearised
from fairtrial.statistics.multiplicity import ALPHA, LOOKS
from fairtrial.statistics.power import cautious, detectable_range, reach_of, seeds_needed

SEEDS = (5, 10, 20)


def widened(low: float, high: float, runs: int) -> tuple[float, float]:
    """Limits for a rate measured in `runs` runs, so that a true rate between `low` and `high` fails one time in a
    thousand or less often."""
    return float(binom.ppf(0.0005, runs, low)) / runs, float(binom.ppf(0.9995, runs, high)) / runs


def claims(world: World, runs: int, points: float = 0.0, seed: int = 1) -> dict[int, tuple[float, float]]:
    """Number of seeds -> share of runs with p < .05, share of 95% intervals that hold the truth."""
    chance = np.random.default_rng(seed)
    found: dict[int, list[Crossed]] = {count: [] for count in SEEDS}
    for differences in world.differences(chance, max(SEEDS), runs, points):
        for count in SEEDS:
            found[count].append(crossed_t(differences[:count]))
    return {count: (claimed(each), covered(each, points)) for count, each in found.items()}


def text_claims(
    world: TextWorld | GroupWorld, runs: int, truth: float = 0.0, seed: int = 2
) -> dict[int, tuple[float, float]]:
    """The same for documents or groups of unequal size, at 5 and 10 seeds."""
    chance = np.random.default_rng(seed)
    found: dict[int, list[Crossed]] = {5: [], 10: []}
    for sums, tokens in world.differences(chance, 10, runs, truth):
        for count, each in found.items():
            each.append(crossed_t(linearised(sums[:count], tokens[:count]), tokens[0]))
    return {count: (claimed(each), covered(each, truth)) for count, each in found.items()}


def claimed(found: Iterable[Crossed]) -> float:
    return float(np.mean([each.p < 0.05 for each in found]))


def covered(found: Iterable[Crossed], truth: float) -> float:
    inside = [each.interval() for each in found]
    return float(np.mean([low <= truth <= high for low, high in inside]))


def watched(world: World, runs: int, seed: int = 3) -> tuple[float, float]:
    """False claims of someone who looks after 5, 10 and 20 seeds: at 5% each time, and with the alphas of the looks."""
    chance = np.random.default_rng(seed)
    naive = honest = 0
    for differences in world.differences(chance, 20, runs):
        p = [crossed_t(differences[: look.seeds]).p for look in LOOKS]
        naive += min(p) < 0.05
        honest += any(each < look.alpha for each, look in zip(p, LOOKS, strict=True))
    return naive / runs, honest / runs


def power_of_the_need(world: World, points: float, runs: int, seed: int = 5) -> tuple[int, float]:
    """The seeds that are said to be needed for a difference, and how often they find it."""
    chance = np.random.default_rng(seed)
    # variances as the world has them, well measured
    many = [crossed_t(each).components for each in world.differences(chance, 40, 150)]
    shares = type(many[0])(*(float(np.mean([getattr(each, key) for each in many])) for key in ("seed", "item", "rest")))
    needed = seeds_needed(shares, world.items, points, ALPHA)
    assert needed is not None
    found = [crossed_t(each) for each in world.differences(chance, needed, runs, points)]
    return needed, claimed(found)


def power_as_stated(
    world: World, seeds: int, alpha: float, family: int, runs: int, seed: int = 7
) -> tuple[float, float]:
    """The upper end of the difference that studies of this size state to find in 4 of 5 cases, on average, and how
    often a new study finds what one of them stated, where it is one of `family` comparisons and nothing else differs
    (Holm's first step). The difference is added to the answers, so that variances stay what they are: near 100% of
    accuracy they would not."""
    chance = np.random.default_rng(seed)
    level = alpha / family
    stated = [detectable_range(crossed_t(each), level)[1] for each in world.differences(chance, seeds, runs)]
    studies = zip(world.differences(chance, seeds, runs), stated, strict=True)
    found = [crossed_t(each + size).p < level for each, size in studies]
    return float(np.mean(stated)), float(np.mean(found))


def power_after_pilot(world: World, seeds: int, runs: int, seed: int = 8) -> float:
    """How often a new study finds what a pilot of 5 seeds said that so many seeds detect in 4 of 5 cases."""
    chance = np.random.default_rng(seed)
    pilots = [crossed_t(each) for each in world.differences(chance, 5, runs)]
    stated = [reach_of(cautious(each.components, 5, each.effective), seeds, world.items, ALPHA) for each in pilots]
    studies = zip(world.differences(chance, seeds, runs), stated, strict=True)
    return float(np.mean([crossed_t(each + size).p < ALPHA for each, size in studies]))


def careless(world: World, runs: int, seeds: int = 5, seed: int = 6) -> dict[str, float]:
    """False claims at 5% of what people do instead; those of the crossed t-test at 5% and at the first look's alpha."""
    chance = np.random.default_rng(seed)
    counts = dict.fromkeys(("one seed", "pooled", "seeds only", "crossed", "first look"), 0)
    for differences in world.differences(chance, seeds, runs):
        gains, losses = int((differences[0] > 0).sum()), int((differences[0] < 0).sum())
        counts["one seed"] += binomtest(gains, gains + losses).pvalue < 0.05 if gains + losses else 0  # McNemar, exact
        counts["pooled"] += ttest_1samp(differences.ravel(), 0).pvalue < 0.05
        counts["seeds only"] += ttest_1samp(differences.mean(1), 0).pvalue < 0.05
        p = crossed_t(differences).p
        counts["crossed"] += p < 0.05
        counts["first look"] += p < LOOKS[0].alpha
    return {name: count / runs for name, count in counts.items()}
