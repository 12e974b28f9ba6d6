"""What to train in a given time: `fairtrial train lm --budget 60s`. A table, measured on the embedded speeches and on
larger texts, and the function that reads it. It writes plain fields into the recipe, so that a trial that is resumed or
repeated takes the same steps on any machine: the seconds are those of the processor that it was measured on."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from fairtrial.errors import BadInput
from fairtrial.formatting import read_time
from fairtrial.prepare import prepare
from fairtrial.recipe import Recipe


class Pace(NamedTuple):
    """Milliseconds of a training step, one thread of a server of 2024; docs/speed.md says how they were measured."""

    step: float
    token: float
    output: float  # for each token and each 1,000 entries of the output layer
    entry: float  # for each 1,000 entries of the vocabulary, which the optimizer moves


class Row(NamedTuple):
    seconds: float  # up to so many
    width: int
    pace: Pace


SIZES = {
    "lm": (
        Row(120, 64, Pace(6.8, 0.006, 0.0030, 0.13)),
        Row(480, 96, Pace(11.2, 0.012, 0.0039, 0.12)),
        Row(float("inf"), 128, Pace(18.3, 0.018, 0.0047, 0.10)),
    ),
    "classify": (Row(float("inf"), 64, Pace(6.8, 0.0128, 0.0, 0.13)),),
}
# passes over the text up to: input noise, dropout of a language model. Few passes are better without: docs/speed.md
NOISE = ((15.0, 0.0, 0.0), (30.0, 0.1, 0.1), (float("inf"), 0.2, 0.1))
MOST_PASSES = {"lm": 150.0, "classify": 12.0}  # more were not measured, or did not help
LEAST_STEPS = {"lm": 50, "classify": 100}  # fewer learn little more than how often words and classes occur


@dataclass(frozen=True)
class Fit:
    recipe: Recipe
    sentence: str


def fit_budget(recipe: Recipe, budget: str, given: Collection[str] = ()) -> Fit:
    """The recipe with the duration, width and regularization for so much time of the processor. `given`: fields that
    the user has set, which stay. Seeds share what is picked: the text of the first one is measured."""
    if recipe.task not in SIZES or recipe.name != "default" or recipe.external or recipe.encoder.source != "none":
        what = f"a budget is for the default recipes of lm and classify, not for {recipe.task} ({recipe.name})"
        raise BadInput(what, "leave --budget out, and set --steps or --epochs")
    if "training.duration" in given:
        raise BadInput("a budget chooses the number of steps", "leave out --budget, or --steps and --epochs")
    seconds = read_time(budget)
    row = next(row for row in SIZES[recipe.task] if seconds <= row.seconds)
    prepared = prepare(recipe, 0)
    length, batch, entries = prepared.recipe.shape.length, recipe.training.batch, prepared.tokenizer.size
    sizes = [len(ids) for ids in prepared.tokenizer.encode([document.text for document in prepared.splits.train])]
    if prepared.corpus.running and recipe.task == "lm":
        per_epoch, tokens = max(1.0, sum(sizes) / length / batch), float(length * batch)
    else:
        per_epoch = max(1.0, len(sizes) / batch)
        tokens = batch * sum(min(length, size) for size in sizes) / len(sizes)
    out = min(entries, recipe.training.sampled_words or entries) / 1000
    pace = row.pace
    taken = pace.step + tokens * (pace.token + pace.output * out) + pace.entry * entries / 1000
    fitting = seconds * 1000 / taken
    if fitting < (least := LEAST_STEPS[recipe.task]):
        needed = math.ceil(least * taken / 1000)
        what = f"budget {budget} is too short for the model to learn: {least} steps need about {needed} s"
        raise BadInput(what, f"--budget {needed}s is the smallest that works")
    steps = max(least, round(min(fitting, MOST_PASSES[recipe.task] * per_epoch), -1))
    passes = steps / per_epoch
    noise, dropout = next((noise, dropout) for most, noise, dropout in NOISE if passes <= most)
    picked: dict[str, object] = {"training.duration": f"{steps:.0f} steps"}
    if "shape.width" not in given:
        picked |= {"shape.width": row.width, "shape.hidden": 2 * row.width}
    if recipe.task == "lm":
        picked |= {"training.input_noise": noise, "shape.dropout": dropout}
    if steps < 400:  # so few are scored at four points at least
        picked |= {"training.select_every": f"{max(1, steps // 4):.0f} steps"}
    picked = {name: value for name, value in picked.items() if name not in given}
    said = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in picked.items())
    sentence = f"budget {budget} of processor time: {said} ({passes:.1f} passes over the training text)"
    if steps < 0.9 * fitting:
        sentence += f"; more passes did not help in our measurements, so it takes about {steps * taken / 1000:.0f} s"
    return Fit(recipe.with_(**picked), sentence)
