"""How the weights move as the query, or the replaced key, may grow longer."""

from __future__ import annotations

import numpy as np

from fairtrial.puzzles.climb import best_within
from fairtrial.puzzles.frame import Array, Frame, softmax
from fairtrial.puzzles.replace_key import Replacement
from fairtrial.puzzles.solve import Answer


def query_growth(answer: Answer, points: int = 31, far: float = 0.0) -> tuple[Array, Array]:
    """Lengths up to `far`, and the weights of the best query of each length [length key]."""
    frame = Frame.of(answer.keys, answer.scaled)
    lengths = np.linspace(0, far or 1.5 * max(answer.norm, answer.smallest_norm) or 1.0, points)
    places = [best_within(frame.points, answer.target, length * frame.unit) for length in lengths]
    return lengths, np.array([frame.weights(frame.query(place)) for place in places])


def key_growth(answer: Replacement, points: int = 60) -> tuple[Array, Array]:
    """Lengths (below zero: away from the query), and the weights with a key of that length along the query [length
    key]."""
    size = float(np.linalg.norm(answer.query))
    factor = 1 / np.sqrt(len(answer.query)) if answer.scaled else 1.0
    far = 1.5 * max(float(np.linalg.norm(answer.key)), answer.needed or 0.0) or 1.0
    lengths = np.linspace(-far, far, points)
    scores = np.tile(factor * answer.keys @ answer.query, (points, 1))
    scores[:, answer.place] = factor * lengths * size
    return lengths, softmax(scores)
