"""Curves: how many items a point scores; was training long enough? The validation curve says so, in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial.events import Scored
from fairtrial.prepare import prepare
from fairtrial.provenance import training_end
from fairtrial.recipe import Recipe, built_in_recipe, with_settings
from fairtrial.report.page import result_page
from fairtrial.results.records import describe_record, learning_notes
from fairtrial.stored import Metrics, TrialResult
from fairtrial.trial import run_trial
from sampling import cases


@cases(
    ("losses", "end"),
    [
        ([4.0, 3.0, 2.5, 2.2, 2.0, 1.9], ("still improving", 500)),
        ([7.6, 5.0, 4.9, 4.7, 4.65, 4.57], ("still improving", 500)),  # 8% of a perplexity in the last fifth
        ([4.0, 2.1, 2.0, 2.0, 2.0, 1.98], ("settled", 500)),
        ([4.0, 2.0, 2.1, 2.2, 2.2, 2.15], ("settled", 100)),  # a tenth of what was learned is not much
        ([4.0, 2.0, 2.2, 2.4, 2.6, 2.9], ("overfitted", 100)),
        ([4.0, 3.0, 2.5, 2.2, 2.1, 2.05, 2.0, 2.3], ("settled", 600)),  # its best is late: a fluctuation
        ([4.0, 2.5, 2.0, 2.2, 2.3, 2.01], ("settled", 200)),  # it only comes back from a bump
        ([4.0, 4.5, 5.0, 5.5], ("overfitted", 0)),
        ([0.694, 0.693, 0.694, 0.6935, 0.693, 0.6925], ("settled", 500)),  # nothing was learned
        ([0.6925, 0.693, 0.694, 0.693, 0.694, 0.694], ("settled", 0)),
        ([0.694, 0.693, 0.694, 0.693, 0.693, 0.68], ("still improving", 500)),  # it begins to learn
        ([4.0, 3.0, 2.0], ("", 200)),
    ],
)
def test_the_curve_says_how_training_ended(losses: list[float], end: tuple[str, int]) -> None:
    curve = [Scored(100 * at, "validation", Metrics(window_nll=loss)) for at, loss in enumerate(losses)]
    other = [Scored(100 * at, "train", Metrics(window_nll=9.0 - at)) for at in range(len(losses))]
    assert training_end([*other, *curve]) == end


def test_without_validation_nothing_is_known() -> None:
    assert training_end([Scored(0, "train", Metrics(nll=1.0))]) == ("", None)


def test_a_short_training_is_scored_often_enough_and_its_result_and_page_say_that_it_was_short(
    tiny_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    rarely = ("training.select_every=100 steps", "scoring.curve_every=100 steps", "training.learning_rate=1e-2")
    record = run_trial(tiny_recipe("lm", *rarely, "training.duration=9 steps"), 0, tmp_path / "record")
    scores = [event for event in record.events() if isinstance(event, Scored)]
    assert [event.step for event in scores if event.split == "validation"] == [0, 2, 4, 6, 9]
    assert [event.step for event in scores if event.split == "train"] == [0, 9]
    (note,) = learning_notes(record.result)
    assert note == "underfitted: still improving at the last step; results may change with longer training"
    assert note in result_page(describe_record(record))


def test_the_best_step_is_told_where_the_last_weights_are_kept() -> None:
    result = TrialResult(
        task="lm", seed=0, parameters=1, steps=900, steps_per_epoch=1, kept_step=900, kept="last", best_step=120,
        training_end="overfitted", test_watched=False, test_reads={}, train=Metrics(), tests={}, picked_on_test={},
        model_sha256="",
    )  # fmt: skip
    assert learning_notes(result) == ["overfitted: best at step 120 of 900, worse since"]


@pytest.mark.parametrize("task", ["classify", "lm", "mlm"])
def test_a_point_of_the_training_curve_scores_as_many_items_as_one_of_validation(task: str) -> None:
    recipe = built_in_recipe("default", task)
    found = prepare(with_settings(recipe, ["data.validation=0.2", "shape.length=32"]), 0).task
    assert found.items("validation") > 256, "the control: validation decides, not the least number"
    assert found.sample("train") == found.sample("validation") == min(found.most, found.items("validation"))
    assert found.sample("train") < found.items("train")
    none_held_back = prepare(with_settings(recipe, ["data.validation=0", "shape.length=32"]), 0).task
    assert none_held_back.sample("train") == min(found.most, none_held_back.items("train"))
