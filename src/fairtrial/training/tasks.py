"""Documents as token ids.

A bench: documents turned into numbers, a fresh network, and how its splits are scored. One for each task.

The bench of a masked language model: sentences with hidden words, and how well they are guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.data.batches import Batches, LabelledSentences, MaskedSentences, Masker, Sentences, Windows, masked_batch
from fairtrial.data.corpus import Document, Splits
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel, count_parameters
from fairtrial.model.part import refuse_idle
from fairtrial.recipe import Recipe
from fairtrial.rng import generator_for
from fairtrial.statistics.crossed import perplexity_interval
from fairtrial.training.scoring import Score, TokenSet, score_classify, score_lm, score_windows, scoring


def encode(documents: Sequence[Document], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Token ids of each document; one without any token is a single unknown."""
    nothing = [tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad]
    return [np.array(ids or nothing, dtype=np.int64) for ids in tokenizer.encode([each.text for each in documents])]


MOST_SENTENCES = 4096  # scored for a curve's point; evenly spread where the split is larger
FEWER_SENTENCES = 1024  # of the training split, where the network is large and its curve would cost an epoch
LARGE = 5_000_000  # parameters
MOST_WINDOWS = 1024


@dataclass
class ClassifyTask:
    network: Classifier
    batches: Batches
    choose_on: str | None
    curves: tuple[str, ...]
    sets: dict[str, tuple[list[np.ndarray], np.ndarray]]
    facts: dict[str, Any] = field(default_factory=dict)

    def quick_score(self, split: str) -> Score:
        rows, labels = self.sets[split]
        most = FEWER_SENTENCES if split == "train" and count_parameters(self.network) > LARGE else MOST_SENTENCES
        if len(rows) > most:
            places = np.linspace(0, len(rows) - 1, most).round().astype(int)
            rows, labels = [rows[place] for place in places], labels[places]
        return score_classify(self.network, rows, labels, pad=0)

    def score(self, split: str, tell: Callable[[float], None] = lambda share: None) -> Score:
        tell(0.0)  # a classifier's sets are scored in a moment
        return score_classify(self.network, *self.sets[split], pad=0)


@dataclass
class LanguageTask:
    network: LanguageModel
    batches: Batches
    choose_on: str | None
    curves: tuple[str, ...]
    sets: dict[str, TokenSet]
    length: int
    full_context: float
    facts: dict[str, Any] = field(default_factory=dict)

    def quick_score(self, split: str) -> Score:
        return score_windows(self.network, self.sets[split], length=self.length, pad=0, most=MOST_WINDOWS)

    def score(self, split: str, tell: Callable[[float], None] = lambda share: None) -> Score:
        """`tell` hears the share that is done."""
        tokens = self.sets[split]
        return score_lm(self.network, tokens, length=self.length, full_context=self.full_context, pad=0, tell=tell)


@dataclass
class MaskedTask:
    network: MaskedModel
    batches: Batches
    choose_on: str | None
    curves: tuple[str, ...]
    sets: dict[str, MaskedSet]
    facts: dict[str, Any] = field(default_factory=dict)

    def quick_score(self, split: str) -> Score:
        return score_masked(self.network, self.sets[split], most=MOST_MASKED_SENTENCES)

    def score(self, split: str, tell: Callable[[float], None] = lambda share: None) -> Score:
        tell(0.0)
        return score_masked(self.network, self.sets[split])


Task = ClassifyTask | LanguageTask | MaskedTask


Network = Classifier | LanguageModel | MaskedModel


def build_network(recipe: Recipe, seed: int, vocabulary: int, classes: int) -> Network:
    """A network with its first weights."""
    if recipe.task == "classify":
        return Classifier(recipe.shape, recipe.parts, vocabulary, classes, seed=seed)
    kind = LanguageModel if recipe.task == "lm" else MaskedModel
    return kind(recipe.shape, recipe.parts, vocabulary, seed=seed)


