"""Tuning the learning rate: equal tries, edges extended, two lengths, resumed, told."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.study import search as searching
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import Plan, Trial, calibrate, make_plan
from fairtrial.study.run import Options, run_study
from fairtrial.study.search import RATE, outcome_of, run_search, search_again
from fairtrial.study.tables import study_from, with_tuning, write_study

TUNE = {"tune": True}


def nothing(*_: object) -> bool:
    return False


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Trial]]:
    """`scored(best)`: a try's perplexity is how far its rate is from the best one of its variant; trials are only
    listed."""

    def use(best: dict[str, float], broken: float = float("inf")) -> list[Trial]:
        asked: list[Trial] = []

        def score(plan: Plan, trials: list[Trial]) -> float | None:
            asked.extend(trials)
            rate, wanted = trials[0].recipe.training.learning_rate, best[trials[0].variant.name]
            return None if rate >= broken else 100 + max(rate / wanted, wanted / rate)

        monkeypatch.setattr(searching, "validation_score", score)
        return asked

    return use


def tuned(study: Study, folder: Path) -> Any:
    plan = make_plan(study, StudyFolder(folder))
    assert study.search is not None
    return outcome_of(plan, study.search, lambda trials, tries: None).tasks["lm"]


def test_the_best_rate_of_each_variant_is_found_with_equal_tries_and_never_at_an_edge(
    tiny_study: Callable[..., Study], tmp_path: Path, scored: Callable[..., list[Trial]]
) -> None:
    scored({"learned": 0.01, "rope": 0.16})  # the recipes' own is 0.01: 0.0025 to 0.04
    task = tuned(tiny_study(search=TUNE, tasks=["lm"]), tmp_path)
    chosen = {name: own.best[RATE] for name, own in task.variants.items()}
    assert chosen == {"learned": 0.01, "rope": 0.16}
    grids = {own.rates for own in task.variants.values()}
    assert len(grids) == 1
    (grid,) = grids
    assert min(grid) < 0.01 < 0.16 < max(grid)
    for own in task.variants.values():
        assert None not in own.scores
        finalists = [rate for rate, score in zip(grid, own.whole, strict=True) if score is not None]
        assert len(finalists) == 2
        assert min(grid) not in finalists
        assert max(grid) not in finalists


def test_rates_that_diverge_are_no_edge(
    tiny_study: Callable[..., Study], tmp_path: Path, scored: Callable[..., list[Trial]]
) -> None:
    scored({"learned": 1.0, "rope": 1.0}, broken=0.015)  # the higher the better, but from 0.015 on it breaks
    task = tuned(tiny_study(search=TUNE, tasks=["lm"]), tmp_path)
    assert {own.best[RATE] for own in task.variants.values()} == {0.01}
    scored({"learned": 1.0, "rope": 1.0}, broken=0.0)
    with pytest.raises(BadInput, match="no try of 'learned'"):
        tuned(tiny_study(search=TUNE, tasks=["lm"]), tmp_path / "none")


def test_a_grid_ends_somewhere(
    tiny_study: Callable[..., Study], tmp_path: Path, scored: Callable[..., list[Trial]]
) -> None:
    scored({"learned": 1e9, "rope": 1e9})
    task = tuned(tiny_study(search=TUNE, tasks=["lm"]), tmp_path)
    assert len(task.variants["rope"].rates) == searching.MOST_RATES


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_a_tuned_study_trains_the_chosen_rates_says_so_and_goes_on(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FACTORS", (0.5, 1.0, 2.0))
    monkeypatch.setattr(searching, "MOST_RATES", 4)
    study = tiny_study(search=TUNE, seeds=2, tasks=["lm"])
    assert study_from(tomllib.loads(write_study(study))) == study
    verdict = run_study(study, tmp_path / "study", InProcess(), Options(), heard)
    assert verdict is not None
    search = verdict.tasks["lm"].search
    assert search is not None
    rates = {name: choice.best[RATE] for name, choice in search.variants.items()}
    plan = make_plan(study, StudyFolder(tmp_path / "study"))
    for name, by_seed in plan.finished("lm").items():
        assert {record.recipe.training.learning_rate for record in by_seed.values()} == {rates[name]}
    short = StudyFolder(tmp_path / "study").record(plan.home.search_trial("lm", "rope", "short-0.01", 1000))
    assert short is not None
    assert (short.result.steps, short.result.tests) == (6, {})  # a quarter of 24 steps
    told = f"Tuned on validation, with equal tries: learning rate learned {rates['learned']:g}, rope {rates['rope']:g}."
    assert (told, "lm") in [(each.text, each.task) for each in verdict.sentences]
    assert "validation by learning rate" in verdict.to_text(every=True)
    heard.told.clear()
    assert run_study(study, tmp_path / "study", InProcess(), Options(), heard) == verdict
    assert not heard.of("begin", "trial")
    planned = calibrate(plan, InProcess(), nothing, nothing)  # type: ignore[arg-type]
    assert search_again(planned) == run_search(planned, InProcess(), nothing, nothing)  # type: ignore[arg-type]


def test_a_budget_tunes_unless_the_study_has_rates_or_is_told_not_to(tiny_study: Callable[..., Study]) -> None:
    own = tiny_study()  # with a learning rate in [set]
    bare = tiny_study(set={"training.batch": 8}, recipe="default")
    searched = tiny_study(search={"training.batch": [4, 8]})

    def tunes(study: Study, tune: bool | None, budget: bool) -> bool:
        return (search := with_tuning(study, tune, budget).search) is not None and search.tune

    assert tunes(bare, None, True)
    assert not tunes(bare, None, False)
    assert tunes(bare, True, False)
    assert not tunes(own, None, True)
    assert tunes(own, True, False)
    assert not tunes(bare, False, True)
    assert not tunes(with_tuning(bare, True, False), False, True)
    assert with_tuning(searched, None, True) == with_tuning(searched, False, True) == searched


def test_tuning_takes_no_fields(tiny_study: Callable[..., Study]) -> None:
    with pytest.raises(BadInput, match=r"search\.tune tries learning rates of its own"):
        tiny_study(search={"tune": True, "training.batch": [4, 8]})
