"""A language model's mixture: p(token) = the weighted sum of what a transformer and counting models give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fairtrial.baselines.kneser_ney import KneserNey
from fairtrial.mix.more import More
from fairtrial.mix.weights import linear_weights, mix_linear
from fairtrial.revive import Revived
from fairtrial.train.bench import LanguageBench, token_set
from fairtrial.train.score_lm import TokenSet, document_outcomes, token_nats

ORDER = 3
UNSEEN = "unseen words"
Model = Callable[[TokenSet], np.ndarray]  # tokens -> probability of every target, one sequence after another


class LanguageMixture:
    """The record's network and the models that count."""

    metric = "perplexity"

    def __init__(self, revived: Revived, counting: Mapping[str, Model]) -> None:
        bench = revived.bench
        assert isinstance(bench, LanguageBench)
        self.sets = bench.sets
        self.models: dict[str, Model] = {"transformer": partial(_transformer, bench), **counting}
        self.known: dict[str, np.ndarray] = {}

    @staticmethod
    def count(revived: Revived, more: Sequence[More]) -> dict[str, Model]:
        """Kneser-Ney on a record's training split, and once more with each further text; and what is left for words
        that this split does not hold."""
        bench, tokenizer = revived.bench, revived.tokenizer
        assert isinstance(bench, LanguageBench)
        train, size = bench.sets["train"].sequences, tokenizer.size
        models: dict[str, Model] = {"Kneser-Ney": partial(_counting, KneserNey(train, size, ORDER))}
        for each in more:
            further = token_set(each.documents, tokenizer, revived.splits.running).sequences
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


def _transformer(bench: LanguageBench, tokens: TokenSet) -> np.ndarray:
    return np.exp(-token_nats(bench.network, tokens, length=bench.length, full_context=bench.full_context, pad=0))


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
