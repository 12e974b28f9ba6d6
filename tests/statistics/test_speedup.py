"""Effective speedup: power laws whose ratio is known, coverage, and curves that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairtrial as ft
from fairtrial.results.values import SpeedupProblem
from fairtrial.statistics.speedup import Curve, compare_costs

STEPS = np.arange(50, 2001, 50.0)
Points = list[tuple[float, float]]


def power_law(speed: float, seed: int = 0, steps: Any = STEPS) -> Points:
    """Seeds lie above one another."""
    return [(step, 3 + seed / 50 + 8 * (speed * step) ** -0.35) for step in steps]


def curves(**speeds: float) -> dict[str, dict[int, Points]]:
    return {name: {seed: power_law(speed, seed) for seed in range(5)} for name, speed in speeds.items()}


@pytest.mark.parametrize("speed", [0.6, 1.0, 1.31, 3.0])
def test_power_laws_have_their_ratio(speed: float) -> None:
    (found,) = ft.compare_curves(curves(old=1.0, new=speed)).speedups
    assert found.ratio.estimate == pytest.approx(speed, rel=0.01)  # curves are straight between two points
    assert found.ratio.low == pytest.approx(speed, rel=0.01)
    worst = max(min(loss for _, loss in power_law(each, 4)) for each in (1.0, speed))
    assert found.loss == pytest.approx(worst)
    (back,) = ft.compare_curves(curves(old=1.0, new=speed), baseline="new").speedups
    assert back.ratio.estimate == pytest.approx(1 / found.ratio.estimate)
    assert found.rows()[0]["less_training"] == found.ratio.estimate


def test_the_sentence_says_how_much_less_or_more() -> None:
    faster, slower = ft.compare_curves(curves(learned=1.0, rope=1.3, none=0.5)).speedups
    assert faster.sentence == (
        "rope reaches learned's loss with 1.30 times less training (95% interval 1.30 to 1.30; loss 3.64, 5 seeds)."
    )
    assert slower.sentence.startswith("none reaches the same loss as learned with 2.00 times more training (95% inter")


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("speed", [1.0, 1.3])
def test_intervals_cover_the_truth(seeds: int, speed: float) -> None:
    rng = np.random.default_rng(7 * seeds)

    def runs(speed: float, first: int) -> dict[int, Curve]:
        levels = []
        for _ in range(seeds):
            clean = 3 + rng.normal(0, 0.01) + 8 * (speed * STEPS) ** -0.35 * math.exp(rng.normal(0, 0.005))
            levels.append(clean + rng.normal(0, 0.004, len(STEPS)))
        return {first + seed: Curve(STEPS, losses) for seed, losses in enumerate(levels)}

    worlds, covered = 300, 0
    for _ in range(worlds):
        ratio = compare_costs({"new": runs(speed, 0), "old": runs(1.0, 100)}, "new", "old").ratio
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= speed <= ratio.high
    assert 0.92 <= covered / worlds <= 0.995


def test_runs_of_one_seed_are_pairs() -> None:
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 0.05, 5)
    noise = {name: rng.normal(0, 0.002, 5) for name in ("old", "new")}
    speeds = {"old": 1.0, "new": 1.2}
    paired = {
        name: {
            seed: [(x, y + shared[seed] + noise[name][seed]) for x, y in power_law(speeds[name])] for seed in range(5)
        }
        for name in speeds
    }
    apart = paired | {"new": {seed + 10: points for seed, points in paired["new"].items()}}
    widths = [each.speedups[0].ratio for each in map(ft.compare_curves, (paired, apart))]
    assert widths[0].estimate == widths[1].estimate
    assert 5 * (widths[0].high - widths[0].low) < widths[1].high - widths[1].low  # type: ignore[operator]


def test_tables_and_dicts_of_the_same_curves_give_the_same(tmp_path: Path) -> None:
    given = curves(old=1.0, new=1.4)
    rows = [
        {"model": name, "seed": seed, "iteration": step, "val_loss": loss, "train_loss": loss - 1}
        for name, runs in given.items()
        for seed, points in runs.items()
        for step, loss in points
    ]
    np.random.default_rng(0).shuffle(rows)  # type: ignore[arg-type]
    path = tmp_path / "curves.csv"
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]))
    expected = ft.compare_curves(given).speedups
    assert ft.compare_curves(path, baseline="old").speedups == expected
    by_hours = ft.compare_curves(rows, baseline="old", metric="train_loss", columns={"step": "iteration"})
    assert by_hours.speedups[0].ratio.estimate == pytest.approx(expected[0].ratio.estimate)
    with pytest.raises(ft.BadInput, match=r"no variant is called 'odl' \(did you mean 'old'\?\)|no variant is called"):
        ft.compare_curves(rows, baseline="odl")


def test_seeds_may_be_scored_at_other_steps() -> None:
    given = curves(old=1.0, new=1.25)
    given["new"][1] = power_law(1.25, 1, np.arange(33, 1900, 33.0))
    given["old"][2] = power_law(1.0, 2, np.arange(50, 1700, 25.0))  # and one is shorter
    (found,) = ft.compare_curves(given).speedups
    assert found.ratio.estimate == pytest.approx(1.25, rel=0.01)
    assert found.ratio.low < 1.25 < found.ratio.high  # type: ignore[operator]


def diverges(given: dict[str, dict[int, Points]]) -> None:
    given["new"][3][10:] = [(step, math.nan) for step, _ in given["new"][3][10:]]


def never_there(given: dict[str, dict[int, Points]]) -> None:
    given["new"][1] = [(step, loss + 5) for step, loss in given["new"][1]]


def one_point(given: dict[str, dict[int, Points]]) -> None:
    given["old"][4] = given["old"][4][:1]


@pytest.mark.parametrize(
    ("change", "problem", "text"),
    [
        (diverges, SpeedupProblem.DIVERGED, "new (seed 3) diverged, so no loss is reached by every run"),
        (never_there, SpeedupProblem.OUT_OF_REACH, "new (seed 1) never falls to the loss at which another run begins"),
        (one_point, SpeedupProblem.TOO_SHORT, "old (seed 4) has a curve of one point"),
    ],
)
def test_curves_that_do_not_fit_are_one_sentence(change: Callable[..., None], problem: str, text: str) -> None:
    given = curves(old=1.0, new=1.25)
    change(given)
    (found,) = ft.compare_curves(given).speedups
    assert found.problem == problem
    assert found.sentence == f"Training of new and old cannot be compared at equal loss: {text}."
    assert found.ratio.estimate is None


def test_what_is_no_table_of_losses_is_refused() -> None:
    rows = [{"variant": name, "step": step, "accuracy": step / 9} for name in "ab" for step in range(9)]
    with pytest.raises(ft.BadInput, match="curves must be of a loss"):
        ft.compare_curves(rows)
    with pytest.raises(ft.BadInput, match="no column holds the steps"):
        ft.compare_curves([{"variant": name, "seed": seed, "loss": 2.0 + seed} for name in "ab" for seed in range(3)])
    with pytest.raises(ft.BadInput, match="one variant only"):
        ft.compare_curves(curves(old=1.0))
    with pytest.raises(ft.BadInput, match="is not a pair of a step and a loss"):
        ft.compare_curves({"a": {0: [1, 2]}, "b": {0: [1, 2]}})
    twice = [{"variant": name, "seed": 0, "step": step // 2, "loss": 3.0 - step} for name in "ab" for step in range(8)]
    with pytest.raises(ft.BadInput, match="two different scores"):
        ft.compare_curves(twice)


def test_one_run_of_each_has_no_interval() -> None:
    (found,) = ft.compare_curves({"old": {0: power_law(1.0)}, "new": {0: power_law(2.0)}}).speedups
    assert (found.ratio.low, found.ratio.high) == (None, None)
    assert "2.00 times less training (no interval; " in found.sentence
