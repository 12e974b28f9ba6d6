"""`fairtrial show`, `look`, `params`, `length`, `errors` and `explore`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.options import (
    Html,
    Json,
    Settings,
    TextFile,
    Texts,
    With,
    notice,
    read_texts,
    takes_columns,
)
from fairtrial.cli.text import Names, split_names
from fairtrial.errors import BadInput
from fairtrial.progress import counting
from fairtrial.recipe import find_recipes, one_of, to_table
from fairtrial.record import Listed, Record, records_of, sibling

if TYPE_CHECKING:
    from fairtrial.analysis.parameters import Parameters
    from fairtrial.analysis.surprisal import LengthScore

MANY_SCORES = 32  # that take long enough for a notice


def show(
    records: Annotated[
        list[Path], Argument(help="The folder of a record, or one that holds many; or several.", metavar="RECORD...")
    ],
    html: Html = None,
    figure: Annotated[
        Path | None, Option(help="Plot loss and score of all splits in one figure (.png, .svg, .pdf).", metavar="FILE")
    ] = None,
    names: Names = None,
    json: Json = False,
) -> None:
    """Show what was trained: recipe, parameter count, curves, results, fingerprints.

    Of several, or of a folder that holds records, one line for each."""
    from fairtrial.report.render import fitted, terminal_width
    from fairtrial.report.text import listing_lines, record_lines

    called = split_names(names)
    single = len(records) == 1 and os.path.exists(records[0] / "trial.json")
    if single:
        opened = Record.open(records[0])
        result = opened.result if opened.complete else None
        facts = {"recipe": to_table(opened.recipe), "trial": opened.trial, "result": result, "events": opened.events()}
        facts["baseline"] = opened.baseline or None
        lines = (each for line in record_lines(opened, called) for each in fitted(line, terminal_width()))
        print(dumps(facts) if json else "\n".join(lines))
    else:
        listed = records_of(records)
        for line in map(listed_json, listed) if json else listing_lines(listed):
            print(line)
    if single or html or figure:
        api.show(records, html=html, figure=figure, names=called)
    for what, path in (("figure", figure), ("page", html)):
        if path is not None and not json:
            print(f"{what}: {path}")


def listed_json(each: Listed) -> str:
    facts: dict[str, Any] = {"folder": str(each.record.folder), "state": each.state, "problem": each.problem}
    if not each.problem:
        recipe, trial = each.record.recipe, each.record.trial
        tests = each.record.result["tests"] if each.record.complete else {}
        facts |= {"task": recipe.task, "recipe": recipe.name, "seed": trial["seed"], "tests": tests}
    return dumps(facts)


def look(
    record: Annotated[Path, Argument(help="The record of a trained network.")],
    texts: Texts = None,
    file: TextFile = None,
    layer: Annotated[int | None, Option(help="Plot this layer only; layers count from 0.", min=0)] = None,
    head: Annotated[int | None, Option(help="Plot this head only; heads count from 0.", min=0)] = None,
    format: Annotated[str, Option(help="Format of the figures: png, svg or pdf.")] = "png",
    out: Annotated[
        Path | None, Option(help="A folder for page and figures.", show_default="RECORD-look", metavar="FOLDER")
    ] = None,
    ablate: Annotated[bool, Option(help="Ablate each head in turn and score the test sets without it.")] = True,
    plugins: With = None,
) -> None:
    """Plot attention maps before and after training, describe each head, and ablate it.

    Without a text, the record's first test set is read."""
    from shlex import join

    from fairtrial.report.text import look_lines

    given = read_texts(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    from fairtrial.analysis.look import look_target, write_look

    shape, tests = opened.recipe.shape, opened.trial["test_sets"]
    folder, command = out if out is not None else sibling(record, "look"), join(["fairtrial", *sys.argv[1:]])
    target = look_target(opened, folder, layer, head, format, command)
    scores = len(tests) * (shape.layers * shape.heads + 1)
    if ablate and scores > MANY_SCORES and not opened.recipe.external:
        notice(f"ablating each head takes {scores} scores of whole test sets; --no-ablate skips them")
    result = api.load(record, plugins=plugins or []).look(given, ablate=ablate)
    with counting() as on_progress:
        result = write_look(result, opened, target, on_progress)
    print("\n".join(look_lines(result)))
    for text in result.notices:
        notice(text)
    print(f"page: {result.page}")
    more = len(result.figures) - 1
    print(f"figures: {result.figures[0]}{f' and {more} more' if more else ''}")


@takes_columns
def params(
    what: Annotated[
        str, Argument(help="A record, a recipe file, 'course' or 'default'.", metavar="RECORD|RECIPE.toml|NAME")
    ],
    task: Annotated[str | None, Option(help="With a built-in recipe: classify, lm or mlm.", show_default="all")] = None,
    data: Annotated[str | None, Option(help="Text for the vocabulary, not the recipe's.", metavar="PATH")] = None,
    vocabulary: Annotated[int | None, Option(help="Size of the vocabulary: no data are read.", min=1)] = None,
    classes: Annotated[int | None, Option(help="Number of classes, with --vocabulary.", min=1)] = None,
    settings: Settings = None,
    seed: Annotated[int, Option(help="Seed of the split that the vocabulary is built from.", min=0)] = 0,
    kind: Annotated[str, Option("--format", help="text, markdown, latex or csv (parameters only).")] = "text",
    plugins: With = None,
    json: Json = False,
    columns: Sequence[str] = (),
) -> None:
    """Count parameters and FLOPs of a network, component by component."""
    one_of("--format", kind, ("text", "markdown", "latex", "csv"))
    settings = [*columns, *(settings or [])]
    record = Record.open(Path(what)) if os.path.isdir(what) else None
    if record is not None and (data is not None or vocabulary is not None or settings):
        raise BadInput(
            "a record's network is fixed", "leave out --data, its columns, --vocabulary and --set, or name a recipe"
        )
    recipes = [] if record is not None else find_recipes(what, task, data, settings)
    if record is not None:
        recipes, vocabulary, classes = [record.recipe], record.trial["vocabulary"], len(record.trial["labels"])
    for number, recipe in enumerate(recipes):
        cost = api.parameters(recipe, vocabulary=vocabulary, classes=classes, seed=seed, plugins=plugins or [])
        print(dumps(cost.to_dict()) if json else "\n" * (number > 0) + "\n".join(cost_lines(cost, kind)))


def cost_lines(cost: Parameters, kind: str) -> list[str]:
    from fairtrial.report.render import TABLES

    counts, operations = (TABLES[kind](replace(table, title="")) for table in cost.describe().tables)
    if kind == "csv":
        return counts
    sign, flops = "% " if kind == "latex" else "", cost.flops
    network = {"classify": f"classifier of {cost.classes} classes", "lm": "language model"}.get(cost.recipe.task, "mlm")
    explained = [
        f"{sign}The last column counts the token embedding and the weight matrices of attention and feed-forward",
        f"{sign}only: no biases, norms, positions or other parts, no classifier or output layer.",
        "",
    ]
    return [
        f"{sign}{cost.recipe.name or 'recipe'}: {network}, vocabulary of {cost.vocabulary:,}",
        *[""] * (kind != "latex"),
        *counts,
        "",
        *([] if cost.recipe.external else explained),
        *operations,
        "",
        f"{sign}Forward FLOPs of one row at its full length of {flops.length} tokens:",
        f"{sign}{flops.per_token:,.0f} per token; {flops.per_step:,} per training step (forward and backward over"
        f" {flops.rows_in_step} rows).",
    ]


def length(
    record: Annotated[Path, Argument(help="The record of a trained language model.")],
    times: Annotated[str, Option(help="Multiples of the training length.", metavar="LIST")] = "1,2,4,8",
    plugins: With = None,
    json: Json = False,
) -> None:
    """Score a language model at 1x, 2x, 4x and 8x its training length.

    Parts that cannot extrapolate say so."""
    try:
        factors = [int(word) for word in times.split(",")]
    except ValueError as error:
        raise BadInput(f"--times {times!r} is not a list of integers", "write it as --times 1,2,4,8") from error
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.formatting import bracket, format_parts

    if not json:
        print(f"{record}: training length {run.recipe.shape.length}, parts: {format_parts(run.recipe)}")
        print(f"{'test set':<14}{'length':>8}  perplexity (95% interval over documents, one seed)")

    limit = 0  # tokens that the model can use at most

    def show(score: LengthScore) -> None:
        nonlocal limit
        limit = score.sees if score.sees < score.length else limit
        if json:
            print(dumps(asdict(score)), flush=True)
        elif score.perplexity is None:
            print(f"{score.test:<14}{score.length:>8}  not possible: {score.why_not}", flush=True)
        else:
            print(f"{score.test:<14}{score.length:>8}  {score.perplexity:.1f}{bracket(score.interval)}", flush=True)

    run.lengths(factors, on_score=show)
    if limit and not json:
        from fairtrial.analysis.surprisal import LIMITED

        print(LIMITED.format(limit))


def errors(
    record: Annotated[Path, Argument(help="The record of a trained classifier. Its data are read again.")],
    test: Annotated[str | None, Option(help="One test set only.", show_default="all")] = None,
    bins: Annotated[int, Option(help="Bins of the reliability curve.", min=1, max=100)] = 10,
    most: Annotated[int, Option(help="Number of mistakes and words to show.", min=1)] = 10,
    telling: Annotated[bool, Option(help="Find the most influential words of each class.")] = True,
    names: Names = None, html: Html = None, plugins: With = None, json: Json = False,
) -> None:  # fmt: skip
    """Show a classifier's confusions, calibration, confident mistakes and influential words."""
    run = api.load(record, "classify", plugins=plugins or [])
    found = run.errors(test, bins=bins, most=most, names=split_names(names), words=telling, html=html).facts
    if json:
        print(dumps(found))
    else:
        from fairtrial.report.text import errors_lines

        for number, (name, of_test) in enumerate(found["tests"].items()):
            print("\n" * (number > 0) + "\n".join(errors_lines(name, of_test, found["labels"])))
    if html is not None and not json:
        print(f"page: {html}")


def explore(
    folder: Annotated[Path, Argument(help="A folder of records and studies, or one of them.")] = Path("."),
    port: Annotated[int | None, Option(help="Port.", show_default="8765, or a free one", min=0, max=65535)] = None,
    host: Annotated[str, Option(help="Address to listen on; others than this machine's let others in.")] = "127.0.0.1",
    browser: Annotated[bool, Option(help="Open the browser.")] = True,
    data: Annotated[
        list[str] | None, Option(help="Data outside the folder that it may read. Repeatable.", metavar="PATH")
    ] = None,
    plugins: With = None,
) -> None:
    """Touch models, studies, parts and puzzles in the browser, on this machine.

    Only whoever has the printed address gets in. Ctrl-C stops it."""
    if host not in ("127.0.0.1", "localhost", "::1"):
        notice(f"listening on {host}: everyone who can reach it and knows the address reads this folder, unencrypted")
    with api.explore(folder, host=host, port=port, browser=browser, data=data or [], plugins=plugins or []) as explorer:
        print(f"exploring {explorer.folder}\nopen {explorer.url}\nCtrl-C stops it", flush=True)
        explorer.wait()
