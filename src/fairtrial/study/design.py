"""A study as a value: which variants, on what data, over which seeds; the recipe that each variant comes to; studies as
TOML, and variants as typed on the command line (`rope`, `alibi+rope`, `window:size=8`, `mine.toml`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.errors import BadInput
from fairtrial.prepare import tasks_of
from fairtrial.recipe import (
    BUILT_IN,
    FOLDER_NAME,
    Data,
    Duration,
    PartChoice,
    Recipe,
    apply_overrides,
    at_colon,
    built_in_recipe,
    field_kind,
    load_recipe,
    plain_value,
    read_model,
    read_options,
    read_toml,
    recipe_from,
    split_model,
    to_table,
    toml,
    with_data,
)
from fairtrial.registry import did_you_mean
from fairtrial.statistics.outcomes import LEAST

DEMO = Path(__file__).parents[1] / "studies" / "demo.toml"
HOW = (
    "write a part (rope), its options (window:size=8), several parts (alibi+rope), a recipe file (mine.toml), or a"
    " model (my_model.py:build, hf:GPT2LMHeadModel)"
)


def read_variant(text: str) -> tuple[str, dict[str, Any]]:
    """The name of a variant and its table, as it would stand in a study file."""
    if text.endswith(".toml"):
        return Path(text).stem, {"recipe": text}
    if is_model(text):
        choice = read_model(text)
        return model_name(choice), {"model": to_table(choice)}
    parts = [_part(word, text) for word in re.split(r"\+(?![\d.])", text)]  # 1e+3 is a number
    return "+".join(_name(part) for part in parts), {"parts": parts}


def is_model(text: str) -> bool:
    """`my_model.py`, `my_model.py:build`, `hf:CLASS`"""
    first, colon, _ = at_colon(text)
    return first.endswith(".py") or bool(colon and first == "hf")


def model_name(choice: PartChoice) -> str:
    """A variant's name, fit to be a folder's."""
    first, _, second = at_colon(choice.name)
    name = Path(first).stem if second == "build" else second
    options = (f"{key}={value}" for key, value in choice.options.items() if not isinstance(value, dict | list))
    return re.sub(r"[^\w+=,.()\[\] -]", "-", " ".join((Path(name).name, *options)))[:80].strip()


def _part(word: str, whole: str) -> Any:
    name, colon, options = word.strip().partition(":")
    if not re.fullmatch(r"[\w-]+", name) or (colon and not options):
        raise BadInput(f"{whole!r} is not a variant", HOW)
    return {"name": name, **read_options(options, whole, HOW)} if colon else name


def _name(part: Any) -> str:
    """Readable, and fit to be a folder's name on any system."""
    if isinstance(part, str):
        return part
    return f"{part['name']} " + " ".join(f"{key}={value}" for key, value in part.items() if key != "name")


Settings = Mapping[str, Any]  # recipe fields by their dotted names
METRIC = {"classify": "accuracy", "lm": "perplexity"}  # the tasks that are judged, and by what
# what decides the test items: variants that differ here were not asked the same questions
SHARED_DATA = (
    "source", "format", "presidents", "test", "split_seed", "text_column", "label_column", "split_column",
    "group_column",
)  # fmt: skip
# a token that sees more is easier to predict; other devices, precisions and programs round differently
SHARED_FIELDS = (
    *(("data", name) for name in SHARED_DATA), ("scoring", "full_context"), ("scoring", "exact_bytes"),
    ("training", "device"), ("training", "precision"),
)  # fmt: skip


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
    accept_failed_passport: bool = False
    searched: bool = True  # takes part in the study's search; else it is run as given
    # a second way to run another variant, which the study adds by itself and never writes down
    twin_of: str = ""
    twin: str = ""  # what is different: UNTUNED, or one of BUDGETS that the baseline's was matched
    task_settings: Mapping[str, Settings] = field(default_factory=dict)  # of a matched twin, for each task


