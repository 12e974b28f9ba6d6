"""Records, baselines and audits of a study -> what the judge is given. Knows no torch."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from fairtrial.errors import BadInput
from fairtrial.judge.outcomes import SetOutcomes, TaskOutcomes, stack_outcomes
from fairtrial.record import Record
from fairtrial.study.beside import baseline_path, passport_of, read_json
from fairtrial.study.design import METRIC
from fairtrial.study.plan import Plan
from fairtrial.study.trials import read_failures

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
        arrays = load_file(path.with_name(path.name + ".safetensors"))
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
