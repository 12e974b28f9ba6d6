"""Recipe + seed -> record. The whole flow: the file to read first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from fairtrial import environment
from fairtrial.data.corpus import Corpus
from fairtrial.data.readers import find_format, read
from fairtrial.data.splits import fitting_tokens, kind_in_use, shape_documents, split
from fairtrial.data.tokenizer import NO_COURSE, Tokenizer, fit
from fairtrial.disk import ensure_room, sha256_of, write_bytes
from fairtrial.environment import keep_freed_memory, peak_memory_mb
from fairtrial.errors import BadInput, EnvironmentChanged, Interrupted
from fairtrial.model.network import count_parameters
from fairtrial.notes import notes_on
from fairtrial.plugins import load_installed, require_plugins
from fairtrial.pretrained.encoder import fill, is_record, open_encoder, take_vocabulary, with_encoder
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record, ensure_free
from fairtrial.statistics.outcomes import headline
from fairtrial.training.checkpoint import Checkpoints, weights_of
from fairtrial.training.loop import Event, Loop
from fairtrial.training.tasks import Task, build_task

Listener = Callable[[Event], None]


def run_trial(
    recipe: Recipe,
    seed: int,
    folder: Path,
    *,
    threads: int = 1,
    listen: Listener = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    save_seconds: float = 10.0,
    plugins: Mapping[str, str] = {},
) -> Record:
    """Train and score one recipe at one seed. Nothing is written before data, tokenizer and network stand.

    `plugins`: files that were loaded for this trial (`load_files`), with their sha256."""
    ensure_free(folder)
    plugins = {**plugins, **load_installed(choice.name for choice in recipe.parts)}
    with use_machine(threads):
        encoder = open_encoder(recipe)
        recipe = with_encoder(recipe, encoder)
        corpus = read(recipe.data, recipe.task)
        recipe = replace(recipe, tokens=fitting_tokens(corpus, recipe.tokens))
        corpus = shape_documents(corpus, kind_in_use(recipe.tokens, encoder.tokenizer.facts if encoder else {}))
        splits = split(corpus, recipe.data, seed)
        tokenizer = fit_tokenizer(recipe, corpus, [document.text for document in splits.train])
        tokenizer = replace(tokenizer, facts=tokenizer.facts | {"by_sentences": by_sentences(recipe, corpus)})
        bench = build_task(recipe, seed, splits, tokenizer)
        fresh = fill(bench.network, encoder) if encoder else []
        trial = {
            "format": 1,
            "seed": seed,
            "recipe": fingerprint(recipe),
            "data": corpus.files,
            "code": environment.code_fingerprint(),
            "environment": environment.describe(threads),
            "labels": list(splits.labels),
            "test_sets": list(splits.tests),
            "tokenizer": tokenizer.facts,
            "cite": corpus.cite,
            "notes": [*corpus.notes, *notes_on(recipe, splits, tokenizer, bench.facts.get("cut_to_length", {}))],
            "plugins": plugins,
            **({"encoder": {"sha256": encoder.sha256, "fresh": fresh}} if encoder else {}),
            **bench.facts,
        }
        with Record.create(folder, located(recipe), trial, tokenizer.to_json()) as record:
            return _finish(record, bench, seed, listen, stop, save_seconds)


def resume_trial(
    folder: Path,
    *,
    listen: Listener = lambda event: None,
    stop: Callable[[], bool] = lambda: False,
    save_seconds: float = 10.0,
    anyway: bool = False,
) -> Record:
    """Go on where a killed trial was saved last, to the same bits as if it had never stopped."""
    record = Record.open(folder)
    if record.complete:
        record.drop_checkpoints()
        return record
    with record.hold():
        if record.complete:  # another process has ended it while this one came to hold it
            return record
        recipe, trial = record.recipe, record.trial
        threads = int(trial["environment"]["threads"])
        load_installed(choice.name for choice in recipe.parts)
        if not anyway:
            refuse_changed_environment(trial, threads)
            require_plugins(record)
        with use_machine(threads):
            corpus = read(recipe.data, recipe.task)
            if corpus.files != trial["data"]:
                raise BadInput(
                    f"the data have changed since {folder} was begun", "start a new record with `fairtrial train`"
                )
            splits = split(
                shape_documents(corpus, kind_in_use(recipe.tokens, trial["tokenizer"])), recipe.data, trial["seed"]
            )
            bench = build_task(
                recipe, trial["seed"], splits, Tokenizer.load(folder / "tokenizer.json", trial["tokenizer"])
            )
            if encoder := open_encoder(recipe):
                fill(bench.network, encoder)
            return _finish(record, bench, trial["seed"], listen, stop, save_seconds)


def _finish(
    record: Record,
    bench: Task,
    seed: int,
    listen: Listener,
    stop: Callable[[], bool],
    save_seconds: float,
) -> Record:
    """Train from the last checkpoint, if any, to the end; then score the test sets once and write the result."""
    recipe = record.recipe
    loop = Loop(bench, recipe.training, recipe.scoring, seed)
    checkpoints = Checkpoints(record.folder / "checkpoints")
    ensure_room(record.folder, 3 * checkpoints.size_needed(loop))

    def notice(text: str) -> None:
        listen(Event("notice", loop.progress.step, {"text": text}))

    def tell(split: str, share: float) -> None:
        listen(Event("testing", loop.progress.step, {"split": split, "share": share}))
        if stop():
            raise Interrupted(
                f"stopped while scoring {split}; all is saved", f"go on with: fairtrial resume {record.folder}"
            )

    saved = checkpoints.load(loop, record.events_size(), notice)
    record.cut_events(saved or 0)
    listen(Event("start", loop.progress.step, start_facts(record, bench, loop)))
    record.add_time(loop.progress.step, what="resume" if saved is not None else "start")
    last_save = ready = time.monotonic()
    spent: list[float] = []  # seconds of each step alone, without what is scored or written between steps
    for event in loop.run():
        if event.kind == "step":
            spent.append(time.monotonic() - ready)
        listen(event)
        if event.kind != "ready":
            record.add_event({"event": event.kind, "step": event.step, **event.facts})
            continue
        ready = time.monotonic()
        stopping = stop()
        if stopping or time.monotonic() - last_save >= save_seconds:
            checkpoints.save(loop, record.sync_events())
            record.add_time(event.step, what="save")
            last_save = ready = time.monotonic()
        if stopping:
            hint = f"go on with: fairtrial resume {record.folder}"
            raise Interrupted(f"stopped after step {event.step} of {loop.steps}; all is saved", hint)
    checkpoints.save(loop, record.sync_events())
    pace = {"step_seconds": round(float(np.median(spent)), 6)} if spent else {}
    record.add_time(loop.progress.step, what="trained", **pace)
    kept = loop.keep_best()
    write_bytes(record.folder / "model.safetensors", save(weights_of(bench.network)))
    write_result(record, bench, loop, kept, tell)
    record.drop_checkpoints()
    record.add_time(loop.progress.step, what="end", peak_memory_mb=peak_memory_mb())
    listen(Event("end", loop.progress.step, record.result))
    return record


def write_result(record: Record, bench: Task, loop: Loop, kept: int, tell: Callable[[str, float], None]) -> None:
    """Score the kept weights, the test sets among them this once, and write what came of it."""
    trial = record.trial
    tests = trial["test_sets"] if record.recipe.scoring.tests else []
    scores = {name: bench.score(name, partial(tell, name)) for name in ("validation", *tests) if name in bench.sets}
    outcomes: dict[str, np.ndarray] = {
        f"{name}/{what}": values for name, score in scores.items() for what, values in score.outcomes.items()
    }
    record.write_outcomes(outcomes)
    looks = [event for event in record.events() if event["event"] == "score"]
    result = {
        "format": 1,
        "task": record.recipe.task,
        "seed": trial["seed"],
        "parameters": count_parameters(bench.network),
        "steps": loop.progress.step,
        "steps_per_epoch": loop.steps_per_epoch,
        "kept_step": kept,
        "kept": record.recipe.training.keep,
        "stopped": loop.progress.stopped,
        "test_watched": record.recipe.scoring.watch_test,
        "test_reads": {
            name: (name in scores) + sum(look["split"] == name for look in looks) for name in trial["test_sets"]
        },
        "train": bench.quick_score("train").metrics,
        "validation": scores["validation"].metrics if "validation" in scores else None,
        "tests": {name: scores[name].metrics for name in tests},
        "picked_on_test": picked_on_test(looks, trial["test_sets"]),
        "model_sha256": sha256_of(record.folder / "model.safetensors"),
    }
    record.write_json("result.json", result)


def picked_on_test(looks: list[dict[str, Any]], tests: list[str]) -> dict[str, dict[str, Any]]:
    """What a report would quote that picks its best moment on the test set. Optimistic: shown, never used."""
    best: dict[str, dict[str, Any]] = {}
    for look in looks:
        name = look["split"]
        if name in tests:
            key, sign = headline(look)
            if name not in best or sign * look[key] > sign * best[name][key]:
                best[name] = {key: look[key], "step": look["step"]}
    return best


def fit_tokenizer(recipe: Recipe, corpus: Corpus, train_texts: list[str]) -> Tokenizer:
    if encoder := open_encoder(recipe):
        return encoder.tokenizer
    marks, mask = recipe.task == "lm" and not corpus.running, recipe.task == "mlm"
    if recipe.tokens.fit == "course":
        if not corpus.course_lines:
            raise BadInput(*NO_COURSE)
        return fit(recipe.tokens, corpus.course_lines, marks=marks, mask=mask)
    if is_record(recipe.tokens.fit):
        return take_vocabulary(Path(recipe.tokens.fit), train_texts)
    if recipe.tokens.fit != "train":
        raise BadInput(
            f"tokens.fit = {recipe.tokens.fit!r} is not known; there is: train, course, or a record's folder"
        )
    return fit(recipe.tokens, train_texts, marks=marks, mask=mask)


def by_sentences(recipe: Recipe, corpus: Corpus) -> bool:
    """Whether documents are sentences: a text of a user's is then read sentence by sentence, too."""
    return corpus.paragraphs or find_format(recipe.data) in ("sotu", "course")


