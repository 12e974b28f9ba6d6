"""Ways to judge the same results, side by side: false alarms, coverage, power and time in simulated worlds.

    python benchmarks/judges.py                   # 300 tables without and 300 with a difference: ten minutes
    python benchmarks/judges.py --runs 50         # a first look
    pip install evalstats==0.3.3 evalci==0.1.0    # the two packages; what is not installed is left out

Every judge gets the same table: right and wrong answers of two variants at five training seeds on the same items (in
one world, items in groups). The question is whether a difference would also hold for new seeds and new items. Each
judge is called as its documentation shows for such a table. Times are of the whole call. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.stats import binomtest, ttest_rel

import fairtrial as ft

Judgement = tuple[float, float, float]  # p, and the interval of the difference in points; nan: none
SEEDS, ALPHA = 5, 0.05
RESAMPLES = 2000


@dataclass(frozen=True)
class Table:
    ours: np.ndarray  # right or wrong [seed item]
    theirs: np.ndarray
    groups: np.ndarray | None  # [item]


@dataclass(frozen=True)
class World:
    """Chances of a right answer: accuracy + the item's difficulty + what a variant makes of an item (or of a group) +
    the luck of a seed. Standard deviations, in points; those of a difference are larger by the root of two."""

    items: int
    seed: float = 0.0
    item: float = 0.0
    effect: float = 0.0  # the difference that power is measured with, in points
    sure: bool = False  # answers follow from their chances (no noise of single answers)
    groups: int = 0
    group: float = 0.0

    def draw(self, chance: np.random.Generator, effect: float) -> Table:
        groups = None
        if self.groups:
            sizes = 1 / np.arange(1, self.groups + 1) ** 0.7
            groups = np.sort(chance.choice(self.groups, self.items, p=sizes / sizes.sum()))
        difficulty = chance.normal(0, 12, self.items)
        sides = []
        for gain in (effect, 0.0):
            liking = chance.normal(0, self.item, self.items)
            if groups is not None:
                liking = liking + chance.normal(0, self.group, self.groups)[groups]
            points = 70 + gain + difficulty + liking + chance.normal(0, self.seed, (SEEDS, 1))
            bar = 50 + chance.normal(0, 25, self.items) if self.sure else 100 * chance.random((SEEDS, self.items))
            sides.append(points > bar)
        return Table(sides[0], sides[1], groups)


WORLDS = {
    "seeds matter": World(150, seed=4, effect=10),
    "seeds and items": World(300, seed=3, item=20, effect=8),
    "only noise": World(300, effect=5),
    "items only": World(300, item=25, effect=6),
    "seeds agree, items differ": World(300, item=25, effect=9, sure=True),
    "few items": World(30, seed=2, item=10, effect=16),
    "many items": World(1500, seed=1.5, item=10, effect=4),
    "unequal groups": World(400, seed=1.5, item=5, group=8, groups=30, effect=9),
}


def fairtrial(table: Table) -> Judgement:
    """`ft.compare`. Undecided for lack of items or variation counts as no claim."""
    judged = ft.compare(table.ours, table.theirs, table.groups)
    claimed = judged.verdict.value in ("better", "worse")
    p = judged.p if judged.p is not None and (claimed or not judged.reasons) else 1.0
    ends = judged.difference
    return p, ends.low if ends.low is not None else np.nan, ends.high if ends.high is not None else np.nan


def frame_of(table: Table) -> dict[str, np.ndarray]:
    seed, item = np.indices(table.ours.shape)
    return {
        "model": np.repeat(["ours", "theirs"], table.ours.size),
        "item": np.tile(item.ravel(), 2),
        "seed": np.tile(seed.ravel(), 2),
        "score": np.concatenate([table.ours.ravel(), table.theirs.ravel()]).astype(float),
    }


def evalstats(table: Table) -> Judgement:
    """`es.compare(es.load_from(frame), factors="model")`: its defaults, seeds in the column `seed`, which it reads as
    repeated runs. It has no groups."""
    import evalstats as es
    import pandas

    frame = pandas.DataFrame(frame_of(table))
    (pair,) = es.compare(es.load_from(frame), factors="model").to_dict()["pairwise"]
    sign = 1 if pair["a"] == "ours" else -1
    low, high = sorted((100 * sign * pair["ci_low"], 100 * sign * pair["ci_high"]))
    return pair["p_value"], low, high


def evalci(table: Table) -> Judgement:
    """`evalci.multi_compare(frame)`: its defaults (permutation test over items, Holm), seeds as samples of an item. Its
    function for groups, `cluster_ci`, is of one model: here it gets the differences of items."""
    import evalci as ec
    import pandas

    if table.groups is not None:
        differences = table.ours.mean(0) - table.theirs.mean(0)
        found = ec.cluster_ci(differences, table.groups, random_state=0)
        return 0.0 if found.lower > 0 or found.upper < 0 else 1.0, 100 * found.lower, 100 * found.upper
    frame = pandas.DataFrame(frame_of(table)).rename(columns={"item": "item_id", "seed": "sample_idx"})
    row = ec.multi_compare(frame, random_state=0).iloc[0]
    sign = 1 if row["model_a"] == "ours" else -1
    low, high = sorted((100 * sign * row["ci_low"], 100 * sign * row["ci_high"]))
    return float(row["p_adj"]), low, high


def paired_t(table: Table) -> Judgement:
    """`scipy.stats.ttest_rel` on the accuracies of the seeds."""
    ours, theirs = 100 * table.ours.mean(1), 100 * table.theirs.mean(1)
    if np.ptp(ours - theirs) == 0:  # scipy says nan, or p = 0
        return 1.0, np.nan, np.nan
    found = ttest_rel(ours, theirs)
    interval = found.confidence_interval(1 - ALPHA)
    return float(found.pvalue), float(interval.low), float(interval.high)


def mcnemar(table: Table) -> Judgement:
    """The exact test on the items of the first seed, and Wald's interval of the change."""
    ours, theirs = table.ours[0].astype(float), table.theirs[0].astype(float)
    gains, losses = int((ours > theirs).sum()), int((ours < theirs).sum())
    p = binomtest(gains, gains + losses).pvalue if gains + losses else 1.0
    half = 196 * (ours - theirs).std() / len(ours) ** 0.5
    middle = 100 * (ours - theirs).mean()
    return float(p), middle - half, middle + half


