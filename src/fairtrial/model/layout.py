"""Where the real tokens of a batch stand, so that linear layers never run on padding.

Between attentions the network carries real tokens only, packed one after another: [token width]. Attention spreads
them out to [batch time width] and packs its answer again. Sentences fill about 60% of a padded batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    batch: int
    time: int
    positions: Tensor  # of each real token [token]
    lengths: Tensor | None = None  # real tokens in each row [batch]; None: every row is full
    index: Tensor | None = None  # place of each real token in the flattened batch [token]
    rows: Tensor | None = None  # row of each real token [token]

    @classmethod
    def full(cls, batch: int, time: int, first: int = 0) -> Layout:
        """Every row holds `time` tokens, the first at position `first`."""
        return cls(batch, time, torch.arange(first, first + time).repeat(batch))

    @classmethod
    def ragged(cls, lengths: Tensor, time: int) -> Layout:
        """Rows of different lengths, padded at their end."""
        if bool((lengths == time).all()):
            return cls.full(len(lengths), time)
        real = torch.arange(time) < lengths[:, None]
        rows, positions = real.nonzero(as_tuple=True)
        return cls(len(lengths), time, positions, lengths, rows * time + positions, rows)

    def real(self) -> Tensor:
        """Which places hold a real token [batch time]."""
        if self.lengths is None:
            return torch.ones(self.batch, self.time, dtype=torch.bool)
        return torch.arange(self.time) < self.lengths[:, None]

    def unpack(self, x: Tensor) -> Tensor:
        """[token width] -> [batch time width], zeros at padding"""
        if self.index is not None:
            x = x.new_zeros(self.batch * self.time, x.shape[-1]).index_copy_(0, self.index, x)
        return x.view(self.batch, self.time, -1)

    def pack(self, x: Tensor) -> Tensor:
        """[batch time ...] -> [token ...]"""
        x = x.flatten(0, 1)
        return x if self.index is None else x.index_select(0, self.index)

    def mean(self, x: Tensor) -> Tensor:
        """Mean of each row's real tokens: [token width] -> [batch width]"""
        if self.rows is None or self.lengths is None:
            return x.view(self.batch, self.time, -1).mean(1)
        sums = x.new_zeros(self.batch, x.shape[-1]).index_add_(0, self.rows, x)
        return sums / self.lengths.clamp(min=1)[:, None]