def build_task(recipe: Recipe, seed: int, splits: Splits, tokenizer: Tokenizer, network: Network | None = None) -> Task:
    """Encoded sets and batches, with this network or a new one."""
    names = {"train": splits.train, "validation": splits.validation, **splits.tests}
    documents = {name: split for name, split in names.items() if split}
    choose_on = "validation" if splits.validation else None
    watched = tuple(splits.tests) if recipe.scoring.watch_test else ()
    curves = tuple(name for name in ("train", "validation", *watched) if name in documents)
    facts = {"documents": {name: len(split) for name, split in documents.items()}, "vocabulary": tokenizer.size}
    build: Any = {"classify": _classify, "lm": _language, "mlm": _masked}[recipe.task]
    make = (
        partial(build_network, recipe, seed, tokenizer.size, len(splits.labels)) if network is None else lambda: network
    )
    bench: Task = build(recipe, seed, splits, documents, tokenizer, choose_on, curves, make)
    bench.network.body.save_memory = recipe.training.save_memory
    bench.facts = facts | bench.facts
    return bench


def _classify(
    recipe: Recipe,
    seed: int,
    splits: Splits,
    documents: dict[str, tuple[Document, ...]],
    tokenizer: Tokenizer,
    choose_on: str | None,
    curves: tuple[str, ...],
    make: Callable[[], Any],
) -> ClassifyTask:
    length = recipe.shape.length
    number = {label: place for place, label in enumerate(splits.labels)}
    sets, cut = {}, {}
    for name, split in documents.items():
        rows = encode(split, tokenizer)
        cut[name] = sum(len(row) > length for row in rows)
        short = [np.array(tokenizer.cut(row, length), dtype=np.int64) if len(row) > length else row for row in rows]
        sets[name] = (short, np.array([number[each.label] for each in split], dtype=np.int64))
    batches = LabelledSentences(*sets["train"], batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return ClassifyTask(make(), batches, choose_on, curves, sets, {"cut_to_length": cut})


def _language(
    recipe: Recipe,
    seed: int,
    splits: Splits,
    documents: dict[str, tuple[Document, ...]],
    tokenizer: Tokenizer,
    choose_on: str | None,
    curves: tuple[str, ...],
    make: Callable[[], Any],
) -> LanguageTask:
    refuse_idle(recipe.parts)
    sets = {name: token_set(split, tokenizer, splits.running) for name, split in documents.items()}
    for name, tokens in sets.items():
        if tokens.targets < 1:
            raise BadInput(f"the {name} text has too few tokens to predict any", "give a longer text")
    length, batch = recipe.shape.length, recipe.training.batch
    batches: Batches
    if splits.running:
        batches = Windows(sets["train"].sequences[0], length=length, how=recipe.data.windows, batch=batch, seed=seed)
    else:
        rows = [piece for row in sets["train"].sequences for piece in pieces(row, length)]
        batches = Sentences(rows, batch=batch, seed=seed, pad=tokenizer.pad)
    if splits.running and tokenizer.start is not None:
        what = "this vocabulary has start and stop marks, which a running text never trains"
        raise BadInput(what, "take a vocabulary of running text: --set tokens.fit=train")
    facts = {"tokens": {name: sum(map(len, tokens.sequences)) for name, tokens in sets.items()}}
    return LanguageTask(make(), batches, choose_on, curves, sets, length, recipe.scoring.full_context, facts)


def token_set(documents: Sequence[Document], tokenizer: Tokenizer, running: bool) -> TokenSet:
    """Running text becomes one sequence; documents that stand alone get their start and stop marks."""
    rows = encode(documents, tokenizer)
    sizes = np.array([len(each.text.encode()) for each in documents], dtype=np.int64)
    if running:
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        return TokenSet((np.concatenate(rows),), (owners,), len(rows), sizes, tokenizer.unknown)
    if tokenizer.start is None or tokenizer.stop is None:
        what = "sentences that stand alone need start and stop marks, and this vocabulary has none"
        raise BadInput(what, "take a vocabulary of such sentences: --set tokens.fit=train")
    start, stop = np.array([tokenizer.start], dtype=np.int64), np.array([tokenizer.stop], dtype=np.int64)
    marked = tuple(np.concatenate((start, row, stop)) for row in rows)
    alone = tuple(np.full(len(row), place) for place, row in enumerate(marked))
    return TokenSet(marked, alone, len(rows), sizes, tokenizer.unknown)


def pieces(row: np.ndarray, length: int) -> list[np.ndarray]:
    """A long document in pieces of `length` inputs and their targets; nothing is lost."""
    return [row[begin : begin + length + 1] for begin in range(0, max(1, len(row) - 1), length)]


ROWS = 128  # sentences scored at once
MOST_MASKED_SENTENCES = 2048  # scored for a curve's point; evenly spread where the split is larger


@dataclass(frozen=True)
class MaskedSet:
    """Sentences whose hidden words were drawn once, so that every look at the set asks the same."""

    hidden: list[tuple[np.ndarray, np.ndarray]]  # seen, wanted
    owners: list[int]  # the document of each sentence
    documents: int
    bytes: np.ndarray


def _masked(
    recipe: Recipe,
    seed: int,
    splits: Splits,
    documents: dict[str, tuple[Document, ...]],
    tokenizer: Tokenizer,
    choose_on: str | None,
    curves: tuple[str, ...],
    make: Callable[[], Any],
) -> MaskedTask:
    if tokenizer.mask is None:
        raise BadInput("this tokenizer has no mask to hide words with", "train one with the task 'mlm'")
    length = recipe.shape.length
    masker = Masker(tokenizer.mask, tokenizer.mask + 1, tokenizer.size)  # the mask is the last of the special tokens
    sets: dict[str, MaskedSet] = {}
    cut: dict[str, int] = {}
    train: list[np.ndarray] = []
    for name, split in documents.items():
        rows = encode(split, tokenizer)
        cut[name] = 0
        owned = [(owner, row[begin : begin + length]) for owner, row in enumerate(rows)
                 for begin in range(0, len(row), length)]  # fmt: skip
        if name == "train":
            train = [row for _, row in owned]
        chance = generator_for(0, "eval", "mask", name)  # the same for every trial, so that they share their questions
        sets[name] = MaskedSet(
            [masker(row, chance) for _, row in owned],
            [owner for owner, _ in owned],
            len(rows),
            np.array([len(each.text.encode()) for each in split], dtype=np.int64),
        )
    batches = MaskedSentences(train, masker, batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return MaskedTask(make(), batches, choose_on, curves, sets, {"cut_to_length": cut})


def score_masked(network: MaskedModel, given: MaskedSet, most: int | None = None) -> Score:
    """Perplexity of hidden words: exp(nats / words) over the words that were hidden, and only those."""
    places: Sequence[int] = range(len(given.hidden))
    if most is not None and len(given.hidden) > most:
        places = np.linspace(0, len(given.hidden) - 1, most).round().astype(int).tolist()
    order = sorted(places, key=lambda place: len(given.hidden[place][0]))
    nats, counts = np.zeros(given.documents), np.zeros(given.documents, np.int64)
    with scoring(network):
        for begin in range(0, len(order), ROWS):
            chosen = order[begin : begin + ROWS]
            batch = masked_batch([given.hidden[place] for place in chosen], 0)
            assert batch.lengths is not None
            found = network.nll(*(torch.from_numpy(each) for each in (batch.ids, batch.lengths, batch.answers)))
            owners = np.repeat([given.owners[place] for place in chosen], (batch.answers >= 0).sum(1))
            np.add.at(nats, owners, found.double().numpy())
            np.add.at(counts, owners, 1)
    loss = float(nats.sum() / max(1, counts.sum()))
    figures = {
        "documents": given.documents,
        "tokens": int(counts.sum()),
        "masked_perplexity": math.exp(min(700.0, loss)),
        "masked_nll": loss,
        "interval": perplexity_interval(nats, counts),
    }
    outcomes = {"nll": nats, "tokens": counts, "bytes": given.bytes, "unknown": np.zeros_like(counts)}
    return Score(figures, (-loss,), outcomes)
