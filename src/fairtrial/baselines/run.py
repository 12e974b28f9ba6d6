"""Baselines of a recipe: fitted on the training split of a trial with that seed, scored on exactly its items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairtrial.baselines.classifiers import Fit
from fairtrial.data.corpus import Document
from fairtrial.data.duplicates import find_duplicates
from fairtrial.data.spelling import HiddenText
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe
from fairtrial.statistics.comparison import score_interval
from fairtrial.statistics.outcomes import bits_per_byte

ORDERS = {"unigram": 1, "bigram": 2, "Kneser-Ney trigram": 3}

Outcomes = dict[str, np.ndarray]  # "set/what", as in a record
OnProgress = Callable[[str], None]
Metrics = dict[str, dict[str, dict[str, Any]]]  # set -> all | clean | contaminated -> metrics


def baseline_outcomes(recipe: Recipe, seed: int, on_progress: OnProgress = lambda what: None) -> dict[str, Outcomes]:
    """The outcomes of every baseline, by its name. Nothing is chosen: all settings are fixed."""
    on_progress("reading")
    return outcomes_of(prepare(recipe, seed), on_progress)


def outcomes_of(prepared: Prepared, on_progress: OnProgress = lambda what: None) -> dict[str, Outcomes]:
    if prepared.recipe.task == "classify":
        return _classify(prepared, on_progress)
    return _language(prepared, on_progress) if prepared.recipe.task == "lm" else {}


def scored_sets(prepared: Prepared) -> dict[str, tuple[Document, ...]]:
    """What a trial scores at its end."""
    sets = {"validation": prepared.splits.validation, **prepared.splits.tests}
    return {name: documents for name, documents in sets.items() if documents}


def classifiers() -> dict[str, Fit]:
    from fairtrial.baselines.classifiers import fit_bayes, fit_length, fit_logistic, fit_majority, fit_unigram_bayes

    return {
        "majority": fit_majority,
        "length only": fit_length,
        "unigram naive Bayes": fit_unigram_bayes,
        "naive Bayes": fit_bayes,
        "logistic regression": fit_logistic,
    }


def _classify(prepared: Prepared, on_progress: OnProgress) -> dict[str, Outcomes]:
    index = {label: number for number, label in enumerate(prepared.splits.labels)}
    texts, labels = _texts(prepared.splits.train), _labels(prepared.splits.train, index)
    found: dict[str, Outcomes] = {}
    for name, fit in classifiers().items():
        on_progress(name)
        guess = fit(texts, labels, len(index))
        found[name] = {}
        for split, documents in scored_sets(prepared).items():
            log_p, right = guess(_texts(documents)), _labels(documents, index)
            found[name] |= {
                f"{split}/label": right,
                f"{split}/guess": log_p.argmax(1).astype(np.int64),
                f"{split}/log_p": log_p[np.arange(len(right)), right],
                **({} if (groups := prepared.groups(documents)) is None else {f"{split}/group": groups}),
            }
    return found


def _texts(documents: tuple[Document, ...]) -> list[str]:
    return [document.text for document in documents]


def _labels(documents: tuple[Document, ...], index: dict[str, int]) -> np.ndarray:
    return np.array([index[document.label] for document in documents], dtype=np.int64)


def _language(prepared: Prepared, on_progress: OnProgress) -> dict[str, Outcomes]:
    """Tokens, targets and documents come from the functions that a trial uses, so that they are the same."""
    from fairtrial.baselines.kneser_ney import KneserNey
    from fairtrial.training.scoring import document_outcomes
    from fairtrial.training.tasks import token_set

    on_progress("fitting the tokenizer")
    splits = prepared.splits
    tokenizer = prepared.tokenizer
    train = token_set(splits.train, tokenizer, splits.running)
    hidden = HiddenText(tokenizer, _texts(splits.train))
    sets = {
        name: replace(token_set(documents, tokenizer, splits.running, hidden), groups=prepared.groups(documents))
        for name, documents in scored_sets(prepared).items()
    }
    found: dict[str, Outcomes] = {}
    for name, order in ORDERS.items():
        on_progress(name)
        model = KneserNey(train.sequences, tokenizer.size, order)
        found[name] = {}
        for split, tokens in sets.items():
            nats = -np.log(model.probabilities(tokens.sequences))
            found[name] |= {f"{split}/{what}": values for what, values in document_outcomes(tokens, nats).items()}
    return found


def metrics_of(outcomes: Mapping[str, np.ndarray], status: Mapping[str, np.ndarray]) -> Metrics:
    """`outcomes` are named `set/what`; sets without a status, such as validation, have all items only."""
    found: Metrics = {}
    for name in dict.fromkeys(key.rpartition("/")[0] for key in outcomes):
        arrays = {key.rpartition("/")[2]: array for key, array in outcomes.items() if key.rpartition("/")[0] == name}
        items = len(next(iter(arrays.values())))
        ways = {"all": np.ones(items, bool)}
        if name in status:
            ways |= {"clean": status[name] == 0, "contaminated": status[name] > 0}
        found[name] = {
            way: _metrics({what: array[chosen] for what, array in arrays.items()})
            for way, chosen in ways.items()
            if chosen.any()
        }
    return found


def _metrics(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if "guess" in arrays:
        right = arrays["guess"] == arrays["label"]
        return {
            "items": len(right),
            "accuracy": float(right.mean()),
            "interval": score_interval(arrays),
            "nll": -float(arrays["log_p"].mean()),
        }
    nats, tokens = float(arrays["nll"].sum()), int(arrays["tokens"].sum())
    return {
        "items": len(arrays["nll"]),
        "tokens": tokens,
        "perplexity": math.exp(nats / tokens) if tokens else None,
        "interval": score_interval(arrays),
        "bits_per_byte": bits_per_byte(arrays),
        "unknown_share": int(arrays["unknown"].sum()) / max(1, tokens),
    }


def baseline_scores(recipe: Recipe, seed: int, on_progress: OnProgress = lambda what: None) -> dict[str, Any]:
    """All baselines of one recipe and seed, scored on all, clean and contaminated items."""
    on_progress(f"{recipe.task}: reading")
    prepared = prepare(recipe, seed)
    on_progress(f"{recipe.task}: looking for copies")
    known = [document.text for document in prepared.known]
    copies = {
        name: find_duplicates(known, [each.text for each in tests]) for name, tests in prepared.splits.tests.items()
    }
    status = {name: found.status for name, found in copies.items()}
    outcomes = outcomes_of(prepared, lambda what: on_progress(f"{recipe.task}: {what}"))
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "documents": {"train": len(prepared.splits.train), "validation": len(prepared.splits.validation)},
        "sets": {name: found.counts() for name, found in copies.items()},
        "baselines": {name: metrics_of(each, status) for name, each in outcomes.items()},
    }
