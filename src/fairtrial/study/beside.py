"""What stands beside the trials: passports of variants, the audit of the data, baselines. Kept, and not made twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairtrial.disk import write_text
from fairtrial.engines.job import Answer, Job
from fairtrial.environment import code_fingerprint
from fairtrial.recipe_file import fingerprint, to_table, write_recipe
from fairtrial.study.plan import Plan

PASSPORT_SECONDS = 180.0  # and so many more for each variant: a part that loops forever is ended


def jobs_beside(plan: Plan) -> list[Job]:
    """Those whose result is not there yet."""
    return [*contamination_jobs(plan), *passport_jobs(plan), *baseline_jobs(plan)]


def contamination_jobs(plan: Plan) -> list[Job]:
    known = read_json(plan.folder / "contamination.json")
    jobs = []
    for task in plan.recipes:
        if known.get(task, {}).get("mark") != data_mark(plan, task):
            recipe = plan.recipes[task][plan.study.baseline]
            whole = replace(recipe, data=replace(recipe.data, train_share=1.0))  # each seed takes a share of its own
            jobs.append(Job((task, "data", "audit"), "contamination", write_recipe(whole), plan.study.seeds[0]))
    return jobs


def passport_jobs(plan: Plan, *, alone: bool = False) -> list[Job]:
    """Our own parts together; strangers, who may take a process down, each alone."""
    together: list[tuple[dict[str, str], tuple[str, ...]]] = []
    single: list[tuple[dict[str, str], tuple[str, ...]]] = []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants:
            kept = read_json(passport_path(plan, task, variant.name))
            if kept.get("mark") != passport_mark(plan, task, variant.name):
                asked = {"task": task, "variant": variant.name, "recipe": write_recipe(recipes[variant.name])}
                (single if alone or variant.strangers else together).append((asked, variant.strangers))
    groups = [*([together] if together else []), *([each] for each in single)]
    return [passport_job([asked for asked, _ in group], group[0][1]) for group in groups]


def passport_job(asked: list[dict[str, str]], strangers: tuple[str, ...]) -> Job:
    key = (asked[0]["task"], asked[0]["variant"], "passport") if len(asked) == 1 else ("all", "variants", "passports")
    seconds = PASSPORT_SECONDS * (1 + len(asked))
    return Job(key, "passport", strangers=strangers, seconds=seconds, options={"plans": asked})


def baseline_jobs(plan: Plan) -> list[Job]:
    jobs = []
    for seed in plan.study.seeds:
        for task in plan.recipes:
            path = baseline_path(plan, task, seed)
            mark = data_mark(plan, task)
            if read_json(path.with_name(path.name + ".json")).get("mark") != mark:
                text = write_recipe(plan.recipes[task][plan.study.baseline])
                key = (task, "baselines", f"seed {seed}")
                jobs.append(Job(key, "baselines", text, seed, str(path), options={"mark": mark}))
    return jobs


def keep(plan: Plan, answer: Answer) -> None:
    """Write down what a job beside the trials found."""
    task = answer.job.key[0]
    if answer.job.work == "contamination" and answer.facts is not None:
        known = read_json(plan.folder / "contamination.json")
        known[task] = answer.facts | {"mark": data_mark(plan, task)}
        write_json(plan.folder / "contamination.json", known)
    elif answer.job.work == "passport":
        asked = answer.job.options["plans"]
        found = answer.facts["passports"] if answer.facts is not None else []
        if answer.facts is None and len(asked) == 1:
            # a part that takes the whole process down has failed its audit: no check could be made
            passport = failed_passport(asked[0]["variant"], asked[0]["task"], answer.error)
            found = [{**asked[0], "passport": passport}]
        for each in found:
            mark = passport_mark(plan, each["task"], each["variant"])
            write_json(passport_path(plan, each["task"], each["variant"]), each["passport"] | {"mark": mark})


def failed_passport(variant: str, task: str, error: str) -> dict[str, Any]:
    finding = {
        "id": "B1", "name": "can be audited", "task": task, "level": "red", "value": None, "limit": "-",
        "verdict": "FAIL", "meaning": f"The audit could not be made: {error}",
    }  # fmt: skip
    return {"format": 1, "what": variant, "code": code_fingerprint(), "passed": False, "findings": [finding]}


def passport_of(plan: Plan, task: str, variant: str) -> dict[str, Any] | None:
    """Level and failed checks, as the judge wants them."""
    kept = read_json(passport_path(plan, task, variant))
    if not kept:
        return None
    failed = [finding for finding in kept["findings"] if finding["verdict"] == "FAIL"]
    red = [finding for finding in failed if finding["level"] == "red"]
    return {
        "level": "red" if red else "amber" if failed else "pass",
        "failed": [f"{finding['id']} {finding['name']}" for finding in red or failed],
        "accepted": plan.study.variant(variant).accept_failed_passport,
    }


def passport_path(plan: Plan, task: str, variant: str) -> Path:
    return plan.folder / "passports" / task / f"{variant}.json"


def baseline_path(plan: Plan, task: str, seed: int) -> Path:
    """Without its ending: arrays and facts stand side by side."""
    return plan.folder / "baselines" / task / f"seed-{seed}"


def data_mark(plan: Plan, task: str) -> str:
    """What an audit of data, or a baseline, depends on."""
    recipe = plan.recipes[task][plan.study.baseline]
    table = to_table(recipe)
    facts = [task, table["data"] | {"source": ""}, table["tokens"], table["shape"]["length"], plan.grounds[task].files]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def passport_mark(plan: Plan, task: str, variant: str) -> str:
    strangers = [
        hashlib.sha256(Path(name).read_bytes()).hexdigest()[:8] for name in plan.study.variant(variant).strangers
    ]
    return "-".join([fingerprint(plan.recipes[task][variant]), *strangers])


def read_json(path: Path) -> dict[str, Any]:
    """What was kept; nothing where it is not there or damaged, so that it is made again."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
