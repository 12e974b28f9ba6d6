"""A study as a value: which variants, on what, how often. And the recipe that each variant comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.names import near
from fairtrial.recipe import PartChoice, Recipe
from fairtrial.recipe_file import BUILT_IN, built_in_recipe, load_recipe, toml, with_settings

Settings = Mapping[str, Any]  # recipe fields by their dotted names
LEAST = {"accuracy": 1.0, "perplexity": 0.01}  # points; nats per token
METRIC = {"classify": "accuracy", "lm": "perplexity"}  # the tasks that are judged, and by what
# what decides the test items: variants that differ here were not asked the same questions
SHARED_DATA = ("source", "format", "presidents", "test", "split_seed")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One idea on trial."""

    name: str
    parts: tuple[PartChoice, ...] | None = None  # None: the recipe's own
    recipe: str = ""  # a recipe file of its own
    strangers: tuple[str, ...] = ()  # files that bring its parts
    settings: Settings = field(default_factory=dict)
    seeds_from: int | None = None  # draws of its own, so not paired
    accept_failed_passport: bool = False
    searched: bool = True  # takes part in the study's search; else it is run as given


@dataclass(frozen=True, kw_only=True)
class Search:
    """Fields to choose on validation, for each variant alike."""

    fields: Settings  # a list of values, or {from, to, scale} for random tries
    random: int | None = None  # so many tries at random; None: the whole grid
    seeds: tuple[int, ...] = (1000,)  # not those of the study


@dataclass(frozen=True, kw_only=True)
class Study:
    name: str
    tasks: tuple[str, ...]
    variants: tuple[Variant, ...]
    baseline: str
    seeds: tuple[int, ...]
    recipes: tuple[str, ...] = ("default",)
    data: str = ""  # empty: what the recipe says
    settings: Settings = field(default_factory=dict)
    task_settings: Mapping[str, Settings] = field(default_factory=dict)  # for one task only
    least_difference: Mapping[str, float] = field(default_factory=lambda: dict(LEAST))
    sentence: str = ""  # for the attention maps; empty: one of the test set's
    search: Search | None = None

    def variant(self, name: str) -> Variant:
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise BadInput(f"no variant is called {name!r}{near(name, [each.name for each in self.variants])}")

    def seeds_of(self, variant: Variant) -> tuple[int, ...]:
        """The seeds that a variant runs with, in the order in which they are paired."""
        if variant.seeds_from is None:
            return self.seeds
        return tuple(range(variant.seeds_from, variant.seeds_from + len(self.seeds)))

    def with_seeds(self, count: int) -> Study:
        """The first seeds, or more of them."""
        unused = [seed for seed in range(count + len(self.seeds)) if seed not in self.seeds]
        return replace(self, seeds=(*self.seeds, *unused)[:count]).checked()

    def checked(self) -> Study:
        """Itself. Draws that are to be their own must not be the study's, however many seeds it has grown to."""
        last = max(self.seeds)
        for variant in self.variants:
            if variant.seeds_from is not None and variant.seeds_from <= last:
                what = f"variant {variant.name!r}: seeds_from = {variant.seeds_from} is no draw of its own"
                raise BadInput(what, f"take one above {last}, the last of the study's seeds")
        used = {seed for variant in self.variants for seed in self.seeds_of(variant)}
        if self.search and used & set(self.search.seeds):
            what = f"search.seeds = {list(self.search.seeds)}: some of them are the study's own"
            raise BadInput(what, f"what chooses must not be what is judged: take seeds above {max(used)}")
        return self


def base_recipes(recipes: tuple[str, ...]) -> dict[str, Recipe]:
    """The recipe of each task that the names or files stand for."""
    found: dict[str, Recipe] = {}
    for name in recipes:
        if name.endswith(".toml"):
            recipe = load_recipe(Path(name))
            if recipe.task in found:
                raise BadInput(
                    f"two recipes for the task {recipe.task!r}: {', '.join(recipes)}", "give one for each task"
                )
            found[recipe.task] = recipe
        else:
            there = [task for task in METRIC if (BUILT_IN / f"{name}-{task}.toml").is_file()]
            found |= {task: built_in_recipe(name, task) for task in there or METRIC}
    return found


def recipe_of(study: Study, task: str, variant: Variant, chosen: Settings | None = None) -> Recipe:
    """What a variant trains on a task. `chosen`: what a search found."""
    bases = base_recipes(study.recipes)
    if task not in bases:
        raise BadInput(f"there is no recipe for the task {task!r}", f"the recipes given are for: {', '.join(bases)}")
    recipe = bases[task]
    if variant.recipe:
        recipe = load_recipe(Path(variant.recipe))
        if recipe.task != task:
            raise BadInput(f"{variant.recipe} is a recipe for {recipe.task!r}, and the study is about {task!r}")
    if study.data:
        recipe = replace(recipe, data=replace(recipe.data, source=study.data))
    if variant.parts is not None:
        recipe = replace(recipe, parts=variant.parts)
    recipe = replace(recipe, name=variant.name)
    try:
        return settled(recipe, study.settings, study.task_settings.get(task, {}), variant.settings, chosen or {})
    except BadInput as error:
        raise BadInput(f"variant {variant.name!r}: {error.what}", error.hint) from error


def settled(recipe: Recipe, *settings: Settings) -> Recipe:
    return with_settings(recipe, [f"{name}={toml(value)}" for each in settings for name, value in each.items()])


def refuse_other_items(recipes: Mapping[str, Recipe]) -> None:
    """Variants are compared on the same test items or not at all."""
    first_name, first = next(iter(recipes.items()))
    for name, recipe in recipes.items():
        for each in SHARED_DATA:
            one, other = getattr(first.data, each), getattr(recipe.data, each)
            if one != other:
                what = f"variants {first_name!r} and {name!r} differ in data.{each} ({one!r} and {other!r})"
                raise BadInput(what, "variants of one study share their test items; set it for all, under [set]")
