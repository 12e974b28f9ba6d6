"""Interpolated modified Kneser-Ney (Chen and Goodman 1998): what counting words can do for a language model.

Of the highest order raw counts are taken; of a lower one, in how many contexts a run of words stands, the beginning of
a sequence being a context of its own each time. Below the single words stands the uniform distribution over the
vocabulary, so that every entry, the unknown word among them, has a probability, and all of them sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.errors import BadInput

MOST_ENTRIES = 1 << 21  # of a vocabulary: three of its numbers in one 64-bit number
USUAL_DISCOUNTS = (0.5, 1.0, 1.5)  # where counts are too few or too odd to estimate them


@dataclass(frozen=True)
class Level:
    """Runs of one length."""

    runs: np.ndarray  # sorted numbers of the runs that were seen
    shares: np.ndarray  # discounted share of each run among those of its context
    contexts: np.ndarray  # sorted numbers of the contexts
    rest: np.ndarray  # what each context leaves to the next lower level


class KneserNey:
    def __init__(self, sequences: Sequence[np.ndarray], size: int, order: int) -> None:
        """`sequences` of token ids below `size`; runs of up to `order` tokens, at most 3."""
        if not 1 <= order <= 3:
            raise ValueError("runs of 1 to 3 tokens")
        if size > MOST_ENTRIES:
            raise BadInput(f"a vocabulary of {size:,} entries is too large to count runs of", "lower tokens.size")
        self.size = size
        ids, places = flatten(sequences)
        self.levels = [self._level(ids, places, length, order) for length in range(1, order + 1)]

    def probabilities(self, sequences: Sequence[np.ndarray]) -> np.ndarray:
        """Of every token but the first of a sequence, given those before it, one sequence after another."""
        ids, places = flatten(sequences)
        targets = np.flatnonzero(places >= 1)
        found = np.full(len(targets), 1 / self.size)
        for length, level in enumerate(self.levels, start=1):
            if not len(level.runs):  # no training text is so long
                continue
            reach = places[targets] >= length - 1  # the context is inside the sequence
            runs = self._numbers(ids, targets[reach], length)
            at, seen = find(level.contexts, runs // self.size)
            here, counted = find(level.runs, runs)
            share = np.where(counted, level.shares[here], 0.0)
            found[reach] = np.where(seen, share + level.rest[at] * found[reach], found[reach])
        return found

    def _numbers(self, ids: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
        """The run of `length` tokens that ends at each place, as one number."""
        numbers = np.zeros(len(ends), np.int64)
        for back in range(length - 1, -1, -1):
            numbers = numbers * self.size + ids[ends - back]
        return numbers

    def _level(self, ids: np.ndarray, places: np.ndarray, length: int, order: int) -> Level:
        # the first token of a sequence is never predicted
        ends = np.flatnonzero(places >= max(1, length - 1))
        numbers = self._numbers(ids, ends, length)
        if length < order:
            inner = places[ends] >= length  # a token stands before the run
            runs_here = self.size**length  # so many runs there are, so run and token before it make one number
            before = np.unique(ids[ends[inner] - length].astype(np.int64) * runs_here + numbers[inner])
            numbers = np.concatenate((before % runs_here, numbers[~inner]))
        runs, counts = np.unique(numbers, return_counts=True)
        taken = discounts(counts)[np.minimum(counts, 3)]
        contexts, owner = np.unique(runs // self.size, return_inverse=True)
        totals = np.bincount(owner, counts, minlength=len(contexts))
        return Level(runs, (counts - taken) / totals[owner], contexts, np.bincount(owner, taken) / totals)


def discounts(counts: np.ndarray) -> np.ndarray:
    """What is taken off a count of 0, 1, 2, and 3 or more."""
    ones, twos, threes, fours = (int((counts == number).sum()) for number in (1, 2, 3, 4))
    if ones and twos and threes and fours:
        share = ones / (ones + 2 * twos)
        found = (1 - 2 * share * twos / ones, 2 - 3 * share * threes / twos, 3 - 4 * share * fours / threes)
        if all(0 < taken < number for number, taken in enumerate(found, start=1)):
            return np.array([0.0, *found])
    return np.array([0.0, *USUAL_DISCOUNTS])


def flatten(sequences: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All tokens in one array, and the place of each in its own sequence."""
    if not sequences:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(sequences), np.concatenate([np.arange(len(sequence)) for sequence in sequences])


def find(known: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each asked number stands among the sorted known ones, and whether it does."""
    if not len(known):
        return np.zeros(len(asked), np.int64), np.zeros(len(asked), bool)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return at, known[at] == asked
