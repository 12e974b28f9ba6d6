"""Intervals of one trial's scores over its test items. They say nothing of other seeds: a verdict needs several."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri, stdtrit  # scipy.stats offers the same, but takes most of a second to import


def wilson(right: float, items: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    if items == 0:
        return 0.0, 1.0
    z = float(ndtri(0.5 + level / 2))
    share = right / items
    centre = (share + z * z / (2 * items)) / (1 + z * z / items)
    half = z / (1 + z * z / items) * math.sqrt(share * (1 - share) / items + z * z / (4 * items * items))
    return max(0.0, centre - half), min(1.0, centre + half)


def perplexity_interval(nats: np.ndarray, tokens: np.ndarray, level: float = 0.95) -> tuple[float, float] | None:
    """Interval of exp(total nats / total tokens) over documents, by the ratio estimator."""
    counted = tokens > 0
    nats, tokens = nats[counted].astype(float), tokens[counted].astype(float)
    if len(nats) < 2:
        return None  # one document tells nothing of others
    mean = nats.sum() / tokens.sum()
    spread = (nats - mean * tokens) / tokens.mean()
    half = float(stdtrit(len(nats) - 1, 0.5 + level / 2)) * spread.std(ddof=1) / math.sqrt(len(nats))
    return float(np.exp(mean - half)), float(np.exp(mean + half))


def paired_change(gained: int, lost: int, items: int, level: float = 0.95) -> tuple[float, float]:
    """Interval of (gained - lost) / items, the change of a share when the same items are judged twice: half an item is
    added to each of the four cells (Agresti and Min 2005, https://doi.org/10.1002/sim.1781), so that no change among a
    few items does not count as none among all."""
    z = float(ndtri(0.5 + level / 2))
    gains, losses, count = gained + 0.5, lost + 0.5, items + 2
    centre = (gains - losses) / count
    half = z * math.sqrt(gains + losses - (gains - losses) ** 2 / count) / count
    return max(-1.0, centre - half), min(1.0, centre + half)
