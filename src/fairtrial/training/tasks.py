"""A task (classify, lm, mlm): a network, the batches that train it, and how its splits are scored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np
import torch

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.data.batches import (
    Batches,
    LabelledSentences,
    MaskedSentences,
    Masker,
    Noisy,
    Rows,
    Sentences,
    Windows,
)
from fairtrial.data.corpus import Document, Splits, item_groups
from fairtrial.data.spelling import HiddenText
from fairtrial.data.tokenizer import Tokenizer
from fairtrial.errors import BadInput
from fairtrial.model.external import ExternalModel
from fairtrial.model.hugging_face import build_model
from fairtrial.model.network import Classifier, LanguageModel, MaskedModel, count_parameters, start_at_frequencies
from fairtrial.model.part import check_idle
from fairtrial.recipe import Recipe
from fairtrial.rng import generator_for
from fairtrial.stored import DataCounts
from fairtrial.training import scoring
from fairtrial.training.scoring import MaskedSet, OnProgress, Score, TokenSet, evenly, ignore

# items scored for a point of a curve, evenly spread where the split is larger
MOST_SENTENCES = 3000
MOST_WINDOWS = 1024
MOST_TOKENS = 1 << 18  # of those windows, where they are longer than 256
MOST_MASKED_SENTENCES = 2048
LEAST_OF_TRAIN = 256  # where the validation set is smaller
EXACT_BYTES = 250_000  # of text; a larger set is scored in strides
STRIDED = 0.5  # share of the context that a token of a large set sees at least


Network = Classifier | LanguageModel | MaskedModel  # or an ExternalModel, which has no `body`


@dataclass
class Task(ABC):
    network: Any
    batches: Batches
    choose_on: str | None  # the split to select weights on; None: there is none
    curves: tuple[str, ...]
    sets: dict[str, Any]  # encoded documents by split
    counts: DataCounts
    groups: dict[str, np.ndarray | None]  # by split: documents that belong together

    @abstractmethod
    def items(self, split: str) -> int:
        """Sentences, or windows of text."""

    @property
    @abstractmethod
    def most(self) -> int:
        """Items that are scored for a point of a curve."""

    def sample(self, split: str) -> int:
        """Items of this split that are scored for a point of its curve. Of the training set as many as of validation,
        beside which its curve is read: so curves take less than a tenth of the time of training."""
        most = min(self.most, self.items(split))
        if split == "train" and "validation" in self.sets:
            return min(most, max(LEAST_OF_TRAIN, self.items("validation")))
        return most

    @abstractmethod
    def quick_score(self, split: str) -> Score:
        """The score of a few items, for a point of a curve."""

    @abstractmethod
    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        """The exact score, with the outcome of every item."""

    @abstractmethod
    def work(self, split: str, *, quick: bool = False) -> int:
        """Sentences, or tokens, that a score runs through the network: its time follows from that of another."""


@dataclass
class ClassifyTask(Task):
    network: Classifier
    sets: dict[str, tuple[Rows, np.ndarray]]  # token ids, labels

    most = MOST_SENTENCES

    def items(self, split: str) -> int:
        return len(self.sets[split][1])

    def work(self, split: str, *, quick: bool = False) -> int:
        return self.sample(split) if quick else self.items(split)

    def quick_score(self, split: str) -> Score:
        rows, labels = self.sets[split]
        chosen = list(evenly(len(rows), self.sample(split)))
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

    def context(self, tokens: TokenSet) -> float:
        """The least share of a length that a scored token sees. A large set moves in strides of half a length. Large is
        told by bytes, which do not depend on the tokenizer: all variants of a study are scored alike."""
        large = (tokens.bytes.sum() or 4 * tokens.targets) > EXACT_BYTES  # ids without spelling have no bytes
        return min(STRIDED, self.full_context) if large else self.full_context

    def items(self, split: str) -> int:
        return int((-(-self.sets[split].sizes // self.length)).sum())

    def work(self, split: str, *, quick: bool = False) -> int:
        """Tokens that the blocks read, and those that the output layer predicts, which costs `predicting` tokens. The
        exact score slides its windows and predicts few tokens of each; then it scores windows that do not overlap, of
        sequences that are longer than one."""
        tokens, length, sizes = self.sets[split], self.length, self.sets[split].sizes
        if quick:
            every = tokens.targets * (1 + self.predicting)
            return int(every * self.sample(split) / max(1, self.items(split)))
        stride = max(1, int(length * (1 - self.context(tokens))))
        moves = -(-np.maximum(0, sizes - length) // stride)
        read = int((np.minimum(sizes, length) + moves * length).sum())
        apart = sizes[sizes > length].sum() * (1 + self.predicting)
        return int(read + tokens.targets * self.predicting + apart)

    @property
    def most(self) -> int:
        return max(1, min(MOST_WINDOWS, MOST_TOKENS // self.length))

    @property
    def predicting(self) -> float:
        """The size of the output layer beside that of the blocks; a network of the user's own predicts all it reads."""
        network = self.network
        if isinstance(network, ExternalModel):
            return 0.0
        return network.out.weight.numel() / max(1, count_parameters(network.body.blocks))

    def quick_score(self, split: str) -> Score:
        return scoring.score_windows(self.network, self.sets[split], length=self.length, most=self.sample(split))

    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        tokens = self.sets[split]
        context = self.context(tokens)
        score = scoring.score_lm(
            self.network, tokens, length=self.length, full_context=context, on_progress=on_progress
        )
        if context < self.full_context:
            return replace(score, metrics=replace(score.metrics, full_context=context))
        return score


