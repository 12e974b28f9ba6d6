"""What a record says of its trial: where it comes from, its numbers, and what to know before believing them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial import environment
from fairtrial.data.batches import Windows
from fairtrial.data.corpus import Splits
from fairtrial.data.readers import find_format
from fairtrial.disk import sha256_of
from fairtrial.model.network import count_parameters
from fairtrial.pretrained.encoder import fresh_parameters
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record
from fairtrial.report.words import copies_text
from fairtrial.statistics.outcomes import headline
from fairtrial.training.device import device_of

if TYPE_CHECKING:
    from fairtrial.prepare import Prepared
    from fairtrial.training.loop import Loop
    from fairtrial.training.scoring import Score
    from fairtrial.training.tasks import Task

FEWEST_POINTS = 4  # of a validation curve that says how training ended
LATE, STILL, WORSE = 0.2, 0.02, 0.1  # the last fifth of training; shares of the loss that was learned


def trial_facts(prepared: Prepared, threads: int, plugins: Mapping[str, str]) -> dict[str, Any]:
    """trial.json: all that decides a trial beside its recipe, and what became of its data."""
    corpus, splits, tokenizer = prepared.corpus, prepared.splits, prepared.tokenizer
    task, encoder = prepared.task, {}
    if prepared.encoder is not None:
        fresh = fresh_parameters(task.network, prepared.encoder)
        encoder = {"encoder": {"sha256": prepared.encoder.sha256, "fresh": fresh}}
    return {
        "seed": prepared.seed,
        "recipe": fingerprint(prepared.recipe),
        "data": corpus.files,
        "code": environment.code_fingerprint(),
        "environment": environment.describe(threads) | computed_on(task),
        "labels": list(splits.labels),
        **({"class_names": [splits.class_names[label] for label in splits.labels]} if splits.class_names else {}),
        "test_sets": list(splits.tests),
        "tokenizer": tokenizer.facts,
        "cite": corpus.cite,
        "notes": [*prepared.notes, *notes_on(prepared, task)],
        "plugins": dict(plugins),
        **encoder,
        **task.facts,
    }


def computed_on(task: Task) -> dict[str, str]:
    """Device and precision, where they are not the usual ones."""
    usual = {"device": "cpu", "precision": "float32"}
    here = {"device": str(device_of(task.network)), "precision": task.network.precision}
    return {name: value for name, value in here.items() if value != usual[name]}


def start_facts(record: Record, task: Task, loop: Loop) -> dict[str, Any]:
    """What is shown when training starts."""
    return {
        "folder": str(record.folder),
        "task": record.recipe.task,
        "parameters": count_parameters(task.network),
        "shape": asdict(record.recipe.shape),  # a pretrained encoder brings its own
        "parts": [asdict(choice) for choice in record.recipe.parts],
        "steps": loop.steps,
        "steps_per_epoch": loop.steps_per_epoch,
        "choose_on": task.choose_on,
        "select_every": loop.select_every,
        "seed": record.trial["seed"],
        "notes": record.trial["notes"],
        **task.facts,
    }


def memory_facts(prepared: Prepared) -> dict[str, int]:
    """What training will take, where we built the network, and what is free."""
    free = environment.bytes_free()
    needed = 0 if prepared.recipe.external else prepared.memory_needed
    return {"memory_mb": round(needed / 1e6)} | ({"free_mb": round(free / 1e6)} if free < math.inf else {})


def result_facts(record: Record, task: Task, loop: Loop, best_step: int, scores: Mapping[str, Score]) -> dict[str, Any]:
    """result.json. The test sets were scored for it this once, unless the recipe watches them."""
    recipe, tests = record.recipe, record.trial["test_sets"]
    curve = [event for event in record.events() if event["event"] == "score"]
    named = () if recipe.external else task.network.body.parts.items()
    notes = [f"{name}: {note}" for name, part in named for note in part.notes()]
    rule = "accuracy" if recipe.task == "classify" else "loss"  # as `Score.selection_key`
    return {
        "task": recipe.task,
        "seed": record.trial["seed"],
        "parameters": count_parameters(task.network),
        "steps": loop.progress.step,
        "steps_per_epoch": loop.steps_per_epoch,
        "kept_step": best_step,
        "kept": recipe.training.keep,
        "chosen_by": f"validation {rule}" if task.choose_on and recipe.training.keep == "best" else None,
        **dict(zip(("training_end", "best_step"), training_end(curve), strict=True)),
        **({"part_notes": notes} if notes else {}),
        "stopped": loop.progress.stopped,
        "test_watched": recipe.scoring.watch_test,
        "test_reads": {name: (name in scores) + sum(point["split"] == name for point in curve) for name in tests},
        "train": task.quick_score("train").metrics,
        "validation": scores["validation"].metrics if "validation" in scores else None,
        "tests": {name: score.metrics for name, score in scores.items() if name != "validation"},
        "picked_on_test": picked_on_test(curve, tests),
        "model_sha256": sha256_of(record.folder / "model.safetensors"),
    }


def training_end(curve: list[dict[str, Any]]) -> tuple[str, int | None]:
    """How training ended, from the validation loss, and the step at which that was best. `still improving` at the last
    step, `overfitted` (it had been clearly better before) or `settled`; empty where scores are too few. Measured in
    shares of all that was learned."""
    points = {point["step"]: nll_of(point) for point in curve if point["split"] == "validation"}
    if not points:
        return "", None
    best_step, last_step = min(points, key=points.__getitem__), max(points)
    if len(points) < FEWEST_POINTS:
        return "", best_step
    best, last, late = points[best_step], points[last_step], (1 - LATE) * last_step
    learned = points[min(points)] - best
    before = min(loss for step, loss in points.items() if step <= late)  # a bump on the way is no improvement
    if before - last > STILL * learned:
        return "still improving", best_step
    worse = last - best > WORSE * learned and best_step <= late
    return "overfitted" if worse else "settled", best_step


def nll_of(point: Mapping[str, Any]) -> float:
    """The loss of a scored split: of a classifier, a language model or a masked one."""
    return float(next(point[key] for key in ("nll", "window_nll", "masked_nll") if key in point))


def picked_on_test(curve: list[dict[str, Any]], tests: list[str]) -> dict[str, dict[str, Any]]:
    """What a report would quote that picks its best moment on the test set. Optimistic: shown, never used."""
    best: dict[str, dict[str, Any]] = {}
    for point in curve:
        name = point["split"]
        if name in tests:
            key, sign = headline(point)
            if name not in best or sign * point[key] > sign * best[name][key]:
                best[name] = {key: point[key], "step": point["step"]}
    return best


def located(recipe: Recipe) -> Recipe:
    """The recipe with the absolute path of its data, so that the record can be resumed from anywhere."""
    data = recipe.data
    if Path(data.source).exists() and find_format(data) != "sotu":
        data = replace(data, source=str(Path(data.source).resolve()))
    return replace(recipe, data=data)


def notes_on(prepared: Prepared, task: Task) -> list[str]:
    recipe, splits, tokenizer = prepared.recipe, prepared.splits, prepared.tokenizer
    cut = task.facts.get("cut_to_length", {})  # how many documents of each split are longer than the model's length
    notes = [*copies_notes(prepared), *cuts(recipe, splits, cut), *epoch_notes(task, recipe.training.accumulate)]
    if tokenizer.unknown is not None and not tokenizer.facts["unknown_trained"]:
        notes.append(
            "the unknown token never occurs in training, so its weights are untrained (raise tokens.min_count)"
        )
    if recipe.tokens.fit == "course":
        notes.append("the tokenizer was fitted on both training files, labels included, not on the training split")
    if recipe.scoring.watch_test:
        notes.append("test watched: the test sets were scored during training")
    if recipe.external:
        notes.append(
            f"the network is {recipe.model.name}: its first weights are its own, not shared with other variants"
        )
    if not splits.validation:
        notes.append("no validation set: weights could not be selected without the test set")
    return notes


def copies_notes(prepared: Prepared) -> list[str]:
    counts = {name: found.counts() for name, found in prepared.copies.items()}
    return [
        f"{name}: {copies_text(found)}; on copies a score tests memory"
        for name, found in counts.items()
        if found["share"]
    ]


def epoch_notes(task: Task, accumulate: int) -> list[str]:
    """What an epoch is, where it is not one pass over the text."""
    batches = task.batches
    if not isinstance(batches, Windows) or batches.how != "every":
        return []
    passing = max(1, round(batches.batches_per_epoch() / accumulate / batches.length))
    return [
        f"windows overlap (data.windows = 'every'): one of {batches.length} tokens begins at every token, so an epoch"
        f" reads each token {batches.length} times; one pass over the text, usually called an epoch, is about"
        f" {passing:,} steps"
    ]


def cuts(recipe: Recipe, splits: Splits, cut: Mapping[str, int]) -> list[str]:
    sizes = {"train": len(splits.train), "validation": len(splits.validation)}
    sizes |= {name: len(documents) for name, documents in splits.tests.items()}
    counts = [f"{count:,} of {sizes[name]:,} {name}" for name, count in cut.items() if count]
    if not counts:
        return []
    longer = f"longer than {recipe.shape.length} tokens (shape.length), so only their beginning is read"
    return [f"{longer}: {', '.join(counts)} documents"]
