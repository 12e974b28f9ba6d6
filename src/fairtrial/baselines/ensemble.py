"""Ensembles: a transformer and models that count words, as one model whose weights are chosen on validation.

Language models are mixed linearly, p = sum of w p; classifiers log-linearly, p ~ product of p^w, normalized. Both
searches for weights have one optimum, so nothing depends on where they start."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from fairtrial.baselines.classifiers import CLASSIFIERS, class_outcomes, fitted
from fairtrial.baselines.kneser_ney import KneserNey
from fairtrial.errors import BadInput
from fairtrial.prepare import ExtraText, read_extra
from fairtrial.record import Record
from fairtrial.statistics.comparison import scores_by_subset
from fairtrial.statistics.outcomes import stack_outcomes
from fairtrial.training.scoring import TokenSet, document_outcomes, log_probabilities, token_nll
from fairtrial.training.tasks import LanguageTask, token_set
from fairtrial.trial import Run, load

ENSEMBLE = "ensemble"
UNSEEN = "unseen words"
AVERAGED = "transformers averaged"  # the networks of all records as one model
COUNTING = ("naive Bayes", "logistic regression")
ORDER = 3  # of Kneser-Ney
ROUNDS = 1000
TOLERANCE = 1e-7  # expectation maximisation stops when no weight moves further
LARGEST_WEIGHT = 20.0  # log-linear: without a bound, the weight of a model that is right on all of few items diverges

Model = Callable[[Any], np.ndarray]  # sequences -> probability of every target; texts -> log-probabilities of classes
OnProgress = Callable[[str], None]


Counted = tuple[dict[str, Model], list[ExtraText]]


def fit_ensemble(
    records: Sequence[Record], chosen_on: Sequence[Record] = (), more: Sequence[str] = (), *, tests: bool = True,
    on_progress: OnProgress = lambda what: None,
) -> dict[str, Any]:  # fmt: skip
    """`records`: trials of one recipe, one for each seed. `chosen_on`: records with a validation set to choose weights
    on, by default the same; no test set takes part. `more`: further sources for the counting models."""
    check_mismatch(records, chosen_on)
    cache: dict[str, Counted] = {}  # records with the same training text share their counting models
    held_out = [open_ensemble(record, more, cache, on_progress, validated=True) for record in chosen_on or records]
    on_progress("choosing weights on validation")
    weights = choose_weights(held_out)
    found: dict[str, Any] = {
        "format": 1,
        "task": records[0].recipe.task,
        "metric": held_out[0].metric,
        "records": [record.folder.name for record in records],
        "chosen_on": [record.folder.name for record in chosen_on or records],
        "weights": dict(zip(held_out[0].models, weights.tolist(), strict=True)),
        "more": [
            {"name": extra.name, "documents": len(extra.documents), "dropped": extra.left_out}
            for extra in held_out[0].extra
        ],
        "validation": validation_scores(held_out, weights),
        "tests": {},
    }
    if tests:
        members = [open_ensemble(record, more, cache, on_progress) for record in records] if chosen_on else held_out
        for name in records[0].trial["test_sets"]:
            on_progress(f"scoring {name}")
            found["tests"][name] = scores_on_test(str(name), members, weights)
    return found


def check_mismatch(records: Sequence[Record], chosen_on: Sequence[Record]) -> None:
    first = records[0]
    if first.recipe.task not in KINDS:
        raise BadInput(f"{first.folder} is a masked language model", "ensembles are of classifiers or language models")
    for other in chosen_on:
        if other.recipe.task != first.recipe.task:
            raise BadInput(f"{other.folder} has another task than {first.folder}", "choose on records of the same task")
    for other in records:
        for fact, what, hint in (
            ("recipe", "are trials of different recipes", "give records of one recipe"),
            ("data", "were trained on different data", "give records of one data set"),
        ):
            if other.trial[fact] != first.trial[fact]:
                raise BadInput(f"{other.folder} and {first.folder} {what}", hint)
    if len({record.trial["seed"] for record in records}) < len(records):
        raise BadInput("two of these records have the same seed", "give each seed once")


def open_ensemble(
    record: Record, more: Sequence[str], cache: dict[str, Counted], on_progress: OnProgress, *, validated: bool = False
) -> Ensemble:
    """`cache`: counting models and extra text by training text."""
    on_progress(f"reading {record.folder.name}")
    run = load(record)
    splits, kind = run.splits, KINDS[run.recipe.task]
    if validated and not splits.validation:
        hint = "give records of this recipe with data.validation=0.1 to choose them on: --chosen-on RECORD"
        raise BadInput(f"{record.folder} has no validation set to choose weights on", hint)
    texts = [run.tokenizer.to_json(), *(f"{document.label} {document.text}" for document in splits.train)]
    key = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    if key not in cache:
        on_progress(f"counting words for {record.folder.name}")
        extra = [read_extra(source, run.recipe, run.tokenizer, splits) for source in more]
        cache[key] = kind.count(run, extra), extra
    return kind(run, *cache[key])


class Ensemble(ABC):
    """A record's network and the counting models. Predictions of a set are computed once."""

    metric: str

    def __init__(self, run: Run, counting: dict[str, Model], extra: list[ExtraText]) -> None:
        self.run, self.counting, self.extra = run, counting, extra
        self.models = ("transformer", *counting)
        self.cache: dict[str, np.ndarray] = {}

    def predictions(self, name: str) -> np.ndarray:
        """What all models predict for a set: [model ...]"""
        if name not in self.cache:
            counted = [model(self.read(name)) for model in self.counting.values()]
            self.cache[name] = np.stack([self.by_network(self.run.task.sets[name]), *counted])
        return self.cache[name]

    @abstractmethod
    def by_network(self, encoded: Any) -> np.ndarray: ...

    @abstractmethod
    def read(self, name: str) -> Any:
        """What counting models read of a set."""

    @abstractmethod
    def outcomes(self, name: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        """As a record stores them. A weight of 1 for one model gives that model's own."""

    @abstractmethod
    def averaged(self, name: str, members: Sequence[Ensemble]) -> dict[str, np.ndarray] | None:
        """The outcomes of one model that gives the mean of the probabilities of all members' networks, or None where
        they have different vocabularies: such probabilities are not of the same things."""


class LanguageEnsemble(Ensemble):
    metric = "perplexity"

    @staticmethod
    def count(run: Run, more: Sequence[ExtraText]) -> dict[str, Model]:
        """Kneser-Ney on the training split, once more with each extra text; and a model of words not in this split."""
        train, tokenizer = run.task.sets["train"].sequences, run.tokenizer
        texts = {"Kneser-Ney": train}
        for extra in more:
            added = token_set(extra.documents, tokenizer, run.splits.running).sequences
            texts[f"Kneser-Ney with {extra.name}"] = (*added, *train)
        models: dict[str, Model] = {
            name: KneserNey(sequences, tokenizer.size, ORDER).probabilities for name, sequences in texts.items()
        }
        shares = unseen(train, tokenizer.size, tokenizer.pad, tokenizer.unknown)
        return models | {UNSEEN: lambda sequences: shares[np.concatenate([each[1:] for each in sequences])]}

    def by_network(self, encoded: TokenSet) -> np.ndarray:
        """Probabilities of the targets [target]"""
        task = cast(LanguageTask, self.run.task)
        return np.exp(-token_nll(task.network, encoded, length=task.length, full_context=task.context(encoded)))

    def read(self, name: str) -> Sequence[np.ndarray]:
        return cast(TokenSet, self.run.task.sets[name]).sequences

    def outcomes(self, name: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        return document_outcomes(self.run.task.sets[name], -np.log(weights @ self.predictions(name)))

    def averaged(self, name: str, members: Sequence[Ensemble]) -> dict[str, np.ndarray] | None:
        if len({member.run.tokenizer.to_json() for member in members}) > 1:
            return None
        mean = np.mean([member.predictions(name)[0] for member in members], axis=0)
        return document_outcomes(self.run.task.sets[name], -np.log(mean))


def unseen(train: Sequence[np.ndarray], size: int, pad: int, unknown: int | None) -> np.ndarray:
    """A distribution over the vocabulary [entry]: half on the unknown word and half evenly on the other entries that
    training does not hold. Validation holds no unknown word where the vocabulary was fitted on it too, so the two
    shares cannot be chosen on it; a half for each is at most 0.7 nats from the right one."""
    absent = np.bincount(np.concatenate(train), minlength=size) == 0
    absent[pad] = False
    shares = np.zeros(size)
    if unknown is not None and absent[unknown]:
        absent[unknown] = False
        shares[unknown] = 0.5 if absent.any() else 1.0
    if absent.any():
        shares[absent] = (1 - shares.sum()) / absent.sum()
    return shares if shares.any() else np.full(size, 1 / size)


class ClassifyEnsemble(Ensemble):
    metric = "accuracy"

    @staticmethod
    def count(run: Run, more: Sequence[ExtraText]) -> dict[str, Model]:
        """The baselines that read words and pairs, on the training split, once more with each extra labelled text."""
        train, labels = run.splits.train, run.splits.labels
        texts = {"": train}
        for extra in more:
            if unknown := sorted({document.label for document in extra.documents} - set(labels)):
                what = f"{extra.name} has a label {unknown[0]!r} that the record does not know"
                raise BadInput(what, f"the record's labels are: {', '.join(labels)}")
            texts[f" with {extra.name}"] = (*train, *extra.documents)
        return {
            f"{name}{added}": fitted(CLASSIFIERS[name], documents, labels)
            for added, documents in texts.items()
            for name in COUNTING
        }

    def by_network(self, encoded: tuple[list[np.ndarray], np.ndarray]) -> np.ndarray:
        """Log-probabilities [item class]"""
        return log_probabilities(self.run.task.network, encoded[0], pad=0)

    def read(self, name: str) -> list[str]:
        splits = self.run.splits
        return [document.text for document in (splits.validation if name == "validation" else splits.tests[name])]

    def outcomes(self, name: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        return self.judged(name, mix_log_linear(self.predictions(name), weights))

    def averaged(self, name: str, members: Sequence[Ensemble]) -> dict[str, np.ndarray]:
        log_p = [member.predictions(name)[0] for member in members]
        return self.judged(name, np.logaddexp.reduce(log_p) - np.log(len(members)))

    def judged(self, name: str, log_p: np.ndarray) -> dict[str, np.ndarray]:
        return class_outcomes(log_p, self.run.task.sets[name][1], self.run.task.groups[name])


KINDS: dict[str, Any] = {"classify": ClassifyEnsemble, "lm": LanguageEnsemble}


def choose_weights(ensembles: Sequence[Ensemble]) -> np.ndarray:
    """One set of weights for all: their validation sets together, each with models that have not seen it."""
    predicted = np.concatenate([each.predictions("validation") for each in ensembles], axis=1)
    if ensembles[0].metric == "perplexity":
        return linear_weights(predicted)
    return log_linear_weights(predicted, np.concatenate([each.run.task.sets["validation"][1] for each in ensembles]))


def linear_weights(probabilities: np.ndarray) -> np.ndarray:
    """[model item] of the right answers -> weights [model] that sum to one, by EM (Jelinek and Mercer 1980)."""
    weights = np.full(len(probabilities), 1 / len(probabilities))
    for _ in range(ROUNDS):
        shares = weights[:, None] * probabilities
        better = (shares / shares.sum(0)).mean(1)
        moved = np.abs(better - weights).max()
        weights = better
        if moved < TOLERANCE:
            break
    return weights


def log_linear_weights(log_p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """[model item class], right classes [item] -> weights [model], none below zero, of greatest likelihood (Genest
    and Zidek 1986). They need not sum to one, so an overconfident model is also tempered."""
    from scipy.optimize import minimize

    items = np.arange(len(labels))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = mix_log_linear(log_p, weights)
        right = log_p[:, items, labels] - (np.exp(mixed) * log_p).sum(2)  # model item
        return -float(mixed[items, labels].mean()), -right.mean(1)

    start = np.full(len(log_p), 1 / len(log_p))
    bounds = [(0, LARGEST_WEIGHT)] * len(log_p)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def mix_log_linear(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item class], [model] -> log-probabilities [item class]: the product of powers, normalized"""
    powers = np.tensordot(weights, log_p, axes=1)
    powers = powers - powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))


def single_models(ensemble: Ensemble, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Weights of the ensemble and of each model alone; to `unseen words` alone all other words are impossible."""
    alone = dict(zip(ensemble.models, np.eye(len(weights)), strict=True))
    return {ENSEMBLE: weights, **{name: only for name, only in alone.items() if name != UNSEEN}}


def validation_scores(held_out: Sequence[Ensemble], weights: np.ndarray) -> dict[str, dict[str, Any]]:
    """Of each record on its own validation set, and their mean (for perplexity, of logs)."""
    found = {}
    metric = held_out[0].metric
    for model, chosen in single_models(held_out[0], weights).items():
        outcomes = [stack_outcomes({0: member.outcomes("validation", chosen)}) for member in held_out]
        values = [scores_by_subset(metric, each, None)["all"]["mean"] for each in outcomes]
        mean = float(np.exp(np.mean(np.log(values)))) if metric == "perplexity" else float(np.mean(values))
        found[model] = {"mean": mean, "by_record": values}
    return found


def scores_on_test(name: str, members: Sequence[Ensemble], weights: np.ndarray) -> dict[str, Any]:
    """Over all records: mean and interval on all, clean and contaminated items."""
    first = members[0]
    by_model = {
        model: {member.run.seed: member.outcomes(name, chosen) for member in members}
        for model, chosen in single_models(first, weights).items()
    }
    if len(members) > 1 and (together := first.averaged(name, members)):
        by_model[AVERAGED] = {first.run.seed: together}
    status = first.run.prepared.copies[name].status
    found = {}
    for model, outcomes in by_model.items():
        groups = next(iter(outcomes.values())).get("group")
        found[model] = scores_by_subset(first.metric, stack_outcomes(outcomes), status, groups)
    return found
