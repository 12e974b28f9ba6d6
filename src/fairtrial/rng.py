"""Named random streams: each use of randomness has a generator of its own, so that two variants at one seed share their
split, their batches and the weights they have in common."""

from __future__ import annotations

import hashlib

import numpy as np


def seed_for(seed: int, *use: str | int) -> int:
    """The seed of one named stream, e.g. `seed_for(7, "init", "blocks.0.attention.qkv.weight")`."""
    digest = hashlib.sha256("/".join(str(word) for word in (seed, *use)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # torch takes seeds below 2**63


def generator_for(seed: int, *use: str | int) -> np.random.Generator:
    """A numpy generator for one named stream."""
    return np.random.Generator(np.random.PCG64(seed_for(seed, *use)))
