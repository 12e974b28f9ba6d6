"""`fairtrial study`: variants x seeds -> one verdict and one page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.train import stopping

if TYPE_CHECKING:
    from fairtrial.engines.job import Engine
    from fairtrial.study.design import Study
    from fairtrial.study.run import Wishes


def study(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A study file (TOML), or the folder of a study to go on with. Default: the embedded corpus.",
            metavar="STUDY.toml|FOLDER",
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="A file or folder of text, or 'sotu' (embedded).", metavar="PATH")
    ] = None,
    task: Annotated[str | None, typer.Option(help="classify, lm or both. Default: what the data are for.")] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option(
            help="Variants, the first is the baseline: parts (rope), options (window:size=8), several parts"
            " (alibi+rope), recipe files (mine.toml).",
            metavar="VARIANT...",
        ),
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="The variant that the others are compared with.")] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each variant; fewer than 5 get no verdict.", show_default="5", min=1)
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="A built-in recipe or a recipe file.", show_default="default")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Train for this many steps.", min=1)] = None,
    epochs: Annotated[float | None, typer.Option(help="Train for this many epochs.", min=0.0)] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one field for all variants: shape.heads=4.", metavar="FIELD=VALUE..."),
    ] = None,
    strangers: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Python files that add parts of your own.", metavar="FILE.py..."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Wall-clock time, such as 20m: chooses the seeds, or fewer steps.", metavar="TIME"),
    ] = None,
    until_clear: Annotated[
        bool, typer.Option("--until-clear", help="Looks at 5, 10 and 20 seeds, until the verdict is clear.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="as many as cores", min=1)] = None,
    engine: Annotated[
        str, typer.Option(help="here (this process), cores (this machine) or ray (a cluster).")
    ] = "cores",
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster, 'auto' for the one at hand. Default: one of its own.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the study.", metavar="FOLDER", show_default="studies/<name>-<mark>")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try trials again that failed before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and run no trial.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what happens as JSON lines, for machines.")] = False,
) -> None:
    """Is it really better? Run variants over several seeds, beside baselines and audits, and get a verdict.

    What exists already is reused: the same command goes on where a stopped study was."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe_file import toml
    from fairtrial.study.budget import read_time
    from fairtrial.study.plan import read_plan
    from fairtrial.study.run import Wishes

    table, folder = read_table(what)
    if folder is not None and seeds is None and budget is None:
        until_clear = until_clear or bool(read_plan(folder).get("until_clear"))  # its looks are corrected for
    if data is not None:
        table["data"] = data
    if recipe is not None:
        table["recipe"] = [recipe]
        if recipe.endswith(".toml"):
            table.pop("tasks", None)
    if task is not None:
        table["tasks"] = ["classify", "lm"] if task == "both" else [task]
    if variants:
        table["variants"] = variant_tables(variants)
        table.pop("baseline", None)
    if baseline is not None:
        table["baseline"] = baseline
    if seeds is not None:
        table["seeds"] = seeds
    if steps is not None and epochs is not None:
        raise BadInput("--steps and --epochs exclude each other")
    if steps is not None or epochs is not None:
        length = f"{steps} steps" if steps is not None else f"{epochs:g} epochs"
        settings = [*(settings or []), f"training.duration={toml(length)}"]
    add_settings(table, settings or [])
    chosen = complete(table, strangers or [])
    wishes = Wishes(
        budget_seconds=read_time(budget) if budget else None,
        most_seeds=seeds if budget else None,
        until_clear=until_clear,
        retry_failed=retry_failed,
        dry_run=dry_run,
    )
    if until_clear and (seeds is not None or budget):
        raise BadInput("--until-clear looks at 5, 10 and 20 seeds; it takes no --seeds and no --budget")
    conduct(chosen, out or folder or default_folder(chosen), open_engine(engine, jobs, address), wishes, json)


def read_table(what: str | None) -> tuple[dict[str, Any], Path | None]:
    """The study file that is asked for, and the folder to go on in."""
    from fairtrial.errors import BadInput
    from fairtrial.study.file import load_study

    if what is None:
        return {}, None
    if os.path.isdir(what):
        path = Path(what) / "study.toml"
        if not path.is_file():
            hint = "a study is a folder that `fairtrial study` wrote"
            raise BadInput(f"{what} is not a study (it has no study.toml)", hint)
        return load_study(path), Path(what)
    if not what.endswith(".toml"):
        raise BadInput(f"{what!r} is neither a study file nor a study's folder", "variants are given with --variants")
    return load_study(Path(what)), None


