"""A wall-clock time -> as many seeds as fit; where five do not, fewer steps for all. Never silently."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.report.words import spoken_time
from fairtrial.study.calibrate import expected_seconds
from fairtrial.study.plan import Plan, recipes_of
from fairtrial.study.search import search_left

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
