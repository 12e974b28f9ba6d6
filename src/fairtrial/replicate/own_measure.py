"""Published figures beside ours, measured as the report measured, and then beside the honest figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairtrial.judge.scores import score
from fairtrial.replicate.evidence import Evidence
from fairtrial.replicate.library import Figure


@dataclass(frozen=True)
class Retried:
    """One published figure, retried."""

    figure: Figure
    by_seed: tuple[float, ...]  # in the report's own way of measuring
    honest: dict[str, Any] | None  # mean, low, high
    honest_how: str

    @property
    def mean(self) -> float:
        """Of logarithms, where the figure is a perplexity."""
        if self.figure.measure == "accuracy":
            return mean(self.by_seed)
        return math.exp(mean(map(math.log, self.by_seed)))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean over seeds (95 %): these test items, new seeds."""
        return self._spread(math.sqrt(1 / len(self.by_seed)))

    @property
    def one_run(self) -> tuple[float, float] | None:
        """Where a single further run would fall (95 %)."""
        return self._spread(math.sqrt(1 + 1 / len(self.by_seed)))

    def _spread(self, factor: float) -> tuple[float, float] | None:
        if len(self.by_seed) < 2:
            return None
        ratio = self.figure.measure != "accuracy"
        values = [math.log(each) if ratio else each for each in self.by_seed]
        half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) * factor
        low, high = mean(values) - half, mean(values) + half
        return (math.exp(low), math.exp(high)) if ratio else (max(0.0, low), min(100.0, high))

    @property
    def place(self) -> str:
        """Where the published figure lies among ours."""
        if self.figure.other_data:
            return "other training text"
        if min(self.by_seed) <= self.figure.value <= max(self.by_seed):
            return "inside"
        one = self.one_run
        if one and one[0] <= self.figure.value <= one[1]:
            return "near"
        return "below" if self.figure.value < min(self.by_seed) else "above"


def retry(
    figures: Sequence[Figure], evidences: dict[str, Evidence], together: dict[str, list[tuple[float, float]]]
) -> list[Retried]:
    """`together`: sentence perplexities in batches as in training, for variants that depend on their batch."""
    found = []
    for figure in figures:
        evidence = evidences.get(figure.study)
        if evidence is None or not evidence.has(figure.variant):
            continue
        place = "train" if figure.set == "train" else evidence.place(figure.set)
        if place is None and len(evidence.outcomes.sets) == 1:
            place = evidence.outcomes.sets[0]
        if place is None:
            continue
        by_seed = measured(figure, evidence, place)
        if figure.measure == "sentence perplexity" and evidence.outcomes.stamp(figure.variant):
            by_seed = tuple(batched for batched, _ in together.get(figure.variant, []))
        if by_seed:
            found.append(Retried(figure, by_seed, *honest(figure, evidence, place)))
    return found


def measured(figure: Figure, evidence: Evidence, place: str) -> tuple[float, ...]:
    """Ours, of every seed, in the report's own way."""
    results = evidence.results(figure.variant)
    if figure.measure == "accuracy":
        return tuple(100 * scored(result, place, figure.picked_on_test)["accuracy"] for result in results)
    if figure.measure == "window perplexity":
        if place == "train":
            return tuple(result["train"]["window_perplexity"] for result in results)
        return tuple(scored(result, place, figure.picked_on_test)["window_perplexity"] for result in results)
    outcomes = evidence.outcomes.variants[figure.variant][place]
    return tuple(sentence_perplexity(*rows) for rows in zip(outcomes["nats"], outcomes["tokens"], strict=True))


def scored(result: dict[str, Any], place: str, picked: bool) -> dict[str, Any]:
    found: dict[str, Any] = (picked and result["picked_on_test"].get(place)) or result["tests"][place]
    return found


def sentence_perplexity(nats: np.ndarray, tokens: np.ndarray) -> float:
    """The mean of the perplexities of sentences, as report r4 has it: a few hard ones weigh most."""
    counted = tokens > 0
    return float(np.exp(np.minimum(700.0, nats[counted] / tokens[counted])).mean())


def honest(figure: Figure, evidence: Evidence, place: str) -> tuple[dict[str, Any] | None, str]:
    """The same model measured as one should: last weights, items that do not stand in train, every token once."""
    if place == "train":
        return None, ""
    outcomes = evidence.outcomes.variants[figure.variant][place]
    status = evidence.outcomes.status.get(place)
    every = np.ones(outcomes.items, bool)
    keep = every if status is None or evidence.basis()["basis"] == "all" else status == 0
    shown = score(evidence.outcomes.metric, outcomes, keep, evidence.outcomes.clusters.get(place))
    if figure.measure == "accuracy":
        return shown, f"{int(keep.sum())} clean items" if not keep.all() else f"{int(keep.sum())} items"
    return shown, "exact perplexity"