def variant_tables(texts: list[str]) -> dict[str, Any]:
    from fairtrial.errors import BadInput
    from fairtrial.study.variant_text import read_variant

    found: dict[str, Any] = {}
    for text in texts:
        name, table = read_variant(text)
        if name in found:
            hint = "a variant with draws of its own is written in a study file (seeds_from)"
            raise BadInput(f"the variant {name!r} is given twice", hint)
        found[name] = table
    return found


def add_settings(table: dict[str, Any], settings: list[str]) -> None:
    """`--set` as it would stand in the study's [set]. What is typed on the command line holds for every task."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe_file import read_setting

    for setting in settings:
        name, value = read_setting(setting)
        if name == "task":
            raise BadInput("a study's task is given by --task")
        table.setdefault("set", {})[name] = value
        for each in ("classify", "lm"):
            table["set"].get(each, {}).pop(name, None)


def complete(table: dict[str, Any], strangers: list[Path]) -> Study:
    """The study, its tasks found out where nobody said them, and strangers' files given to all variants."""
    from dataclasses import replace

    from fairtrial.errors import BadInput
    from fairtrial.recipe import Data
    from fairtrial.study.design import METRIC
    from fairtrial.study.file import as_list, located, study_from
    from fairtrial.text.dealing import tasks_of

    if isinstance(table.get("data", ""), dict):
        raise BadInput("this is a recipe, not a study", "a variant may be a recipe file: --variants learned mine.toml")
    recipes = as_list(table.get("recipe", "default"))
    if not table.get("tasks") and table.get("data") and not any(name.endswith(".toml") for name in recipes):
        format_ = table.get("set", {}).get("data.format", "auto")
        table["tasks"] = [task for task in tasks_of(Data(source=table["data"], format=format_)) if task in METRIC]
    found = study_from(table)
    files = tuple(located(str(path)) for path in strangers)
    if files:
        found = replace(
            found, variants=tuple(replace(each, strangers=(*each.strangers, *files)) for each in found.variants)
        )
    return found


def default_folder(study: Study) -> Path:
    """A name for these variants on these data: the same study, with other seeds too, has the same folder."""
    import hashlib
    import re

    from fairtrial.recipe_file import fingerprint
    from fairtrial.study.plan import recipes_of

    marks = [
        f"{task} {name} {fingerprint(recipe)} {Path(recipe.data.source).resolve()}"
        for task, named in recipes_of(study, {}).items()
        for name, recipe in named.items()
    ]
    mark = hashlib.sha256("\n".join([*marks, repr(study.search)]).encode()).hexdigest()[:6]
    return Path("studies") / f"{re.sub(r'[^a-z0-9]+', '-', study.name.lower()).strip('-')[:40]}-{mark}"


def open_engine(name: str, jobs: int | None, address: str | None) -> Engine:
    from fairtrial.errors import BadInput
    from fairtrial.names import near

    if address is not None and name != "ray":
        raise BadInput("--address is of a Ray cluster", "add --engine ray")
    if name == "here":
        from fairtrial.engines.here import Here

        return Here()
    if name == "cores":
        from fairtrial.engines.cores import Cores

        return Cores(jobs)
    if name == "ray":
        from fairtrial.engines.ray import Ray

        return Ray(address, jobs)
    raise BadInput(f"there is no engine {name!r}{near(name, ['here', 'cores', 'ray'])}")


def conduct(study: Study, folder: Path, engine: Engine, wishes: Wishes, json: bool) -> None:
    """Run a study with its screen; Ctrl-C saves and says how to go on."""
    from fairtrial.cli.study_screen import open_study_screen
    from fairtrial.errors import Interrupted
    from fairtrial.study.run import refuse_strange_folder, run_study

    refuse_strange_folder(folder)
    with open_study_screen(json) as listen, stopping() as stop:
        try:
            run_study(study, folder, engine, wishes, listen, stop)
        except Interrupted as error:
            also = " --until-clear" if wishes.until_clear else ""
            raise Interrupted(error.what, f"go on with: fairtrial study {folder}{also}") from error
