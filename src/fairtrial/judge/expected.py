"""What so many seeds and items can see, before anything is run."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.judge.crossed import Shares
from fairtrial.judge.power import reach_of
from fairtrial.judge.words import change

# Variances of differences between variants of small transformers, (standard deviation)^2 of seeds, items and the rest.
# Accuracy in points: rotary against learned positions, and a task whose seeds differ four times as much. Perplexity in
# nats per token, sentences as items: variants that resemble one another, and variants that do not.
CALM = {"accuracy": Shares(0.7**2, 7.0**2, 34.0**2), "perplexity": Shares(0.008**2, 0.06**2, 0.09**2)}
LIVELY = {"accuracy": Shares(2.9**2, 7.0**2, 34.0**2), "perplexity": Shares(0.02**2, 0.15**2, 0.17**2)}


@dataclass(frozen=True)
class Expected:
    """The smallest difference that shows, if seeds differ little and if they differ much."""

    metric: str
    low: float
    high: float

    def __str__(self) -> str:
        low, high = (change(self.metric, value, signed=False) for value in (self.low, self.high))
        return f"{low.split(' ')[0].rstrip('%')} to {high}"


def expected_smallest(task: str, seeds: int, items: int) -> Expected | None:
    """`task` is 'classify' (accuracy, points) or 'lm' (perplexity, nats per token); one seed or item shows nothing."""
    if seeds < 2 or items < 2:
        return None
    metric = "perplexity" if task == "lm" else "accuracy"
    return Expected(metric, reach_of(CALM[metric], seeds, items), reach_of(LIVELY[metric], seeds, items))
