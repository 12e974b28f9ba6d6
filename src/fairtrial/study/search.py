"""Search: the same number of tries for every variant that is not run as given, chosen on validation.

A search tries settings that a study lists, or it tunes the learning rate: rates a factor of two apart are tried for a
quarter of the training, until the two best have neighbours on both sides; these two are tried for all of it. No test
set is read, and the records of the tries prove it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

import numpy as np

from fairtrial.engines import Engine, JobResult, Stop
from fairtrial.errors import BadInput
from fairtrial.events import SearchStarted
from fairtrial.formatting import format_time
from fairtrial.recipe import Recipe, with_changes
from fairtrial.results.records import trained_seconds
from fairtrial.results.sentences import listed
from fairtrial.results.values import TaskSearch, TaskVerdict, VariantSearch
from fairtrial.rng import generator_for
from fairtrial.stored import FailedTrial, Settings, StoredSearch
from fairtrial.study.design import METRIC, Search, Study, Variant
from fairtrial.study.folder import FAILED_TRIES, StudyFolder
from fairtrial.study.plan import (
    Chosen,
    OnEvent,
    Plan,
    Trial,
    calibrate,
    make_plan,
    missing,
    recipes_of,
    run_jobs,
    to_run,
)

Tries = list[Settings]
Run = Callable[[Sequence[Trial], int], None]  # trials, and how many tries each variant has
ByTry = dict[tuple[str, str, int], list[Trial]]  # task, variant, number of the try -> one trial for each search seed
RATE = "training.learning_rate"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the baseline's own learning rate
STEP = 2.0  # from one rate to the next
FINALISTS = 2  # rates that are tried for the whole training
SHORT = 0.25  # share of the training of the others
MOST_RATES = 13  # 2^12 from the lowest to the highest
TUNING_COST = (len(FACTORS) * SHORT + FINALISTS) * 1.1  # in trainings, with a rate more now and then


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


def searched(plan: Plan, task: str) -> list[Variant]:
    return [variant for variant in plan.study.variants_of(task) if variant.searched]


def search_trials(plan: Plan, search: Search) -> ByTry:
    return {
        (task, variant.name, number): trials_of(plan, search, task, variant, str(number), settings)
        for task in plan.recipes
        for variant in searched(plan, task)
        for number, settings in enumerate(tries_of(search))
    }


def trials_of(
    plan: Plan, search: Search, task: str, variant: Variant, name: str, settings: Settings, share: float = 1.0
) -> list[Trial]:
    """One try: a trial for each search seed, for this share of the training."""
    recipe = with_changes(plan.recipes[task][variant.name], settings)
    # its trials cannot see a test set
    recipe = replace(recipe, scoring=replace(recipe.scoring, tests=False, watch_test=False))
    if share < 1 and (measured := plan.calibration.get(task, {}).get(variant.name)):
        steps = max(1, round(share * measured.steps))
        warmup = round(share * recipe.training.warmup_steps)
        recipe = with_changes(recipe, {"training.duration": f"{steps} steps", "training.warmup_steps": warmup})
    home = plan.home
    return [
        Trial(task, variant, seed, recipe, home.search_trial(task, variant.name, name, seed)) for seed in search.seeds
    ]


def run_search(
    plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop, *, retry_failed: bool = False
) -> StoredSearch:
    """What was tried and chosen; search.json keeps it."""
    search, home = plan.study.search, plan.home
    assert search is not None
    check_validation(plan)

    def accept(result: JobResult) -> None:
        if result.value is None:
            failed = FailedTrial(error=result.error, folder=home.name_of(result.job.folder))
            home.add_failure(failed, FAILED_TRIES)

    def run(trials: Sequence[Trial], tries: int) -> None:
        left = to_run(plan, trials, on_event, FAILED_TRIES, retry_failed=retry_failed)
        plan.write()
        on_event(SearchStarted(tries, len(trials), len(left)))
        run_jobs(engine, [trial.job() for trial in left], on_event, stop, accept)

    stored = outcome_of(plan, search, run)
    home.write("search.json", stored)
    return stored


def tune_alone(
    study: Study, folder: Path, engine: Engine, on_event: OnEvent, stop: Stop
) -> tuple[VariantSearch, Recipe]:
    """The learning rate of a study's only variant: what was tried, and its recipe with the rate that was chosen."""
    home = StudyFolder(folder)
    home.check_own_folder()
    plan = calibrate(make_plan(study, home), engine, on_event, stop)
    with home.hold():
        stored = run_search(plan, engine, on_event, stop)
    (task,), (variant,) = plan.recipes, study.variants
    chosen = stored.tasks[task].variants[variant.name]
    return chosen, with_changes(plan.recipes[task][variant.name], chosen.best)


