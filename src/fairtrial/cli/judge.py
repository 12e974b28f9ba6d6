"""`fairtrial study`, `verdict`, `report`, `verify`, `power`, `baseline` and `demo`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.options import Jobs, Json, Settings, Task, With, takes_columns, takes_results
from fairtrial.cli.train import Events, asking_to_stop
from fairtrial.errors import BadInput
from fairtrial.recipe import one_of

What = Annotated[
    list[str],
    Argument(
        help="The folder of a study; or files of results, or a pattern: 'runs/{variant}/seed-{seed}/samples.jsonl'.",
        metavar="STUDY|RESULTS...",
    ),
]
Data = Annotated[str, Option(help="A file or folder of text, or 'sotu' (the embedded speeches).", metavar="PATH")]


@takes_columns
def study(
    what: Annotated[
        str | None,
        Argument(
            help="A study file (TOML), or the folder of a study to continue. Default: the embedded speeches.",
            metavar="STUDY.toml|FOLDER",
        ),
    ] = None,
    data: Annotated[str | None, Option(help="A file or folder of text, or 'sotu' (embedded).", metavar="PATH")] = None,
    task: Annotated[str | None, Option(help="classify, lm or both.", show_default="what the data are for")] = None,
    variants: Annotated[
        list[str] | None,
        Option(
            help="Variants, the first is the baseline: parts (rope), options (window:size=8), several parts"
            " (alibi+rope), recipe files (mine.toml), networks of your own (as --model).",
            metavar="VARIANT...",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        Option(
            help="A network of your own, one more variant: FILE.py:FUNCTION, hf:CLASS, x-transformers:Decoder; options:"
            " hf:CLASS:n_layer=2. The file's code is run. Repeatable.",
            metavar="MODEL",
        ),
    ] = None,
    baseline: Annotated[str | None, Option(help="The variant that the others are compared with.")] = None,
    seeds: Annotated[int | None, Option(help="Seeds per variant; no verdict below 5.", show_default="5", min=1)] = None,
    recipe: Annotated[str | None, Option(help="A built-in recipe or a recipe file.", show_default="default")] = None,
    steps: Annotated[int | None, Option(help="Optimizer steps per trial.", min=1)] = None,
    epochs: Annotated[float | None, Option(help="Epochs per trial.", min=0.0)] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", help="Change one field for all variants: shape.heads=4.", metavar="FIELD=VALUE..."),
    ] = None,
    plugins: Annotated[
        list[Path] | None, Option("--with", help="Python files that add your own parts.", metavar="FILE.py...")
    ] = None,
    match: Annotated[
        str | None,
        Option(help="Judge variants at the baseline's budget, too: parameters, flops or seconds.", metavar="BUDGET"),
    ] = None,
    budget: Annotated[
        str | None, Option(help="Wall-clock time, such as 20m: chooses the seeds, or fewer steps.", metavar="TIME")
    ] = None,
    until_clear: Annotated[
        bool, Option("--until-clear", help="Interim looks at 5, 10 and 20 seeds, until the verdict is clear.")
    ] = False,
    jobs: Jobs = None,
    engine: Annotated[str, Option(help="here (this process), cores (this machine) or ray (a cluster).")] = "cores",
    address: Annotated[
        str | None,
        Option(help="Address of a Ray cluster, 'auto' for a running one.", show_default="a new local cluster"),
    ] = None,
    cpus: Annotated[float | None, Option(help="Ray: cores of each trial.", min=0.01, show_default="1")] = None,
    gpus: Annotated[
        float | None,
        Option(help="Ray: GPUs of each trial; 0.25: four share one.", min=0.0, show_default="1 where it trains on one"),
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder of the study.", metavar="FOLDER", show_default="studies/<name>-<mark>")
    ] = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Run failed trials again.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the plan and run no trial.")] = False,
    json: Events = False,
    columns: Sequence[str] = (),
) -> None:
    """Is it really better? Compare variants over several seeds and get a verdict.

    Trials are run beside baselines and audits. Finished ones are reused: the same command continues a stopped study."""
    if model:
        variants = [*(variants or ["learned"]), *model]
    run_with_screen(
        json, variants=variants or None, data=data, source=what, task=task, baseline=baseline, seeds=seeds,
        recipe=recipe, steps=steps, epochs=epochs, settings=[*columns, *(settings or [])], plugins=plugins or [],
        budget=budget, until_clear=until_clear, jobs=jobs, engine=engine, address=address, cpus=cpus, gpus=gpus,
        out=out, retry_failed=retry_failed, dry_run=dry_run, match=match,
    )  # fmt: skip


def demo(
    out: Annotated[Path, Option(help="Folder of the study and its page.", metavar="FOLDER")] = Path("demo"),
    jobs: Jobs = None,
    json: Events = False,
) -> None:
    """Run a small study on the embedded speeches: three kinds of position encoding, two tasks, five seeds.

    It ends in a verdict and a page, in a few minutes. Run again, it continues where it was stopped."""
    run_with_screen(json, api.demo, out=out, jobs=jobs)


def run_with_screen(json: bool, run: Callable[..., Any] = api.study, **options: Any) -> None:
    """Run a study and show its progress; Ctrl-C saves and tells how to continue."""
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(json) as on_event, asking_to_stop() as stop:
        run(**options, on_event=on_event, stop=stop)


@takes_results
def verdict(
    what: What,
    results: Mapping[str, Any],
    form: Annotated[
        str,
        Option("--format", help="text, markdown or latex (fits one column of a paper).", metavar="FORMAT"),
    ] = "text",
    wide: Annotated[bool, Option("--wide", help="LaTeX: the tables of the text, wider than a column.")] = False,
    every: Annotated[
        bool,
        Option("--all", help="All tables: also contamination, test reuse, passports, exploratory comparisons, search."),
    ] = False,
    json: Json = False,
) -> None:
    """Print the verdict of a finished study, or of results that were made elsewhere, in sentences and tables.

    Results are a table of single test items (CSV, JSON lines, Parquet) with the columns seed, item, variant and value,
    or logs of lm-evaluation-harness, inspect_ai or HELM. Seeds are those of training; without them the verdict is about
    these checkpoints only."""
    found = api.verdict(what[0] if len(what) == 1 else what, **results)
    if json:
        print(dumps(found.to_json()))
        return
    one_of("--format", form, ("text", "markdown", "latex"))
    if form == "latex":
        print(found.to_latex(wide=wide, every=every))
    else:
        print(found.to_text(every=every) if form == "text" else found.to_markdown(every=every))


@takes_results
def report(
    what: What,
    results: Mapping[str, Any],
    out: Annotated[
        Path | None,
        Option(help="The page.", metavar="FILE", show_default="report.html in a study, else <name>-report.html"),
    ] = None,
    json: Json = False,
) -> None:
    """Write a page of a study, or of results that were made elsewhere: one file that needs no network."""
    page = api.report(what[0] if len(what) == 1 else what, out=out, **results)
    facts = {"page": str(page), "bytes": page.stat().st_size}
    print(dumps(facts) if json else f"open this page: {page.resolve()}")


def verify(
    records: Annotated[list[Path], Argument(help="Records or studies.", metavar="RECORD...")],
    steps: Annotated[
        int | None,
        Option(help="Repeat only the first steps of training; 0: none.", min=0, show_default="all"),
    ] = None,
    data: Annotated[
        str | None,
        Option(help="Where the data are on this machine.", metavar="PATH", show_default="where the record found them"),
    ] = None,
    trials: Annotated[str, Option(help="Trials of a study to repeat: a number, or 'all'.", metavar="NUMBER|all")] = "2",
    plugins: With = None,
    json: Json = False,
) -> None:
    """Is a record what its recipe gives? Train it again from recipe and seed, and score it again from its weights.

    Every claim is proven, consistent with all else, false, or not proven. Of a study the verdict is judged again from
    its outcomes, and some trials, drawn at random, are repeated. Nothing in a record is run or written. Exits with 1 if
    a claim is false."""
    if trials != "all" and not trials.isdigit():
        raise BadInput(f"--trials takes a number or 'all', got {trials!r}")
    found = api.verify(
        *records, steps=steps, data=data, trials=None if trials == "all" else int(trials), plugins=plugins or [],
        quiet=json,
    )  # fmt: skip
    print(dumps([each.facts() for each in found.records]) if json else found)
    sys.exit(int(found.false))


@takes_results
def power(
    results: Mapping[str, Any],
    seeds: Annotated[int, Option(help="Training seeds of each variant.", min=1)] = 5,
    items: Annotated[int, Option(help="Test items.", min=1)] = 750,
    task: Annotated[str, Option(help="classify (accuracy) or lm (perplexity).")] = "classify",
    comparisons: Annotated[int, Option(help="Comparisons that will be judged together.", min=1)] = 1,
    spread: Annotated[
        str | None,
        Option(
            help="Standard deviation of a difference over seeds, in points or nats per token; or three: over seeds,"
            " over items, and of the rest.",
            metavar="SEED[,ITEM,REST]",
            show_default="as small transformers have it",
        ),
    ] = None,
    pilot: Annotated[
        list[str] | None,
        Option(help="A study, or a file of results, whose variances are taken. Repeatable.", metavar="PATH"),
    ] = None,
    json: Json = False,
) -> None:
    """Plan before training: the smallest difference that so many seeds and test items detect."""
    try:
        given = None if spread is None else [float(each) for each in spread.split(",")]
    except ValueError as error:
        raise BadInput(f"--spread takes numbers, got {spread!r}", "one or three: 0.7 or 0.7,7,34") from error
    source = api.verdict(pilot[0] if len(pilot) == 1 else pilot, **results) if pilot else None
    if source is None and any(results.values()):
        raise BadInput("options of results are those of a pilot", "name it with --pilot")
    found = api.power(seeds, items, task=task, comparisons=comparisons, spread=given, pilot=source)
    print(dumps(found.rows()[0] | {"sentence": found.sentence}) if json else found)


@takes_columns
def baseline(
    data: Data = "sotu",
    task: Task = None,
    recipe: Annotated[
        str | None,
        Option(
            help="Whose split and vocabulary: 'default', 'course' (all training text, no validation), or a TOML file.",
            show_default="default",
        ),
    ] = None,
    seed: Annotated[int, Option(help="Seed of the split.", min=0)] = 0,
    settings: Settings = None,
    json: Json = False,
    columns: Sequence[str] = (),
) -> None:
    """Score simple models, from the majority class to Kneser-Ney, in seconds.

    They are fitted and scored on exactly the items of a trial with this recipe and seed."""
    settings = [*columns, *(settings or [])]
    found = api.baseline(data, task=task, recipe=recipe, seed=seed, settings=settings, quiet=json)
    from fairtrial.report.text import baseline_lines

    for number, facts in enumerate(found.tasks.values()):
        print(dumps(facts) if json else "\n" * bool(number) + "\n".join(baseline_lines(facts)), flush=True)
