"""A length that the recipe leaves open is chosen from the training text, the same for every seed, and recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import Interrupted
from fairtrial.model.network import LanguageModel
from fairtrial.prepare import prepare
from fairtrial.recipe import (
    Recipe,
    Shape,
    built_in_recipe,
    choose_recipe,
    fingerprint,
    read_settings,
    with_data,
    with_settings,
)
from fairtrial.record import Record
from fairtrial.trial import resume_trial, run_trial
from sampling import cases

TINY = ("shape.layers=1", "shape.width=8", "shape.hidden=8", "shape.classifier_hidden=4", "training.duration=4 steps")


def reviews(path: Path, longest: int, texts: int = 300) -> str:
    """Texts of 1, 2, ... `longest` words, one for a hundred much longer; the test set's are longer still."""
    rows = []
    for number in range(texts):
        words = 2000 if number % 100 == 7 else 1 + number % longest
        rows.append(f"{' '.join(f'w{number * word % 97}x{number}' for word in range(words))},{number % 2},train")
        rows.append(f"{'y ' * 900}{number},{number % 2},test" if number < 20 else rows.pop())
    path.write_text("\n".join(["text,label,split", *rows]))
    return str(path)


@cases(("longest", "length"), [(10, 32), (50, 56), (56, 56), (57, 64), (400, 256)])
def test_nearly_all_training_texts_are_read_whole(tmp_path: Path, longest: int, length: int) -> None:
    prepared = prepare(choose_recipe("classify", data=reviews(tmp_path / "a.csv", longest, max(300, longest))), 0)
    assert prepared.recipe.shape.length == length
    (note,) = [note for note in prepared.notes if note.startswith("length")]
    assert note.startswith(f"length {length}, chosen from the training text: 99% of its texts have at most")


def test_a_language_models_length_has_room_for_the_start_mark(tmp_path: Path) -> None:
    path = tmp_path / "lines.tokens"
    path.write_text("\n".join(" ".join(f"w{(line * at) % 89}" for at in range(40)) for line in range(1, 90)))
    recipe = with_settings(choose_recipe("lm", data=str(path)), ["shape.length=0"])
    assert prepare(recipe, 0).recipe.shape.length == 48  # 41 tokens are read


@pytest.mark.parametrize("kind", ["word", "bpe", "character"])
def test_all_seeds_have_one_length(tmp_path: Path, kind: str) -> None:
    """One text for a hundred is very long: it is among the longest hundredth of some training splits."""
    settings = [f"tokens.kind={kind}", "data.train_share=0.5"]
    recipe = with_settings(choose_recipe("classify", data=reviews(tmp_path / "a.csv", 20)), settings)
    assert len({prepare(recipe, seed).recipe.shape.length for seed in range(4)}) == 1


def test_a_length_that_is_given_stays(tmp_path: Path) -> None:
    data = reviews(tmp_path / "a.csv", 50)
    for recipe in (
        with_settings(choose_recipe("classify", data=data), ["shape.length=48"]),
        with_data(Recipe(shape=Shape(length=48)), data),
    ):
        assert (prepare(recipe, 0).recipe.shape.length, prepare(recipe, 0).length_note) == (48, "")
    assert built_in_recipe("course", "classify").shape.length == built_in_recipe("course", "lm").shape.length == 32


def test_the_courses_data_and_running_text_keep_the_usual_length(course_folder: Path, shared_data: Path) -> None:
    assert prepare(choose_recipe("classify", data=str(shared_data / "speeches")), 0).recipe.shape.length == 32
    assert prepare(choose_recipe("lm", data=str(course_folder)), 0).recipe.shape.length == 64


def test_the_record_says_the_length_and_resumes(tmp_path: Path) -> None:
    recipe = with_settings(choose_recipe("classify", data=reviews(tmp_path / "a.csv", 50)), TINY)
    whole = run_trial(recipe, 0, tmp_path / "whole")
    assert whole.recipe.shape.length == 56
    assert any(note.startswith("length 56, chosen") for note in whole.trial.notes)
    assert whole.trial.recipe == fingerprint(whole.recipe) == fingerprint(with_settings(recipe, ["shape.length=56"]))
    steps = iter([False, False, True])
    with pytest.raises(Interrupted):
        run_trial(recipe, 0, tmp_path / "broken", stop=lambda: next(steps, True))
    resumed = resume_trial(tmp_path / "broken")
    assert Record.open(tmp_path / "broken").recipe.shape.length == 56
    assert (resumed.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()


def test_a_study_continues_whose_length_was_chosen(tmp_path: Path, fairtrial: Callable[..., Any]) -> None:
    """The plan asks for an open length, its trials say the chosen one: they are the same trials."""
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import make_plan, missing
    from fairtrial.study.tables import design_study

    table = {
        "data": reviews(tmp_path / "a.csv", 50),
        "variants": {name: {"parts": [name]} for name in ("rope", "alibi")},
    }
    study = design_study(table, overrides=read_settings(TINY), seeds=1)
    plan = make_plan(study, StudyFolder(tmp_path / "study"))
    plan.write({})
    trials = plan.trials()
    for trial in trials:
        run_trial(trial.recipe, trial.seed, trial.folder)
    assert missing(plan, trials) == ([], [])
    assert {plan.home.record(trial.folder).recipe.shape.length for trial in trials} == {56}
    assert any(note.startswith("length 56") for note in plan.eval_sets["classify"].notes)


def test_a_network_is_not_built_without_a_length() -> None:
    with pytest.raises(Exception, match="leaves the length open"):
        LanguageModel(Shape(length=0), (), 10)
