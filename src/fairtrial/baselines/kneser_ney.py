"""Interpolated modified Kneser-Ney (Chen and Goodman 1998), an n-gram language model.

The highest order uses raw counts; lower orders count in how many contexts an n-gram occurs, where the beginning of each
sequence is a context of its own. Unigrams are interpolated with the uniform distribution over the vocabulary, so that
every entry, the unknown word included, has a probability and all of them sum to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.errors import BadInput

MOST_ENTRIES = 1 << 21  # of a vocabulary: three ids fit into one 64-bit number
USUAL_DISCOUNTS = (0.5, 1.0, 1.5)  # where counts are too few or too odd to estimate them


@dataclass(frozen=True)
class Level:
    """N-grams of one order, each as one number."""

    ngrams: np.ndarray  # sorted, those that were seen
    shares: np.ndarray  # discounted share of each n-gram among those of its context
    contexts: np.ndarray  # sorted
    rest: np.ndarray  # the mass that each context leaves to the next lower order


class KneserNey:
    def __init__(self, sequences: Sequence[np.ndarray], size: int, order: int) -> None:
        """`sequences` of token ids below `size`; `order` at most 3."""
        if not 1 <= order <= 3:
            raise ValueError(f"order must be 1, 2 or 3, got {order}")
        if size > MOST_ENTRIES:
            raise BadInput(f"a vocabulary of {size:,} entries is too large to count n-grams", "lower tokens.size")
        self.size = size
        ids, positions = flatten(sequences)
        self.levels = [self._level(ids, positions, length, order) for length in range(1, order + 1)]

    def probabilities(self, sequences: Sequence[np.ndarray]) -> np.ndarray:
        """Of every token but the first of a sequence, given those before it, one sequence after another."""
        ids, positions = flatten(sequences)
        targets = np.flatnonzero(positions >= 1)
        found = np.full(len(targets), 1 / self.size)
        for length, level in enumerate(self.levels, start=1):
            if not len(level.ngrams):  # no training text is so long
                continue
            reach = positions[targets] >= length - 1  # the context is inside the sequence
            ngrams = self._numbers(ids, targets[reach], length)
            at, seen = find(level.contexts, ngrams // self.size)
            here, counted = find(level.ngrams, ngrams)
            share = np.where(counted, level.shares[here], 0.0)
            found[reach] = np.where(seen, share + level.rest[at] * found[reach], found[reach])
        return found

    def _numbers(self, ids: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
        """The n-gram of `length` tokens that ends at each position, as one number."""
        numbers = np.zeros(len(ends), np.int64)
        for back in range(length - 1, -1, -1):
            numbers = numbers * self.size + ids[ends - back]
        return numbers

    def _level(self, ids: np.ndarray, positions: np.ndarray, length: int, order: int) -> Level:
        # the first token of a sequence is never predicted
        ends = np.flatnonzero(positions >= max(1, length - 1))
        numbers = self._numbers(ids, ends, length)
        if length < order:
            inner = positions[ends] >= length  # a token precedes the n-gram
            possible = self.size**length  # n-grams, so that one and the token before it make one number
            before = np.unique(ids[ends[inner] - length].astype(np.int64) * possible + numbers[inner])
            numbers = np.concatenate((before % possible, numbers[~inner]))
        ngrams, counts = np.unique(numbers, return_counts=True)
        taken = discounts(counts)[np.minimum(counts, 3)]
        contexts, owner = np.unique(ngrams // self.size, return_inverse=True)
        totals = np.bincount(owner, counts, minlength=len(contexts))
        return Level(ngrams, (counts - taken) / totals[owner], contexts, np.bincount(owner, taken) / totals)


def discounts(counts: np.ndarray) -> np.ndarray:
    """What is subtracted from a count of 0, 1, 2, and 3 or more."""
    ones, twos, threes, fours = (int((counts == number).sum()) for number in (1, 2, 3, 4))
    if ones and twos and threes and fours:
        share = ones / (ones + 2 * twos)
        found = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
        if all(0 < taken < number for number, taken in enumerate(found, start=1)):
            return np.array([0.0, *found])
    return np.array([0.0, *USUAL_DISCOUNTS])


def flatten(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All tokens in one array, and the position of each in its own sequence."""
    if not sequences:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(sequences), np.concatenate([np.arange(len(sequence)) for sequence in sequences])


def find(known: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of each wanted number among the sorted known ones, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted
