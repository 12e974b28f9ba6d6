"""Hidden words: which tokens of a sentence are to be guessed, and what stands in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.streams import dice
from fairtrial.text.batches import Batch, Order, padded

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
        chance = dice(self.seed, "mask", epoch, index)
        return masked_batch([self.hider.hide(self.rows[item], chance) for item in chosen], self.pad)


def masked_batch(hidden: Sequence[tuple[np.ndarray, np.ndarray]], pad: int) -> Batch:
    ids, lengths = padded([seen for seen, _ in hidden], pad)
    answers, _ = padded([wanted for _, wanted in hidden], -1)
    return Batch(ids, lengths, answers, max(1, int((answers >= 0).sum())))
