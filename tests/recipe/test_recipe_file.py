"""Recipes as TOML: what is written reads the same, what is wrong is named with its file and what was meant."""

from __future__ import annotations

import math
import tomllib
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import BadInput
from fairtrial.recipe import (
    REMOVED_FIELDS,
    Data,
    Duration,
    PartChoice,
    Recipe,
    Scoring,
    Shape,
    Tokens,
    Training,
    built_in_recipe,
    fingerprint,
    load_recipe,
    recipe_from,
    with_settings,
    write_recipe,
)
from sampling import cases

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
part_names = words.filter(lambda name: ":" not in name)  # options follow it
shares = st.floats(0, 1)
positive = st.floats(1e-300, math.inf)
durations = st.builds(Duration, st.integers(1, 10**9).map(float), st.sampled_from(["epochs", "steps"]))
values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
options = st.dictionaries(words.filter(lambda key: key != "name"), values, max_size=3)
recipes = st.builds(
    Recipe,
    task=st.sampled_from(["classify", "lm"]),
    name=words,
    data=st.builds(Data, source=words, presidents=st.lists(words, max_size=3).map(tuple), validation=shares),
    tokens=st.builds(Tokens, kind=words, min_count=st.integers(-(2**63) + 1, 2**63 - 1), lowercase=st.booleans()),
    shape=st.builds(
        Shape, layers=st.integers(1, 10**6), heads=st.just(4), width=st.integers(1, 99).map(lambda n: 4 * n)
    ),
    parts=st.lists(st.builds(PartChoice, name=part_names, options=options), max_size=3).map(tuple),
    training=st.builds(Training, duration=durations, learning_rate=positive, clip=positive),
    scoring=st.builds(Scoring, curve_every=durations, watch_test=st.booleans(), full_context=shares),
)


@given(recipes)
@settings(max_examples=150)
def test_any_recipe_survives_being_written_and_read(recipe: Recipe) -> None:
    back = recipe_from(tomllib.loads(write_recipe(recipe)))
    assert back == recipe
    assert fingerprint(back) == fingerprint(recipe)


def test_every_written_line_says_what_it_is() -> None:
    for line in write_recipe(Recipe()).splitlines():
        assert not line or line.partition("  # ")[2], f"{line!r} has no help"


