"""The bench of a masked language model: sentences with hidden words, and how well they are guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fairtrial.errors import BadInput
from fairtrial.judge.interval import perplexity_interval
from fairtrial.model.masked import MaskedModel
from fairtrial.recipe import Recipe
from fairtrial.streams import dice
from fairtrial.text.batches import Batches
from fairtrial.text.corpus import Document
from fairtrial.text.masking import Hider, MaskedSentences, masked_batch
from fairtrial.text.tokenizer import Tokenizer
from fairtrial.train.encoding import encode
from fairtrial.train.score import Score, scoring

ROWS = 128  # sentences scored at once
MOST_SENTENCES = 2048  # scored for a curve's point; evenly spread where the split is larger


@dataclass(frozen=True)
class MaskedSet:
    """Sentences whose hidden words were drawn once, so that every look at the set asks the same."""

    hidden: list[tuple[np.ndarray, np.ndarray]]  # seen, wanted
    owners: list[int]  # the document of each sentence
    documents: int
    bytes: np.ndarray


@dataclass
class MaskedBench:
    network: MaskedModel
    batches: Batches
    choose_on: str | None
    curves: tuple[str, ...]
    sets: dict[str, MaskedSet]
    facts: dict[str, Any] = field(default_factory=dict)

    def quick_score(self, split: str) -> Score:
        return score_masked(self.network, self.sets[split], most=MOST_SENTENCES)

    def score(self, split: str, tell: Callable[[float], None] = lambda share: None) -> Score:
        tell(0.0)
        return score_masked(self.network, self.sets[split])


def build_masked(
    recipe: Recipe,
    seed: int,
    documents: dict[str, tuple[Document, ...]],
    tokenizer: Tokenizer,
    choose_on: str | None,
    curves: tuple[str, ...],
) -> MaskedBench:
    if tokenizer.mask is None:
        raise BadInput("this tokenizer has no mask to hide words with", "train one with the task 'mlm'")
    length = recipe.shape.length
    hider = Hider(tokenizer.mask, tokenizer.mask + 1, tokenizer.size)  # the mask is the last of the special tokens
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
        chance = dice(0, "eval", "mask", name)  # the same for every trial, so that they share their questions
        sets[name] = MaskedSet(
            [hider.hide(row, chance) for _, row in owned],
            [owner for owner, _ in owned],
            len(rows),
            np.array([len(each.text.encode()) for each in split], dtype=np.int64),
        )
    batches = MaskedSentences(train, hider, batch=recipe.training.batch, seed=seed, pad=tokenizer.pad)
    network = MaskedModel(recipe.shape, recipe.parts, tokenizer.size, seed=seed)
    return MaskedBench(network, batches, choose_on, curves, sets, {"cut_to_length": cut})


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
            found = network.nats(*(torch.from_numpy(each) for each in (batch.ids, batch.lengths, batch.answers)))
            owners = np.repeat([given.owners[place] for place in chosen], (batch.answers >= 0).sum(1))
            np.add.at(nats, owners, found.double().numpy())
            np.add.at(counts, owners, 1)
    loss = float(nats.sum() / max(1, counts.sum()))
    figures = {
        "documents": given.documents,
        "tokens": int(counts.sum()),
        "masked_perplexity": math.exp(min(700.0, loss)),
        "masked_nats": loss,
        "interval": perplexity_interval(nats, counts),
    }
    outcomes = {"nats": nats, "tokens": counts, "bytes": given.bytes, "unknown": np.zeros_like(counts)}
    return Score(figures, (-loss,), outcomes)
