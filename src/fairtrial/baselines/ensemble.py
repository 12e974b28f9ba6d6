"""Mixtures: a transformer and models that count words, as one model whose weights were chosen on validation.

Weights of a mixture, chosen on held-out answers. Both searches have one optimum, so nothing depends on a start.

More text for the models that count: documents of another source, without those that copy what is scored.

A language model's mixture: p(token) = the weighted sum of what a transformer and counting models give it.

A classifier's mixture: the product of powers of what a transformer and counting models say, normed again.

Records -> one mixture, its weights chosen on validation, scored on the test sets: the whole flow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairtrial.baselines.classifiers import Fit, Guess, fit_bayes, fit_logistic
from fairtrial.baselines.kneser_ney import KneserNey
from fairtrial.data.corpus import Corpus, Document
from fairtrial.data.duplicates import CLEAN, find_duplicates
from fairtrial.data.readers import find_format, read
from fairtrial.data.sotu import presidents
from fairtrial.data.splits import kind_in_use, shape_documents
from fairtrial.errors import BadInput
from fairtrial.recipe import Data
from fairtrial.record import Record
from fairtrial.statistics.comparison import scores_by_subset
from fairtrial.statistics.outcomes import stack_outcomes
from fairtrial.training.scoring import TokenSet, document_outcomes, log_probabilities, token_nll
from fairtrial.training.tasks import ClassifyTask, LanguageTask, token_set
from fairtrial.trial import Run, load

ROUNDS = 1000
ENOUGH = 1e-7  # a round that moves no weight further is the last
MOST = 20.0  # of a log-linear weight: beyond it a lucky model of few items would run away


def linear_weights(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities of the right answers [model item] -> weights [model] that sum to one and make them likeliest, by
    expectation maximisation (Jelinek and Mercer 1980)."""
    weights = np.full(len(probabilities), 1 / len(probabilities))
    for _ in range(ROUNDS):
        shares = weights[:, None] * probabilities
        better = (shares / shares.sum(0)).mean(1)
        moved = np.abs(better - weights).max()
        weights = better
        if moved < ENOUGH:
            break
    return weights


def mix_linear(probabilities: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item], [model] -> [item]"""
    return weights @ probabilities


def log_linear_weights(log_p: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Log-probabilities [model item class], right classes [item] -> weights [model], none below zero, that make the
    right classes likeliest: a logistic regression on what the models say (Genest and Zidek 1986). They need not sum to
    one, so that a model that is too sure of itself is also cooled."""
    from scipy.optimize import minimize

    items = np.arange(len(labels))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        mixed = mix_log_linear(log_p, weights)
        right = log_p[:, items, labels] - (np.exp(mixed) * log_p).sum(2)  # model item
        return -float(mixed[items, labels].mean()), -right.mean(1)

    start = np.full(len(log_p), 1 / len(log_p))
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, MOST)] * len(log_p)).x)


