"""The gate on real trainings: one variant, forty seeds, split at random into two camps, is rarely told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairtrial.engines import Job
from fairtrial.engines.processes import Processes
from fairtrial.recipe import built_in_recipe, with_settings, write_recipe
from fairtrial.record import Record
from fairtrial.statistics.comparison import compare
from fairtrial.statistics.outcomes import SetOutcomes, Vocabulary, stack_outcomes
from fairtrial.study.artifacts import by_set

SEEDS, SPLITS, MOST = 40, 400, 0.07
TINY = [
    "shape.layers=1", "shape.width=32", "shape.hidden=64", "shape.classifier_hidden=32", "training.batch=32",
    "training.select_every=100 steps", "scoring.curve_every=300 steps", "scoring.full_context=0.5",
    "training.learning_rate=3e-3", "training.duration=300 steps",
]  # fmt: skip
PLACES = {"classify": ("test", "accuracy"), "lm": ("Obama", "perplexity")}


def outcomes_of_seeds(task: str, workspace: Path) -> SetOutcomes:
    """Real trainings on the embedded corpus, one for each seed."""
    text = write_recipe(with_settings(built_in_recipe("default", task), TINY))
    jobs = [Job((task, "same", str(seed)), "trial", text, seed, str(workspace / str(seed))) for seed in range(SEEDS)]
    for answer in Processes().run(jobs, lambda *news: None, lambda: False):
        assert answer.value is not None, answer.error
    place = PLACES[task][0]
    found = {seed: by_set(Record.open(workspace / str(seed)).outcomes(), {place: 0})[place] for seed in range(SEEDS)}
    vocabulary = Vocabulary("", "the same recipe", tuple(map(str, range(SEEDS))))
    return replace(stack_outcomes(found), vocabulary=vocabulary)


def false_claims(outcomes: SetOutcomes, metric: str, claims: Callable[..., float]) -> float:
    """Share of splits that claim a difference at the 5% level; the items of each split are drawn anew."""
    chance = np.random.default_rng(4)
    count = 0
    for _ in range(SPLITS):
        order = [int(seed) for seed in chance.permutation(SEEDS)]
        items = chance.integers(outcomes.items, size=outcomes.items)
        drawn = replace(outcomes, arrays={name: array[:, items] for name, array in outcomes.arrays.items()})
        camps = (drawn.rows(tuple(order[: SEEDS // 2])), drawn.rows(tuple(order[SEEDS // 2 :])))
        count += claims(camps, metric) < 0.05
    return count / SPLITS


def crossed(camps: tuple[SetOutcomes, SetOutcomes], metric: str) -> float:
    found = compare(("one", "other", "test", "all"), metric, camps, np.ones(camps[0].items, dtype=bool)).test
    assert found is not None
    return found.p


def one_against_one(camps: tuple[SetOutcomes, SetOutcomes], metric: str) -> float:
    """What a report does: a single seed of each, items alone."""
    from scipy.stats import ttest_rel

    if metric == "accuracy":
        one, other = ((camp["guess"][0] == camp["label"][0]).astype(float) for camp in camps)
    else:
        one, other = (camp["nll"][0] / np.maximum(1, camp["tokens"][0]) for camp in camps)
    return float(ttest_rel(one, other).pvalue) if (one != other).any() else 1.0


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classify", "lm"])
def test_forty_seeds_of_one_variant_are_rarely_told_apart(task: str, tmp_path: Path) -> None:
    outcomes, metric = outcomes_of_seeds(task, tmp_path), PLACES[task][1]
    rate, careless = (false_claims(outcomes, metric, claims) for claims in (crossed, one_against_one))
    print(f"{task}: false claims {rate:.3f} (crossed), {careless:.3f} (one seed against one)")
    assert rate <= MOST
    assert careless > rate  # control: these splits can claim something
