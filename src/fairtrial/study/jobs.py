"""The functions behind a study's jobs: each runs in the process that has the job, and returns a value."""

from __future__ import annotations

import hashlib
import shutil
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from safetensors.numpy import save

from fairtrial.audit.run import audit_plans, audit_record
from fairtrial.audit.subject import Plan as AuditPlan
from fairtrial.audit.subject import Text, plan_of_recipe
from fairtrial.baselines.run import baseline_outcomes
from fairtrial.data.audit import audit_data
from fairtrial.disk import disk_errors, write_bytes
from fairtrial.engines import AuditedVariant, Job, OnEvent, Stop
from fairtrial.environment import use_threads
from fairtrial.errors import Busy, EnvironmentChanged
from fairtrial.events import (
    Event,
    FinalScoring,
    JobNotice,
    JobScoring,
    JobStepped,
    Notice,
    Started,
    Stepped,
)
from fairtrial.finding import Passport
from fairtrial.inspection.parameters import flops_of, ledger_of
from fairtrial.plugins import load_code, load_files
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import recipe_from
from fairtrial.record import Record
from fairtrial.stored import Calibration, DataAudit, StoredBaselines, TrialResult, write_document
from fairtrial.training.checkpoint import check_resumes
from fairtrial.training.loop import Loop, timed, timed_loop
from fairtrial.trial import resume_trial, run_trial

BUSY_SECONDS = 30.0  # a process whose caller was killed ends after its step
AFTER_TRAINING = ("M3", "M7", "V3", "V5", "V6", "T1", "F1", "F2")  # checks of a trained network


def trial_job(job: Job, on_event: OnEvent, stop: Stop) -> TrialResult:
    """Run a trial, or resume it."""
    recipe, folder = recipe_from(tomllib.loads(job.recipe)), Path(job.folder)
    plugins = load_files(Path(name) for name in job.plugins)
    steps = 0

    def forward(event: Event) -> None:
        nonlocal steps
        if isinstance(event, Started):
            steps = event.steps
        if isinstance(event, Started | Stepped):
            on_event(JobStepped(job.key, job.kind, event.step, steps))
        elif isinstance(event, FinalScoring):
            on_event(JobScoring(job.key, job.kind, event.split, event.share))
        elif isinstance(event, Notice):
            on_event(JobNotice(job.key, job.kind, event.text))

    if (folder / "trial.json").is_file():
        try:
            return retry_while_locked(partial(resume_trial, folder, on_event=forward, stop=stop)).result
        except EnvironmentChanged as error:  # begun by another torch, machine or code: its bits would be nobody's
            text = f"{'/'.join(job.key)} is started again: {error.what}"
            on_event(JobNotice(job.key, job.kind, text))
            shutil.rmtree(folder)
    begin = partial(run_trial, recipe, job.seed, folder, plugins=plugins, on_event=forward, stop=stop)
    return retry_while_locked(begin).result


def retry_while_locked(write: Callable[[], Record]) -> Record:
    """Where a process of a killed study is still saving, wait for it."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return write()
        except Busy:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def calibrate_job(job: Job, on_event: OnEvent, stop: Stop) -> Calibration:
    """A few real steps of a variant, so that the time of its trials is known before they run; and what its network
    costs. No test set is read."""
    load_files(Path(name) for name in job.plugins)
    recipe = recipe_from(tomllib.loads(job.recipe))
    load_code(recipe)
    with use_threads(1):
        started = time.monotonic()
        prepared = prepare(recipe, job.seed)
        task = prepared.task
        check_resumes(task.network, recipe.training)
        set_up_seconds = time.monotonic() - started
        loop, pace = timed_loop(task, recipe.training, recipe.scoring, job.seed)
        parameters = sum(row.count for row in ledger_of(task.network).rows)
        flops = flops_of(task.network, rows_in_step=recipe.training.batch).per_step
        score_seconds, final_seconds = scoring_seconds(loop)
        return Calibration(
            set_up_seconds=round(set_up_seconds, 3),
            step_seconds=round(pace, 6),
            score_seconds=round(score_seconds, 3),
            final_seconds=round(final_seconds, 3),
            steps=loop.steps,
            steps_per_epoch=loop.steps_per_epoch,
            parameters=parameters,
            flops_per_step=flops,
            memory_mb=round(prepared.memory_needed / 1e6, 1),
        )


def scoring_seconds(loop: Loop) -> tuple[float, float]:
    """Of one trial: for selection and for the curves, which grows with its steps; and of the sets at the end."""
    task = loop.task
    known = "validation" if "validation" in task.sets else "train"
    quick = timed(lambda: loop.score(known))
    pace = quick / max(1, task.work(known, quick=True))
    curve = pace * sum(task.work(split, quick=True) for split in task.curves)
    selection = (loop.steps / loop.select_every) * quick if task.choose_on else 0.0
    at_the_end = [split for split in task.sets if split != "train"]
    return selection + (loop.steps / loop.curve_every + 1) * curve, loop.final_seconds(at_the_end) or 0.0


def passport_job(job: Job, on_event: OnEvent, stop: Stop) -> tuple[AuditedVariant, ...]:
    """Leak audits of variants. Several share the two processes that prove determinism, which take longer to start than
    all else."""
    load_files(Path(name) for name in job.plugins)
    recipes = [recipe_from(tomllib.loads(subject.recipe)) for subject in job.subjects]
    for recipe in recipes:
        load_code(recipe)
    with use_threads(1):
        prepared = [prepare(recipe, job.seed) for recipe in recipes]
        plans = [audited_plan(each) for each in prepared]
        audits = audit_plans(plans, texts=[Text.of(each) for each in prepared])
    return tuple(
        AuditedVariant(subject.task, subject.variant, Passport.of(subject.variant, findings))
        for subject, findings in zip(job.subjects, audits, strict=True)
    )


def audited_plan(prepared: Prepared) -> AuditPlan:
    """With the real vocabulary and classes."""
    plan = plan_of_recipe(prepared.recipe)
    return replace(plan, vocabulary=prepared.tokenizer.size, classes=max(1, len(prepared.splits.labels)))


def trained_job(job: Job, on_event: OnEvent, stop: Stop) -> Passport:
    """A trained network, on its own text: what can have changed since it was built."""
    load_files(Path(name) for name in job.plugins)
    record = Record.open(Path(job.folder))
    with use_threads(1):
        return audit_record(record, only=AFTER_TRAINING)


def baselines_job(job: Job, on_event: OnEvent, stop: Stop) -> StoredBaselines:
    """Baselines, fitted and scored as a trial of that seed would be. Arrays are named `baseline/set/what`; the JSON
    file beside them is written last, so that what has it is complete."""
    outcomes = baseline_outcomes(recipe_from(tomllib.loads(job.recipe)), job.seed)
    arrays = {f"{name}/{key}": array for name, named in outcomes.items() for key, array in named.items()}
    path = Path(job.folder)
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    content = save(arrays)
    write_bytes(Path(f"{path}.safetensors"), content)
    checksum = hashlib.sha256(content).hexdigest()
    stored = StoredBaselines(job.mark, job.seed, tuple(outcomes), checksum)
    write_document(Path(f"{path}.json"), stored)
    return stored


def contamination_job(job: Job, on_event: OnEvent, stop: Stop) -> DataAudit:
    return audit_data(recipe_from(tomllib.loads(job.recipe)), job.seed)
