"""How long it will take: a few real steps of every variant on this machine, before anything is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairtrial.engines.job import Answer, Engine, Job, Stop
from fairtrial.errors import BadInput
from fairtrial.recipe_file import fingerprint, write_recipe
from fairtrial.study.events import Listen
from fairtrial.study.plan import Plan, read_plan
from fairtrial.study.trials import run_jobs

SECONDS = 600.0  # a variant that does not take a few steps in this time is not going to finish
# measured on two calm cores: what comes beside the trials
PASSPORT_SECONDS = 7.0
BASELINE_SECONDS = 4.0
PAGE_SECONDS = 6.0


def calibrate(plan: Plan, engine: Engine, listen: Listen, stop: Stop) -> Plan:
    """The plan with the pace of every variant. What was measured in this folder before is not measured again."""
    known = read_plan(plan.folder).get("calibration", {})
    found: dict[str, dict[str, Any]] = {task: {} for task in plan.recipes}
    jobs = []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants:
            mark = calibration_mark(plan, task, variant.name)
            old = known.get(task, {}).get(variant.name, {})
            if old.get("mark") == mark:
                found[task][variant.name] = old
                continue
            key = (task, variant.name, "calibration")
            text = write_recipe(recipes[variant.name])
            jobs.append(Job(key, "calibrate", text, plan.study.seeds[0], strangers=variant.strangers, seconds=SECONDS))

    def accept(answer: Answer) -> None:
        task, name = answer.job.key[:2]
        if answer.facts is not None:
            found[task][name] = answer.facts | {"mark": calibration_mark(plan, task, name)}
        elif answer.mistake:
            raise BadInput(f"variant {name!r} ({task}): {answer.error}")

    run_jobs(engine, jobs, listen, stop, accept)
    ordered = {
        task: {name: named[name] for name in plan.recipes[task] if name in named} for task, named in found.items()
    }
    return replace(plan, calibration=ordered)


def calibration_mark(plan: Plan, task: str, variant: str) -> str:
    """What a measured pace belongs to: this recipe on these data."""
    data = "".join(sorted(plan.grounds[task].files.values()))[:64]
    return f"{fingerprint(plan.recipes[task][variant])}-{data}"


def trial_seconds(facts: Mapping[str, Any], share: float = 1.0) -> float:
    """Of one trial, at a share of its steps."""
    return float(facts["set_up_seconds"] + share * (facts["steps"] * facts["step_seconds"] + facts["score_seconds"]))


def expected_seconds(plan: Plan, width: int, seeds: int, share: float = 1.0) -> float:
    """Wall-clock time of the whole study with so many seeds, nothing being there yet."""
    one_seed = sum(trial_seconds(facts, share) for named in plan.calibration.values() for facts in named.values())
    beside = len(plan.recipes) * (len(plan.study.variants) * PASSPORT_SECONDS + seeds * BASELINE_SECONDS)
    return (seeds * one_seed + beside) / width + PAGE_SECONDS
