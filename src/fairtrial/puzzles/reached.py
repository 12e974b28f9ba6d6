"""What an answer of any kind reaches: where attention goes, against where it was wanted."""

from __future__ import annotations

from fairtrial.puzzles.frame import Array
from fairtrial.puzzles.target import misplaced, precision_of


class Reached:
    target: Array  # wanted weights
    weights: Array  # that attention gives
    values: Array | None

    @property
    def precision(self) -> float:
        return precision_of(self.weights, self.target)

    @property
    def error(self) -> float:
        """Share of the attention in the wrong place."""
        return misplaced(self.weights, self.target)

    @property
    def output(self) -> Array | None:
        return None if self.values is None else self.weights @ self.values

    @property
    def wanted_output(self) -> Array | None:
        return None if self.values is None else self.target @ self.values
