"""Effective speedup: how much less training reaches the same loss, with an interval over seeds.

Both sides are asked for the lowest loss that every run reaches; a run's cost is where its curve first falls to it. The
logarithms of the costs are compared like scores of runs. Part of a curve is not a shorter training where the learning
rate falls with the steps: the ratio is one of curves on equal schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairtrial.results.values import Interval, Speedup, SpeedupProblem
from fairtrial.statistics.crossed import Array, runs_t


@dataclass(frozen=True, eq=False)
class Curve:
    """One run: costs (steps, seconds, FLOPs) in rising order, and the loss at each."""

    costs: Array
    losses: Array  # not finite where the run diverged

    def cost_of(self, loss: float) -> float:
        """Where the lowest loss so far first falls to `loss`, on a line between two points."""
        lowest = np.minimum.accumulate(self.losses)
        after = int(np.argmax(lowest <= loss))
        if after == 0:
            return float(self.costs[0])
        (left, right), (high, low) = self.costs[after - 1 : after + 1], lowest[after - 1 : after + 1]
        return float(left + (right - left) * (high - loss) / (high - low))


Curves = Mapping[str, Mapping[int, Curve]]  # variant -> seed


def compare_costs(curves: Curves, variant: str, baseline: str) -> Speedup:
    """Seeds that both have are pairs."""
    ours, theirs = curves[variant], curves[baseline]
    runs = {(name, seed): curve for name in (variant, baseline) for seed, curve in curves[name].items()}
    nothing = Speedup(variant, baseline, (len(ours), len(theirs)))

    def unknown(problem: SpeedupProblem, run: tuple[str, int]) -> Speedup:
        return Speedup(variant, baseline, nothing.runs, problem=problem, run=f"{run[0]} (seed {run[1]})")

    for key, run in runs.items():
        if not np.isfinite(run.losses).all():
            return unknown(SpeedupProblem.DIVERGED, key)
        if len(run.losses) < 2:
            return unknown(SpeedupProblem.TOO_SHORT, key)
    worst = max(runs, key=lambda key: float(runs[key].losses.min()))
    loss = float(runs[worst].losses.min())
    if any(float(run.losses[0]) <= loss for run in runs.values()):
        return unknown(SpeedupProblem.OUT_OF_REACH, worst)
    one, other = (np.log([run.cost_of(loss) for run in side.values()]) for side in (ours, theirs))
    both = [seed for seed in ours if seed in theirs]
    rows = [list(ours).index(seed) for seed in both], [list(theirs).index(seed) for seed in both]
    low, high = (None, None)
    if min(len(one), len(other)) > 1:
        low, high = (math.exp(-end) for end in reversed(runs_t(one, other, rows).interval()))
    ratio = Interval(math.exp(other.mean() - one.mean()), low, high)
    return Speedup(variant, baseline, nothing.runs, ratio, loss, math.exp(other.mean()))
