"""Studies of many variants in worlds whose truth is known: how often anything false is claimed, and how much is found.

A study is drawn by what decides it: the difference of each variant at each seed, the mean squares of items and of the
rest. All variants share a baseline, whose luck is part of every difference, unless a world says otherwise.

python tests/truth/families.py 5 12 1000     the table of 12 variants at 5 seeds, 1,000 studies for each world
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr

from fairtrial.statistics.comparison import Contrast, share_seed_variance
from fairtrial.statistics.crossed import Crossed
from fairtrial.statistics.multiplicity import holm
from fairtrial.statistics.outcomes import METRICS
from fairtrial.statistics.spread import Source

Draw = Callable[[np.random.Generator, int], np.ndarray]


def alike(chance: np.random.Generator, variants: int) -> np.ndarray:
    return np.ones(variants)


def differ(times: float, share: float = 0.5) -> Draw:
    """A share of the variants has a seed variance so many times as large."""
    return lambda chance, variants: np.where(chance.random(variants) < share, times, 1.0)


@dataclass(frozen=True)
class StudyWorld:
    """Mean squares relative to that of the rest: seeds 1 + `seed`, items 1 + `item`."""

    seed: float
    item: float
    items: int = 150
    variances: Draw = alike  # of the seeds, of each variant
    tails: int | None = None  # degrees of freedom of t-distributed seeds
    baseline: float = 1.0  # seed variance of the baseline, relative to a variant's; 0: none is shared
    sizes: str = "equal"  # of the units

    def draw(self, chance: np.random.Generator, seeds: int, variants: int, effect: float = 0.0) -> list[Crossed]:
        """Every other variant is better by so many standard errors."""
        own = 1 / (1 + self.baseline)
        variances = self.variances(chance, variants)[:, None]
        luck = np.sqrt(self.seed * own * variances) * self._luck(chance, (variants, seeds))
        luck -= np.sqrt(self.seed * self.baseline * own) * self._luck(chance, (1, seeds))
        shared = np.sqrt(self.baseline * own)
        item = np.sqrt(self.item / seeds) * self._mixed(chance, (variants, 1), shared)
        rest = self._mixed(chance, (variants, seeds), shared)
        count, df = self._units()
        by_seed = (luck + item + rest) / np.sqrt(count)
        whole = (self.seed * own * (variances[:, 0] + self.baseline) + self.item + 1) / (seeds * count)
        by_seed += np.where(np.arange(variants) % 2, effect * np.sqrt(whole), 0.0)[:, None]
        item_squares = (1 + self.item) * chance.chisquare(df, variants) / df
        rest_squares = chance.chisquare(df * (seeds - 1), variants) / (df * (seeds - 1))
        return [
            Crossed(
                difference=float(row.mean()),
                seed=Source(float(row.var(ddof=1)) / seeds, seeds - 1),
                item=Source(float(item) / (seeds * count), df),
                rest=float(rest) / (seeds * count),
                by_seed=row,
                seeds=seeds,
                items=self.items,
                effective=count,
            )
            for row, item, rest in zip(by_seed, item_squares, rest_squares, strict=True)
        ]

    def _units(self) -> tuple[float, float]:
        sizes = np.ones(self.items) if self.sizes == "equal" else 1 / np.arange(1, self.items + 1) ** 0.7
        effective = float(sizes.sum() ** 2 / (sizes**2).sum())
        return effective, effective - 1

    def _luck(self, chance: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        if self.tails is None:
            return chance.standard_normal(shape)
        return chance.standard_t(self.tails, shape) / np.sqrt(self.tails / (self.tails - 2))

    @staticmethod
    def _mixed(chance: np.random.Generator, shape: tuple[int, int], shared: float) -> np.ndarray:
        own = np.sqrt(1 - shared**2) * chance.standard_normal(shape)
        return own - shared * chance.standard_normal((1, shape[1]))


STUDY_WORLDS = {
    "seeds dominate, no items": StudyWorld(3, 0),
    "the same, nothing shared": StudyWorld(3, 0, baseline=0),
    "seeds and items": StudyWorld(5, 5),
    "items only": StudyWorld(0, 5),
    "A": StudyWorld(750 * 0.7**2 / 34**2, 5 * 7**2 / 34**2, 750),
    "B": StudyWorld(750 * 2.9**2 / 34**2, 5 * 7**2 / 34**2, 750),
    "C": StudyWorld(199 * 3.9**2 / 57**2, 5 * 12**2 / 57**2, 199),
    "heavy-tailed seeds": StudyWorld(3, 0, tails=4),
    "seed variances differ 2x": StudyWorld(3, 1, variances=differ(2)),
    "seed variances differ 10x": StudyWorld(3, 0, variances=differ(10), baseline=0),
    "one in ten differs 10x": StudyWorld(3, 0, variances=differ(10, 0.1), baseline=0),
    "seed variances differ 100x": StudyWorld(3, 0, variances=differ(100), baseline=0),
    "a noisy baseline": StudyWorld(3, 0, baseline=10),
    "few unequal groups": StudyWorld(1, 3, items=20, sizes="unequal"),
    "only noise": StudyWorld(0, 0),
}
STRONGLY_UNEQUAL = ("seed variances differ 10x", "one in ten differs 10x", "seed variances differ 100x")


def p_of_version_0_2(test: Crossed) -> float:
    """One comparison by itself, with Satterthwaite's degrees of freedom."""
    assert test.seed is not None
    assert test.item is not None
    seed, item, rest = test.seed, test.item, test.rest
    if seed.variance <= rest and item.variance <= rest:
        total, df = rest, seed.df * item.df
    elif seed.variance <= rest:
        total, df = item.variance, item.df
    elif item.variance <= rest:
        total, df = seed.variance, seed.df
    else:
        total = seed.variance + item.variance - rest
        squares = seed.variance**2 / seed.df + item.variance**2 / item.df + rest**2 / (seed.df * item.df)
        df = total**2 / squares
    return float(2 * stdtr(df, -abs(test.difference) / total**0.5))


