"""Recipe + seed -> record, and back: prepare, train, record; resume; load. The file to read first."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from fairtrial.disk import ensure_room, sha256_of, write_bytes
from fairtrial.environment import busy_load, changed_since, check_environment, peak_memory_mb, use_threads
from fairtrial.errors import Interrupted
from fairtrial.events import Ended, Estimated, Event, FinalScoring, Notice, Ready, ScoringBaseline, Stepped
from fairtrial.model.external import check_optimizer
from fairtrial.plugins import code_names, keep_written, load_code, require_plugins
from fairtrial.prepare import Prepared, prepare, prepare_like
from fairtrial.progress import status
from fairtrial.provenance import located, started, trial_info, trial_result
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record, ensure_free
from fairtrial.run import Run, require_task
from fairtrial.training.checkpoint import Checkpoints, check_resumes
from fairtrial.training.device import deterministic
from fairtrial.training.loop import Loop, put_weights, timed_loop, weights_of
from fairtrial.training.scoring import Score
from fairtrial.training.tasks import Task, build_network

OnEvent = Callable[[Event], None]
Stop = Callable[[], bool]


def run_trial(
    recipe: Recipe,
    seed: int,
    folder: Path,
    *,
    threads: int = 1,
    on_event: OnEvent = lambda event: None,
    stop: Stop = lambda: False,
    save_seconds: float = 10.0,
    plugins: Mapping[str, str] = {},
    with_baseline: bool = False,
) -> Record:
    """Train and score one recipe at one seed. Nothing is written before data, tokenizer and network are ready.

    `plugins`: files that were loaded for this trial (`load_files`), with their sha256. `with_baseline`: when all is
    done, score a simple model on the same items, too."""
    ensure_free(folder)
    check_optimizer(recipe.training.optimizer)
    sources = keep_written(code_names(recipe))
    digests = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in sources.items()}
    plugins = {**plugins, **load_code(recipe), **digests}
    with use_threads(threads):
        prepared = prepare(recipe, seed)
        check_resumes(prepared.task.network, recipe.training)
        if recipe.training.duration.seconds is not None:
            prepared = in_steps(prepared, on_event)
        info = trial_info(prepared, threads, plugins, asked=fingerprint(recipe))
        with Record.create(folder, located(prepared.recipe), info, prepared.tokenizer.to_json(), sources) as record:
            return train(prepared, record, on_event, stop, save_seconds, with_baseline=with_baseline)


def in_steps(prepared: Prepared, on_event: OnEvent) -> Prepared:
    """With a duration in time as the number of steps that fill it here: the recipe of the record holds the steps, so
    that a resumed or repeated trial takes the same."""
    recipe = prepared.recipe
    training = recipe.training
    _, pace = timed_loop(prepared.task, training, recipe.scoring, prepared.seed)
    duration = training.duration.at_pace(pace)
    on_event(Notice(0, f"{training.duration} of training: {duration}, at {1000 * pace:.1f} ms each"))
    recipe = replace(recipe, training=replace(training, duration=duration))
    return replace(prepared, recipe=recipe, saved_tokenizer=prepared.tokenizer)  # with a network of its own


def resume_trial(
    folder: Path,
    *,
    on_event: OnEvent = lambda event: None,
    stop: Stop = lambda: False,
    save_seconds: float = 10.0,
    ignore_changes: bool = False,
    with_baseline: bool = False,
) -> Record:
    """Go on from the last checkpoint, to the same bits as if the trial had never been interrupted."""
    record = Record.open(folder)
    if record.complete:
        record.tidy()
        return record
    with record.hold():
        if record.complete:  # another process has finished it meanwhile
            return record
        record.check_unedited()
        if ignore_changes:
            load_code(record.recipe)
            record = record.note_changes(changed_since(record.trial))
        else:
            check_environment(record.trial)
            require_plugins(record)
        with use_threads(record.trial.environment.threads):
            return train(prepare_like(record), record, on_event, stop, save_seconds, with_baseline=with_baseline)


def train(
    prepared: Prepared, record: Record, on_event: OnEvent, stop: Stop, save_seconds: float, *, with_baseline: bool
) -> Record:
    """Train from the last checkpoint, if any, to the end; then score the test sets once and write the result."""
    recipe, task = record.recipe, prepared.task
    loop = Loop(task, recipe.training, recipe.scoring, record.trial.seed)
    checkpoints = Checkpoints(record.folder / "checkpoints")
    ensure_room(record.folder, 3 * checkpoints.size_needed(loop))

    def notice(text: str) -> None:
        on_event(Notice(loop.progress.step, text))

    def interrupt(when: str) -> Interrupted:
        hint, python = f"fairtrial train --resume {record.folder}", f"ft.resume({str(record.folder)!r})"
        return Interrupted(f"stopped {when}; all is saved", f"continue with: {hint}", f"continue with: {python}")

    def on_progress(split: str, share: float) -> None:
        on_event(FinalScoring(loop.progress.step, split, share))
        if stop():
            raise interrupt(f"while scoring {split}")

    scored = final_sets(task, record)
    saved = checkpoints.load(loop, record.log.sha256_at, notice)
    record.log.cut(saved or 0)
    on_event(started(record, prepared, loop))
    begun = sha256_of(record.folder / "trial.json")
    record.add_time(loop.progress.step, "resume" if saved is not None else "start", trial=begun)
    last_save = step_start = time.perf_counter()  # Windows' other clock ticks every 16 ms, longer than a step
    step_seconds: list[float] = []  # of each step alone, without what is scored or written between steps
    with deterministic(loop.device) as lost:
        for event in loop.run():
            if isinstance(event, Stepped):
                step_seconds.append(time.perf_counter() - step_start)
            on_event(event)
            if not isinstance(event, Ready):
                record.log.add(event)
                continue
            if not event.step:
                final = loop.final_seconds(scored)
                on_event(Estimated(0, round(final or 0.0, 1), tuple(scored)))
            stopping, step_start = stop(), time.perf_counter()
            if stopping or step_start - last_save >= save_seconds:
                checkpoints.save(loop, *record.log.sync())
                record.add_time(event.step, "save")
                last_save = step_start = time.perf_counter()
            if stopping:
                raise interrupt(f"after step {event.step} of {loop.steps}")
    checkpoints.save(loop, *record.log.sync())
    pace = round(float(np.median(step_seconds)), 6) if step_seconds else None
    record.add_time(loop.progress.step, "trained", step_seconds=pace, load=busy_load())
    best_step = loop.restore_best()
    write_bytes(record.folder / "model.safetensors", save_tensors(weights_of(task.network)))
    scores = final_scores(task, record, on_progress)
    outcomes = {f"{name}/{what}": array for name, score in scores.items() for what, array in score.outcomes.items()}
    record.write_outcomes(outcomes)
    record.write_result(trial_result(record, task, loop, best_step, scores, lost))
    record.drop_leftovers()
    record.add_time(loop.progress.step, "end", peak_memory_mb=peak_memory_mb())
    if with_baseline and not stop():  # the record is complete: nothing of the trial depends on it
        from fairtrial.baselines.run import score_baseline

        with status("scoring a simple model on the same items"):
            score_baseline(record, prepared, lambda name: on_event(ScoringBaseline(loop.progress.step, name)))
    on_event(Ended(loop.progress.step, record.result, record.baseline))
    return record


def final_scores(
    task: Task, record: Record, on_progress: Callable[[str, float], None] = lambda split, share: None
) -> dict[str, Score]:
    """Of validation and, unless the recipe leaves them alone, of every test set: exact ones, outcome by outcome."""
    return {name: task.score(name, partial(on_progress, name)) for name in final_sets(task, record)}


def final_sets(task: Task, record: Record) -> list[str]:
    scored = ["validation", *(record.trial.test_sets if record.recipe.scoring.tests else [])]
    return [name for name in scored if name in task.sets]


def load(record: Record | Path, task: str | None = None, *, ignore_changes: bool = False) -> Run:
    """A record's trained network and tokenizer; `task`: the only kind of network that will do."""
    if isinstance(record, Path):
        record = Record.open(record)
    recipe, trial = record.recipe, record.trial
    if task is not None:
        require_task(record, task)
    content = record.weights()
    if not ignore_changes:  # else its parts are what was loaded for it, changed or not
        require_plugins(record)
    tokenizer, labels = record.tokenizer(), trial.labels
    network = build_network(recipe, trial.seed, tokenizer.size, len(labels))
    put_weights(network, load_tensors(content))
    return Run(record, recipe, trial.seed, tokenizer, labels, network.eval())
