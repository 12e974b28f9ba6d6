"""A wall-clock time chooses seeds, or fewer steps, and says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial.engines.job import InProcess
from fairtrial.engines.processes import Processes
from fairtrial.errors import BadInput
from fairtrial.formatting import read_time
from fairtrial.statistics.power import expected_smallest
from fairtrial.study import plan as plan_module
from fairtrial.study import run
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import RESERVE, Plan, assume_untimed, calibrate, fit_budget, make_plan
from fairtrial.study.run import Options, plan_study, run_study
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
    pace = {"set_up_seconds": 2.0, "step_seconds": 0.09, "steps": 1000, "score_seconds": 10.0}
    plan = make_plan(tiny_study(), StudyFolder(tmp_path / "study"))
    return replace(plan, calibration={"classify": {"learned": pace, "rope": pace}})


def test_a_large_budget_buys_seeds_and_no_more_than_fit(plan: Plan) -> None:
    chosen, said = fit_budget(plan, 2, 1500)
    seeds = len(chosen.study.seeds)
    assert f"{seeds} seeds" in said
    assert plan.expected_seconds(2, seeds) <= 1500 < plan.expected_seconds(2, seeds + 3)
    assert chosen.recipes == plan.recipes


def test_a_small_budget_keeps_five_seeds_and_cuts_steps_for_all(plan: Plan) -> None:
    chosen, said = fit_budget(plan, 2, 300)
    assert len(chosen.study.seeds) == 5
    durations = {str(recipe.training.duration) for recipe in chosen.recipes["classify"].values()}
    assert len(durations) == 1
    steps = int(durations.pop().split()[0])
    assert 200 < steps < 600
    assert f"fewer steps ({steps} of 1,000 for classify)" in said
    assert chosen.expected_seconds(2, 5) <= 300
    now, more = (expected_smallest("classify", seeds, 30) for seeds in (5, 10))
    assert f"price in power: 10 seeds of the whole training would detect {more} rather than {now}" in said


def test_final_scores_take_their_time_however_short_the_training(plan: Plan) -> None:
    pace = plan.calibration["classify"]["learned"]
    slow = replace(plan, calibration={"classify": dict.fromkeys(("learned", "rope"), pace | {"final_seconds": 20.0})})
    assert slow.expected_seconds(1, 5, 0.0) == plan.expected_seconds(1, 5, 0.0) + 200
    steps = [int(str(fit_budget(each, 2, 300)[0].recipes["classify"]["rope"].training.duration).split()[0])
             for each in (plan, slow)]  # fmt: skip
    assert steps[1] < steps[0]


def test_exact_scores_that_would_fill_a_budget_move_in_strides(plan: Plan) -> None:
    pace = plan.calibration["classify"]["learned"]

    def with_finals(exact: float) -> Plan:
        facts = pace | {"final_seconds": exact, "strided_seconds": exact / 16}
        return replace(plan, calibration={"classify": dict.fromkeys(("learned", "rope"), facts)})

    cheap, said = fit_budget(with_finals(10.0), 2, 300)  # 50 s of 270: exact
    assert cheap.recipes["classify"]["rope"].scoring.exact_bytes > 0
    assert "strides" not in said
    dear, said = fit_budget(with_finals(60.0), 2, 300)  # 300 s: nothing would be left for training
    assert dear.recipes["classify"]["rope"].scoring.exact_bytes == 0
    assert "Exact final scores would take 5:00 of it, so test sets are scored in strides of half a length" in said
    assert "fewer steps" in said
    assert dear.expected_seconds(2, 5) <= 300


def test_timing_takes_a_tenth_of_the_budget_and_what_was_not_timed_counts_as_slow(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def listen(kind: str, facts: dict[str, Any]) -> None:
        nonlocal now
        heard(kind, facts)
        now += 20.0 * (kind == "done")

    monkeypatch.setattr(plan_module, "time", SimpleNamespace(monotonic=lambda: now))
    variants = {name: {"parts": [name]} for name in ("rope", "learned", "alibi")}
    study = tiny_study(variants=variants, baseline="learned")
    options = Options(budget_seconds=300, dry_run=True)
    plan, said = plan_study(study, StudyFolder(tmp_path / "study"), InProcess(), options, listen, lambda: False)
    assert [facts["key"][1] for facts in heard.of("begin", "calibrate")] == ["learned", "rope"]  # 40 s, over 30
    found = plan.calibration["classify"]
    assert found["alibi"]["as"] in ("learned", "rope")
    assert found["alibi"]["step_seconds"] == found[found["alibi"]["as"]]["step_seconds"]
    assert "parameters" not in found["alibi"]  # nobody has counted them
    assert "alibi could not be timed within 0:30, a tenth of the budget" in heard.of("notice")[-1]["text"]
    assert "seeds of the whole training fit" in said
    with pytest.raises(BadInput, match="no step of a variant could be timed"):
        assume_untimed(plan, {"classify": {}}, 30.0, heard)


def test_a_tiny_budget_is_refused_with_what_it_takes(plan: Plan) -> None:
    with pytest.raises(BadInput, match="too short: 5 seeds need about"):
        fit_budget(plan, 2, 20)


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


@pytest.mark.usefixtures("audits_here")
def test_a_study_cut_short_goes_on_with_the_same_command(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = {"shape.layers": 1, "shape.width": 16, "shape.length": 12, "training.duration": "400 steps"}
    study, folder = tiny_study(set=more), tmp_path / "study"
    whole = calibrate(make_plan(study, StudyFolder(folder)), InProcess(), heard, lambda: False)
    whole.write({})  # so that the study reuses these times: on a busy machine others would ask for another budget
    least, most = (whole.expected_seconds(1, 5, share) for share in (0.0, 1.0))
    options = Options(budget_seconds=(least + 0.04 * (most - least)) / RESERVE)
    first = run_study(study, folder, InProcess(), options, heard)
    assert "fewer steps" in heard.of("plan")[0]["decision"]
    assert "fewer steps" in StudyFolder(folder).read_plan()["decision"]
    heard.told.clear()
    assert run_study(study, folder, InProcess(), options, heard) == first
    assert not heard.of("begin", "trial")
    assert "fewer steps" in heard.of("plan")[0]["decision"]
