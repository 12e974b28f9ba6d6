"""Items of unequal weight: documents of many and few tokens, clusters of many and few items."""

from __future__ import annotations

import numpy as np


def linearised(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values whose plain mean is the ratio (sum of `sums` over sum of `weights`, then the mean over seeds) and whose
    spread is that of the ratio estimator. Both [seed item]; with weights of 1 nothing changes."""
    ratio = float((sums.sum(1) / weights.sum(1)).mean())
    return ratio + (sums - ratio * weights) / weights.mean(1, keepdims=True)


def summed(values: np.ndarray, clusters: np.ndarray | None) -> np.ndarray:
    """[seed item] -> [seed cluster]"""
    if clusters is None:
        return values
    names, places = np.unique(clusters, return_inverse=True)
    totals = np.zeros((values.shape[0], len(names)))
    for seed, row in enumerate(values):
        totals[seed] = np.bincount(places, weights=row, minlength=totals.shape[1])
    return totals


def contiguous_blocks(tokens: np.ndarray, length: int) -> np.ndarray:
    """Clusters for running text: neighbouring documents [document] joined until a block has max(8 x `length`, 256)
    tokens, because neighbours share their context and their subject."""
    least = max(8 * length, 256)
    blocks = np.zeros(len(tokens), np.int64)
    block = filled = 0
    for place, count in enumerate(tokens):
        if filled >= least:
            block, filled = block + 1, 0
        blocks[place] = block
        filled += int(count)
    if block and filled < least:  # a short end belongs to the block before it
        blocks[blocks == block] = block - 1
    return blocks
