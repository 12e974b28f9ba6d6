"""Which weights should a trial keep? Rules for choosing them on validation, on the same trainings: the table of
docs/statistics.md.

    python benchmarks/selection.py [DATA ...] [--seeds 20] [--out selection.json]

DATA: 'sotu' (default), a folder or a file. Small networks (2 layers, width 32), trained for 120 steps, which is too
short, and for 6 epochs, which is too long; 8 evaluations each. The test set is scored with the weights that each rule
keeps; items that also occur in the training set are left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import t

from fairtrial.data.duplicates import CLEAN
from fairtrial.environment import use_threads
from fairtrial.prepare import prepare
from fairtrial.recipe import Duration, choose_recipe
from fairtrial.statistics.outcomes import confusion, macro_f1
from fairtrial.training.loop import Loop, put_weights, weights_of
from fairtrial.training.scoring import log_probabilities

SETTINGS = [  # all that matters here, so that the table stays true when the recipe changes
    "shape.layers=2", "shape.width=32", "shape.hidden=64", "shape.length=32", "shape.dropout=0.3",
    "training.batch=32", "training.learning_rate=1e-3", "training.weight_decay=0.01", "training.label_smoothing=0",
    "training.schedule=constant", "training.warmup_steps=0",
]  # fmt: skip
LENGTHS = {"120 steps": Duration(120, "steps"), "6 epochs": Duration(6, "epochs")}
EVALUATIONS = 8
Key = Callable[[np.ndarray, np.ndarray], tuple[float, ...]]  # log-probabilities [item class], labels [item]


def loss(log_p: np.ndarray, labels: np.ndarray) -> float:
    return -float(log_p[np.arange(len(labels)), labels].mean())


def accuracy(log_p: np.ndarray, labels: np.ndarray) -> float:
    return float((log_p.argmax(1) == labels).mean())


def tempered_loss(log_p: np.ndarray, labels: np.ndarray) -> float:
    """The loss once all answers are made less sure, or surer, by the one temperature that is best for them."""

    def at(log_temperature: float) -> float:
        scaled = log_p * np.exp(-log_temperature)
        return loss(scaled - np.log(np.exp(scaled).sum(1, keepdims=True)), labels)

    return float(minimize_scalar(at, bounds=(-1.5, 4.0), method="bounded").fun)


RULES: dict[str, Key] = {
    "loss": lambda log_p, labels: (-round(loss(log_p, labels), 3), accuracy(log_p, labels)),
    "accuracy": lambda log_p, labels: (accuracy(log_p, labels), -loss(log_p, labels)),
    "loss at its best temperature": lambda log_p, labels: (-round(tempered_loss(log_p, labels), 3),),
}


def trial(source: str, seed: int, duration: Duration) -> Iterator[dict[str, Any]]:
    """One training; for each rule what its weights do on test."""
    recipe = choose_recipe("classify", "default", source, SETTINGS)
    recipe = replace(recipe, training=replace(recipe.training, duration=duration))
    prepared = prepare(recipe, seed)
    (name,) = prepared.splits.tests
    clean = prepared.copies[name].status == CLEAN
    task = prepared.task
    loop = Loop(task, recipe.training, recipe.scoring, seed)
    loop.task.curves, loop.task.choose_on = (), None  # evaluated here
    moments = {loop.steps * number // EVALUATIONS for number in range(1, EVALUATIONS + 1)}
    best: dict[str, tuple[tuple[float, ...], int, dict[str, torch.Tensor]]] = {}
    for event in loop.run():
        if event.kind == "ready" and event.step in moments:
            rows, labels = task.sets["validation"]
            log_p = log_probabilities(task.network, rows, 0)
            for rule, key in RULES.items():
                found = key(log_p, labels)
                if rule not in best or found > best[rule][0]:
                    best[rule] = found, event.step, {one: of.clone() for one, of in weights_of(task.network).items()}
    rows, labels = task.sets[name]
    for rule, (_, step, weights) in best.items():
        put_weights(task.network, weights)
        log_p = log_probabilities(task.network, rows, 0)[clean]
        guesses, truth = log_p.argmax(1), labels[clean]
        yield {
            "rule": rule, "seed": seed, "step": step, "steps": loop.steps, "items": int(clean.sum()),
            "accuracy": accuracy(log_p, truth), "loss": loss(log_p, truth),
            "macro_f1": macro_f1(confusion(truth, guesses, log_p.shape[1])),
            "one_class": bool((guesses == guesses[0]).all()),
        }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Means over seeds, and each rule's difference from the first with its 95% interval over seeds."""
    yield "| data, training | rule | accuracy | macro-F1 | loss | one class only | accuracy, against choosing by loss |"
    yield "|---|---|---|---|---|---|---|"
    for place in dict.fromkeys((row["data"], row["length"]) for row in rows):
        here = [row for row in rows if (row["data"], row["length"]) == place]
        columns = {rule: [row for row in here if row["rule"] == rule] for rule in RULES}
        first = np.array([row["accuracy"] for row in columns["loss"]])
        for rule, found in columns.items():
            means = {key: float(np.mean([row[key] for row in found])) for key in ("accuracy", "macro_f1", "loss")}
            gains = 100 * (np.array([row["accuracy"] for row in found]) - first)
            half = t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
            span = f" [{gains.mean() - half:+.1f}, {gains.mean() + half:+.1f}]"
            against = "" if rule == "loss" else f"{gains.mean():+.1f}{span}"
            stuck = f"{sum(row['one_class'] for row in found)} of {len(found)}"
            scores = f"{means['accuracy']:.1%} | {means['macro_f1']:.3f} | {means['loss']:.3f}"
            yield f"| {', '.join(place)} | {rule} | {scores} | {stuck} | {against} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=["sotu"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=None, help="all trials as JSON")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with use_threads(1):
        for source in asked.data:
            for length, duration in LENGTHS.items():
                for seed in range(asked.seeds):
                    where = {"data": Path(source).name, "length": length}
                    rows += [where | row for row in trial(source, seed, duration)]
                    if asked.out:
                        asked.out.write_text(json.dumps(rows, indent=1))
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
