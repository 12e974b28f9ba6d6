"""False claims of people who look more than once, by rules that allow it, where variants do not differ."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from fairtrial.results.values import Metric, VerdictKind
from fairtrial.statistics.crossed import crossed_t
from fairtrial.statistics.multiplicity import ALPHA, LOOKS, holm
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_study

ITEMS = 40
SCORE = Metric("score", "score", higher_is_better=True)
Chance = np.random.Generator
Draw = Callable[[Chance, tuple[int, ...]], np.ndarray]


def normal(chance: Chance, shape: tuple[int, ...]) -> np.ndarray:
    return chance.standard_normal(shape)


def heavy(chance: Chance, shape: tuple[int, ...]) -> np.ndarray:
    return chance.standard_t(4, shape)


def scores(seed: float, item: float, rest: float, draw: Draw, chance: Chance, variants: int, seeds: int) -> np.ndarray:
    """[variant seed item], the baseline first; standard deviations of seeds, of a variant's liking for items, and of
    what is left."""
    count = variants + 1
    luck, liking = seed * draw(chance, (count, seeds, 1)), item * draw(chance, (count, 1, ITEMS))
    return luck + liking + rest * draw(chance, (count, seeds, ITEMS))


PEEKED = {
    "seeds": partial(scores, 1.0, 0.0, 0.5, normal),
    "items": partial(scores, 0.0, 1.0, 1.0, normal),
    "seeds and items": partial(scores, 0.5, 1.5, 1.0, normal),
    "heavy tails": partial(scores, 1.0, 0.5, 1.0, heavy),
}


def peeking(world: str, variants: int, runs: int, seed: int = 11) -> float:
    """Share of studies in which someone who judges after every seed from 5 to 60 ever claims a difference."""
    chance, wrong = np.random.default_rng(seed), 0
    for _ in range(runs):
        every = PEEKED[world](chance, variants, 60)
        differences = every[1:] - every[0]
        for count in range(5, 61):
            p = [1 / crossed_t(own[:count]).evidence() for own in differences]
            if min(holm(p)) < ALPHA:
                wrong += 1
                break
    return wrong / runs


def outcomes(every: np.ndarray, seeds: int, margin: float) -> TaskOutcomes:
    """Of so many seeds; the variants are called 0 (the baseline), 1, 2 ..."""
    weights = np.ones((seeds, ITEMS))
    variants = {
        str(name): {"test": SetOutcomes(tuple(range(seeds)), {"value": own[:seeds], "weight": weights}, metric=SCORE)}
        for name, own in enumerate(every)
    }
    return TaskOutcomes(task="score", baseline="0", least_difference=margin, variants=variants)


def until_clear(world: str, variants: int, runs: int, margin: float = 0.5, gain: float = 0.0, seed: int = 12) -> float:
    """Share of studies in which any look of --until-clear claims a difference of a variant that has none. `gain`: of
    the first half of the variants, which do differ; `margin`: many of the others become equivalent early."""
    chance, wrong = np.random.default_rng(seed), 0
    for _ in range(runs):
        every = PEEKED[world](chance, variants, LOOKS[-1].seeds)
        every[1 : 1 + variants // 2] += gain
        *before, (last, tasks) = [(look, {"score": outcomes(every, look.seeds, margin)}) for look in LOOKS]
        judged = judge_study("looks", tasks, look=last, before=before).comparisons
        same = judged[variants // 2 :] if gain else judged
        wrong += any(each.verdict in (VerdictKind.BETTER, VerdictKind.WORSE) for each in same)
    return wrong / runs
