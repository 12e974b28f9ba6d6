"""Search: the same number of tries for every variant that is not run as given, chosen on validation.

No test set is read, and the records of the tries prove it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean

import numpy as np

from fairtrial.engines import Engine, JobResult, Stop
from fairtrial.errors import BadInput
from fairtrial.events import SearchStarted
from fairtrial.formatting import format_time
from fairtrial.recipe import with_changes
from fairtrial.results.records import trained_seconds
from fairtrial.results.values import Choice, SearchSummary, TaskVerdict
from fairtrial.rng import generator_for
from fairtrial.stored import FailedTrial, Settings, StoredSearch, TaskSearch, VariantSearch
from fairtrial.study.design import METRIC, Search, Variant
from fairtrial.study.folder import FAILED_TRIES
from fairtrial.study.plan import Chosen, OnEvent, Plan, Trial, missing, run_jobs, to_run

Tries = list[Settings]
ByTry = dict[tuple[str, str, int], list[Trial]]  # task, variant, number of the try -> one trial for each search seed


def tries_of(search: Search) -> Tries:
    """The settings to try, the same for every variant."""
    if search.random is None:
        values = [list(space) for space in search.fields.values() if isinstance(space, Sequence)]
        return [dict(zip(search.fields, chosen, strict=True)) for chosen in itertools.product(*values)]
    rng = generator_for(search.seeds[0], "search")
    tries: Tries = []
    for _ in range(50 * search.random):  # a small space may not hold so many different ones
        drawn = {name: draw(space, rng) for name, space in search.fields.items()}
        if drawn not in tries and len(tries) < search.random:
            tries.append(drawn)
    return tries


def draw(space: object, rng: np.random.Generator) -> object:
    """One of a list, or a number between two; what starts above 0 is drawn on a log scale unless told otherwise."""
    if isinstance(space, Sequence):
        return space[int(rng.integers(len(space)))]
    assert isinstance(space, Mapping)
    low, high = space["from"], space["to"]
    on_logs = space.get("scale", "log" if low > 0 else "linear") == "log"
    value = math.exp(rng.uniform(math.log(low), math.log(high))) if on_logs else rng.uniform(low, high)
    return round(value) if type(low) is int and type(high) is int else float(f"{value:.4g}")


def searched(plan: Plan) -> list[Variant]:
    return [variant for variant in plan.study.variants if variant.searched]


def search_trials(plan: Plan, search: Search) -> ByTry:
    by_try = {}
    for task, recipes in plan.recipes.items():
        for variant in searched(plan):
            for number, settings in enumerate(tries_of(search)):
                recipe = with_changes(recipes[variant.name], settings)
                # its trials cannot see a test set
                recipe = replace(recipe, scoring=replace(recipe.scoring, tests=False, watch_test=False))
                by_try[task, variant.name, number] = [
                    Trial(task, variant, seed, recipe, plan.home.search_trial(task, variant.name, number, seed))
                    for seed in search.seeds
                ]
    return by_try


def run_search(
    plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop, *, retry_failed: bool = False
) -> StoredSearch:
    """What was tried and chosen; search.json keeps it."""
    search, home = plan.study.search, plan.home
    assert search is not None
    check_validation(plan)
    tries = tries_of(search)
    by_try = search_trials(plan, search)
    trials = [trial for group in by_try.values() for trial in group]
    left = to_run(plan, trials, on_event, FAILED_TRIES, retry_failed=retry_failed)
    plan.write()
    on_event(SearchStarted(len(tries), len(trials), len(left)))

    def accept(result: JobResult) -> None:
        if result.value is None:
            failed = FailedTrial(error=result.error, folder=home.name_of(result.job.folder))
            home.add_failure(failed, FAILED_TRIES)

    run_jobs(engine, [trial.job() for trial in left], on_event, stop, accept)
    stored = search_again(plan)
    home.write("search.json", stored)
    return stored


def search_again(plan: Plan) -> StoredSearch:
    """What the trials of a search give."""
    search = plan.study.search
    assert search is not None
    tries, by_try = tries_of(search), search_trials(plan, search)
    tasks = {task: choose(plan, task, tries, by_try) for task in plan.recipes}
    return StoredSearch(search.seeds, tuple(tries), tasks)


def search_seconds_left(plan: Plan) -> float:
    """Seconds of one core that the tries of a search still need."""
    search = plan.study.search
    if search is None:
        return 0.0
    left, _ = missing(plan, [trial for group in search_trials(plan, search).values() for trial in group])
    measured = [plan.calibration.get(trial.task, {}).get(trial.variant.name) for trial in left]
    return sum(calibration.seconds for calibration in measured if calibration)


def earlier_choice(plan: Plan) -> Chosen:
    """What the same search chose in this folder before: its trials are those that a study goes on with."""
    search, stored = plan.study.search, plan.home.read("search.json", StoredSearch)
    if search is None or stored is None or (list(stored.tries), stored.seeds) != (tries_of(search), search.seeds):
        return {}
    return chosen_by(stored)


def chosen_by(search: StoredSearch) -> Chosen:
    return {task: {name: row.best for name, row in own.variants.items()} for task, own in search.tasks.items()}


def choose(plan: Plan, task: str, tries: Tries, by_try: ByTry) -> TaskSearch:
    rows = {}
    for variant in searched(plan):
        scores = [validation_score(plan, by_try[task, variant.name, number]) for number in range(len(tries))]
        known = {number: score for number, score in enumerate(scores) if score is not None}
        if not known:
            raise BadInput(f"no try of {variant.name!r} ({task}) finished", f"see {plan.home.path / FAILED_TRIES}")
        better = max if METRIC[task] == "accuracy" else min
        best = better(known, key=known.__getitem__)
        rows[variant.name] = VariantSearch(len(tries), tries[best], known[best], tuple(scores))
    trials = [trial for (named, *_), group in by_try.items() if named == task for trial in group]
    records = [record for trial in trials if (record := plan.home.finished(trial.folder)) is not None]
    seconds = round(sum(trained_seconds(record.clock()) for record in records), 1)
    return TaskSearch(len(tries) * len(rows), len(trials), seconds, rows)


def tuning_sentences(plan: Plan, task: str, verdict: TaskVerdict) -> list[str]:
    """What the search cost."""
    search = verdict.search
    if search is None:
        return []
    seconds, tries = search.seconds or 0.0, search.tries or 0
    folders = {record.folder: record for named in plan.finished(task).values() for record in named.values()}
    rest = sum(trained_seconds(record.clock()) for record in folders.values())
    share, count = seconds / max(1e-9, seconds + rest), len(search.variants)
    tried = f"{search.trials} trials ({tries // count} tries for each of {count} variants)"
    took = f"{format_time(seconds)} of one core, {share:.0%} of the study's training"
    return [f"The search took {tried}: {took}."]


def search_summary(search: TaskSearch) -> SearchSummary:
    """Without the scores of every try."""
    choices = {name: Choice(row.best, row.tries, row.validation) for name, row in search.variants.items()}
    return SearchSummary(choices, search.tries, search.trials, search.seconds)


def validation_score(plan: Plan, trials: list[Trial]) -> float | None:
    """The mean over the search's seeds: accuracy in points, or perplexity (its log averaged)."""
    records = [plan.home.finished(trial.folder) for trial in trials]
    metrics = [score for record in records if record is not None and (score := record.result.validation)]
    if len(metrics) < len(trials):
        return None
    if METRIC[trials[0].task] == "accuracy":
        return 100 * mean(score.figure("accuracy") for score in metrics)
    return math.exp(mean(math.log(score.figure("perplexity")) for score in metrics))


def check_validation(plan: Plan) -> None:
    for task, recipes in plan.recipes.items():
        for variant in searched(plan):
            if not recipes[variant.name].data.validation:
                hint = 'give it one under [set]: "data.validation" = 0.1'
                raise BadInput(f"{variant.name!r} ({task}) has no validation set to choose on", hint)
