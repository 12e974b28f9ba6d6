"""A bench: documents turned into numbers, a fresh network, and how its splits are scored. One for each task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fairtrial.parts  # noqa: F401  (puts the built-in parts into the registry)
from fairtrial.errors import BadInput
from fairtrial.model.network import Classifier, LanguageModel, count_parameters
from fairtrial.model.part import refuse_idle
from fairtrial.recipe import Recipe
from fairtrial.text.batches import Batches, LabelledSentences, Sentences, Windows
from fairtrial.text.corpus import Document, Splits
from fairtrial.text.tokenizer import Tokenizer
from fairtrial.train.bench_mlm import MaskedBench, build_masked
from fairtrial.train.encoding import encode
from fairtrial.train.score import Score
from fairtrial.train.score_classify import score_classify
from fairtrial.train.score_lm import TokenSet, score_lm, score_windows

MOST_SENTENCES = 4096  # scored for a curve's point; evenly spread where the split is larger
FEWER_SENTENCES = 1024  # of the training split, where the network is large and its curve would cost an epoch
LARGE = 5_000_000  # parameters
MOST_WINDOWS = 1024


@dataclass
class ClassifyBench:
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
class LanguageBench:
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


AnyBench = ClassifyBench | LanguageBench | MaskedBench


def build_bench(recipe: Recipe, seed: int, splits: Splits, tokenizer: Tokenizer) -> AnyBench:
    names = {"train": splits.train, "validation": splits.validation, **splits.tests}
    documents = {name: split for name, split in names.items() if split}
    choose_on = "validation" if splits.validation else None
    watched = tuple(splits.tests) if recipe.scoring.watch_test else ()
    curves = tuple(name for name in ("train", "validation", *watched) if name in documents)
    facts = {"documents": {name: len(split) for name, split in documents.items()}, "vocabulary": tokenizer.size}
    bench: AnyBench
    if recipe.task == "mlm":
        bench = build_masked(recipe, seed, documents, tokenizer, choose_on, curves)
    else:
        build = _classify if recipe.task == "classify" else _language
        bench = build(recipe, seed, splits, documents, tokenizer, choose_on, curves)
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
) -> ClassifyBench:
    length = recipe.shape.length
    number = {label: place for place, label in enumerate(splits.labels)}
    sets, cut = {}, {}
    for name, split in documents.items():
        rows = encode(split, tokenizer)
        cut[name] = sum(len(row) > length for row in rows)
        short = [np.array(tokenizer.cut(row, length), dtype=np.int64) if len(row) > length else row for row in rows]
        sets[name] = (short, np.array([number[each.label] for each in split], dtype=np.int64))
    batches = LabelledSentences(*sets["train"], batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    network = Classifier(recipe.shape, recipe.parts, tokenizer.size, len(splits.labels), seed=seed)
    return ClassifyBench(network, batches, choose_on, curves, sets, {"cut_to_length": cut})


def _language(
    recipe: Recipe,
    seed: int,
    splits: Splits,
    documents: dict[str, tuple[Document, ...]],
    tokenizer: Tokenizer,
    choose_on: str | None,
    curves: tuple[str, ...],
) -> LanguageBench:
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
    network = LanguageModel(recipe.shape, recipe.parts, tokenizer.size, seed=seed)
    facts = {"tokens": {name: sum(map(len, tokens.sequences)) for name, tokens in sets.items()}}
    return LanguageBench(network, batches, choose_on, curves, sets, length, recipe.scoring.full_context, facts)


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