@dataclass(frozen=True, kw_only=True)
class Search:
    """Fields to choose on validation, for each variant alike."""

    fields: Settings  # a list of values, or {from, to, scale} for random tries
    random: int | None = None  # so many tries at random; None: the whole grid
    seeds: tuple[int, ...] = (1000,)  # not those of the study
    untuned: bool = True  # judge the variants as given, too, beside the tuned ones


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
    match: str = ""  # one of BUDGETS: judge every variant at the baseline's budget, too

    def variant(self, name: str) -> Variant:
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise BadInput(f"no variant is called {name!r}{did_you_mean(name, [each.name for each in self.variants])}")

    @property
    def judged(self) -> tuple[Variant, ...]:
        """The variants of the main verdict: all but those that are run again untuned."""
        return tuple(variant for variant in self.variants if variant.twin != UNTUNED)

    @property
    def untuned(self) -> dict[str, Variant]:
        """The variants as they were given, by their own names; empty where no search changes them."""
        twins = {variant.twin_of: variant for variant in self.variants if variant.twin == UNTUNED}
        return {variant.name: twins.get(variant.name, variant) for variant in self.own} if twins else {}

    @property
    def own(self) -> tuple[Variant, ...]:
        """The variants that a user named."""
        return tuple(variant for variant in self.variants if not variant.twin)

    def with_twins(self, kind: str, twins: Iterable[Variant]) -> Study:
        """With these instead of all earlier twins of this kind."""
        return replace(self, variants=(*(each for each in self.variants if each.twin != kind), *twins))

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
        if recipe.task != task:
            raise BadInput(f"{variant.recipe} is a recipe for {recipe.task!r}, and the study is about {task!r}")
    recipe = with_data(replace(recipe, name=variant.name), study.data or None)
    if variant.parts is not None:
        recipe = replace(recipe, parts=variant.parts)
    try:
        recipe = recipe if variant.model is None else replace(recipe, model=variant.model)
        own = (variant.settings, chosen or {}, variant.task_settings.get(task, {}))
        return apply_overrides(recipe, study.settings, study.task_settings.get(task, {}), *own)
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
                raise BadInput(
                    what, "variants of one study share it, or they are not comparable; set it for all, under [set]"
                )


KNOWN = (
    "name", "tasks", "recipe", "data", "baseline", "seeds", "least_difference", "sentence", "match", "set", "variants",
    "search",
)  # fmt: skip
UNTUNED = "untuned"
# what may be matched -> the field that is adjusted for it
BUDGETS = {"parameters": "shape.hidden", "flops": "training.duration", "seconds": "training.duration"}
DEVICE = re.compile(r"(?i)(con|prn|aux|nul|(com|lpt)[0-9\xb9\xb2\xb3]) *(\..*)?")  # to Windows; never a folder
OF_A_VARIANT = ("parts", "model", "recipe", "with", "seeds_from", "accept_failed_passport", "search")
DEFAULT_VARIANTS = ("learned", "rope", "alibi")
DEFAULT_SEEDS = 5
LARGEST_STUDY = 10_000  # seeds


def load_study(path: Path) -> dict[str, Any]:
    """A study file's table, its paths seen from where the file stands."""
    if not path.exists():
        raise BadInput(
            "no such study file", "see examples/studies/; `fairtrial study --variants` needs none", path=path
        )
    table = read_toml(path)

    def seen(text: Any) -> Any:
        return str(path.parent / text) if isinstance(text, str) and text and (path.parent / text).exists() else text

    if table.get("data") != "sotu":
        table["data"] = seen(table.get("data", ""))
    recipes = as_list(table.get("recipe", "default"))
    table["recipe"] = [seen(each) if each.endswith(".toml") else each for each in recipes]
    variants = table.get("variants")
    for variant in variants.values() if isinstance(variants, dict) else ():
        if isinstance(variant, dict):
            variant["with"] = [seen(each) for each in as_list(variant.get("with", []))]
            variant["recipe"] = seen(variant.get("recipe", ""))
            if "model" in variant:
                choice = recipe_from({"model": variant["model"]}).model
                first, _, second = at_colon(choice.name)
                there = f"{seen(first)}:{second}" if first.endswith(".py") else f"{first}:{seen(second)}"
                variant["model"] = {"name": there, **choice.options}
    return table


