"""Search: the same number of tries for every variant that is not run as given, chosen on validation.

No test set is read, and the records of the tries prove it.

A wall-clock time -> as many seeds as fit; where five do not, fewer steps for all. Never silently.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from fairtrial.disk import append_line, write_text
from fairtrial.engines.job import Answer, Engine, Stop
from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe
from fairtrial.record import Record
from fairtrial.report.words import spoken_time
from fairtrial.rng import generator_for
from fairtrial.study.artifacts import read_json
from fairtrial.study.design import METRIC, Search, Settings, Variant, settled
from fairtrial.study.plan import (
    OnEvent,
    Plan,
    Trial,
    expected_seconds,
    missing,
    note_asked,
    read_failures,
    recipes_of,
    run_jobs,
    trial_seconds,
)

FAILED_TRIES = "failed-tries.jsonl"


@dataclass(frozen=True)
class Found:
    """What a search chose, and how."""

    chosen: dict[str, dict[str, Settings]]  # task -> variant -> fields
    told: dict[str, dict[str, Any]]  # task -> what the verdict file says of it


def tries_of(search: Search) -> list[dict[str, Any]]:
    """The settings to try, the same for every variant."""
    if search.random is None:
        return [dict(zip(search.fields, values, strict=True)) for values in itertools.product(*search.fields.values())]
    chance = generator_for(search.seeds[0], "search")
    tries: list[dict[str, Any]] = []
    for _ in range(50 * search.random):  # a small space may not hold so many different ones
        drawn = {name: _drawn(space, chance) for name, space in search.fields.items()}
        if drawn not in tries:
            tries.append(drawn)
        if len(tries) == search.random:
            break
    return tries


def _drawn(space: Any, chance: Any) -> Any:
    if isinstance(space, list):
        return space[int(chance.integers(len(space)))]
    low, high = space["from"], space["to"]
    if space.get("scale", "log" if low > 0 else "linear") == "log":
        value = math.exp(chance.uniform(math.log(low), math.log(high)))
    else:
        value = chance.uniform(low, high)
    return round(value) if type(low) is int and type(high) is int else float(f"{value:.4g}")


def search_trials(plan: Plan, search: Search, tries: list[dict[str, Any]]) -> dict[tuple[str, str, int], list[Trial]]:
    """The trials of each task, variant and try, one for each search seed."""
    found = {}
    for task, recipes in plan.recipes.items():
        for variant in searched(plan):
            for number, settings in enumerate(tries):
                place = plan.folder / "search" / task / variant.name / f"try-{number}"
                recipe = blind(recipes[variant.name], settings)
                found[task, variant.name, number] = [
                    Trial(task, variant, seed, recipe, place / f"seed-{seed}") for seed in search.seeds
                ]
    return found


def searched(plan: Plan) -> list[Variant]:
    return [variant for variant in plan.study.variants if variant.searched]


def blind(recipe: Recipe, settings: Settings) -> Recipe:
    """A recipe whose trials cannot see a test set."""
    recipe = settled(recipe, settings)
    return replace(recipe, scoring=replace(recipe.scoring, tests=False, watch_test=False))


def run_search(plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop, *, retry_failed: bool = False) -> Found:
    search = plan.study.search
    assert search is not None
    refuse_unchoosable(plan)
    tries = tries_of(search)
    named = search_trials(plan, search, tries)
    trials = [trial for each in named.values() for trial in each]
    left, notices = missing(plan, trials)
    note_asked(plan, trials)
    if retry_failed:
        (plan.folder / FAILED_TRIES).unlink(missing_ok=True)
    failed = {row["folder"] for row in read_failures(plan.folder, FAILED_TRIES)}
    known = [trial for trial in left if place_of(plan, str(trial.folder)) in failed]
    if known:
        notices = [*notices, f"{len(known)} tries failed before and are left out; --retry-failed tries them again"]
    left = [trial for trial in left if trial not in known]
    for text in notices:
        on_event("notice", {"text": text})
    on_event("search", {"tries": len(tries), "trials": len(trials), "left": len(left)})

    def accept(answer: Answer) -> None:
        if answer.facts is None:
            row = {"folder": place_of(plan, answer.job.folder), "error": answer.error}
            append_line(plan.folder / FAILED_TRIES, json.dumps(row, ensure_ascii=False))

    run_jobs(engine, [trial.job() for trial in left], on_event, stop, accept)
    found = choose(plan, tries, named)
    told = {"format": 1, "seeds": list(search.seeds), "tries": tries, "tasks": found.told}
    write_text(plan.folder / "search.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return found


def place_of(plan: Plan, folder: str) -> str:
    return Path(folder).relative_to(plan.folder).as_posix()


def search_left(plan: Plan) -> float:
    """Seconds of one core that the tries of a search still need."""
    search = plan.study.search
    if search is None:
        return 0.0
    tries = search_trials(plan, search, tries_of(search))
    left, _ = missing(plan, [trial for each in tries.values() for trial in each])
    paces = [plan.calibration.get(trial.task, {}).get(trial.variant.name) for trial in left]
    return sum(trial_seconds(facts) for facts in paces if facts)


def remembered(plan: Plan) -> dict[str, dict[str, Settings]]:
    """What the same search chose in this folder before: its trials are those that a study goes on with."""
    search, kept = plan.study.search, read_json(plan.folder / "search.json")
    if search is None or kept.get("tries") != tries_of(search) or kept.get("seeds") != list(search.seeds):
        return {}
    return {
        task: {name: row["best"] for name, row in facts["variants"].items()} for task, facts in kept["tasks"].items()
    }


def choose(plan: Plan, tries: list[dict[str, Any]], named: Mapping[tuple[str, str, int], list[Trial]]) -> Found:
    chosen: dict[str, dict[str, Settings]] = {}
    told: dict[str, dict[str, Any]] = {}
    for task in plan.recipes:
        chosen[task], rows = {}, {}
        for variant in searched(plan):
            scores = [validation_score(named[task, variant.name, number], task) for number in range(len(tries))]
            known = {number: score for number, score in enumerate(scores) if score is not None}
            if not known:
                raise BadInput(f"no try of {variant.name!r} ({task}) finished", f"see {plan.folder / FAILED_TRIES}")
            better = max if METRIC[task] == "accuracy" else min
            best = better(known, key=lambda number: known[number])
            chosen[task][variant.name] = tries[best]
            rows[variant.name] = {
                "tries": len(tries), "best": tries[best], "validation": known[best], "scores": scores,
            }  # fmt: skip
        told[task] = {"tries": len(tries) * len(rows), "variants": rows}
    return Found(chosen, told)


def validation_score(trials: list[Trial], task: str) -> float | None:
    """The mean over the search's seeds: accuracy in points, or perplexity (its log averaged)."""
    figures = []
    for trial in trials:
        if not (trial.folder / "result.json").is_file():
            return None
        figures.append(Record.open(trial.folder).result["validation"])
    if METRIC[task] == "accuracy":
        return 100 * mean(each["accuracy"] for each in figures)
    return math.exp(mean(math.log(each["perplexity"]) for each in figures))