def search_again(plan: Plan) -> StoredSearch:
    """What the trials of a search give."""
    assert plan.study.search is not None
    return outcome_of(plan, plan.study.search, lambda trials, tries: None)


def outcome_of(plan: Plan, search: Search, run: Run) -> StoredSearch:
    """`run` makes the trials that are missing; without it, those that are there are read."""
    if search.tune:
        return StoredSearch(search.seeds, (), {task: tuned(plan, search, task, run) for task in plan.recipes})
    tries, by_try = tries_of(search), search_trials(plan, search)
    run([trial for group in by_try.values() for trial in group], len(tries))
    return StoredSearch(search.seeds, tuple(tries), {task: choose(plan, task, tries, by_try) for task in plan.recipes})


def tuned(plan: Plan, search: Search, task: str, run: Run) -> TaskSearch:
    """The learning rate of every variant. All variants try the same rates for a short time; where one of them finds its
    best at an edge of the grid, the grid is extended for all."""
    own = recipes_of(plan.study, {})[task][plan.study.baseline].training.learning_rate
    rates = [rounded(own * factor) for factor in FACTORS]
    variants, better = searched(plan, task), -1 if METRIC[task] == "accuracy" else 1
    every: list[Trial] = []

    def scores(share: float, names: Mapping[str, Sequence[float]]) -> dict[str, dict[float, float | None]]:
        """Of each variant at these rates, lower is better."""
        word = "short" if share < 1 else "whole"
        groups = {
            (variant.name, rate): trials_of(plan, search, task, variant, f"{word}-{rate:g}", {RATE: rate}, share)
            for variant in variants
            for rate in names[variant.name]
        }
        run(trials := [trial for group in groups.values() for trial in group], max(map(len, names.values())))
        every.extend(trial for trial in trials if trial not in every)
        found = {key: validation_score(plan, group) for key, group in groups.items()}
        return {name: {rate: found[name, rate] for rate in own} for name, own in names.items()}

    def ranked(row: Mapping[float, float | None]) -> list[float]:
        known = {rate: better * score for rate, score in row.items() if score is not None}
        return sorted(known, key=known.__getitem__)

    while True:
        short = scores(SHORT, {variant.name: rates for variant in variants})
        best = {rate for row in short.values() for rate in ranked(row)[:FINALISTS]}
        more = [rounded(min(rates) / STEP)] * (min(rates) in best) + [rounded(max(rates) * STEP)] * (max(rates) in best)
        if not more or len(rates) >= MOST_RATES:
            break
        rates = sorted([*rates, *more])
    whole = scores(1.0, {name: sorted(ranked(row)[:FINALISTS]) for name, row in short.items()})
    rows = {}
    for name, row in whole.items():
        if not (order := ranked(row)):
            raise BadInput(f"no try of {name!r} ({task}) finished", f"see {plan.home.path / FAILED_TRIES}")
        curve, value = tuple(short[name][rate] for rate in rates), row[order[0]]
        assert value is not None
        at_length = tuple(row.get(rate) for rate in rates)
        rows[name] = VariantSearch(len(rates), {RATE: order[0]}, value, curve, tuple(rates), at_length)
    return TaskSearch(len(rates) * len(rows), len(every), seconds_of(plan, every), rows)


