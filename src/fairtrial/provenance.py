"""What a record says of its trial: where it comes from, its numbers, and what to know before believing them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial import environment
from fairtrial.data.corpus import Splits
from fairtrial.data.readers import find_format
from fairtrial.disk import sha256_of
from fairtrial.events import Scored, Started
from fairtrial.formatting import copies_text
from fairtrial.model.network import count_parameters
from fairtrial.pretrained.checkpoint import fresh_parameters
from fairtrial.recipe import Recipe, fingerprint
from fairtrial.record import Record
from fairtrial.stored import (
    HEADLINES,
    AttentionUse,
    EncoderInfo,
    Ending,
    Environment,
    PickedOnTest,
    TrialInfo,
    TrialResult,
)
from fairtrial.training.device import device_of
from fairtrial.typed import structure

if TYPE_CHECKING:
    from fairtrial.prepare import Prepared
    from fairtrial.training.loop import Loop
    from fairtrial.training.scoring import Score
    from fairtrial.training.tasks import Task

FEWEST_POINTS = 4  # of a validation curve that says how training ended
LATE, STILL, WORSE = 0.2, 0.02, 0.1  # the last fifth of training; shares of the loss that was learned
NOTICED = 0.01  # nats, the usual margin of a study: a smaller change says nothing, however little was learned


def trial_info(prepared: Prepared, threads: int, plugins: Mapping[str, str], asked: str) -> TrialInfo:
    """What is known of a trial before its first step. `asked`: the fingerprint of the recipe as it was given."""
    corpus, splits, task = prepared.corpus, prepared.splits, prepared.task
    encoder = None
    if prepared.encoder is not None:
        fresh = fresh_parameters(task.network, prepared.encoder)
        encoder = EncoderInfo(prepared.encoder.sha256, tuple(fresh))
    return TrialInfo(
        seed=prepared.seed,
        recipe=fingerprint(prepared.recipe),
        asked=asked,
        data=corpus.files,
        code=environment.code_fingerprint(),
        environment=computed_on(task, environment.describe(threads)),
        labels=splits.labels,
        class_names=tuple(splits.class_names[label] for label in splits.labels) if splits.class_names else (),
        test_sets=tuple(splits.tests),
        tokenizer=prepared.tokenizer.facts,
        cite=corpus.cite,
        notes=(*prepared.notes, *notes_on(prepared, task)),
        plugins=dict(plugins),
        counts=task.counts,
        encoder=encoder,
    )


def computed_on(task: Task, machine: Environment) -> Environment:
    """With the device and the precision."""
    return replace(machine, device=str(device_of(task.network)), precision=task.network.precision)


def started(record: Record, prepared: Prepared, loop: Loop) -> Started:
    """What is shown when training starts. A pretrained encoder brings a shape of its own."""
    task, free = prepared.task, environment.bytes_free()
    needed = 0 if prepared.recipe.external else prepared.memory_needed  # known where we built the network
    return Started(
        loop.progress.step,
        folder=str(record.folder),
        task=record.recipe.task,
        seed=record.trial.seed,
        parameters=count_parameters(task.network),
        shape=record.recipe.shape,
        parts=record.recipe.parts,
        steps=loop.steps,
        steps_per_epoch=loop.steps_per_epoch,
        select_every=loop.select_every,
        choose_on=task.choose_on,
        notes=record.trial.notes,
        documents=task.counts.documents,
        vocabulary=task.counts.vocabulary,
        tokens=task.counts.tokens,
        cut_to_length=task.counts.cut_to_length,
        memory_mb=round(needed / 1e6),
        free_mb=round(free / 1e6) if free < math.inf else None,
    )


def trial_result(
    record: Record, task: Task, loop: Loop, best_step: int, scores: Mapping[str, Score], lost: Iterable[str] = ()
) -> TrialResult:
    """The test sets were scored for it this once, unless the recipe watches them. `lost`: what the device could not
    promise to compute the same way again."""
    recipe, tests = record.recipe, record.trial.test_sets
    curve = [event for event in record.events() if isinstance(event, Scored)]
    parts = () if recipe.external else task.network.body.parts.items()
    rule = "accuracy" if recipe.task == "classify" else "loss"  # as `Score.selection_key`
    ending, best_on_validation = training_end(curve)
    return TrialResult(
        task=recipe.task,
        seed=record.trial.seed,
        parameters=count_parameters(task.network),
        steps=loop.progress.step,
        steps_per_epoch=loop.steps_per_epoch,
        kept_step=best_step,
        kept=recipe.training.keep,
        chosen_by=f"validation {rule}" if task.choose_on and recipe.training.keep == "best" else None,
        training_end=ending,
        best_step=best_on_validation,
        part_notes=tuple(f"{name}: {note}" for name, part in parts for note in part.notes()),
        not_deterministic=tuple(sorted(lost)),
        test_watched=recipe.scoring.watch_test,
        test_reads={name: (name in scores) + sum(point.split == name for point in curve) for name in tests},
        train=task.quick_score("train").metrics,
        validation=scores["validation"].metrics if "validation" in scores else None,
        tests={name: score.metrics for name, score in scores.items() if name != "validation"},
        picked_on_test=picked_on_test(curve, tests),
        attention=trained_attention(record, task),
        model_sha256=sha256_of(record.folder / "model.safetensors"),
    )


def trained_attention(record: Record, task: Task) -> AttentionUse | None:
    """Beside the network as it was built; a pretrained encoder was not built."""
    recipe, seed = record.recipe, record.trial.seed
    if recipe.external or recipe.encoder.source != "none":
        return None
    from fairtrial.training.attention_use import attention_use
    from fairtrial.training.tasks import build_network

    initial = build_network(recipe, seed, task.counts.vocabulary, len(record.trial.labels))
    return attention_use(task, initial, seed)


def training_end(curve: Sequence[Scored]) -> tuple[Ending, int | None]:
    """How training ended, from the validation loss, and the step at which that was best. `still improving` at the last
    step, `overfitted` (it had been clearly better before) or `settled`; empty where scores are too few. Measured in
    shares of all that was learned."""
    points = {point.step: point.metrics.loss for point in curve if point.split == "validation"}
    if not points:
        return "", None
    best_step, last_step = min(points, key=points.__getitem__), max(points)
    if len(points) < FEWEST_POINTS:
        return "", best_step
    best, last, late = points[best_step], points[last_step], (1 - LATE) * last_step
    learned = points[min(points)] - best
    before = min(loss for step, loss in points.items() if step <= late)  # a bump on the way is no improvement
    if before - last > max(STILL * learned, NOTICED):
        return "still improving", best_step
    worse = last - best > max(WORSE * learned, NOTICED) and best_step <= late
    return "overfitted" if worse else "settled", best_step


def picked_on_test(curve: Sequence[Scored], tests: Sequence[str]) -> dict[str, PickedOnTest]:
    """What a report would quote that picks its best moment on the test set. Optimistic: shown, never used."""
    best: dict[str, PickedOnTest] = {}
    for point in curve:
        if point.split in tests:
            name = point.metrics.headline
            score, sign = {name: point.metrics.figure(name)}, HEADLINES[name]
            picked = structure(PickedOnTest, {"step": point.step, **score})
            if point.split not in best or sign * picked.score > sign * best[point.split].score:
                best[point.split] = picked
    return best


def located(recipe: Recipe) -> Recipe:
    """The recipe with the absolute path of its data, so that the record can be resumed from anywhere."""
    data = recipe.data
    if Path(data.source).exists() and find_format(data) != "sotu":
        data = replace(data, source=str(Path(data.source).resolve()))
    return replace(recipe, data=data)


def notes_on(prepared: Prepared, task: Task) -> list[str]:
    recipe, splits, tokenizer = prepared.recipe, prepared.splits, prepared.tokenizer
    notes = [*copies_notes(prepared), *cuts(recipe, splits, task.counts.cut_to_length)]
    if recipe.tokens.kind != "ids" and tokenizer.unknown is not None and not tokenizer.facts["unknown_trained"]:
        notes.append(
            "the unknown token never occurs in training, so its weights are untrained (raise tokens.min_count)"
        )
    if recipe.tokens.fit == "course":
        notes.append("the tokenizer was fitted on both training files, labels included, not on the training split")
    if recipe.scoring.watch_test:
        notes.append("test watched: the test sets were scored during training")
    if recipe.external:
        notes.append(f"the network is {recipe.model.name}: its initial weights are not shared with other variants")
    if not splits.validation:
        notes.append("no validation set: weights could not be selected without the test set")
    return notes


def copies_notes(prepared: Prepared) -> list[str]:
    counts = {name: found.counts() for name, found in prepared.copies.items()}
    return [
        f"{name}: {copies_text(found)}; scores on duplicates measure memorization"
        for name, found in counts.items()
        if found["share"]
    ]


def cuts(recipe: Recipe, splits: Splits, cut: Mapping[str, int]) -> list[str]:
    sizes = {"train": len(splits.train), "validation": len(splits.validation)}
    sizes |= {name: len(documents) for name, documents in splits.tests.items()}
    counts = [f"{count:,} of {sizes[name]:,} {name}" for name, count in cut.items() if count]
    if not counts:
        return []
    longer = f"longer than {recipe.shape.length} tokens (shape.length), so only their beginning is read"
    return [f"{longer}: {', '.join(counts)} documents"]
