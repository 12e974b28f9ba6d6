"""How well can one do on the data of the five reports? A transformer, alone and combined with models that count words.

Five networks of each recipe are trained on all training text. The weights of a combination are chosen on the validation
set of one more network, which held a tenth back (seed 1000); the test sets take no part. Language models are mixed
linearly, classifiers log-linearly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import fairtrial as ft
from pages import find_data, table, with_interval, write_sections

HERE = Path(__file__).parent
RECIPES = {
    "best-lm": "Language model",
    "best-classifier": "Classifier",
    "best-classifier-minilm": "Classifier with MiniLM",
}
COUNTING = {"lm": ("Kneser-Ney trigram", "unigram"), "classify": ("naive Bayes", "logistic regression")}
SEEDS = range(5)
Arrays = dict[str, np.ndarray]


def main() -> None:
    sections = {}
    for name, title in RECIPES.items():
        arrays = predictions(name)
        if arrays:
            sections[f"{title}, combined with counting"] = section(arrays)
    note = "Predictions of all models for every item are in `outcomes/`; `run.py` makes the combined scores from them."
    write_sections(HERE / "README.md", {**sections, "Records": note} if sections else {})


def predictions(name: str) -> Arrays:
    """Log-probabilities of every model: `validation/MODEL`, `SET/MODEL` [seed ...], with `SET/answers`; from the stored
    file, or from training."""
    stored, data = HERE / "outcomes" / f"{name}.npz", find_data("speeches")
    if not stored.is_file():
        if data is None:
            return {}
        stored.parent.mkdir(exist_ok=True)
        part = trained(name, data, 1000, {"data.validation": 0.1})
        models = ("network", *COUNTING[part.recipe.task])
        arrays = {f"validation/{model}": part.log_probabilities("validation", model) for model in models}
        arrays |= {"validation/answers": answers(part, "validation")}
        runs = [trained(name, data, seed, {}) for seed in SEEDS]
        for test in part.splits.tests:
            arrays[f"{test}/network"] = np.stack([run.log_probabilities(test) for run in runs])
            arrays |= {f"{test}/{model}": runs[0].log_probabilities(test, model)[None] for model in models[1:]}
            arrays[f"{test}/answers"] = answers(part, test)
            arrays[f"{test}/copies"] = part.prepared.copies[test].status > 0
        np.savez_compressed(
            stored,
            **{key: value.astype(np.float32) if value.dtype.kind == "f" else value for key, value in arrays.items()},
        )
    with np.load(stored) as packed:
        return {key: packed[key] for key in packed.files}


def trained(name: str, data: str, seed: int, changes: dict[str, float]) -> ft.Run:
    place = HERE / "runs" / f"{name}-{seed}"
    if (place / "trial.json").is_file():
        return ft.resume(place)
    return ft.train(HERE / f"{name}.toml", data, seed=seed, out=place, **changes)


def answers(run: ft.Run, split: str) -> np.ndarray:
    """The right class of every item; of a language model nothing, whose predictions are of the right tokens already."""
    if run.recipe.task == "lm":
        return np.zeros(0, np.int8)
    documents = run.splits.validation if split == "validation" else run.splits.tests[split]
    return np.array([run.labels.index(document.label) for document in documents], np.int8)


def section(arrays: Arrays) -> str:
    labels = arrays["validation/answers"]
    models = [key.partition("/")[2] for key in arrays if key.startswith("validation/") and not key.endswith("/answers")]
    held_out = np.stack([arrays[f"validation/{model}"] for model in models])
    weights = log_linear_weights(held_out, labels) if len(labels) else linear_weights(np.exp(held_out))
    tests = [key.partition("/")[0] for key in arrays if key.endswith("/answers") and not key.startswith("validation/")]
    alone = dict(zip(models, np.eye(len(models)), strict=True))
    rows = [
        [model, *(score(arrays, test, models, chosen) for test in tests)]
        for model, chosen in {**alone, "**combined**": weights}.items()
    ]
    shown = ", ".join(f"{weight:.2f} {model}" for model, weight in zip(models, weights, strict=True))
    unit = "Accuracy in %" if len(labels) else "Perplexity"
    lead = f"{unit}, mean over seeds with its range. Weights, chosen on validation: {shown}."
    return f"{lead}\n\n{table(['model', *tests], rows)}"


def score(arrays: Arrays, test: str, models: list[str], weights: np.ndarray) -> str:
    labels = arrays[f"{test}/answers"]
    seeds = len(arrays[f"{test}/network"])
    values = []
    for seed in range(seeds):
        log_p = np.stack([arrays[f"{test}/{model}"][min(seed, len(arrays[f"{test}/{model}"]) - 1)] for model in models])
        if len(labels):
            values.append(100 * float((mix_log_linear(log_p, weights).argmax(1) == labels).mean()))
        else:
            values.append(float(np.exp(-np.log(weights @ np.exp(log_p)).mean())))
    middle = float(np.mean(values)) if len(labels) else float(np.exp(np.mean(np.log(values))))
    return with_interval(ft.Interval(middle, min(values), max(values)), sign=False)


def linear_weights(probabilities: np.ndarray) -> np.ndarray:
    """[model item] of the right answers -> weights [model] that sum to one, by EM (Jelinek and Mercer 1980)."""
    weights = np.full(len(probabilities), 1 / len(probabilities))
    for _ in range(1000):
        shares = weights[:, None] * probabilities
        weights = (shares / shares.sum(0)).mean(1)
    return weights


def log_linear_weights(log_p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[model item class], right classes [item] -> weights [model], none below zero, of greatest likelihood. They need
    not sum to one, so an overconfident model is also tempered."""

    def loss(weights: np.ndarray) -> float:
        return -float(mix_log_linear(log_p, weights)[np.arange(len(labels)), labels].mean())

    start = np.full(len(log_p), 1 / len(log_p))
    return np.asarray(minimize(loss, start, method="L-BFGS-B", bounds=[(0, 20)] * len(log_p)).x)


def mix_log_linear(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item class], [model] -> log-probabilities [item class]: the product of powers, normalized"""
    powers = np.tensordot(weights, log_p, axes=1)
    powers = powers - powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))


if __name__ == "__main__":
    main()