def bootstrap(table: Table) -> Judgement:
    """Seeds and items (or groups) drawn anew together (Sellam and others 2022), percentiles."""
    differences = 100 * (table.ours.astype(float) - table.theirs)
    sizes = np.ones(differences.shape[1])
    if table.groups is not None:
        numbers = np.unique(table.groups, return_inverse=True)[1]
        differences = np.stack([np.bincount(numbers, row) for row in differences])
        sizes = np.bincount(numbers).astype(float)
    chance = np.random.default_rng(0)
    seeds, units = differences.shape
    by_seed = chance.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES) / seeds
    by_unit = chance.multinomial(units, np.full(units, 1 / units), RESAMPLES)
    means = np.einsum("ru,ru->r", by_seed @ differences, by_unit) / (by_unit @ sizes)
    low, high = np.quantile(means, [ALPHA / 2, 1 - ALPHA / 2])
    below = (means <= 0).mean()
    return 2 * min(below, 1 - below), float(low), float(high)


JUDGES: dict[str, Callable[[Table], Judgement]] = {
    "fairtrial": fairtrial,
    "evalstats 0.3.3": evalstats,
    "evalci 0.1.0": evalci,
    "paired t over seeds": paired_t,
    "McNemar, one run": mcnemar,
    "bootstrap over seeds and items": bootstrap,
}


def truth_of(world: World, effect: float, draws: int = 4000) -> float:
    """The expected difference in points: chances end at 0 and 1, so it is a little less than the effect."""
    if not effect:
        return 0.0
    chance = np.random.default_rng(7)
    wide = World(2000, world.seed, world.item, sure=world.sure, group=world.group, groups=world.groups)
    tables = [wide.draw(chance, effect) for _ in range(draws // 40)]
    return float(np.mean([100 * (each.ours.mean() - each.theirs.mean()) for each in tables]))


def measure(world: World, judges: dict[str, Callable[[Table], Judgement]], runs: int) -> dict[str, list[float]]:
    """Judge -> false alarms, intervals that hold the truth, power, milliseconds."""
    counts = {name: np.zeros(4) for name in judges}
    for column, effect in ((0, 0.0), (2, world.effect)):
        chance, truth = np.random.default_rng(11 + column), truth_of(world, effect)
        for _ in range(runs):
            table = world.draw(chance, effect)
            for name, judge in judges.items():
                start = time.process_time()
                p, low, high = judge(table)
                counts[name][3] += (time.process_time() - start) * 1000 / 2
                counts[name][column] += p < ALPHA
                counts[name][1] += (np.isnan(low) or low <= truth <= high) / 2
    return {name: (count / runs).tolist() for name, count in counts.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    chosen = parser.parse_args()
    judges = {name: judge for name, judge in JUDGES.items() if name[0] != "e" or find_spec(name.split(" ")[0])}
    limit = ALPHA + 3 * (ALPHA * (1 - ALPHA) / chosen.runs) ** 0.5
    print("| world | judge | false alarms | intervals that hold the truth | power | ms |")
    print("| --- | --- | --- | --- | --- | --- |")
    for title in chosen.worlds:
        rates = measure(WORLDS[title], judges, chosen.runs)
        for at, (name, (alarms, coverage, power, ms)) in enumerate(rates.items()):
            bold = "**" if alarms > limit else ""
            cells = [title if not at else "", name, f"{bold}{alarms:.3f}{bold}", f"{coverage:.3f}", f"{power:.2f}"]
            print(f"| {' | '.join([*cells, f'{ms:.1f}'])} |", flush=True)


if __name__ == "__main__":
    main()
