"""The work of one trial: run_trial_job it, or go on where it was.

The work of calibration: a few real steps of a variant, so that its trials' time is known before they are calibrate_job.

No test set is read. Beside it stands what the network costs: parameters, arithmetic.

The work of an audit: the passports of one or several variants.

Several share the two fresh processes that prove determinism, which take longer to start than all else.

The work of baselines: what a transformer must beat, fitted and scored as a trial of that seed would be.

The work of a data audit: which test items stand in train, and what else is wrong with the data of a task.

The work of a portrait: where the heads of a trained variant look in one sentence.
"""

from __future__ import annotations

import json
import shutil
import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from safetensors.numpy import save

from fairtrial.analysis.attention import attention_maps
from fairtrial.analysis.parameters import flops_of, ledger_of
from fairtrial.audit.run import audit_each
from fairtrial.audit.subject import plan_of_recipe
from fairtrial.baselines.run import baseline_outcomes
from fairtrial.data.audit import audit_data
from fairtrial.disk import write_bytes, write_text
from fairtrial.engines.job import Job, OnEvent, Stop
from fairtrial.environment import use_threads
from fairtrial.errors import Busy, EnvironmentChanged
from fairtrial.finding import as_passport
from fairtrial.plugins import load_files, load_installed
from fairtrial.prepare import prepare
from fairtrial.pretrained.encoder import open_encoder, with_encoder
from fairtrial.recipe import recipe_from
from fairtrial.record import Record
from fairtrial.training.loop import Event, Loop
from fairtrial.training.tasks import ClassifyTask
from fairtrial.trial import load, resume_trial, run_trial

BUSY_SECONDS = 30.0  # a process whose asker was killed ends after its step


def run_trial_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    recipe = recipe_from(tomllib.loads(job.recipe))
    folder = Path(job.folder)
    save_seconds = float(job.options.get("save_seconds", 10.0))
    steps = 0

    def forward(event: Event) -> None:
        nonlocal steps
        if event.kind == "start":
            steps = event.facts["steps"]
        if event.kind in ("start", "step"):
            on_event("step", {"step": event.step, "steps": steps})
        elif event.kind == "testing":
            on_event("testing", {"split": event.facts["split"], "share": event.facts["share"]})
        elif event.kind == "notice":
            on_event("notice", {"text": event.facts["text"]})

    def begin() -> Record:
        return run_trial(
            recipe, job.seed, folder, on_event=forward, stop=stop, save_seconds=save_seconds, plugins=plugins
        )

    def go_on() -> Record:
        return resume_trial(folder, on_event=forward, stop=stop, save_seconds=save_seconds)

    plugins = load_files(Path(name) for name in job.plugins)
    if not (folder / "trial.json").is_file():
        record = patiently(begin)
    else:
        try:
            record = patiently(go_on)
        except EnvironmentChanged as error:  # begun by another torch, machine or code: its bits would be nobody's
            on_event("notice", {"text": f"{'/'.join(job.key)} is started anew: {error.what}"})
            shutil.rmtree(folder)
            record = patiently(begin)
    return {"result": record.result}