@dataclass
class MaskedTask(Task):
    network: MaskedModel
    sets: dict[str, MaskedSet]

    most = MOST_MASKED_SENTENCES

    def items(self, split: str) -> int:
        return len(self.sets[split].hidden)

    def work(self, split: str, *, quick: bool = False) -> int:
        return self.sample(split) if quick else self.items(split)

    def quick_score(self, split: str) -> Score:
        return scoring.score_masked(self.network, self.sets[split], most=self.sample(split))

    def score(self, split: str, on_progress: OnProgress = ignore) -> Score:
        on_progress(0.0)
        return scoring.score_masked(self.network, self.sets[split])


Documents = dict[str, tuple[Document, ...]]  # by split
Counts = dict[str, dict[str, int]]  # fields of `DataCounts`
Sets = tuple[dict[str, Any], Batches, Counts]  # encoded documents by split, batches, what became of them


def build_network(recipe: Recipe, seed: int, vocabulary: int, classes: int) -> Network:
    """A network with its first weights."""
    if recipe.external:
        found = build_model(recipe.model, recipe.task, vocabulary, classes, recipe.shape, seed)
        return cast(Network, found)  # as far as training and scoring go
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
    counts = DataCounts(
        documents={name: len(split) for name, split in documents.items()},
        vocabulary=tokenizer.size,
        **more,
    )
    if recipe.training.input_noise:
        batches = Noisy(batches, recipe.training.input_noise, training_tokens(recipe.task, sets["train"]))
    if network is None:
        network = build_network(recipe, seed, tokenizer.size, len(splits.labels))
        if not recipe.external:
            prepare_output(network, recipe, sets["train"])
    cast(Any, network).precision = recipe.training.precision
    common = (cast(Any, network), batches, choose_on, curves, sets, counts, groups)
    if recipe.task == "lm":
        return LanguageTask(*common, recipe.shape.length, recipe.scoring.full_context)
    return ClassifyTask(*common) if recipe.task == "classify" else MaskedTask(*common)


def training_tokens(task: str, tokens: Any) -> np.ndarray:
    """All tokens of an encoded training set, one after another."""
    rows = {
        "classify": lambda: tokens[0],
        "lm": lambda: tokens.sequences,
        "mlm": lambda: [row for row, _ in tokens.hidden],
    }
    return np.concatenate([np.asarray(row) for row in rows[task]()])


def prepare_output(network: Network, recipe: Recipe, train: Any) -> None:
    """What the output layer begins with, and how it is trained, by the frequencies of the training set's answers."""
    answers = train[1] if recipe.task == "classify" else training_tokens(recipe.task, train)
    counts = torch.from_numpy(np.bincount(answers, minlength=network.out.out_features))
    if recipe.shape.start == "scaled":
        start_at_frequencies(network, counts)
    sampled = recipe.training.sampled_words
    if sampled and not isinstance(network, Classifier) and sampled < len(counts):
        network.sampled.choose(sampled, counts)


