"""Baselines of a recipe: fitted on the training split of a trial with that seed, scored on exactly its items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from fairtrial.data.corpus import Document
from fairtrial.data.spelling import HiddenText
from fairtrial.errors import BadInput
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe, one_of
from fairtrial.record import Record
from fairtrial.statistics.outcomes import bits_per_byte, score_interval
from fairtrial.stored import BaselineScores, BySubset, Metrics, TaskBaselines

if TYPE_CHECKING:
    from fairtrial.training.tasks import Task

ORDERS = {"unigram": 1, "bigram": 2, "Kneser-Ney trigram": 3}
MATCHING = {"classify": "naive Bayes", "lm": "Kneser-Ney trigram"}  # what a task's scores are shown beside
LARGEST = 20_000_000  # characters of training text: about 20 seconds

Outcomes = dict[str, np.ndarray]  # "set/what", as in a record
Scored = tuple[str, str, Outcomes]  # baseline, set, its outcomes by "what"
OnProgress = Callable[[str], None]


def baseline_outcomes(recipe: Recipe, seed: int, on_progress: OnProgress = lambda what: None) -> dict[str, Outcomes]:
    """The outcomes of every baseline, by its name. Nothing is chosen: all settings are fixed."""
    on_progress("reading")
    return outcomes_of(prepare(recipe, seed), on_progress)


def outcomes_of(
    prepared: Prepared, on_progress: OnProgress = lambda what: None, names: Sequence[str] = ()
) -> dict[str, Outcomes]:
    """`names`: of these baselines only."""
    found: dict[str, Outcomes] = {}
    if prepared.recipe.task == "mlm":
        return found
    score = _classify if prepared.recipe.task == "classify" else _language
    for name, split, outcomes in score(prepared, on_progress, names):
        found.setdefault(name, {}).update({f"{split}/{what}": values for what, values in outcomes.items()})
    return found


def scored_sets(prepared: Prepared) -> dict[str, tuple[Document, ...]]:
    """What a trial scores at its end."""
    sets = {"validation": prepared.splits.validation, **prepared.splits.tests}
    return {name: documents for name, documents in sets.items() if documents}


def _classify(prepared: Prepared, on_progress: OnProgress, names: Sequence[str]) -> Iterator[Scored]:
    from fairtrial.baselines.classifiers import CLASSIFIERS, fitted, label_numbers
    from fairtrial.training.scoring import class_outcomes

    for name, fit in CLASSIFIERS.items():
        if names and name not in names:
            continue
        on_progress(name)
        guess = fitted(fit, prepared.splits.train, prepared.splits.labels)
        for split, documents in scored_sets(prepared).items():
            log_p, right = guess(texts_of(documents)), label_numbers(documents, prepared.splits.labels)
            yield name, split, class_outcomes(log_p, right, prepared.groups(documents))


def texts_of(documents: Sequence[Document]) -> list[str]:
    return [document.text for document in documents]


def _language(prepared: Prepared, on_progress: OnProgress, names: Sequence[str]) -> Iterator[Scored]:
    """Tokens, targets and documents come from the functions that a trial uses, so that they are the same."""
    from fairtrial.baselines.kneser_ney import KneserNey
    from fairtrial.training.scoring import document_outcomes
    from fairtrial.training.tasks import token_set

    on_progress("fitting the tokenizer")
    splits, tokenizer = prepared.splits, prepared.tokenizer
    train = token_set(splits.train, tokenizer, splits.running)
    hidden = cache(lambda: HiddenText(tokenizer, texts_of(splits.train)))
    sets = {
        name: replace(token_set(documents, tokenizer, splits.running, hidden), groups=prepared.groups(documents))
        for name, documents in scored_sets(prepared).items()
    }
    for name, order in ORDERS.items():
        if names and name not in names:
            continue
        on_progress(name)
        model = KneserNey(train.sequences, tokenizer.size, order)
        for split, tokens in sets.items():
            yield name, split, document_outcomes(tokens, -np.log(model.probabilities(tokens.sequences)))


def metrics_of(outcomes: Mapping[str, np.ndarray], status: Mapping[str, np.ndarray]) -> BySubset:
    """`outcomes` are named `set/what`; sets without a status, such as validation, have all items only."""
    found: BySubset = {}
    by_set: dict[str, Outcomes] = {}
    for key, array in outcomes.items():
        name, _, what = key.rpartition("/")
        by_set.setdefault(name, {})[what] = array
    for name, arrays in by_set.items():
        ways = {"all": np.ones(len(next(iter(arrays.values()))), bool)}
        if name in status:
            ways |= {"clean": status[name] == 0, "contaminated": status[name] > 0}
        found[name] = {
            way: _metrics({what: array[chosen] for what, array in arrays.items()})
            for way, chosen in ways.items()
            if chosen.any()
        }
    return found


def _metrics(arrays: dict[str, np.ndarray]) -> Metrics:
    if "guess" in arrays:
        from fairtrial.training.scoring import class_metrics

        return class_metrics(arrays, 1 + int(max(arrays["guess"].max(), arrays["label"].max())))
    nats, tokens = float(arrays["nll"].sum()), int(arrays["tokens"].sum())
    return Metrics(
        items=len(arrays["nll"]),
        tokens=tokens,
        perplexity=math.exp(nats / tokens) if tokens else None,
        interval=score_interval(arrays),
        bits_per_byte=bits_per_byte(arrays),
        unknown_share=int(arrays["unknown"].sum()) / max(1, tokens),
        perplexity_without_unknown=_without_unknown(arrays),
    )


def _without_unknown(arrays: Mapping[str, np.ndarray]) -> float | None:
    known = int((arrays["tokens"] - arrays["unknown"]).sum())
    if not known:
        return None
    return math.exp(float((arrays["nll"] - arrays["unknown_nll"]).sum()) / known)


def score_baseline(record: Record, prepared: Prepared, on_progress: OnProgress = lambda what: None) -> None:
    """Write baseline.json into a finished record. Nothing else in the record changes."""
    on_progress(MATCHING.get(record.recipe.task, ""))
    if (scores := baseline_of(record, prepared)) is not None:
        record.write_baseline(scores)


def baseline_of(record: Record, prepared: Prepared) -> BaselineScores | None:
    """A record's scores and those of the simple model that its task is known by, on the same items, clean ones apart. A
    long text is left to `fairtrial data baseline`."""
    name = MATCHING.get(record.recipe.task)
    scored = {test: documents for test, documents in prepared.splits.tests.items() if test in record.result.tests}
    prepared = replace(prepared, splits=replace(prepared.splits, tests=scored))
    if name is None or not scored_sets(prepared):
        return None
    size = sum(len(document.text) for document in prepared.known)
    if size > LARGEST:
        why = f"the training text has {size / 1e6:,.0f} million characters; `fairtrial data baseline` scores it"
        return BaselineScores(name=name, skipped=why)
    status = {test: found.status for test, found in prepared.copies.items()}
    try:
        outcomes = outcomes_of(prepared, names=(name,))[name]
    except ValueError as error:  # scikit-learn: no words, for example. The trial is none the worse for it
        return BaselineScores(name=name, skipped=str(error))
    return BaselineScores(name=name, trial=metrics_of(record.outcomes(), status), baseline=metrics_of(outcomes, status))


def baseline_scores(recipe: Recipe, seed: int, on_progress: OnProgress = lambda what: None) -> TaskBaselines:
    """All baselines of one recipe and seed, scored on all, clean and contaminated items."""
    on_progress(f"{recipe.task}: reading")
    prepared = prepare(recipe, seed)
    on_progress(f"{recipe.task}: looking for copies")
    copies = prepared.copies
    status = {name: found.status for name, found in copies.items()}
    outcomes = outcomes_of(prepared, lambda what: on_progress(f"{recipe.task}: {what}"))
    return TaskBaselines(
        task=recipe.task,
        source=recipe.data.source,
        recipe=recipe.name,
        seed=seed,
        documents={"train": len(prepared.splits.train), "validation": len(prepared.splits.validation)},
        sets={name: found.counts() for name, found in copies.items()},
        baselines={name: metrics_of(each, status) for name, each in outcomes.items()},
        notes=tuple(prepared.corpus.notes),
    )


def log_probabilities(task: Task, prepared: Prepared, split: str, model: str) -> np.ndarray:
    """What a network (`model` is "network") or a simple model fitted on the same training split gives each target token
    of a split [token], or each class [item class]."""
    from fairtrial.baselines.classifiers import CLASSIFIERS, fitted
    from fairtrial.baselines.kneser_ney import KneserNey
    from fairtrial.training import scoring
    from fairtrial.training.tasks import ClassifyTask, LanguageTask

    if not isinstance(task, ClassifyTask | LanguageTask):
        raise BadInput(
            "a masked language model assigns no probability to a text", "use a classifier or a language model"
        )
    one_of("split", split, tuple(task.sets))
    one_of("model", model, ("network", *(CLASSIFIERS if isinstance(task, ClassifyTask) else ORDERS)))
    if isinstance(task, ClassifyTask):
        if model == "network":
            return scoring.log_probabilities(task.network, task.sets[split][0], pad=0)
        documents = {"train": prepared.splits.train} | scored_sets(prepared)
        return fitted(CLASSIFIERS[model], prepared.splits.train, prepared.splits.labels)(texts_of(documents[split]))
    tokens = task.sets[split]
    if model == "network":
        return -scoring.token_nll(task.network, tokens, length=task.length, full_context=task.context(tokens))
    counted = KneserNey(task.sets["train"].sequences, prepared.tokenizer.size, ORDERS[model])
    return np.log(counted.probabilities(tokens.sequences))