def patiently(write: Callable[[], Record]) -> Record:
    """Where a process of a killed study is still saving, wait for it."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return write()
        except Busy:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


WARM_STEPS = 2
MOST_STEPS = 30
STEP_SECONDS = 0.8  # spent on steps
SCORE_SECONDS = 0.5  # spent on scoring


def calibrate_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    load_files(Path(name) for name in job.plugins)
    recipe = recipe_from(tomllib.loads(job.recipe))
    load_installed(choice.name for choice in recipe.parts)
    with use_threads(1):
        begun = time.monotonic()
        bench = prepare(recipe, job.seed).task
        loop = Loop(bench, recipe.training, recipe.scoring, job.seed)
        set_up_seconds = time.monotonic() - begun
        rows = ledger_of(bench.network).rows
        flops = flops_of(bench.network, rows_in_step=recipe.training.batch * recipe.training.accumulate).per_step
        step_seconds = pace(loop)
        return {
            "set_up_seconds": round(set_up_seconds, 3),
            "step_seconds": round(step_seconds, 6),
            "steps": loop.steps,
            "score_seconds": round(scoring_seconds(bench, loop), 3),
            "parameters": sum(row.count for row in rows),
            "flops_per_step": flops,
            "ledger": [asdict(row) for row in rows],
        }


def pace(loop: Loop) -> float:
    """Seconds of one step, once warm."""
    spent: list[float] = []
    loop.network.train()
    while len(spent) < WARM_STEPS + 3 or (sum(spent) < STEP_SECONDS and len(spent) < MOST_STEPS):
        spent.append(timed(partial(loop.train_step, len(spent))))
    return median(spent[WARM_STEPS:])


def scoring_seconds(bench: Any, loop: Loop) -> float:
    """All scoring of one trial: the choices, the curves, and the sets at the end, by their sizes."""
    known = "validation" if "validation" in bench.sets else "train"
    choose = timed(lambda: bench.quick_score(known))
    curve = timed(lambda: bench.quick_score("train")) + choose * (len(bench.curves) - 1)
    whole = whole_seconds(bench, known) / size(bench, known)
    ends = sum(size(bench, name) for name in bench.sets if name != "train")
    chosen = (loop.steps / loop.select_every) * choose if bench.choose_on else 0.0
    return chosen + (loop.steps / loop.curve_every + 1) * curve + whole * ends


def size(bench: Any, split: str) -> int:
    return len(bench.sets[split][1]) if isinstance(bench, ClassifyTask) else max(1, bench.sets[split].targets)


class Enough(Exception):
    """The share that was scored tells the rest."""


def whole_seconds(bench: Any, split: str) -> float:
    """Seconds to score a split exactly; a long one is told by its beginning."""
    begun, done = time.monotonic(), 1.0

    def on_event(share: float) -> None:
        nonlocal done
        if share and time.monotonic() - begun > SCORE_SECONDS:
            done = share
            raise Enough

    with suppress(Enough):
        bench.score(split, on_event)
    return (time.monotonic() - begun) / done


def timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def audit_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    """`options["plans"]`: task, variant and recipe of each."""
    load_files(Path(name) for name in job.plugins)
    asked = job.options["plans"]
    recipes = [recipe_from(tomllib.loads(each["recipe"])) for each in asked]
    load_installed(choice.name for recipe in recipes for choice in recipe.parts)
    with use_threads(1):
        plans = [plan_of_recipe(with_encoder(recipe, open_encoder(recipe))) for recipe in recipes]
        found = audit_each(plans)
    passports = [
        {"task": each["task"], "variant": each["variant"], "passport": as_passport(each["variant"], findings)}
        for each, findings in zip(asked, found, strict=True)
    ]
    return {"passports": passports}


def baselines_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    """Arrays are named `baseline/set/what`; the JSON beside them is written last, so that what has it is whole."""
    outcomes = baseline_outcomes(recipe_from(tomllib.loads(job.recipe)), job.seed)
    arrays = {f"{name}/{place}": array for name, places in outcomes.items() for place, array in places.items()}
    path = Path(job.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path.with_name(path.name + ".safetensors"), save(arrays))
    facts = {"format": 1, "mark": job.options["mark"], "seed": job.seed, "baselines": list(outcomes)}
    write_text(path.with_name(path.name + ".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return facts


def audit_data_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    return audit_data(recipe_from(tomllib.loads(job.recipe)), job.seed)


def attention_job(job: Job, on_event: OnEvent, stop: Stop) -> dict[str, Any]:
    load_files(Path(name) for name in job.plugins)
    with use_threads(1):
        maps = attention_maps(load(Record.open(Path(job.folder))), job.options["sentence"])
    weights = maps.weights[:, :, : maps.real, : maps.real].round(4)
    return {"words": list(maps.words[: maps.real]), "weights": weights.tolist()}