def mix_log_linear(log_p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[model item class], [model] -> log-probabilities [item class]: the product of powers, normed again"""
    powers = np.tensordot(weights, log_p, axes=1)
    powers -= powers.max(1, keepdims=True)
    return powers - np.log(np.exp(powers).sum(1, keepdims=True))


@dataclass(frozen=True)
class More:
    name: str
    documents: tuple[Document, ...]
    dropped: int  # documents that stand in a scored set, word for word or nearly so


def read_more(source: str, task: str, kind: str, scored: list[str]) -> More:
    """All splits of `source`, of the embedded corpus the addresses of all presidents, cut as tokens of that `kind` want
    it. `scored`: texts that no model may have seen."""
    data = Data(source=source)
    if find_format(data) == "sotu":
        data = Data(source=source, presidents=presidents())
    documents = whole(shape_documents(read(data, task), kind))
    status = find_duplicates([each.text for each in documents], scored).known_status
    kept = tuple(each for each, found in zip(documents, status, strict=True) if found == CLEAN)
    if not kept:
        raise BadInput(f"all of {source} stands in the sets that are scored", "give text that they do not hold")
    return More(source, kept, len(documents) - len(kept))


def whole(corpus: Corpus) -> tuple[Document, ...]:
    return corpus.train + corpus.validation + tuple(each for tests in corpus.tests.values() for each in tests)


ORDER = 3
UNSEEN = "unseen words"
Model = Callable[[TokenSet], np.ndarray]  # tokens -> probability of every target, one sequence after another


class LanguageMixture:
    """The record's network and the models that count."""

    metric = "perplexity"

    def __init__(self, run: Run, counting: Mapping[str, Model]) -> None:
        bench = run.task
        assert isinstance(bench, LanguageTask)
        self.sets = bench.sets
        self.models: dict[str, Model] = {"transformer": partial(_token_probabilities, bench), **counting}
        self.known: dict[str, np.ndarray] = {}

    @staticmethod
    def count(run: Run, more: Sequence[More]) -> dict[str, Model]:
        """Kneser-Ney on a record's training split, and once more with each further text; and what is left for words
        that this split does not hold."""
        bench, tokenizer = run.task, run.tokenizer
        assert isinstance(bench, LanguageTask)
        train, size = bench.sets["train"].sequences, tokenizer.size
        models: dict[str, Model] = {"Kneser-Ney": partial(_counting, KneserNey(train, size, ORDER))}
        for each in more:
            further = token_set(each.documents, tokenizer, run.splits.running).sequences
            model = KneserNey([*further, *train], size, ORDER)
            models[f"Kneser-Ney with {each.name}"] = partial(_counting, model)
        models[UNSEEN] = partial(_looking_up, unseen(train, size, tokenizer.pad, tokenizer.unknown))
        return models

    def said(self, name: str) -> np.ndarray:
        """Probabilities of one set's targets [model target]"""
        if name not in self.known:
            self.known[name] = np.stack([model(self.sets[name]) for model in self.models.values()])
        return self.known[name]

    @staticmethod
    def choose(mixtures: Sequence[LanguageMixture]) -> np.ndarray:
        """One set of weights for all: their validation sets together, each with models that have not seen it."""
        return linear_weights(np.concatenate([each.said("validation") for each in mixtures], axis=1))

    def outcomes(self, name: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        """As a record keeps them. A weight of 1 for one model gives that model's own."""
        return document_outcomes(self.sets[name], -np.log(mix_linear(self.said(name), weights)))


def _token_probabilities(bench: LanguageTask, tokens: TokenSet) -> np.ndarray:
    return np.exp(-token_nll(bench.network, tokens, length=bench.length, full_context=bench.full_context, pad=0))


def _counting(model: KneserNey, tokens: TokenSet) -> np.ndarray:
    return model.probabilities(tokens.sequences)


def _looking_up(shares: np.ndarray, tokens: TokenSet) -> np.ndarray:
    return shares[np.concatenate([sequence[1:] for sequence in tokens.sequences])]


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


COUNTING = {"naive Bayes": fit_bayes, "logistic regression": fit_logistic}


class ClassifyMixture:
    """The record's network and the models that count."""

    metric = "accuracy"

    def __init__(self, run: Run, counting: Mapping[str, Guess]) -> None:
        bench, splits = run.task, run.splits
        assert isinstance(bench, ClassifyTask)
        self.sets = bench.sets
        named = {"validation": splits.validation, **splits.tests}
        self.texts = {name: [each.text for each in documents] for name, documents in named.items()}
        self.models: dict[str, Callable[[str], np.ndarray]] = {"transformer": partial(_class_probabilities, bench)}
        self.models |= {name: partial(self._counting, guess) for name, guess in counting.items()}
        self.known: dict[str, np.ndarray] = {}

    @staticmethod
    def count(run: Run, more: Sequence[More]) -> dict[str, Guess]:
        """The baselines that read words and pairs, on a record's training split, and once more with each further
        labelled text."""
        train, labels = run.splits.train, run.splits.labels
        found = {name: _fitted(fit, train, labels) for name, fit in COUNTING.items()}
        for each in more:
            if strange := sorted({document.label for document in each.documents} - set(labels)):
                what = f"{each.name} has a label {strange[0]!r} that the record does not know"
                raise BadInput(what, f"the record's labels are: {', '.join(labels)}")
            for name, fit in COUNTING.items():
                found[f"{name} with {each.name}"] = _fitted(fit, (*train, *each.documents), labels)
        return found

    def said(self, name: str) -> np.ndarray:
        """Log-probabilities of one set's items [model item class]"""
        if name not in self.known:
            self.known[name] = np.stack([model(name) for model in self.models.values()])
        return self.known[name]

    @staticmethod
    def choose(mixtures: Sequence[ClassifyMixture]) -> np.ndarray:
        """One set of weights for all: their validation sets together, each with models that have not seen it."""
        labels = np.concatenate([each.sets["validation"][1] for each in mixtures])
        return log_linear_weights(np.concatenate([each.said("validation") for each in mixtures], axis=1), labels)

    def outcomes(self, name: str, weights: np.ndarray) -> dict[str, np.ndarray]:
        """As a record keeps them. A weight of 1 for one model gives that model's own."""
        labels, log_p = self.sets[name][1], mix_log_linear(self.said(name), weights)
        return {
            "label": labels.astype(np.int64),
            "guess": log_p.argmax(1).astype(np.int64),
            "log_p": log_p[np.arange(len(labels)), labels],
        }

    def _counting(self, guess: Guess, name: str) -> np.ndarray:
        return guess(self.texts[name])


def _class_probabilities(bench: ClassifyTask, name: str) -> np.ndarray:
    return log_probabilities(bench.network, bench.sets[name][0], pad=0)


def _fitted(fit: Fit, documents: Sequence[Document], labels: Sequence[str]) -> Guess:
    number = {label: place for place, label in enumerate(labels)}
    answers = np.array([number[each.label] for each in documents], dtype=np.int64)
    return fit([each.text for each in documents], answers, len(labels))


MIXTURE = "mixture"
KINDS: dict[str, Any] = {"classify": ClassifyMixture, "lm": LanguageMixture}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Counted:
    """Models that count, and the further text that they have read."""

    models: dict[str, Any]
    more: list[More]


@dataclass(frozen=True)
class Opened:
    """A record with the models that are mixed."""

    run: Run
    mixture: ClassifyMixture | LanguageMixture
    counted: Counted


def mix_records(
    records: Sequence[Record],
    chosen_on: Sequence[Record] = (),
    more: Sequence[str] = (),
    *,
    tests: bool = True,
    tell: Tell = lambda what: None,
) -> dict[str, Any]:
    """`records`: trials of one recipe, each with a seed of its own. `chosen_on`: records with a validation set that the
    weights are chosen on; without them, `records` themselves. No test set has a part in that choice; with `tests` false
    none is scored at all."""
    refuse_mismatch(records, chosen_on)
    known: dict[str, Counted] = {}  # records that share their training text share what counts it
    held_out = [open_mixture(record, more, known, tell, validated=True) for record in chosen_on or records]
    kind = KINDS[records[0].recipe.task]
    tell("choosing weights on validation")
    weights = kind.choose([each.mixture for each in held_out])
    found: dict[str, Any] = {
        "format": 1,
        "task": records[0].recipe.task,
        "metric": kind.metric,
        "records": [record.folder.name for record in records],
        "chosen_on": [record.folder.name for record in chosen_on or records],
        "weights": dict(zip(held_out[0].mixture.models, weights.tolist(), strict=True)),
        "more": [
            {"name": m.name, "documents": len(m.documents), "dropped": m.dropped} for m in held_out[0].counted.more
        ],
        "validation": validation_figures(held_out, weights),
        "tests": {},
    }
    if tests:
        opened = [open_mixture(record, more, known, tell) for record in records] if chosen_on else held_out
        for name in records[0].trial["test_sets"]:
            tell(f"scoring {name}")
            found["tests"][name] = test_figures(str(name), opened, weights)
    return found


def refuse_mismatch(records: Sequence[Record], chosen_on: Sequence[Record]) -> None:
    first = records[0]
    if first.recipe.task not in KINDS:
        raise BadInput(f"{first.folder} guesses hidden words; only classifiers and language models can be mixed")
    if other := next((each for each in chosen_on if each.recipe.task != first.recipe.task), None):
        raise BadInput(f"{other.folder} has another task than {first.folder}", "choose on records of the same task")
    if other := next((each for each in records if each.trial["recipe"] != first.trial["recipe"]), None):
        raise BadInput(
            f"{other.folder} and {first.folder} are trials of different recipes", "mix each recipe by itself"
        )
    if other := next((each for each in records if each.trial["data"] != first.trial["data"]), None):
        raise BadInput(
            f"{other.folder} and {first.folder} were trained on different data", "mix records of one data set"
        )
    seeds = [record.trial["seed"] for record in records]
    if len(set(seeds)) < len(seeds):
        raise BadInput("two of these records have the same seed", "give each seed once")


def open_mixture(
    record: Record,
    more: Sequence[str] = (),
    known: dict[str, Counted] | None = None,
    tell: Tell = lambda what: None,
    *,
    validated: bool = False,
) -> Opened:
    """`known` keeps models that count from record to record."""
    tell(f"reading {record.folder.name}")
    run = load(record)
    splits = run.splits
    if validated and not splits.validation:
        hint = "give records of this recipe with data.validation=0.1 to choose them on: --chosen-on RECORD"
        raise BadInput(f"{record.folder} has no validation set to choose weights on", hint)
    known = {} if known is None else known
    kind = KINDS[run.recipe.task]
    read = [run.tokenizer.to_json(), *(f"{each.label} {each.text}" for each in splits.train)]
    key = hashlib.sha256("\n".join(read).encode()).hexdigest()
    if key not in known:
        tell(f"counting words for {record.folder.name}")
        scored = [each.text for documents in (splits.validation, *splits.tests.values()) for each in documents]
        cut = kind_in_use(run.recipe.tokens, run.tokenizer.facts)
        further = [read_more(source, run.recipe.task, cut, scored) for source in more]
        known[key] = Counted(kind.count(run, further), further)
    return Opened(run, kind(run, known[key].models), known[key])


def alone_and_together(opened: Opened, weights: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of the mixture, and those that make it one of its models. Unseen words are no model by themselves:
    all others are impossible to it."""
    alone = dict(zip(opened.mixture.models, np.eye(len(weights)), strict=True))
    return {MIXTURE: weights, **{name: only for name, only in alone.items() if name != UNSEEN}}


def validation_figures(held_out: Sequence[Opened], weights: np.ndarray) -> dict[str, dict[str, Any]]:
    """Of each record by itself, since every seed has a validation set of its own; and their mean (for perplexity, of
    logs)."""
    found = {}
    metric = held_out[0].mixture.metric
    for model, taken in alone_and_together(held_out[0], weights).items():
        outcomes = [stack_outcomes({0: each.mixture.outcomes("validation", taken)}) for each in held_out]
        values = [scores_by_subset(metric, each, None)["all"]["mean"] for each in outcomes]
        mean = float(np.exp(np.mean(np.log(values)))) if metric == "perplexity" else float(np.mean(values))
        found[model] = {"mean": mean, "by_record": values}
    return found


def test_figures(name: str, opened: Sequence[Opened], weights: np.ndarray) -> dict[str, Any]:
    """Over all records: mean and interval on all, clean and contaminated items."""
    splits = opened[0].run.splits
    known = [document.text for document in (*splits.train, *splits.validation)]
    status = find_duplicates(known, [document.text for document in splits.tests[name]]).status
    found = {}
    for model, taken in alone_and_together(opened[0], weights).items():
        outcomes = {each.run.seed: each.mixture.outcomes(name, taken) for each in opened}
        found[model] = scores_by_subset(opened[0].mixture.metric, stack_outcomes(outcomes), status)
    return found
