"""A wall-clock time chooses the number of seeds and says so; no training is shortened for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput
from fairtrial.formatting import read_time
from fairtrial.stored import Calibration
from fairtrial.study import run
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import Plan, fit_budget, make_plan
from fairtrial.study.run import Options, plan_study
from sampling import cases


@cases(("text", "seconds"), [("90s", 90), ("20m", 1200), ("1h30m", 5400), ("1.5h", 5400), ("2 min", 120)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert read_time(text) == seconds


@cases("text", ["", "20", "m", "20x", "0s", "-5m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_time(text)


@pytest.fixture
def plan(tiny_study: Callable[..., Study], tmp_path: Path) -> Plan:
    """Two variants whose trials take 2 + 100 seconds of 1,000 steps."""
    counts = {"steps": 1000, "steps_per_epoch": 100, "parameters": 10, "flops_per_step": 10}
    pace = Calibration(set_up_seconds=2.0, step_seconds=0.09, score_seconds=10.0, **counts)
    plan = make_plan(tiny_study(), StudyFolder(tmp_path / "study"))
    return replace(plan, calibration={"classify": {"learned": pace, "rope": pace}})


def test_a_large_budget_buys_seeds_and_no_more_than_fit(plan: Plan) -> None:
    chosen, said = fit_budget(plan, 2, 1500)
    seeds = len(chosen.study.seeds)
    assert f"{seeds} seeds fit" in said
    assert plan.expected_seconds(2, seeds) <= 1500 < plan.expected_seconds(2, seeds + 3)
    assert chosen.recipes == plan.recipes


@pytest.mark.parametrize("seconds", [20, 300])
def test_a_budget_that_five_seeds_do_not_fit_is_refused_with_what_they_take(plan: Plan, seconds: float) -> None:
    with pytest.raises(BadInput, match="too short: 5 seeds need about") as refused:
        fit_budget(plan, 2, seconds)
    enough = read_time(refused.value.what.rpartition(" ")[2].replace(":", "m") + "s")
    assert len(fit_budget(plan, 2, enough + 1)[0].study.seeds) == 5


def test_two_cores_are_counted(plan: Plan) -> None:
    assert len(fit_budget(plan, 2, 2000)[0].study.seeds) > len(fit_budget(plan, 1, 2000)[0].study.seeds)


def test_a_budget_never_takes_fewer_than_five_seeds_nor_longer_trials(plan: Plan) -> None:
    with pytest.raises(BadInput, match="3 seeds are too few"):
        fit_budget(plan, 2, 3600, 3)


def test_too_few_seeds_are_refused_before_anything_is_read_or_timed(fairtrial: Any) -> None:
    said = fairtrial("study", "--data", "nowhere", "--task", "classify", "--budget", "5m", "--seeds", 3)
    assert said.code == 2
    assert "3 seeds are too few" in said.err


def test_a_pace_that_nobody_knows_is_not_promised(plan: Plan) -> None:
    with pytest.raises(BadInput, match="speed of 'rope'"):
        fit_budget(
            replace(plan, calibration={"classify": {"learned": plan.calibration["classify"]["learned"]}}), 2, 3600
        )


def test_a_search_takes_its_share_of_the_budget(
    tiny_study: Callable[..., Study], plan: Plan, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "calibrate", lambda made, *_: replace(made, calibration=plan.calibration))
    studies = (tiny_study(), tiny_study(search={"training.learning_rate": [1e-2, 1e-3], "untuned": False}))
    hour = Options(budget_seconds=3600)
    without, less = (plan_study(study, plan.home, Processes(2), hour, heard, lambda: False)[0] for study in studies)
    assert len(less.study.seeds) == len(without.study.seeds) - 2  # two tries of each variant
