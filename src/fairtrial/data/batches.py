"""Batches of numbers. Batch b of epoch e is a pure function of seed, e and b, so resuming needs no loader state.

Hidden words: which tokens of a sentence are to be guessed, and what stands in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.rng import generator_for


@dataclass(frozen=True)
class Batch:
    ids: np.ndarray  # [batch time]
    lengths: np.ndarray | None  # real tokens in each row [batch]; None: all rows are full
    answers: np.ndarray  # a class for each row [batch], or the next tokens [batch time]
    count: int  # answers that count in the loss


class Batches(Protocol):
    """Endless batches; `index` runs on from one epoch to the next."""

    def batches_per_epoch(self) -> int: ...

    def batch(self, index: int) -> Batch: ...


def padded(rows: Sequence[np.ndarray], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as one array, padded at their end to the longest: (ids, lengths)."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    ids = np.full((len(rows), int(lengths.max(initial=1))), pad, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return ids, lengths


@dataclass
class Order:
    """Which items stand in which batch: a new shuffle every epoch, drawn from the epoch's own rng."""

    items: int
    batch: int
    seed: int
    _epoch: int = -1
    _order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def batches_per_epoch(self) -> int:
        return -(-self.items // self.batch)

    def at(self, index: int) -> tuple[int, np.ndarray]:
        """(epoch, items of that batch)"""
        epoch, place = divmod(index, self.batches_per_epoch())
        if epoch != self._epoch:
            self._epoch, self._order = epoch, generator_for(self.seed, "order", epoch).permutation(self.items)
        return epoch, self._order[place * self.batch : (place + 1) * self.batch]


class LabelledSentences:
    """Sentences with a class each."""

    def __init__(self, rows: Sequence[np.ndarray], answers: np.ndarray, *, batch: int, seed: int, pad: int) -> None:
        self.rows, self.answers, self.pad = rows, answers, pad
        self.order = Order(len(rows), batch, seed)

    def batches_per_epoch(self) -> int:
        return self.order.batches_per_epoch()

    def batch(self, index: int) -> Batch:
        _, chosen = self.order.at(index)
        ids, lengths = padded([self.rows[item] for item in chosen], self.pad)
        return Batch(ids, lengths, self.answers[chosen], len(chosen))


class Sentences:
    """Sentences that stand alone: each predicts its own next tokens. Rows hold inputs and the last target."""

    def __init__(self, rows: Sequence[np.ndarray], *, batch: int, seed: int, pad: int) -> None:
        self.rows, self.pad = rows, pad
        self.order = Order(len(rows), batch, seed)

    def batches_per_epoch(self) -> int:
        return self.order.batches_per_epoch()

    def batch(self, index: int) -> Batch:
        _, chosen = self.order.at(index)
        whole, lengths = padded([self.rows[item] for item in chosen], self.pad)
        return Batch(whole[:, :-1], lengths - 1, whole[:, 1:], int((lengths - 1).sum()))


class Windows:
    """Windows of a running text. `every`: one at each start position, as the course does; `disjoint`: side by side,
    beginning at a new place every epoch."""

    def __init__(self, stream: np.ndarray, *, length: int, how: str, batch: int, seed: int) -> None:
        if len(stream) < 2:
            raise BadInput(f"the training text has {len(stream)} tokens; a language model needs at least 2")
        if how not in ("disjoint", "every"):
            raise BadInput(f"data.windows = {how!r} is not known; there is: disjoint, every")
        self.stream, self.how, self.seed = stream, how, seed
        self.length = min(length, len(stream) - 1)
        starts = len(stream) - self.length  # places where a whole window with its last target can begin
        count = starts if how == "every" else max(1, starts // self.length)
        self.slack = (
            starts - (count - 1) * self.length
        )  # the first window of a disjoint epoch begins at 0 ... slack - 1
        self.order = Order(count, batch, seed)

    def batches_per_epoch(self) -> int:
        return self.order.batches_per_epoch()

    def batch(self, index: int) -> Batch:
        epoch, chosen = self.order.at(index)
        if self.how == "disjoint":
            chosen = chosen * self.length + int(generator_for(self.seed, "order", epoch, "first").integers(self.slack))
        whole = self.stream[chosen[:, None] + np.arange(self.length + 1)]
        return Batch(whole[:, :-1], None, whole[:, 1:], self.length * len(chosen))


SHARE = 0.15  # of a sentence's tokens are to be guessed (BERT)
MASKED, RANDOM = 0.8, 0.1  # of these: a mask stands there, or a random entry; the rest stays as it is


@dataclass(frozen=True)
class Hider:
    """Hides tokens. `entries`: the vocabulary's size; entries below `first` are marks, never hidden nor drawn."""

    mask: int
    first: int
    entries: int

    def hide(self, ids: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """[token] -> (what the model sees, what it is to guess; -1 where nothing). At least one, where there is any."""
        answers = np.full(len(ids), -1, dtype=np.int64)
        places = np.flatnonzero(ids >= self.first)
        if not len(places):
            return ids, answers
        chosen = chance.permutation(places)[: max(1, round(SHARE * len(places)))]
        answers[chosen] = ids[chosen]
        seen, fate = ids.copy(), chance.random(len(chosen))
        seen[chosen[fate < MASKED]] = self.mask
        strange = chosen[(fate >= MASKED) & (fate < MASKED + RANDOM)]
        seen[strange] = chance.integers(self.first, self.entries, len(strange))
        return seen, answers


class MaskedSentences:
    """Sentences with hidden words, others in every epoch: a pure function of seed, epoch and sentence."""

    def __init__(self, rows: Sequence[np.ndarray], hider: Hider, *, batch: int, seed: int, pad: int) -> None:
        self.rows, self.hider, self.seed, self.pad = rows, hider, seed, pad
        self.order = Order(len(rows), batch, seed)

    def batches_per_epoch(self) -> int:
        return self.order.batches_per_epoch()

    def batch(self, index: int) -> Batch:
        epoch, chosen = self.order.at(index)
        chance = generator_for(self.seed, "mask", epoch, index)
        return masked_batch([self.hider.hide(self.rows[item], chance) for item in chosen], self.pad)


def masked_batch(hidden: Sequence[tuple[np.ndarray, np.ndarray]], pad: int) -> Batch:
    ids, lengths = padded([seen for seen, _ in hidden], pad)
    answers, _ = padded([wanted for _, wanted in hidden], -1)
    return Batch(ids, lengths, answers, max(1, int((answers >= 0).sum())))
