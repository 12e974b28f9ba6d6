"""Batches of token ids. Batch b of epoch e is a pure function of seed, e and b, so resuming needs no loader state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.rng import generator_for

MASK_SHARE = 0.15  # of a sentence's tokens are predicted (BERT)
MASKED, RANDOM = 0.8, 0.1  # of these are replaced by a mask, or by a random token; the rest stays


@dataclass(frozen=True, eq=False)
class Rows(Sequence[np.ndarray]):
    """Rows of different sizes, all in one array: a million small arrays would take longer to make than to train on."""

    flat: np.ndarray
    begins: np.ndarray  # [row]
    sizes: np.ndarray  # [row]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Rows:
        sizes = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = np.fromiter(chain.from_iterable(rows), np.int32, int(sizes.sum()))
        return cls(flat, np.cumsum(sizes) - sizes, sizes)

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, row: Any) -> Any:
        begin = self.begins[row]
        return self.flat[begin : begin + self.sizes[row]]

    def __iter__(self) -> Iterator[np.ndarray]:
        for begin, size in zip(self.begins.tolist(), self.sizes.tolist(), strict=True):
            yield self.flat[begin : begin + size]

    def take(self, rows: np.ndarray) -> Rows:
        return Rows(self.flat, self.begins[rows], self.sizes[rows])

    def joined(self) -> np.ndarray:
        """One row after another in an array of their own."""
        ends = np.cumsum(self.sizes)
        return self.flat[
            np.repeat(self.begins - ends + self.sizes, self.sizes) + np.arange(ends[-1] if len(ends) else 0)
        ]


@dataclass(frozen=True)
class Batch:
    ids: np.ndarray  # [batch time]
    lengths: np.ndarray | None  # real tokens in each row [batch]; None: all rows are full
    answers: np.ndarray  # targets: a class for each row [batch], or tokens [batch time]; -1 where there is none
    count: int  # targets that count in the loss


def padded(rows: Sequence[np.ndarray], pad: int) -> tuple[np.ndarray, np.ndarray]:
    """(ids [batch time], lengths [batch]); rows are padded at their end to the longest"""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    ids = np.full((len(rows), int(lengths.max(initial=1))), pad, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return ids, lengths


@dataclass(eq=False)
class Batches(ABC):
    """Endless batches; `index` runs on over epochs. Every epoch's shuffle is drawn from its own random stream."""

    items: int
    size: int  # items of a batch
    seed: int
    _epoch: int = -1
    _order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def batches_per_epoch(self) -> int:
        return -(-self.items // self.size)

    def at(self, index: int) -> tuple[int, np.ndarray]:
        """(epoch, items of that batch)"""
        epoch, number = divmod(index, self.batches_per_epoch())
        if epoch != self._epoch:
            self._epoch, self._order = epoch, generator_for(self.seed, "order", epoch).permutation(self.items)
        return epoch, self._order[number * self.size : (number + 1) * self.size]

    @abstractmethod
    def batch(self, index: int) -> Batch: ...


class Sentences(Batches):
    """Separate sentences for a language model: each predicts its own next tokens. A row ends with the last target."""

    def __init__(self, rows: Sequence[np.ndarray], *, batch: int, seed: int, pad: int) -> None:
        super().__init__(len(rows), batch, seed)
        self.rows, self.pad = rows, pad

    def batch(self, index: int) -> Batch:
        _, chosen = self.at(index)
        rows, lengths = padded([self.rows[item] for item in chosen], self.pad)
        return Batch(rows[:, :-1], lengths - 1, rows[:, 1:], int((lengths - 1).sum()))


class LabelledSentences(Sentences):
    """Sentences with a class each."""

    def __init__(self, rows: Sequence[np.ndarray], answers: np.ndarray, **how: int) -> None:
        super().__init__(rows, **how)
        self.answers = answers

    def batch(self, index: int) -> Batch:
        _, chosen = self.at(index)
        ids, lengths = padded([self.rows[item] for item in chosen], self.pad)
        return Batch(ids, lengths, self.answers[chosen], len(chosen))


class Windows(Batches):
    """Windows of running text. `every`: at each position; `disjoint`: side by side, at a new offset every epoch."""

    def __init__(self, stream: np.ndarray, *, length: int, how: str, batch: int, seed: int) -> None:
        if len(stream) < 2:
            raise BadInput(f"the training text has {len(stream)} tokens; a language model needs at least 2")
        if how not in ("disjoint", "every"):
            raise BadInput(f"data.windows must be 'disjoint' or 'every', got {how!r}")
        self.stream, self.how = stream, how
        self.length = min(length, len(stream) - 1)
        starts = len(stream) - self.length  # positions where a full window with its last target can begin
        count = starts if how == "every" else max(1, starts // self.length)
        self.slack = starts - (count - 1) * self.length  # a disjoint epoch begins at 0 ... slack - 1
        super().__init__(count, batch, seed)

    def batch(self, index: int) -> Batch:
        epoch, chosen = self.at(index)
        if self.how == "disjoint":
            chosen = chosen * self.length + int(generator_for(self.seed, "order", epoch, "first").integers(self.slack))
        windows = self.stream[chosen[:, None] + np.arange(self.length + 1)].astype(np.int64)
        return Batch(windows[:, :-1], None, windows[:, 1:], self.length * len(chosen))


class Noisy(Batches):
    """Batches in which a share of the input tokens is replaced by words drawn from the training text. Targets stay."""

    def __init__(self, batches: Batches, share: float, drawn_from: np.ndarray) -> None:
        super().__init__(batches.items, batches.size, batches.seed)
        self.batches, self.share, self.drawn_from = batches, share, drawn_from

    def batch(self, index: int) -> Batch:
        batch = self.batches.batch(index)
        rng = generator_for(self.seed, "noise", index)
        replaced = rng.random(batch.ids.shape) < self.share
        if batch.lengths is not None:
            replaced &= np.arange(batch.ids.shape[1]) < batch.lengths[:, None]
        drawn = self.drawn_from[rng.integers(len(self.drawn_from), size=batch.ids.shape)]
        return replace(batch, ids=np.where(replaced, drawn, batch.ids))


@dataclass(frozen=True)
class Masker:
    """Masks tokens for a masked language model."""

    mask: int
    first: int  # tokens below are special: never masked, never drawn
    vocabulary: int

    def __call__(self, ids: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """[token] -> (inputs, targets; -1 where there is none). At least one token is masked, if any can be."""
        ids, answers = ids.astype(np.int64), np.full(len(ids), -1, dtype=np.int64)
        positions = np.flatnonzero(ids >= self.first)
        if not len(positions):
            return ids, answers
        chosen = rng.permutation(positions)[: max(1, round(MASK_SHARE * len(positions)))]
        answers[chosen] = ids[chosen]
        inputs, draws = ids, rng.random(len(chosen))
        inputs[chosen[draws < MASKED]] = self.mask
        replaced = chosen[(draws >= MASKED) & (draws < MASKED + RANDOM)]
        inputs[replaced] = rng.integers(self.first, self.vocabulary, len(replaced))
        return inputs, answers


class MaskedSentences(Sentences):
    """Sentences with masked tokens, others in every epoch."""

    def __init__(self, rows: Sequence[np.ndarray], masker: Masker, **how: int) -> None:
        super().__init__(rows, **how)
        self.masker = masker

    def batch(self, index: int) -> Batch:
        epoch, chosen = self.at(index)
        rng = generator_for(self.seed, "mask", epoch, index)
        return masked_batch([self.masker(self.rows[item], rng) for item in chosen], self.pad)


def masked_batch(masked: Sequence[tuple[np.ndarray, np.ndarray]], pad: int) -> Batch:
    """`masked`: the inputs and targets of each row."""
    ids, lengths = padded([inputs for inputs, _ in masked], pad)
    answers, _ = padded([targets for _, targets in masked], -1)
    return Batch(ids, lengths, answers, max(1, int((answers >= 0).sum())))
