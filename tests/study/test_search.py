"""Search: equal tries, on validation, and no test set is ever read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.events import Scored
from fairtrial.record import Record
from fairtrial.study.design import Search, Study
from fairtrial.study.folder import FAILED_TRIES, StudyFolder
from fairtrial.study.plan import make_plan
from fairtrial.study.run import Options, run_study
from fairtrial.study.search import earlier_choice, run_search, tries_of
from fairtrial.study.tables import study_from, write_study


def test_a_grid_is_every_combination() -> None:
    tries = tries_of(Search(fields={"training.batch": [4, 8], "training.learning_rate": [0.1, 0.2, 0.3]}))
    assert len(tries) == 6
    assert {(each["training.batch"], each["training.learning_rate"]) for each in tries} == {
        (batch, rate) for batch in (4, 8) for rate in (0.1, 0.2, 0.3)
    }


def test_random_tries_are_different_inside_their_range_and_repeat() -> None:
    search = Search(
        fields={"training.learning_rate": {"from": 1e-4, "to": 1e-2}, "shape.layers": [1, 2]}, random=12, seeds=(7,)
    )
    tries = tries_of(search)
    assert len(tries) == 12 == len({json.dumps(each) for each in tries})
    rates = [each["training.learning_rate"] for each in tries]
    assert all(1e-4 <= rate <= 1e-2 for rate in rates)
    assert sum(rate < 1e-3 for rate in rates) in range(2, 11)  # drawn on a log scale
    assert tries == tries_of(search)
    assert tries != tries_of(Search(fields=search.fields, random=12, seeds=(8,)))
    assert len(tries_of(Search(fields={"shape.layers": [1, 2]}, random=12))) == 2


def test_a_search_chooses_on_validation_and_reads_no_test_set(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    fields = {"training.learning_rate": [1e-2, 1e-7]}
    more = {"training.duration": "60 steps", "shape.layers": 1, "shape.width": 16, "shape.length": 12}
    plan = make_plan(tiny_study(search=fields, set=more, tasks=["lm"]), StudyFolder(tmp_path))
    facts = run_search(plan, InProcess(), heard, lambda: False)
    chosen = earlier_choice(plan)
    assert chosen == {"lm": {"learned": {"training.learning_rate": 0.01}, "rope": {"training.learning_rate": 0.01}}}
    told = facts.tasks["lm"]
    assert told.tries == 4
    assert told.variants["rope"].tries == 2
    assert told.variants["rope"].validation == min(told.variants["rope"].scores)
    records = [Record.open(path.parent) for path in tmp_path.glob("search/*/*/*/*/trial.json")]
    assert len(records) == 4
    for record in records:
        assert record.result.test_reads == {"hbush": 0, "obama": 0, "wbush": 0}
        assert record.result.tests == {}
        assert {name.partition("/")[0] for name in record.outcomes()} == {"validation"}
        assert {event.split for event in record.events() if isinstance(event, Scored)} <= {"train", "validation"}
        assert record.trial.seed == 1000
    final = plan.with_recipes(chosen).recipes["lm"]["rope"]
    assert final.training.learning_rate == 0.01
    assert final.scoring.tests
    heard.told.clear()
    assert run_search(plan, InProcess(), heard, lambda: False) == facts  # nothing is run twice
    assert not heard.of("begin")


@pytest.mark.usefixtures("audits_here")
def test_a_study_with_a_search_judges_the_chosen_and_goes_on_with_them(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    study = tiny_study(search={"training.learning_rate": [1e-2, 1e-7]}, seeds=2, tasks=["lm"])
    verdict = run_study(study, tmp_path / "study", InProcess(), on_event=heard)
    (plan,) = heard.of("plan")
    trials = sum(2 * seconds for seconds in plan["trial_seconds"]["lm"].values())
    assert plan["expected_seconds"] > 1.5 * trials  # as many tries as trials, and the baselines
    assert verdict is not None
    assert (search := verdict.tasks["lm"].search)
    assert search.tries == 4
    assert search.variants["rope"].best == {"training.learning_rate": 0.01}
    record = Record.open(tmp_path / "study/trials/lm/rope/seed-1")
    assert record.recipe.training.learning_rate == 0.01
    assert record.result.test_reads == {"hbush": 1, "obama": 1, "wbush": 1}
    heard.told.clear()
    assert run_study(study, tmp_path / "study", InProcess(), on_event=heard) == verdict
    assert not heard.of("begin", "trial")
    (again,) = heard.of("plan")
    assert (again["left"], again["expected_seconds"]) == (0, 0)  # neither trials nor tries are left


def test_without_validation_there_is_nothing_to_choose_on(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    study = tiny_study(search={"training.batch": [2, 4]}, set={"data.validation": 0.0})
    with pytest.raises(BadInput, match="no validation set"):
        run_search(make_plan(study, StudyFolder(tmp_path)), InProcess(), lambda event: None, lambda: False)


def test_a_variant_may_be_run_as_given(tiny_study: Callable[..., Study], tmp_path: Path, heard: Any) -> None:
    study = tiny_study(
        search={"training.learning_rate": [1e-2, 1e-3]},
        set={"training.duration": "2 steps"},
        tasks=["classify"],
        variants={"tuned": {}, "as given": {"search": False, "training.learning_rate": 0.5}},
    )
    assert study_from(tomllib.loads(write_study(study))) == study
    plan = make_plan(study, StudyFolder(tmp_path))
    facts = run_search(plan, InProcess(), heard, lambda: False)
    chosen = earlier_choice(plan)
    assert list(chosen["classify"]) == ["tuned"]
    assert facts.tasks["classify"].tries == 2
    recipes = plan.with_recipes(chosen).recipes["classify"]
    assert recipes["as given"].training.learning_rate == 0.5


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
def test_tries_that_failed_are_no_trials_and_are_not_tried_again(
    tiny_study: Callable[..., Study], tmp_path: Path, heard: Any
) -> None:
    study, folder = tiny_study(search={"training.learning_rate": [1e-2, 1e38]}, seeds=2, tasks=["lm"]), tmp_path / "x"
    verdict = run_study(study, folder, InProcess(), on_event=heard)
    assert verdict is not None
    assert verdict.tasks["lm"].failures == ()
    assert len(heard.of("failed")) == len(StudyFolder(folder).failures(FAILED_TRIES)) == 2
    heard.told.clear()
    assert run_study(study, folder, InProcess(), on_event=heard) == verdict
    assert not heard.of("failed")
    assert any("2 tries failed before" in facts["text"] for facts in heard.of("notice"))
    run_study(study, folder, InProcess(), Options(retry_failed=True), on_event=heard)
    assert len(heard.of("failed")) == len(StudyFolder(folder).failures(FAILED_TRIES)) == 2