def rounded(rate: float) -> float:
    return float(f"{rate:.3g}")


def search_seconds_left(plan: Plan) -> float:
    """Seconds of one core that the tries of a search still need."""
    search = plan.study.search
    if search is None:
        return 0.0
    if search.tune:
        if plan.home.read("search.json", StoredSearch) is not None:
            return 0.0
        costs = [
            plan.calibration[task][variant.name].seconds
            for task in plan.calibration
            for variant in searched(plan, task)
            if variant.name in plan.calibration[task]
        ]
        return TUNING_COST * len(search.seeds) * sum(costs)
    left, _ = missing(plan, [trial for group in search_trials(plan, search).values() for trial in group])
    measured = [plan.calibration.get(trial.task, {}).get(trial.variant.name) for trial in left]
    return sum(calibration.seconds for calibration in measured if calibration)


def earlier_choice(plan: Plan) -> Chosen:
    """What the same search chose in this folder before: its trials are those that a study goes on with."""
    search, stored = plan.study.search, plan.home.read("search.json", StoredSearch)
    if search is None or stored is None or stored.seeds != search.seeds:
        return {}
    if list(stored.tries) != ([] if search.tune else tries_of(search)):
        return {}
    return chosen_by(stored)


def chosen_by(search: StoredSearch) -> Chosen:
    return {task: {name: row.best for name, row in own.variants.items()} for task, own in search.tasks.items()}


def choose(plan: Plan, task: str, tries: Tries, by_try: ByTry) -> TaskSearch:
    rows = {}
    for variant in searched(plan, task):
        scores = [validation_score(plan, by_try[task, variant.name, number]) for number in range(len(tries))]
        known = {number: score for number, score in enumerate(scores) if score is not None}
        if not known:
            raise BadInput(f"no try of {variant.name!r} ({task}) finished", f"see {plan.home.path / FAILED_TRIES}")
        better = max if METRIC[task] == "accuracy" else min
        best = better(known, key=known.__getitem__)
        rows[variant.name] = VariantSearch(len(tries), tries[best], known[best], tuple(scores))
    trials = [trial for (named, *_), group in by_try.items() if named == task for trial in group]
    return TaskSearch(len(tries) * len(rows), len(trials), seconds_of(plan, trials), rows)


def seconds_of(plan: Plan, trials: Sequence[Trial]) -> float:
    records = [record for trial in trials if (record := plan.home.finished(trial.folder)) is not None]
    return round(sum(trained_seconds(record.clock()) for record in records), 1)


def tuning_sentences(plan: Plan, task: str, verdict: TaskVerdict) -> list[str]:
    """Whether learning rates were tuned, and what the search cost."""
    search = verdict.search
    if search is None or not any(RATE in choice.best for choice in search.variants.values()):
        rates: dict[float, list[str]] = {}
        for name, recipe in plan.recipes[task].items():
            rates.setdefault(recipe.training.learning_rate, []).append(name)
        told = ", ".join(f"{listed(names)} {rate:g}" for rate, names in rates.items())
        one = f"all variants use learning rate {next(iter(rates)):g}" if len(rates) == 1 else ""
        lines = [f"Untuned: {one or f'learning rates are as given, {told}'}."]
    else:
        chosen = ", ".join(f"{name} {choice.best[RATE]:g}" for name, choice in search.variants.items())
        lines = [f"Tuned on validation, with equal tries: learning rate {chosen}."]
    if search is not None:
        tries = f"{search.tries // len(search.variants)} tries for each of {len(search.variants)} variants"
        lines.append(f"The search took {search.trials} trials ({tries}): {format_time(search.seconds)} of one core.")
    return lines


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
        for variant in searched(plan, task):
            if not recipes[variant.name].data.validation:
                hint = 'give it one under [set]: "data.validation" = 0.1'
                raise BadInput(f"{variant.name!r} ({task}) has no validation set to choose on", hint)
