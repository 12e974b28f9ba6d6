"""What stands beside the trials: passports of variants, the audit of the data, baselines. Kept, and not made twice.

Records, baselines and audits of a study -> what the judge is given. Knows no torch.

Attention maps of each variant for one sentence, and its parameter ledger, for the page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from fairtrial.disk import write_text
from fairtrial.engines.job import Answer, Engine, Job, Stop
from fairtrial.environment import code_fingerprint
from fairtrial.errors import BadInput
from fairtrial.recipe import fingerprint, to_table, write_recipe
from fairtrial.record import Record, renamed_keys
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes, stack_outcomes
from fairtrial.study.design import METRIC
from fairtrial.study.plan import OnEvent, Plan, read_failures, run_jobs

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
    """Our own parts together; plugins, who may take a process down, each alone."""
    together: list[tuple[dict[str, str], tuple[str, ...]]] = []
    single: list[tuple[dict[str, str], tuple[str, ...]]] = []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants:
            kept = read_json(passport_path(plan, task, variant.name))
            if kept.get("mark") != passport_mark(plan, task, variant.name):
                asked = {"task": task, "variant": variant.name, "recipe": write_recipe(recipes[variant.name])}
                (single if alone or variant.plugins else together).append((asked, variant.plugins))
    groups = [*([together] if together else []), *([each] for each in single)]
    return [passport_job([asked for asked, _ in group], group[0][1]) for group in groups]


def passport_job(asked: list[dict[str, str]], plugins: tuple[str, ...]) -> Job:
    key = (asked[0]["task"], asked[0]["variant"], "passport") if len(asked) == 1 else ("all", "variants", "passports")
    seconds = PASSPORT_SECONDS * (1 + len(asked))
    return Job(key, "passport", plugins=plugins, seconds=seconds, options={"plans": asked})


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
    plugins = [hashlib.sha256(Path(name).read_bytes()).hexdigest()[:8] for name in plan.study.variant(variant).plugins]
    return "-".join([fingerprint(plan.recipes[task][variant]), *plugins])


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


BySeed = dict[int, dict[str, dict[str, np.ndarray]]]  # seed -> test set -> what -> array


def gather(plan: Plan, task: str, search: Mapping[str, Any] | None = None) -> TaskOutcomes:
    records = finished(plan, task)
    baseline = plan.study.baseline
    if not records[baseline]:
        failed = [row["error"] for row in read_failures(plan.folder) if row["variant"] == baseline]
        hint = f"it says: {failed[-1]}" if failed else ""
        raise BadInput(f"no trial of the baseline {baseline!r} ({task}) has finished, so nothing can be judged", hint)
    contamination = read_json(plan.folder / "contamination.json").get(task)
    ground = plan.grounds[task]
    passports = {name: passport_of(plan, task, name) for name in records}
    return TaskOutcomes(
        task=task,
        baseline=baseline,
        least_difference=plan.study.least_difference[METRIC[task]],
        variants={
            name: stacked({seed: by_set(record.outcomes(), ground.items) for seed, record in found.items()}, name)
            for name, found in records.items()
            if found
        },
        baselines=baselines(plan, task),
        labels=ground.labels,
        status={
            name: np.array(facts["status"], dtype=np.int8)
            for name, facts in (contamination or {}).get("sets", {}).items()
            if name in ground.items
        },
        clusters={name: np.array(groups) for name, groups in ground.groups.items()},
        passports={name: passport for name, passport in passports.items() if passport},
        cost=cost(plan, task, records),
        peeks={name: peeks(list(found.values())) for name, found in records.items() if found},
        failures=[
            {"variant": row["variant"], "seed": row["seed"], "error": row["error"]}
            for row in read_failures(plan.folder)
            if row["task"] == task and row["variant"] in records
        ],
        contamination=without_items(contamination),
        search=dict(search) if search else None,
    )


def finished(plan: Plan, task: str) -> dict[str, dict[int, Record]]:
    """Finished records of each variant by seed."""
    found: dict[str, dict[int, Record]] = {}
    for variant in plan.study.variants:
        records = ((seed, plan.record(task, variant.name, seed)) for seed in plan.study.seeds_of(variant))
        found[variant.name] = {seed: record for seed, record in records if record is not None}
    return found


def by_set(outcomes: Mapping[str, np.ndarray], sets: Mapping[str, int]) -> dict[str, dict[str, np.ndarray]]:
    """`set/what` -> arrays of each test set. Validation is no test."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, array in outcomes.items():
        place, _, what = name.rpartition("/")
        if place in sets:
            found.setdefault(place, {})[what] = array
    return {place: found[place] for place in sets if place in found}


def stacked(by_seed: BySeed, name: str) -> dict[str, SetOutcomes]:
    places = next(iter(by_seed.values()))
    return {
        place: stack_outcomes({seed: sets[place] for seed, sets in by_seed.items()}, f"{name}, {place}")
        for place in places
    }