def read_study_table(source: str | None) -> dict[str, Any]:
    """The table of a study file, or of the folder of a study that is to be continued."""
    if source is None:
        return {}
    path = Path(source)
    if os.path.isdir(source):
        path = path / "study.toml"
        if not path.is_file():
            hint = "a study is a folder that `fairtrial study` wrote"
            raise BadInput(f"{source} is not a study (it has no study.toml)", hint)
    elif not source.endswith(".toml"):
        raise BadInput(
            f"{source!r} is neither a study file nor a study's folder",
            "variants are given with --variants, in Python as a list",
        )
    return load_study(path)


def design_study(
    table: dict[str, Any],
    *,
    data: str | None = None,
    task: str | None = None,
    variants: Sequence[Any] | Mapping[str, Any] = (),
    baseline: str | None = None,
    seeds: int | None = None,
    recipe: str | None = None,
    duration: Duration | None = None,
    overrides: Mapping[str, Any] | None = None,
    plugins: Sequence[Path] = (),
    match: str | None = None,
) -> Study:
    """A study file's table with these changes; the options are those of `fairtrial study`."""
    tasks = task and (list(METRIC) if task == "both" else [task])
    given = {"data": data, "recipe": recipe and [recipe], "baseline": baseline, "seeds": seeds, "tasks": tasks}
    given["match"] = match
    if recipe is not None and recipe.endswith(".toml"):
        table = table | {"tasks": []}  # the recipe's own
    if variants:
        table = table | {"variants": variant_tables(variants)}
        table.pop("baseline", None)
    table = table | {key: value for key, value in given.items() if value is not None}
    add_overrides(table, dict(overrides or {}) | ({} if duration is None else {"training.duration": str(duration)}))
    return complete_study(table, plugins)


