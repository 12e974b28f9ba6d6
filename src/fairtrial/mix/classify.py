"""A classifier's mixture: the product of powers of what a transformer and counting models say, normed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fairtrial.baselines.bayes import fit_bayes
from fairtrial.baselines.guess import Fit, Guess
from fairtrial.baselines.logistic import fit_logistic
from fairtrial.errors import BadInput
from fairtrial.mix.more import More
from fairtrial.mix.weights import log_linear_weights, mix_log_linear
from fairtrial.revive import Revived
from fairtrial.text.corpus import Document
from fairtrial.train.bench import ClassifyBench
from fairtrial.train.score_classify import log_probabilities

COUNTING = {"naive Bayes": fit_bayes, "logistic regression": fit_logistic}


class ClassifyMixture:
    """The record's network and the models that count."""

    metric = "accuracy"

    def __init__(self, revived: Revived, counting: Mapping[str, Guess]) -> None:
        bench, splits = revived.bench, revived.splits
        assert isinstance(bench, ClassifyBench)
        self.sets = bench.sets
        named = {"validation": splits.validation, **splits.tests}
        self.texts = {name: [each.text for each in documents] for name, documents in named.items()}
        self.models: dict[str, Callable[[str], np.ndarray]] = {"transformer": partial(_transformer, bench)}
        self.models |= {name: partial(self._counting, guess) for name, guess in counting.items()}
        self.known: dict[str, np.ndarray] = {}

    @staticmethod
    def count(revived: Revived, more: Sequence[More]) -> dict[str, Guess]:
        """The baselines that read words and pairs, on a record's training split, and once more with each further
        labelled text."""
        train, labels = revived.splits.train, revived.splits.labels
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


def _transformer(bench: ClassifyBench, name: str) -> np.ndarray:
    return log_probabilities(bench.network, bench.sets[name][0], pad=0)


def _fitted(fit: Fit, documents: Sequence[Document], labels: Sequence[str]) -> Guess:
    number = {label: place for place, label in enumerate(labels)}
    answers = np.array([number[each.label] for each in documents], dtype=np.int64)
    return fit([each.text for each in documents], answers, len(labels))