@cases(
    ("text", "said"),
    [
        ("tsak = 'lm'", "a recipe has no field 'tsak'; did you mean 'task'?"),
        ("[shape]\nhaeds = 2", "a recipe has no field 'shape.haeds'; did you mean 'shape.heads'?"),
        ("[shpe]\nheads = 2", "a recipe has no field 'shpe'; did you mean 'shape'?"),
        ("shape = 3", "shape must be a table"),
        ("[shape]\nheads = 'two'", "shape.heads = 'two' must be a whole number"),
        ("[shape]\nheads = 2.0", "shape.heads = 2.0 must be a whole number"),
        ("[shape]\nheads = true", "shape.heads = True must be a whole number"),
        ("[shape]\ndropout = 'no'", "shape.dropout = 'no' must be a number"),
        ("[shape]\ndropout = 2", "shape.dropout = 2.0 is not between 0 and 1"),
        ("[shape]\nheads = 3", "shape.width = 64 is not divisible by shape.heads = 3"),
        ("[shape]\nlayers = 0", "shape.layers must be at least 1, got 0"),
        ("[shape]\nnorm = 'layr'", "shape.norm = 'layr' is not known; did you mean 'layer'?"),
        ("[tokens]\nlowercase = 1", "tokens.lowercase = 1 must be true or false"),
        ("[data]\nsource = 5", "data.source = 5 must be text"),
        ("[data]\npresidents = 'obama'", "data.presidents = 'obama' must be a list"),
        ("[training]\nduration = 5", "training.duration: 5 is not a duration of training"),
        ("[training]\nlearning_rate = 0", "training.learning_rate must be positive, got 0.0"),
        ("[training]\nlearning_rate = nan", "training.learning_rate must be positive, got nan"),
        ("[training]\nwarmup_steps = -1", "training.warmup_steps must be at least 0, got -1"),
        ("parts = [5]", "parts: a part is a name or a table with a name"),
        ("parts = [{size = 8}]", "parts: a part is a name or a table with a name"),
        ("parts = [{name = 'a', when = [2020-01-01]}]", "parts: 2020-01-01 is a date; parts take numbers"),
        ("task = ", "not valid TOML"),
        ("a = " + "[" * 100_000, "not valid TOML"),
        ("a = " + "9" * 5000, "not valid TOML"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        load_recipe(path)
    assert refused.value.what.startswith(f"{path}: {said}")


def test_a_whole_number_is_taken_where_a_number_is_wanted() -> None:
    rate = recipe_from({"training": {"learning_rate": 1}}).training.learning_rate
    assert rate == 1.0
    assert type(rate) is float


@cases(
    ("setting", "path", "value"),
    [
        ("shape.heads=4", "shape.heads", 4),
        ("training.learning_rate=3e-4", "training.learning_rate", 3e-4),
        ("training.learning_rate=1", "training.learning_rate", 1.0),
        ("training.clip=inf", "training.clip", math.inf),
        ("tokens.lowercase=true", "tokens.lowercase", True),
        ("name=my first try", "name", "my first try"),
        ("name='quoted'", "name", "quoted"),
        ("name=", "name", ""),
        ("name=a=b", "name", "a=b"),
        ("data.source=2024", "data.source", "2024"),
        ("data.source=true", "data.source", "true"),
        ("data.source=a # b", "data.source", "a # b"),
        (" shape.heads = 4 ", "shape.heads", 4),
        ("data.presidents=obama", "data.presidents", ("obama",)),
        ("data.presidents=obama, trump", "data.presidents", ("obama", "trump")),
        ('data.presidents=["obama"]', "data.presidents", ("obama",)),
        ("training.duration=5 epochs", "training.duration", Duration(5, "epochs")),
        ("training.duration='7 steps'", "training.duration", Duration(7, "steps")),
        ("parts=rope,alibi", "parts", (PartChoice(name="rope"), PartChoice(name="alibi"))),
        ("parts=[]", "parts", ()),
        ('parts=[{name="window", size=8}]', "parts", (PartChoice(name="window", options={"size": 8}),)),
    ],
)
def test_a_setting_becomes_the_type_that_its_field_wants(setting: str, path: str, value: Any) -> None:
    found: Any = with_settings(Recipe(), [setting])
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value
    assert type(found) is type(value)


def test_later_settings_win_and_others_stay() -> None:
    recipe = with_settings(Recipe(), ["shape.heads=4", "shape.heads=8", "training.batch=5"])
    assert (recipe.shape.heads, recipe.training.batch, recipe.shape.layers) == (8, 5, Recipe().shape.layers)


@cases(
    ("setting", "said"),
    [
        ("shape.haeds=4", "'shape.haeds'; did you mean 'shape.heads'"),
        ("shap.heads=4", "'shap.heads'; did you mean 'shape.heads'"),
        ("shape.heads", "has no '='"),
        ("shape=4", "'shape' is a table"),
        ("name.first=x", "a recipe has no field 'name.first'"),
        ("shape.heads=two", "'two' must be a whole number"),
        ("training.duration=5", "training.duration: 5 is not a duration"),
        ("data.presidents=[1]", "must be text"),
    ],
)
def test_a_wrong_setting_is_refused(setting: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        with_settings(Recipe(), [setting])
    assert said in refused.value.what


CHOICES: dict[str, tuple[Any, Any]] = {
    "task": ("lm", "classify"), "format": ("text", "auto"), "windows": ("every", "disjoint"), "kind": ("bpe", "word"),
    "fit": ("course", "train"), "activation": ("gelu", "relu"), "norm": ("rms", "layer"), "start": ("small", "torch"),
    "optimizer": ("sgd", "adam"), "schedule": ("linear", "constant"), "keep": ("last", "best"),
    "presidents": (("trump",), ()), "parts": ((PartChoice(name="rope"),), ()), "width": (128, 64), "heads": (4, 2),
    "classifier_activation": ("tanh", "relu"), "norm_place": ("post", "pre"),
    "dropout": (0.3, 0.2), "clip": (1.0, 2.0), "device": ("cpu", "auto"),
    "precision": ("bfloat16", "float32"),
}  # fmt: skip


def changed(name: str, value: Any) -> Any:
    """Another value of the same kind, whatever the default is."""
    if name in CHOICES:
        return next(choice for choice in CHOICES[name] if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, Duration):
        return Duration(value.count + 1, value.unit)
    if isinstance(value, dict):
        return value | {"width": 3}
    return value / 2 + 0.25 if isinstance(value, float) else value * 2 + 2 if isinstance(value, int) else value + "x"


def variants() -> dict[str, Recipe]:
    """The default recipe with one field changed, for every field there is."""
    found, plain = {}, Recipe()
    for section in fields(Recipe):
        inner = getattr(plain, section.name)
        if not is_dataclass(inner):
            found[section.name] = replace(plain, **{section.name: changed(section.name, inner)})
            continue
        for each in fields(inner):  # type: ignore[arg-type]
            other = replace(inner, **{each.name: changed(each.name, getattr(inner, each.name))})
            found[f"{section.name}.{each.name}"] = replace(plain, **{section.name: other})
    return found


def test_every_field_changes_the_fingerprint_but_the_name_and_the_datas_place() -> None:
    recipes = variants()
    assert len(recipes) > 40
    assert all(recipe != Recipe() for recipe in recipes.values())
    same = {name for name, recipe in recipes.items() if fingerprint(recipe) == fingerprint(Recipe())}
    assert same == {"name", "data.source", "model.options"}  # options of a model that none has
    assert len({fingerprint(recipe) for recipe in recipes.values()}) == len(recipes) - 2


def test_fields_that_came_later_do_not_change_the_fingerprint_of_earlier_records() -> None:
    assert fingerprint(built_in_recipe("course", "lm")) == "0b80c58ef9720eba"  # as it was before devices and strides


def test_fields_of_version_0_2_that_changed_nothing_are_ignored_and_others_refused() -> None:
    unused = {"training": {"distill": 0.0, "word_dropout": 0.0}, "data": {"pretraining": "", "pretraining_share": 0.8}}
    assert recipe_from(unused) == recipe_from({})
    for (section, name), value in REMOVED_FIELDS.items():
        assert recipe_from({section: {name: value}}) == Recipe()
        if (section, name) != ("training", "save_memory"):
            with pytest.raises(BadInput, match=rf"{section}\.{name} was removed after version 0\.2\.0"):
                recipe_from({section: {name: 7}})
    with pytest.raises(BadInput, match=r"training\.distill was removed after version 0\.2\.0: 0\.5"):
        recipe_from({"training": {"distill": 0.5}})
    with pytest.raises(BadInput, match=r"no field 'distil'|distil"):
        recipe_from({"training": {"distil": 0.0}})