def refuse_unchoosable(plan: Plan) -> None:
    for task, recipes in plan.recipes.items():
        for variant in searched(plan):
            if not recipes[variant.name].data.validation:
                hint = 'give it one under [set]: "data.validation" = 0.1'
                raise BadInput(f"{variant.name!r} ({task}) has no validation set to choose on", hint)


LEAST_SEEDS = 5  # fewer are refused a verdict
MOST_SEEDS = 40
LEAST_SHARE = 0.02  # of the steps: less is no training
RESERVE = 0.9  # calibration is short, and machines have moods


def read_time(text: str) -> float:
    """`90s`, `20m`, `1h30m` -> seconds."""
    number = r"(\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"(?:{number}h)?(?:{number}m(?:in)?)?(?:{number}s)?", text.replace(" ", ""))
    if not found or not any(found.groups()):
        raise BadInput(f"{text!r} is not a time", "write it as 90s, 20m or 1h30m")
    hours, minutes, seconds = (float(each or 0) for each in found.groups())
    total = hours * 3600 + minutes * 60 + seconds
    if total <= 0:
        raise BadInput(f"{text!r}: nothing can be done in no time")
    return total


def fit(plan: Plan, width: int, seconds: float, most: int = MOST_SEEDS) -> tuple[Plan, str]:
    """The plan that fits, and what was decided, in words."""
    if most < LEAST_SEEDS:
        hint = f"--seeds is the most that --budget may take: leave it out, or give {LEAST_SEEDS} or more"
        raise BadInput(f"{most} seeds are too few for a verdict", hint)
    refuse_unmeasured(plan)
    available = seconds * RESERVE
    searching = search_left(plan) / width
    fitting = [
        count for count in range(LEAST_SEEDS, most + 1) if expected_seconds(plan, width, count) + searching <= available
    ]
    told = f"budget {spoken_time(seconds)}"
    if fitting:
        study = plan.study.with_seeds(fitting[-1])
        return replace(plan, study=study), f"{told}: {fitting[-1]} seeds of the whole training fit"
    least = expected_seconds(plan, width, LEAST_SEEDS, 0.0)
    whole = expected_seconds(plan, width, LEAST_SEEDS, 1.0) + searching
    share = (available - least) / (whole - least) if whole > least else 0.0
    if share < LEAST_SHARE:
        raise BadInput(
            f"{spoken_time(seconds)} is too little: {LEAST_SEEDS} seeds need about {spoken_time(whole / RESERVE)}",
            "give a larger --budget, fewer variants, or one --task",
        )
    if any("training.duration" in variant.settings for variant in plan.study.variants):
        raise BadInput(
            f"{spoken_time(seconds)} is too little for {LEAST_SEEDS} seeds, and variants have durations of their own",
            "give a larger --budget, or set training.duration for all",
        )
    steps = {
        task: max(1, int(share * min(facts["steps"] for facts in named.values())))
        for task, named in plan.calibration.items()
    }
    study = plan.study.with_seeds(LEAST_SEEDS)
    settings = {
        task: {**study.task_settings.get(task, {}), "training.duration": f"{count} steps"}
        for task, count in steps.items()
    }
    study = replace(study, task_settings=settings)
    shorter = replace(plan, study=study, recipes=recipes_of(study, {}), calibration=scaled(plan, steps))
    counts = ", ".join(f"{count:,} for {task}" for task, count in steps.items())
    text = (
        f"{told}: {LEAST_SEEDS} seeds of the whole training do not fit, so all train for fewer steps ({counts});"
        " what holds there may not hold after a whole training"
    )
    return shorter, text


def refuse_unmeasured(plan: Plan) -> None:
    for task, recipes in plan.recipes.items():
        for name in recipes:
            if name not in plan.calibration.get(task, {}):
                what = f"the pace of {name!r} ({task}) could not be measured, so no number of seeds can be promised"
                raise BadInput(what, "leave --budget out to see why, or leave the variant out")


def scaled(plan: Plan, steps: dict[str, int]) -> dict[str, dict[str, dict[str, Any]]]:
    """The pace that was measured, for shorter trials."""
    return {
        task: {
            name: facts
            | {"steps": steps[task], "score_seconds": round(facts["score_seconds"] * steps[task] / facts["steps"], 3)}
            for name, facts in named.items()
        }
        for task, named in plan.calibration.items()
    }