def p_now(tests: list[Crossed]) -> list[float]:
    contrasts = [
        Contrast(str(n), "", "", "all", METRICS["accuracy"], 5, 1, paired=True, test=test)
        for n, test in enumerate(tests)
    ]
    return [each.test.p for each in share_seed_variance(contrasts) if each.test]


@dataclass(frozen=True)
class Rates:
    """Of version 0.2 and of now: studies with any false claim, and real differences of 4 standard errors found."""

    false_before: float
    false_now: float
    found_before: float
    found_now: float


def any_false(world: StudyWorld, seeds: int, variants: int, runs: int, seed: int = 1) -> float:
    """Share of studies without any difference that claim one."""
    chance = np.random.default_rng(seed)
    return float(np.mean([min(p_now(world.draw(chance, seeds, variants))) < 0.05 / variants for _ in range(runs)]))


def measure(world: StudyWorld, seeds: int, variants: int, runs: int, seed: int = 1) -> Rates:
    chance = np.random.default_rng(seed)
    false, found = np.zeros(2), np.zeros(2)
    half = max(1, runs // 4)
    for run in range(runs + half):
        tests = world.draw(chance, seeds, variants, effect=0.0 if run < runs else 4.0)
        ways = [p_now(tests), [p_of_version_0_2(test) for test in tests]]
        claims = np.array([holm(p) for p in ways]) < 0.05
        if run < runs:
            false += claims.any(1)
        else:
            found += claims[:, 1::2].mean(1) if variants > 1 else 0
    return Rates(false[1] / runs, false[0] / runs, found[1] / half, found[0] / half)


def main() -> None:
    seeds, variants, runs = (int(each) for each in sys.argv[1:4])
    for name, world in STUDY_WORLDS.items():
        rates = measure(replace(world), seeds, variants, runs)
        print(f"{name:28s} false {rates.false_before:.3f} -> {rates.false_now:.3f}", end="  ")
        print(f"found {rates.found_before:.2f} -> {rates.found_now:.2f}", flush=True)


if __name__ == "__main__":
    main()