def labelled_sets(recipe: Recipe, seed: int, splits: Splits, documents: Documents, tokenizer: Tokenizer) -> Sets:
    length = recipe.shape.length
    number = {label: index for index, label in enumerate(splits.labels)}
    sets, cut = {}, {}
    for name, split in documents.items():
        rows = encode(split, tokenizer)
        cut[name] = int((rows.sizes > length).sum())
        sets[name] = (
            shortened(rows, length, keep_last=tokenizer.pretrained),
            np.array([number[document.label] for document in split], dtype=np.int64),
        )
    batches = LabelledSentences(*sets["train"], batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return sets, batches, {"cut_to_length": cut}


def token_sets(recipe: Recipe, seed: int, splits: Splits, documents: Documents, tokenizer: Tokenizer) -> Sets:
    check_idle(recipe.parts)
    hidden = cache(lambda: HiddenText(tokenizer, [document.text for document in splits.train]))
    sets = {
        name: token_set(split, tokenizer, splits.running, None if name == "train" else hidden)
        for name, split in documents.items()
    }
    for name, tokens in sets.items():
        if tokens.targets < 1:
            raise BadInput(f"the {name} text has too few tokens to predict any", "give a longer text")
    batches = token_batches(recipe, seed, splits.running, sets["train"].sequences, recipe.data.windows, tokenizer.pad)
    if splits.running and tokenizer.start is not None:
        what = "this vocabulary has start and stop marks, which a running text never trains"
        raise BadInput(what, "take a vocabulary of running text: --set tokens.fit=train")
    return sets, batches, {"tokens": {name: tokens.targets + len(tokens.sequences) for name, tokens in sets.items()}}


def token_batches(
    recipe: Recipe, seed: int, running: bool, sequences: Sequence[np.ndarray], windows: str, pad: int
) -> Batches:
    length, batch = recipe.shape.length, recipe.training.batch
    if running:
        return Windows(sequences[0], length=length, how=windows, batch=batch, seed=seed)
    return Sentences(pieces(cast(Rows, sequences), length), batch=batch, seed=seed, pad=pad)


def token_set(
    documents: Sequence[Document], tokenizer: Tokenizer, running: bool, hidden: Callable[[], HiddenText] | None = None
) -> TokenSet:
    """Running text becomes one sequence; separate documents get marks. `hidden` prices what tokens do not say; nothing
    predicts the first token of a running text, so it costs as much as any entry."""
    rows = encode(documents, tokenizer)
    bytes_ = bytes_of(documents, tokenizer)

    def price() -> np.ndarray:
        assert hidden is not None
        known = tokenizer.facts.get("kind") == "ids"  # the data are ids: they hide nothing
        nats = np.zeros(len(documents)) if known else hidden().nll([document.text for document in documents])
        if running:
            nats[0] += math.log(tokenizer.size)
        return nats

    spelling = None if hidden is None else price
    if running:
        owners = np.repeat(np.arange(len(rows), dtype=np.int32), rows.sizes)
        return TokenSet((rows.joined(),), (owners,), len(rows), bytes_, tokenizer.unknown, spelling)
    if tokenizer.start is None or tokenizer.stop is None:
        what = "separate sentences need start and stop marks, and this vocabulary has none"
        raise BadInput(what, "take a vocabulary of such sentences: --set tokens.fit=train")
    marked = with_marks(rows, tokenizer.start, tokenizer.stop)
    alone = Rows(np.repeat(np.arange(len(rows), dtype=np.int32), marked.sizes), marked.begins, marked.sizes)
    return TokenSet(marked, alone, len(rows), bytes_, tokenizer.unknown, spelling)


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
        sets[name] = MaskedSet(hidden, [owner for owner, *_ in starts], len(split), bytes_of(split, tokenizer))
    batches = MaskedSentences(train, masker, batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    return sets, batches, {"cut_to_length": dict.fromkeys(documents, 0)}


def encode(documents: Sequence[Document], tokenizer: Tokenizer) -> Rows:
    """Token ids of each document; one without any token is a single unknown."""
    rows = Rows.of(tokenizer.encode([document.text for document in documents]))
    empty = rows.sizes == 0
    if not empty.any():
        return rows
    nothing = tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad
    flat = np.append(rows.flat, np.array(nothing, rows.flat.dtype))
    return Rows(flat, np.where(empty, len(flat) - 1, rows.begins), np.where(empty, 1, rows.sizes))


def shortened(rows: Rows, length: int, *, keep_last: bool) -> Rows:
    """At most `length` tokens of each row. `keep_last`: the final special token that a pretrained encoder expects."""
    short = Rows(rows.flat, rows.begins, np.minimum(rows.sizes, length))
    long = np.flatnonzero(rows.sizes > length)
    if keep_last and len(long):
        short = Rows(short.joined(), np.cumsum(short.sizes) - short.sizes, short.sizes)
        short.flat[short.begins[long] + length - 1] = rows.flat[rows.begins[long] + rows.sizes[long] - 1]
    return short


def with_marks(rows: Rows, start: int, stop: int) -> Rows:
    sizes = rows.sizes + 2
    begins = np.cumsum(sizes) - sizes
    flat = np.empty(int(sizes.sum()), np.int32)
    inside = np.ones(len(flat), bool)
    for places, mark in ((begins, start), (begins + sizes - 1, stop)):
        flat[places], inside[places] = mark, False
    flat[inside] = rows.joined()
    return Rows(flat, begins, sizes)


def bytes_of(documents: Sequence[Document], tokenizer: Tokenizer) -> np.ndarray:
    """Of each text. Of token ids they are known where the entries are spelled: a letter for each byte."""
    if tokenizer.facts.get("kind") == "ids":
        named = bool(tokenizer.facts["named"])
        return np.array([named * len(document.text.replace(" ", "")) for document in documents], dtype=np.int64)
    return np.array([len(document.text.encode()) for document in documents], dtype=np.int64)


def pieces(rows: Rows, length: int) -> Rows:
    """Long documents in pieces of `length` inputs and their targets; nothing is lost."""
    counts = np.maximum(1, -(-(rows.sizes - 1) // length))  # of each document
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)  # of a piece in its document
    begins, sizes = np.repeat(rows.begins, counts) + number * length, np.repeat(rows.sizes, counts) - number * length
    return Rows(rows.flat, begins, np.minimum(sizes, length + 1))
