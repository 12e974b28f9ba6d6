"""A task (classify, lm, mlm): a network, the batches that train it, and how its splits are scored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.data.batches import Batches, LabelledSentences, MaskedSentences, Masker, Sentences, Windows
from fairtrial.data.corpus import Document, Splits
from fairtrial.data.spelling import HiddenText
from fairtrial.data.splits import item_groups
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel, count_parameters
from fairtrial.model.part import refuse_idle
from fairtrial.recipe import Recipe
from fairtrial.rng import generator_for
from fairtrial.training import scoring
from fairtrial.training.scoring import MaskedSet, OnProgress, Score, TokenSet, evenly, ignore

# items scored for a point of a curve, evenly spread where the split is larger
MOST_SENTENCES = 4096
MOST_WINDOWS = 1024
MOST_MASKED_SENTENCES = 2048
FEWER_SENTENCES = 1024  # of the training split, where the network is large and its curve would cost an epoch
LARGE = 5_000_000  # parameters


Network = Classifier | LanguageModel | MaskedModel


@dataclass
class Task(ABC):
    network: Any
    batches: Batches
    choose_on: str | None  # the split to select weights on; None: there is none
    curves: tuple[str, ...]
    sets: dict[str, Any]  # encoded documents by split
    facts: dict[str, Any]  # for the record
    groups: dict[str, np.ndarray | None]  # by split: documents that belong together

    @abstractmethod
    def quick_score(self, split: str) -> Score:
        """The score of a few items, for a point of a curve."""

    @abstractmethod
    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        """The exact score, with the outcome of every item."""


@dataclass
class ClassifyTask(Task):
    network: Classifier
    sets: dict[str, tuple[list[np.ndarray], np.ndarray]]  # token ids, labels

    def quick_score(self, split: str) -> Score:
        rows, labels = self.sets[split]
        most = FEWER_SENTENCES if split == "train" and count_parameters(self.network) > LARGE else MOST_SENTENCES
        chosen = list(evenly(len(rows), most))
        groups = self.groups.get(split)
        groups = None if groups is None else groups[chosen]
        return scoring.score_classify(self.network, [rows[index] for index in chosen], labels[chosen], 0, groups)

    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        on_progress(0.0)  # it takes a moment only
        return scoring.score_classify(self.network, *self.sets[split], pad=0, groups=self.groups.get(split))


@dataclass
class LanguageTask(Task):
    network: LanguageModel
    sets: dict[str, TokenSet]
    length: int
    full_context: float

    def quick_score(self, split: str) -> Score:
        return scoring.score_windows(self.network, self.sets[split], length=self.length, most=MOST_WINDOWS)

    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        tokens, context = self.sets[split], self.full_context
        return scoring.score_lm(self.network, tokens, length=self.length, full_context=context, on_progress=on_progress)


@dataclass
class MaskedTask(Task):
    network: MaskedModel
    sets: dict[str, MaskedSet]

    def quick_score(self, split: str) -> Score:
        return scoring.score_masked(self.network, self.sets[split], most=MOST_MASKED_SENTENCES)

    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        on_progress(0.0)
        return scoring.score_masked(self.network, self.sets[split])


Documents = dict[str, tuple[Document, ...]]  # by split
Sets = tuple[dict[str, Any], Batches, dict[str, Any]]  # encoded documents by split, batches, facts for the record


def build_network(recipe: Recipe, seed: int, vocabulary: int, classes: int) -> Network:
    """A network with its first weights."""
    if recipe.task == "classify":
        return Classifier(recipe.shape, recipe.parts, vocabulary, classes, seed=seed)
    kind = LanguageModel if recipe.task == "lm" else MaskedModel
    return kind(recipe.shape, recipe.parts, vocabulary, seed=seed)


def build_task(recipe: Recipe, seed: int, splits: Splits, tokenizer: Tokenizer, network: Network | None = None) -> Task:
    """Encoded sets and batches, with this network or a new one."""
    every = {"train": splits.train, "validation": splits.validation, **splits.tests}
    documents = {name: split for name, split in every.items() if split}
    choose_on = "validation" if splits.validation else None
    watched = tuple(splits.tests) if recipe.scoring.watch_test else ()
    curves = tuple(name for name in ("train", "validation", *watched) if name in documents)
    builders: dict[str, Callable[..., Sets]] = {"classify": labelled_sets, "lm": token_sets, "mlm": masked_sets}
    groups = {name: item_groups(split, splits.ordered, recipe.shape.length) for name, split in documents.items()}
    sets, batches, more = builders[recipe.task](recipe, seed, splits, documents, tokenizer)
    if recipe.task != "classify":
        sets = {name: replace(found, groups=groups[name]) for name, found in sets.items()}
    facts = {"documents": {name: len(split) for name, split in documents.items()}, "vocabulary": tokenizer.size, **more}
    if network is None:
        network = build_network(recipe, seed, tokenizer.size, len(splits.labels))
    network.body.save_memory = recipe.training.save_memory
    common = (cast(Any, network), batches, choose_on, curves, sets, facts, groups)
    if recipe.task == "lm":
        return LanguageTask(*common, recipe.shape.length, recipe.scoring.full_context)
    return ClassifyTask(*common) if recipe.task == "classify" else MaskedTask(*common)


def labelled_sets(recipe: Recipe, seed: int, splits: Splits, documents: Documents, tokenizer: Tokenizer) -> Sets:
    length = recipe.shape.length
    number = {label: index for index, label in enumerate(splits.labels)}
    sets, cut = {}, {}
    for name, split in documents.items():
        rows = encode(split, tokenizer)
        cut[name] = sum(len(row) > length for row in rows)
        short = [np.array(tokenizer.cut(row, length), dtype=np.int64) if len(row) > length else row for row in rows]
        sets[name] = (short, np.array([number[document.label] for document in split], dtype=np.int64))
    batches = LabelledSentences(*sets["train"], batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return sets, batches, {"cut_to_length": cut}


def token_sets(recipe: Recipe, seed: int, splits: Splits, documents: Documents, tokenizer: Tokenizer) -> Sets:
    refuse_idle(recipe.parts)
    hidden = HiddenText(tokenizer, [document.text for document in splits.train])
    sets = {
        name: token_set(split, tokenizer, splits.running, None if name == "train" else hidden)
        for name, split in documents.items()
    }
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
    return sets, batches, {"tokens": {name: sum(map(len, tokens.sequences)) for name, tokens in sets.items()}}


def token_set(
    documents: Sequence[Document], tokenizer: Tokenizer, running: bool, hidden: HiddenText | None = None
) -> TokenSet:
    """Running text becomes one sequence; separate documents get marks. `hidden` prices what tokens do not say; nothing
    predicts the first token of a running text, so it costs as much as any entry."""
    rows = encode(documents, tokenizer)
    sizes = bytes_of(documents)
    spelling = None if hidden is None else hidden.nll([document.text for document in documents])
    if running:
        owners = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        if spelling is not None:
            spelling[0] += math.log(tokenizer.size)
        return TokenSet((np.concatenate(rows),), (owners,), len(rows), sizes, tokenizer.unknown, spelling)
    if tokenizer.start is None or tokenizer.stop is None:
        what = "separate sentences need start and stop marks, and this vocabulary has none"
        raise BadInput(what, "take a vocabulary of such sentences: --set tokens.fit=train")
    start, stop = np.array([tokenizer.start], dtype=np.int64), np.array([tokenizer.stop], dtype=np.int64)
    marked = tuple(np.concatenate((start, row, stop)) for row in rows)
    alone = tuple(np.full(len(row), number) for number, row in enumerate(marked))
    return TokenSet(marked, alone, len(rows), sizes, tokenizer.unknown, spelling)


def masked_sets(recipe: Recipe, seed: int, splits: Splits, documents: Documents, tokenizer: Tokenizer) -> Sets:
    if tokenizer.mask is None:
        raise BadInput("this tokenizer has no mask token", "train one with the task 'mlm'")
    length = recipe.shape.length
    masker = Masker(tokenizer.mask, tokenizer.mask + 1, tokenizer.size)  # the mask is the last of the special tokens
    sets: dict[str, MaskedSet] = {}
    train: list[np.ndarray] = []
    for name, split in documents.items():
        encoded = enumerate(encode(split, tokenizer))
        starts = [(owner, row, begin) for owner, row in encoded for begin in range(0, len(row), length)]
        rows = [row[begin : begin + length] for _, row, begin in starts]
        train = rows if name == "train" else train
        rng = generator_for(0, "eval", "mask", name)  # the same for every trial, so that all guess the same words
        hidden = [masker(row, rng) for row in rows]
        sets[name] = MaskedSet(hidden, [owner for owner, *_ in starts], len(split), bytes_of(split))
    batches = MaskedSentences(train, masker, batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return sets, batches, {"cut_to_length": dict.fromkeys(documents, 0)}


def encode(documents: Sequence[Document], tokenizer: Tokenizer) -> list[np.ndarray]:
    """Token ids of each document; one without any token is a single unknown."""
    nothing = [tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad]
    found = tokenizer.encode([document.text for document in documents])
    return [np.array(ids or nothing, dtype=np.int64) for ids in found]


def bytes_of(documents: Sequence[Document]) -> np.ndarray:
    return np.array([len(document.text.encode()) for document in documents], dtype=np.int64)


def pieces(row: np.ndarray, length: int) -> list[np.ndarray]:
    """A long document in pieces of `length` inputs and their targets; nothing is lost."""
    return [row[begin : begin + length + 1] for begin in range(0, max(1, len(row) - 1), length)]
