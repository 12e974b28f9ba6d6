"""A study as a value: which variants, on what data, over which seeds; and the recipe that each variant comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.recipe import BUILT_IN, PROBES, PartChoice, Recipe, built_in_recipe, load_recipe, with_changes, with_data
from fairtrial.registry import did_you_mean
from fairtrial.statistics.outcomes import LEAST
from fairtrial.stored import Settings

METRIC = {"classify": "accuracy", "lm": "perplexity"}  # the tasks that are judged, and by what
METRIC |= {probe: METRIC[task] for probe, task in PROBES.items()}
# what decides the test items: variants that differ here were not asked the same questions
SHARED_DATA = "source format presidents test text_column label_column split_column group_column".split()
# a token that sees more is easier to predict; other devices, precisions and programs round differently
SHARED_FIELDS = [("data", name) for name in SHARED_DATA]
SHARED_FIELDS += [("scoring", "full_context")]
SHARED_FIELDS += [("training", "device"), ("training", "precision")]
LARGEST_STUDY = 10_000  # seeds


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One idea on trial."""

    name: str
    parts: tuple[PartChoice, ...] | None = None  # None: the recipe's own
    model: PartChoice | None = None  # a network of the user's own; its file is one of the plugins
    recipe: str = ""  # a recipe file of its own
    plugins: tuple[str, ...] = ()  # files that bring its parts
    settings: Settings = field(default_factory=dict)
    seeds_from: int | None = None  # seeds of its own, so not paired
    accept_failed_audit: bool = False
    tasks: tuple[str, ...] = ()  # it is on trial in; empty: all of the study
    searched: bool = True  # takes part in the study's search; else it is run as given


@dataclass(frozen=True, kw_only=True)
class Search:
    """Fields to choose on validation, for each variant alike."""

    tune: bool = False  # the learning rate, on a grid that is extended; no fields then
    fields: Settings = field(default_factory=dict)  # a list of values, or {from, to, scale} for random tries
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
    endpoint: Mapping[str, str] = field(default_factory=dict)  # task -> the test set that decides; else their mean
    search: Search | None = None

    def variant(self, name: str) -> Variant:
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise BadInput(f"no variant is called {name!r}{did_you_mean(name, [each.name for each in self.variants])}")

    def variants_of(self, task: str) -> tuple[Variant, ...]:
        return tuple(variant for variant in self.variants if not variant.tasks or task in variant.tasks)

    def seeds_of(self, variant: Variant) -> tuple[int, ...]:
        """The seeds that a variant runs with, in the order in which they are paired."""
        if variant.seeds_from is None:
            return self.seeds
        return tuple(range(variant.seeds_from, variant.seeds_from + len(self.seeds)))

    def with_seeds(self, count: int) -> Study:
        """The first seeds, or more of them."""
        check_seed_count(count)
        unused = [seed for seed in range(count + len(self.seeds)) if seed not in self.seeds]
        return replace(self, seeds=(*self.seeds, *unused)[:count]).checked()

    def checked(self) -> Study:
        """Itself, after checking that seeds of a variant's or a search's own are not the study's."""
        last = max(self.seeds)
        for variant in self.variants:
            if variant.seeds_from is not None and variant.seeds_from <= last:
                what = f"variant {variant.name!r}: seeds_from = {variant.seeds_from} repeats seeds of the study"
                raise BadInput(what, f"take one above {last}, the last of the study's seeds")
        for task in self.tasks:
            few = len(own := self.variants_of(task)) < min(2, len(self.variants))
            if few or self.baseline not in (variant.name for variant in own):
                raise BadInput(f"{task} needs the baseline {self.baseline!r} and a second variant", "see their `tasks`")
        used = {seed for variant in self.variants for seed in self.seeds_of(variant)}
        if self.search and used & set(self.search.seeds):
            hint = f"seeds of the search must differ from those that are judged: take seeds above {max(used)}"
            raise BadInput(f"search.seeds = {list(self.search.seeds)}: some of them are the study's own", hint)
        return self


def base_recipes(recipes: tuple[str, ...]) -> dict[str, Recipe]:
    """The recipe of each task that the names or files stand for."""
    found: dict[str, Recipe] = {}
    for name in recipes:
        if name.endswith(".toml"):
            recipe = load_recipe(Path(name))
            if recipe.task in found:
                what = f"two recipes for the task {recipe.task!r}: {', '.join(recipes)}"
                raise BadInput(what, "give one for each task")
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
        if recipe.task != PROBES.get(task, task):
            raise BadInput(f"{variant.recipe} is a recipe for {recipe.task!r}, and the study is about {task!r}")
    recipe = with_data(replace(recipe, name=variant.name), study.data or None)
    if variant.parts is not None:
        recipe = replace(recipe, parts=variant.parts)
    try:
        recipe = recipe if variant.model is None else replace(recipe, model=variant.model)
        return with_changes(recipe, study.settings, study.task_settings.get(task, {}), variant.settings, chosen or {})
    except BadInput as error:
        raise BadInput(f"variant {variant.name!r}: {error.what}", error.hint) from error


def check_same_items(recipes: Mapping[str, Recipe]) -> None:
    """Variants are compared on the same test items or not at all."""
    first_name, first = next(iter(recipes.items()))
    for name, recipe in recipes.items():
        for table, each in SHARED_FIELDS:
            one, other = (getattr(getattr(found, table), each) for found in (first, recipe))
            if one != other:
                what = f"variants {first_name!r} and {name!r} differ in {table}.{each} ({one!r} and {other!r})"
                raise BadInput(what, "all variants must share it to be comparable; set it for all, under [set]")


def check_seed_count(seeds: int) -> None:
    if seeds > LARGEST_STUDY:
        raise BadInput(f"a study has at most {LARGEST_STUDY:,} seeds, got {seeds:,}")


def with_written(study: Study, files: Mapping[str, Path]) -> Study:
    """Variants with the files of the parts that they use, of those that were written in a notebook (by file name)."""

    def plugins_of(variant: Variant) -> tuple[str, ...]:
        recipes = [recipe_of(study, task, variant) for task in variant.tasks or study.tasks]
        used = {f"{choice.name}.py" for recipe in recipes for choice in recipe.parts}
        used |= {recipe.model.name.partition(":")[0] for recipe in recipes}
        used |= {f"{recipe.training.optimizer}.py" for recipe in recipes}
        own = (located(str(path)) for name, path in files.items() if name in used)
        return tuple(dict.fromkeys((*variant.plugins, *own)))

    return replace(study, variants=tuple(replace(each, plugins=plugins_of(each)) for each in study.variants))


def located(name: str) -> str:
    """The absolute path, so that a study can be resumed from anywhere."""
    return str(Path(name).expanduser().resolve())