def variant_tables(variants: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The tables of variants: texts as on the command line, parts, lists of parts, recipes; with names of their own if
    they are a dict."""
    if isinstance(variants, Mapping):
        return {name: variant_of(value)[1] for name, value in variants.items()}
    found: dict[str, Any] = {}
    for value in variants:
        name, table = variant_of(value)
        if name in found:
            hint = "a second copy with its own seeds is written in a study file (seeds_from)"
            raise BadInput(f"the variant {name!r} is given twice", hint)
        found[name] = table
    return found


def variant_of(value: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(value, str | Path):
        return read_variant(str(value))
    if isinstance(value, Recipe):
        table = to_table(value)
        sections = {key: each for key, each in table.items() if isinstance(each, dict) and key not in ("data", "model")}
        fields = {f"{key}.{name}": each for key, inner in sections.items() for name, each in inner.items()}
        network = {"model": value.model} if value.external else {"parts": to_table(value)["parts"]}
        return value.name or "recipe", {**network, **fields}
    if isinstance(value, Mapping) and "name" not in value:
        return "variant", dict(value)  # as in a study file
    if callable(value) and not hasattr(value, "choice"):
        from fairtrial.plugins import register_written

        choice = PartChoice(name=register_written(value))
        return value.__name__, {"model": choice}
    parts = [plain_value(each) for each in (value if isinstance(value, list | tuple) else [value])]
    if not all(isinstance(each, str) or (isinstance(each, dict) and "name" in each) for each in parts):
        raise BadInput(f"{value!r} is not a variant", HOW)
    return "+".join(map(_name, parts)) or "none", {"parts": parts}


def add_overrides(table: dict[str, Any], overrides: Settings) -> None:
    """As in the study's [set]; they hold for every task."""
    for name, value in overrides.items():
        field_kind(name)  # refused where a recipe has no such field
        if name == "task":
            raise BadInput("a study's task is given by --task")
        table.setdefault("set", {})[name] = value
        for task in METRIC:
            table["set"].get(task, {}).pop(name, None)


def complete_study(table: dict[str, Any], plugins: Sequence[Path] = ()) -> Study:
    """The study of a table: tasks that fit the data unless it names some, and plugin files for all variants."""
    if isinstance(table.get("data", ""), dict):
        raise BadInput("this is a recipe, not a study", "a variant may be a recipe file: --variants learned mine.toml")
    recipes = as_list(table.get("recipe", "default"))
    if not table.get("tasks") and table.get("data") and not any(name.endswith(".toml") for name in recipes):
        format_ = table.get("set", {}).get("data.format", "auto")
        table = table | {"tasks": list(tasks_of(Data(source=table["data"], format=format_)))}
    study = study_from(table)
    files = tuple(located(str(path)) for path in plugins)
    variants = tuple(replace(variant, plugins=(*variant.plugins, *files)) for variant in study.variants)
    return replace(study, variants=variants)


def with_written(study: Study, files: Mapping[str, Path]) -> Study:
    """Variants with the files of the parts that they use, of those that were written in a notebook (by file name)."""

    def plugins_of(variant: Variant) -> tuple[str, ...]:
        recipes = [recipe_of(study, task, variant) for task in study.tasks]
        used = {f"{choice.name}.py" for recipe in recipes for choice in recipe.parts}
        used |= {recipe.model.name.partition(":")[0] for recipe in recipes}
        own = (located(str(path)) for name, path in files.items() if name in used)
        return tuple(dict.fromkeys((*variant.plugins, *own)))

    return replace(study, variants=tuple(replace(each, plugins=plugins_of(each)) for each in study.variants))


def study_from(table: Mapping[str, Any]) -> Study:
    check_known(table, KNOWN, "a study")
    recipes = tuple(as_list(table.get("recipe", "default")))
    tables = table.get("variants") or list(DEFAULT_VARIANTS)
    if isinstance(tables, list) and all(isinstance(each, str) for each in tables):
        tables = variant_tables(tables)
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise BadInput('variants must be tables, [variants.rope], or a list, variants = ["learned", "rope"]')
    variants = tuple(variant_from(name, each) for name, each in tables.items())
    if len({variant.name.lower() for variant in variants}) < len(variants):
        raise BadInput("two variants share a name (upper and lower case are the same to some disks)")
    if len(variants) < 2:
        raise BadInput("a study compares at least two variants", "--variants learned rope")
    names = [variant.name for variant in variants]
    baseline = typed(table, "baseline", str, names[0])
    if baseline not in names:
        raise BadInput(f"baseline = {baseline!r} is not a variant{did_you_mean(baseline, names)}")
    tasks = tuple(as_list(table.get("tasks", [])) or base_recipes(recipes))
    for task in tasks:
        if task not in METRIC:
            raise BadInput(f"a study cannot be about {task!r}{did_you_mean(str(task), list(METRIC))}")
    data = typed(table, "data", str, "")
    settings = typed(table, "set", dict, {})
    return Study(
        name=typed(table, "name", str, " vs ".join(names)),
        tasks=tuple(dict.fromkeys(tasks)),
        recipes=tuple(located(name) if name.endswith(".toml") else name for name in recipes),
        data=data if data in ("", "sotu") else located(data),
        variants=variants,
        baseline=baseline,
        seeds=seeds_from(table.get("seeds", DEFAULT_SEEDS), "seeds"),
        settings={key: value for key, value in settings.items() if key not in METRIC},
        task_settings={task: typed(settings, task, dict, {}) for task in METRIC if task in settings},
        least_difference=least_from(typed(table, "least_difference", dict, {})),
        sentence=typed(table, "sentence", str, ""),
        search=search_from(typed(table, "search", dict, {}), tasks),
        match=match_from(typed(table, "match", str, ""), table.get("search", {})),
    ).checked()


def match_from(budget: str, search: Mapping[str, Any]) -> str:
    if budget and budget not in BUDGETS:
        raise BadInput(f"match = {budget!r} is not a budget{did_you_mean(budget, list(BUDGETS))}", ", ".join(BUDGETS))
    if budget and BUDGETS[budget] in search:
        what = f"match = {budget!r} adjusts {BUDGETS[budget]}, which [search] chooses"
        raise BadInput(what, "leave one of them out")
    return budget


def variant_from(name: str, table: dict[str, Any]) -> Variant:
    if not FOLDER_NAME.fullmatch(name) or DEVICE.fullmatch(name):
        hint = "letters, digits and + - = , ( ) are fine: it becomes a folder's name, also on Windows"
        raise BadInput(f"{name!r} cannot be a variant's name", hint)
    settings = {key: value for key, value in table.items() if key not in OF_A_VARIANT}
    for key, value in settings.items():
        if isinstance(value, dict):
            hint = f'quote a field\'s dots: "{key}.{next(iter(value), "x")}" = ...'
            raise BadInput(f"variant {name!r}: {key!r} is a table", hint)
        if "." not in key:
            what = f"variant {name!r} has no field {key!r}{did_you_mean(key, list(OF_A_VARIANT))}"
            raise BadInput(what, 'fields of its recipe are written with a dot: "training.learning_rate" = 3e-4')
    parts = recipe_from({"parts": table["parts"]}).parts if "parts" in table else None
    start = table.get("seeds_from")
    if start is not None and (type(start) is not int or start < 0):
        raise BadInput(f"variant {name!r}: seeds_from = {start!r} must be a whole number from 0")
    recipe = typed(table, "recipe", str, "")
    plugins = [located(each) for each in as_list(table.get("with", []))]
    model = table.get("model")  # as a value: it was written in a notebook, and has no file yet
    if model is not None and parts:
        raise BadInput(f"variant {name!r}: a model has no parts of ours", "leave one of them out")
    if model is not None and not isinstance(model, PartChoice):
        model = recipe_from({"model": model}).model
        model, files = split_model(model)
        names = [Path(each).name for each in plugins]
        plugins += [located(file) for file in files if file not in names]  # a stored study names it under `with`
    return Variant(
        name=name,
        parts=parts,
        model=model,
        recipe=located(recipe) if recipe else "",
        plugins=tuple(plugins),
        settings=settings,
        seeds_from=start,
        accept_failed_passport=typed(table, "accept_failed_passport", bool, False),
        searched=typed(table, "search", bool, True),
    )


def check_seed_count(seeds: int) -> None:
    if seeds > LARGEST_STUDY:
        raise BadInput(f"a study has at most {LARGEST_STUDY:,} seeds, got {seeds:,}")


def seeds_from(value: Any, name: str) -> tuple[int, ...]:
    if type(value) is int:
        check_seed_count(value)
    if type(value) is int and value > 0:
        return tuple(range(value))
    if isinstance(value, list) and value and all(type(each) is int and each >= 0 for each in value):
        if len(set(value)) == len(value):
            return tuple(value)
        raise BadInput(f"{name} = {value!r}: a seed occurs twice")
    raise BadInput(f"{name} = {value!r} must be a number of seeds, or a list of them")


def least_from(table: dict[str, Any]) -> dict[str, float]:
    check_known(table, LEAST, "least_difference")
    for name, value in table.items():
        if type(value) not in (int, float) or not value > 0:
            raise BadInput(f"least_difference.{name} = {value!r} must be a number above 0")
    return LEAST | {name: float(value) for name, value in table.items()}


def search_from(table: dict[str, Any], tasks: Iterable[str]) -> Search | None:
    if not table:
        return None
    fields = {name: value for name, value in table.items() if "." in name}
    check_known({key: 0 for key in table if key not in fields}, ("random", "seeds", UNTUNED), "[search]")
    random = table.get("random")
    if random is not None and (type(random) is not int or random < 1):
        raise BadInput(f"search.random = {random!r} must be a number of tries")
    for name, value in fields.items():
        is_range = isinstance(value, dict) and {"from", "to"} <= value.keys() <= {"from", "to", "scale"}
        if not (isinstance(value, list) and value) and not (is_range and random):
            hint = 'give a list of values, or {from = 1e-4, to = 1e-2, scale = "log"} together with random = 8'
            raise BadInput(f"search: {name} = {value!r} has no values to try", hint)
        if is_range:
            check_range(name, value)
        if name.startswith("data."):
            hint = "a search chooses how to train; set it for all, under [set]"
            raise BadInput(f"search: {name} decides what is read, so nothing would be comparable", hint)
        if name.startswith("tokens.") and "lm" in tasks:
            hint = "make variants of it: where no word is unknown they are compared by bits per byte"
            raise BadInput(f"search: {name} changes what a token is, and with it perplexity", hint)
    if not fields:
        raise BadInput("[search] names no field", '"training.learning_rate" = [1e-3, 3e-4]')
    seeds = seeds_from(table.get("seeds", [1000]), "search.seeds")
    return Search(fields=fields, random=random, seeds=seeds, untuned=typed(table, UNTUNED, bool, True))


def check_range(name: str, value: Mapping[str, Any]) -> None:
    low, high, scale = value["from"], value["to"], value.get("scale", "linear")
    if not all(type(each) in (int, float) for each in (low, high)) or not low < high:
        raise BadInput(f"search: {name} = {value!r} must range from a number to a larger one")
    if scale not in ("log", "linear"):
        raise BadInput(f"search: {name}: scale = {scale!r} must be log or linear")
    if scale == "log" and low <= 0:
        raise BadInput(f"search: {name} = {value!r}: a log scale must start above 0")


def typed(table: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = table.get(name, default)
    if not isinstance(value, kind):
        type_name = {str: "text", dict: "a table", bool: "true or false"}[kind]
        raise BadInput(f"{name} = {value!r} must be {type_name}")
    return value


def check_known(table: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            raise BadInput(f"{what} has no field {key!r}{did_you_mean(key, known)}", f"there is: {', '.join(known)}")


def as_list(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    for each in values:
        if not isinstance(each, str):
            raise BadInput(f"{each!r} must be text")
    return [each for each in values if each]


def located(name: str) -> str:
    """The absolute path, so that a study can be resumed from anywhere."""
    return str(Path(name).expanduser().resolve())


def write_study(study: Study) -> str:
    """The whole study as TOML; reading it gives the same study."""
    lines = [
        f"name = {toml(study.name)}",
        f"tasks = {toml(list(study.tasks))}",
        f"recipe = {toml(list(study.recipes))}",
        *([f"data = {toml(study.data)}"] if study.data else []),
        f"baseline = {toml(study.baseline)}",
        f"seeds = {toml(list(study.seeds))}",
        f"least_difference = {toml(dict(study.least_difference))}  # points of accuracy; nats per token",
        *([f"sentence = {toml(study.sentence)}"] if study.sentence else []),
        *([f"match = {toml(study.match)}"] if study.match else []),
    ]
    if study.settings:
        lines += ["", "[set]  # for all variants", *_lines(study.settings)]
    for task, settings in study.task_settings.items():
        lines += ["", f"[set.{task}]", *_lines(settings)]
    for variant in study.own:
        lines += ["", f"[variants.{toml(variant.name)}]", *_variant_lines(variant)]
    if study.search:
        untuned = None if study.search.untuned else False
        own = {"random": study.search.random, "seeds": list(study.search.seeds), UNTUNED: untuned}
        lines += ["", "[search]  # on validation only", *_lines({**study.search.fields, **own})]
    return "\n".join(lines) + "\n"


def _variant_lines(variant: Variant) -> list[str]:
    fields = {
        "parts": None if variant.parts is None else to_table(Recipe(parts=variant.parts))["parts"],
        "model": None if variant.model is None else to_table(variant.model),
        "recipe": variant.recipe or None,
        "with": list(variant.plugins) or None,
        "seeds_from": variant.seeds_from,
        "accept_failed_passport": variant.accept_failed_passport or None,
        "search": None if variant.searched else False,
    }
    return _lines({**fields, **variant.settings})


def _lines(fields: Settings) -> list[str]:
    named = ((toml(name) if "." in name else name, value) for name, value in fields.items() if value is not None)
    return [f"{name} = {toml(value)}" for name, value in named]