def baselines(plan: Plan, task: str) -> dict[str, dict[str, SetOutcomes]]:
    found: dict[str, BySeed] = {}
    for seed in plan.study.seeds:
        path = baseline_path(plan, task, seed)
        facts = read_json(path.with_name(path.name + ".json"))
        if not facts:
            continue
        arrays = renamed_keys(load_file(path.with_name(path.name + ".safetensors")))
        for name in facts["baselines"]:
            own = {
                place.removeprefix(f"{name}/"): array for place, array in arrays.items() if place.startswith(f"{name}/")
            }
            found.setdefault(name, {})[seed] = by_set(own, plan.grounds[task].items)
    return {name: stacked(by_seed, name) for name, by_seed in found.items()}


def cost(plan: Plan, task: str, records: Mapping[str, Mapping[int, Record]]) -> dict[str, Any]:
    """Parameters, arithmetic, and what a step took: the median over seeds of each trial's median."""
    found: dict[str, Any] = {}
    for name, named in records.items():
        facts = plan.calibration.get(task, {}).get(name, {})
        clocks = [line for record in named.values() for line in record.clock()]
        paces = [line["step_seconds"] for line in clocks if "step_seconds" in line]
        peaks = [line["peak_memory_mb"] for line in clocks if line.get("peak_memory_mb")]
        found[name] = {
            "parameters": facts.get("parameters"),
            "flops_per_step": facts.get("flops_per_step"),
            "seconds_per_step": median(paces) if paces else None,
            "peak_memory_mb": median(peaks) if peaks else None,
        }
    base = found[plan.study.baseline]["seconds_per_step"]
    for facts in found.values():
        own = facts["seconds_per_step"]
        facts["seconds_ratio"] = round(own / base, 3) if own and base else None
    return found


def peeks(records: list[Record]) -> dict[str, Any]:
    """Looks at each test set, and the mean over seeds of what picking the best moment on test would have claimed."""
    results = [record.result for record in records]
    found: dict[str, Any] = {}
    for place in results[0]["tests"]:
        picked = [(result["picked_on_test"].get(place), result["tests"][place]) for result in results]
        pairs = [(best, score) for best, score in picked if best]
        key, scale = ("accuracy", 100.0) if "accuracy" in results[0]["tests"][place] else ("window_perplexity", 1.0)
        found[place] = {
            "reads": sum(result["test_reads"][place] for result in results),
            "watched": any(result["test_watched"] for result in results),
            "picked_on_test": scale * float(np.mean([best[key] for best, _ in pairs])) if pairs else None,
            "honest": scale * float(np.mean([score[key] for _, score in pairs])) if pairs else None,
        }
    return found


def without_items(contamination: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The audit of the data without its long lists."""
    if contamination is None:
        return None
    sets = {
        name: {key: value for key, value in facts.items() if key != "status"}
        for name, facts in contamination["sets"].items()
    }
    return {**contamination, "sets": sets}


SECONDS = 120.0


def draw_portraits(plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop) -> None:
    sentence = plan.study.sentence or next(iter(plan.grounds.values())).sentence
    drawn: dict[str, dict[str, Any]] = {task: {} for task in plan.recipes}

    def accept(answer: Answer) -> None:
        if answer.facts is not None:
            task, variant, _ = answer.job.key
            drawn[task][variant] = answer.facts

    run_jobs(engine, portrait_jobs(plan, sentence), on_event, stop, accept)
    words = {
        task: {name: named[name]["words"] for name in plan.recipes[task] if name in named}
        for task, named in drawn.items()
    }
    first: list[str] = next((each for named in words.values() for each in named.values()), [])
    write_json(
        plan.folder / "maps.json",
        {
            "sentence": sentence,
            "words": first,
            "words_of": words,  # parts may set vectors of their own before a sentence
            "variants": {
                task: {name: named[name]["weights"] for name in plan.recipes[task] if name in named}
                for task, named in drawn.items()
            },
        },
    )
    ledgers = {
        task: {name: facts["ledger"] for name, facts in named.items()} for task, named in plan.calibration.items()
    }
    write_json(plan.folder / "ledger.json", ledgers)


def portrait_jobs(plan: Plan, sentence: str) -> list[Job]:
    """One for each variant: its first seed that finished."""
    jobs = []
    for task in plan.recipes:
        for name, records in finished(plan, task).items():
            for record in list(records.values())[:1]:
                key = (task, name, "maps")
                plugins = plan.study.variant(name).plugins
                jobs.append(
                    Job(
                        key,
                        "portrait",
                        folder=str(record.folder),
                        plugins=plugins,
                        seconds=SECONDS,
                        options={"sentence": sentence},
                    )
                )
    return jobs