def start_facts(record: Record, bench: Task, loop: Loop) -> dict[str, Any]:
    return {
        "folder": str(record.folder),
        "task": record.recipe.task,
        "parameters": count_parameters(bench.network),
        "shape": asdict(record.recipe.shape),  # a pretrained encoder brings its own
        "parts": [asdict(choice) for choice in record.recipe.parts],
        "steps": loop.steps,
        "steps_per_epoch": loop.steps_per_epoch,
        "choose_on": bench.choose_on,
        "seed": record.trial["seed"],
        "notes": record.trial["notes"],
        **bench.facts,
    }


def refuse_changed_environment(trial: dict[str, Any], threads: int) -> None:
    now = environment.describe(threads)
    for name in environment.DECISIVE:
        if now[name] != trial["environment"][name]:
            what = f"this record was begun with {name} {trial['environment'][name]}, here it is {now[name]}"
            raise EnvironmentChanged(f"{what}: the bits would differ", "resume with --anyway to accept that")
    if trial["code"] != environment.code_fingerprint():
        raise EnvironmentChanged(
            "fairtrial's own code has changed since this record was begun", "resume with --anyway to accept that"
        )


def located(recipe: Recipe) -> Recipe:
    """The recipe with its data's whole path, so that the record can be resumed from anywhere."""
    path = Path(recipe.data.source)
    if not path.exists() or find_format(recipe.data) == "sotu":
        return recipe
    return replace(recipe, data=replace(recipe.data, source=str(path.resolve())))


@contextmanager
def use_machine(threads: int) -> Iterator[None]:
    """One thread by default: at this size more threads are slower, and their number decides the bits."""
    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
