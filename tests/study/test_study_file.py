"""Study files: what is written is read back, and mistakes are told."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.engines import InProcess
from fairtrial.errors import BadInput
from fairtrial.recipe import PartChoice, Recipe
from fairtrial.study.design import Study, check_same_items, recipe_of
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import make_plan, recipes_of
from fairtrial.study.run import Options, describe
from fairtrial.study.tables import DEMO, load_study, read_variant, study_from, write_study
from sampling import cases

EXAMPLES = Path(__file__).parents[2] / "examples" / "studies"
WHOLE = """
name = "is rotary better?"
tasks = ["classify", "lm"]
baseline = "learned"
seeds = [3, 5, 8]
least_difference = {accuracy = 2.0}
sentence = "We will build schools."
[set]
"training.duration" = "5 epochs"
[set.lm]
"training.batch" = 4
[variants.learned]
parts = ["learned"]
[variants."window size=8"]
parts = ["rope", {name = "window", size = 8}]
"training.learning_rate" = 3e-4
seeds_from = 100
accept_failed_audit = true
[search]
"training.learning_rate" = [1e-3, 3e-4]
"shape.dropout" = [0.0, 0.1]
random = 3
"""


def test_a_study_survives_a_round_trip() -> None:
    study = study_from(tomllib.loads(WHOLE))
    assert study_from(tomllib.loads(write_study(study))) == study
    assert study.seeds == (3, 5, 8)
    assert study.least_difference == {"accuracy": 2.0, "perplexity": 0.01}


def test_settings_reach_the_recipes_the_variants_own_last() -> None:
    study = study_from(tomllib.loads(WHOLE))
    recipes = recipes_of(study, {"lm": {"learned": {"shape.dropout": 0.4}}})
    window = recipes["lm"]["window size=8"]
    assert window.parts == (PartChoice(name="rope"), PartChoice(name="window", options={"size": 8}))
    assert (str(window.training.duration), window.training.batch, window.training.learning_rate) == (
        "5 epochs",
        4,
        3e-4,
    )
    assert recipes["classify"]["learned"].training.batch == 32
    assert recipes["lm"]["learned"].shape.dropout == 0.4
    assert window.shape.dropout == Recipe.load("lm").shape.dropout


def test_paths_are_seen_from_where_the_file_stands(tmp_path: Path, course_folder: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    path = tmp_path / "study.toml"
    path.write_text(f'data = "{course_folder.name}"\n[variants.a]\nwith = ["mine.py"]\n[variants.b]\n')
    study = study_from(load_study(path))
    assert study.data == str(course_folder.resolve())
    assert study.variants[0].plugins == (str((tmp_path / "mine.py").resolve()),)


@cases(
    ("change", "said"),
    [
        ({"sedes": 5}, "did you mean 'seeds'"),
        ({"seeds": 0}, "seeds = 0 must be a number of seeds"),
        ({"seeds": [1, 1]}, "a seed occurs twice"),
        ({"baseline": "lerned"}, "did you mean 'learned'"),
        ({"tasks": ["clasify"]}, "did you mean 'classify'"),
        ({"tasks": ["mlm"]}, "cannot be about 'mlm'"),
        ({"variants": {"rope": {"parts": ["rope"]}}}, "at least two variants"),
        ({"variants": {"../x": {}, "b": {}}}, "cannot be a variant's name"),
        ({"variants": {"a": {"learning_rate": 1}, "b": {}}}, "has no field 'learning_rate'"),
        ({"variants": {"a": {"training": {"batch": 1}}, "b": {}}}, "quote a field's dots"),
        ({"variants": {"a": {"parts": "rope"}, "b": {}}}, "must be a list"),
        ({"variants": {"a": {}, "A": {}}}, "share a name"),
        ({"variants": {"a": {}, "Con": {}}}, "'Con' cannot be a variant's name"),  # a device to Windows
        ({"variants": {"a": {}, "nul.1": {}}}, "'nul.1' cannot be a variant's name"),
        ({"variants": {"a": {}, "b.": {}}}, "'b.' cannot be a variant's name"),  # `b` to Windows
        ({"variants": {"a": {}, "b": {"seeds_from": 3}}}, "repeats seeds of the study"),
        ({"least_difference": {"accuracy": -1}}, "must be a number above 0"),
        ({"search": {"training.batch": []}}, "no values to try"),
        ({"search": {"random": 3}}, "names no field"),
        ({"search": {"training.batch": {"from": 1, "to": 9}}}, "no values to try"),
        ({"search": {"training.batch": {"from": "a", "to": "b"}, "random": 2}}, "no values to try"),
        ({"search": {"training.batch": {"from": 9, "to": 1}, "random": 2}}, "no values to try"),
        ({"search": {"training.batch": {"from": 1, "to": 9, "scale": "logarithmic"}, "random": 2}}, "no values to try"),
        ({"search": {"training.clip": {"from": 0, "to": 1, "scale": "log"}, "random": 2}}, "no values to try"),
        ({"search": {"data.test": [0.1, 0.2]}}, "decides what is read"),
        ({"search": {"tokens.size": [500, 1000]}, "tasks": ["lm"]}, "what a token is"),
        ({"search": {"training.batch": [2, 4], "seeds": 1}}, "some of them are the study's own"),
        ({"recipe": "defualt"}, "did you mean 'default'"),
    ],
)
def test_mistakes_are_told(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as error:
        study_from({"variants": {"learned": {}, "rope": {}}} | change)
    assert said in f"{error.value.what} {error.value.hint}"


def test_a_variants_own_mistake_names_it(tiny_study: Callable[..., Study]) -> None:
    study = tiny_study(variants={"a": {"training.lerning_rate": 1.0}, "b": {}})
    with pytest.raises(BadInput, match=r"variant 'a'.*learning_rate"):
        recipe_of(study, "classify", study.variants[0])


def test_variants_that_differ_in_their_items_are_refused(tiny_study: Callable[..., Study]) -> None:
    for field, value in {
        "data.test": 0.3,
        "data.format": "course",
        "scoring.full_context": 0.9,
    }.items():
        study = tiny_study(variants={"a": {}, "b": {field: value}})
        with pytest.raises(BadInput, match=f"differ in {re.escape(field)}"):
            check_same_items(recipes_of(study, {})["classify"])
    check_same_items(recipes_of(tiny_study(variants={"a": {}, "b": {"data.windows": "every"}}), {})["classify"])


@cases("path", [DEMO, *sorted(EXAMPLES.glob("*.toml"))])
def test_studies_that_ship_are_whole(path: Path) -> None:
    study = study_from(load_study(path))
    recipes = recipes_of(study, {})
    assert set(recipes) == set(study.tasks)
    for task, named in recipes.items():
        assert len({str(recipe) for recipe in named.values()}) == len(study.variants_of(task))


@cases(
    ("text", "name", "table"),
    [
        ("rope", "rope", {"parts": ["rope"]}),
        ("alibi+rope", "alibi+rope", {"parts": ["alibi", "rope"]}),
        ("window:size=8", "window size=8", {"parts": [{"name": "window", "size": 8}]}),
        ("rope+fade:start=0.5,kind=slow", "rope+fade start=0.5 kind=slow",
         {"parts": ["rope", {"name": "fade", "start": 0.5, "kind": "slow"}]}),
        ("alibi+fade:start=1e+3", "alibi+fade start=1000.0", {"parts": ["alibi", {"name": "fade", "start": 1000.0}]}),
        ("recipes/mine.toml", "mine", {"recipe": "recipes/mine.toml"}),
    ],
)  # fmt: skip
def test_variants_as_one_types_them(text: str, name: str, table: dict[str, Any]) -> None:
    assert read_variant(text) == (name, table)


@cases("text", ["", "a++b", "window:", "window:size", "win dow", "a/b"])
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        read_variant(text)


def test_draws_of_ones_own_stay_so_when_a_study_grows(tiny_study: Callable[..., Study]) -> None:
    study = tiny_study(variants={"a": {}, "b": {"seeds_from": 10}})
    assert study.with_seeds(10).seeds == tuple(range(10))
    assert [study.with_seeds(3).seeds_of(variant) for variant in study.variants] == [(0, 1, 2), (10, 11, 12)]
    with pytest.raises(BadInput, match="repeats seeds of the study"):
        study.with_seeds(20)
    with pytest.raises(BadInput, match="the study's own"):
        tiny_study(search={"training.batch": [2, 4], "seeds": [8]}).with_seeds(10)


def test_a_folder_called_like_a_recipe_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "default").mkdir()
    (tmp_path / "study.toml").write_text('variants.a.parts = ["learned"]\nvariants.b.parts = ["rope"]\n')
    assert study_from(load_study(tmp_path / "study.toml")).recipes == ("default",)


def test_a_study_without_test_scores_is_refused(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"scoring\.tests is false"):
        make_plan(tiny_study(set={"scoring.tests": False}), StudyFolder(tmp_path))


@pytest.mark.parametrize(
    ("parts", "what"),
    [
        (["rpoe"], "did you mean 'rope'"),
        ([{"name": "window", "sise": 8}], "sise"),
        (["shift", "shuffle"], "both override"),
    ],
)
def test_a_misspelled_part_is_refused_before_anything_is_read_or_timed(
    tiny_study: Callable[..., Study], tmp_path: Path, parts: list[Any], what: str
) -> None:
    study = tiny_study(data=str(tmp_path / "nowhere"), variants={"learned": {}, "mine": {"parts": parts}})
    with pytest.raises(BadInput, match="variant 'mine'") as refused:
        make_plan(study, StudyFolder(tmp_path / "study"))
    assert what in refused.value.what


def test_a_variant_may_be_on_trial_in_one_task_only(tiny_study: Callable[..., Study], tmp_path: Path) -> None:
    variants = {"learned": {}, "rope": {"parts": ["rope"]}, "none": {"parts": ["none"], "tasks": ["classify"]}}
    study = tiny_study(variants=variants, tasks=["classify", "lm"], seeds=2)
    assert study_from(tomllib.loads(write_study(study))) == study
    plan = make_plan(study, StudyFolder(tmp_path / "study"))
    assert {task: list(named) for task, named in plan.recipes.items()} == {
        "classify": ["learned", "rope", "none"],
        "lm": ["learned", "rope"],
    }
    assert len(plan.trials()) == 10
    assert list(plan.finished("lm")) == ["learned", "rope"]
    variants["learned"] = {"tasks": ["classify"]}
    with pytest.raises(BadInput, match="lm needs the baseline 'learned' and a second variant"):
        tiny_study(variants=variants, tasks=["classify", "lm"])


def test_the_plan_of_a_probe_task_tells_its_differences_in_points(
    tiny_study: Callable[..., Study], tmp_path: Path
) -> None:
    plan = make_plan(tiny_study(tasks=["counting"]), StudyFolder(tmp_path / "study"))
    assert describe(plan, InProcess(), Options(), "").smallest_detectable["counting"].endswith(" points")
