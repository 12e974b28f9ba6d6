"""`fairtrial show`, `look`, `explore`, `inspect params`, `inspect length` and `inspect errors`."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, command
from fairtrial.cli.judge import Json
from fairtrial.cli.options import TextFile, With, notice, read_texts
from fairtrial.events import event_json
from fairtrial.progress import counting
from fairtrial.recipe import find_recipes, one_of, to_table
from fairtrial.record import Listed, Record, records_of, sibling
from fairtrial.run import Run, names_of
from fairtrial.typed import unstructure

if TYPE_CHECKING:
    from fairtrial.inspection.parameters import Parameters
    from fairtrial.inspection.surprisal import LengthScore

MANY_SCORES = 32  # that take long enough for a notice
RecordFolder = Annotated[Path, Argument(help="The folder of a finished record.", metavar="RECORD")]


@command("show", api.show, "Look inside", "show runs/my-run --figure curves.png", arguments=["records"])
def show(call: Call, json: Json = False) -> None:
    from fairtrial.report.render import fitted, terminal_width
    from fairtrial.report.text import listing_lines, record_lines

    records = [Path(folder) for folder in call.given["records"]]
    single = len(records) == 1 and os.path.exists(records[0] / "trial.json")
    if single:
        opened = Record.open(records[0])
        facts: dict[str, Any] = {"recipe": to_table(opened.recipe), "trial": unstructure(opened.trial)}
        facts["result"] = unstructure(opened.result) if opened.complete else None
        facts |= {"events": list(map(event_json, opened.events())), "baseline": unstructure(opened.baseline)}
        names = names_of(call.given.get("names"))
        lines = (each for line in record_lines(opened, names) for each in fitted(line, terminal_width()))
        print(dumps(facts) if json else "\n".join(lines))
    else:
        listed = records_of(records)
        for line in map(listed_json, listed) if json else listing_lines(listed):
            print(line)
    if single or "html" in call.given or "figure" in call.given:
        call()
    for name, label in (("figure", "figure"), ("html", "page")):
        if name in call.given and not json:
            print(f"{label}: {call.given[name]}")


def listed_json(each: Listed) -> str:
    facts: dict[str, Any] = {"folder": str(each.record.folder), "state": each.state, "problem": each.problem}
    if not each.problem:
        recipe, trial = each.record.recipe, each.record.trial
        tests = unstructure(each.record.result.tests) if each.record.complete else {}
        facts |= {"task": recipe.task, "recipe": recipe.name, "seed": trial.seed, "tests": tests}
    return dumps(facts)


@command(
    "look", Run.look, "Look inside", 'look runs/my-run "My fellow Americans, we will rebuild."', arguments=["texts"]
)
def look(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None) -> None:
    from shlex import join

    from fairtrial.report.text import look_lines

    texts = call.given.pop("texts", None)
    given = read_texts(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    from fairtrial.inspection.look import look_target, write_look

    shape, tests = opened.recipe.shape, list(opened.trial.test_sets)
    out = call.given.get("out")
    folder, typed = Path(out) if out is not None else sibling(record, "look"), join(["fairtrial", *sys.argv[1:]])
    ablate: bool = call.given["ablate"]
    target = look_target(opened, folder, call.given.get("layer"), call.given.get("head"), call.given["format"], typed)
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


@command(
    "inspect params",
    api.parameters,
    "Look inside",
    "inspect params runs/my-run",
    arguments=["target"],
    fields=COLUMNS,
    deprecated=["params"],
)
def params(
    call: Call,
    kind: Annotated[str, Option("--format", help="text, markdown, latex or csv (parameters only).")] = "text",
    json: Json = False,
) -> None:
    one_of("--format", kind, ("text", "markdown", "latex", "csv"))
    target = call.given.pop("target")
    if os.path.isdir(target):
        targets: list[Any] = [target]
    else:
        task, data = call.given.pop("task", None), call.given.pop("data", None)
        targets = [recipe.with_(**call.fields) for recipe in find_recipes(target, task, data, ())]
        call.fields = {}
    for number, each in enumerate(targets):
        cost = call(each)
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


@command(
    "inspect length", Run.lengths, "Look inside", "inspect length runs/my-lm --times 1,2,4,8", deprecated=["length"]
)
def length(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    from fairtrial.run import factors_of

    factors_of(call.given["times"])  # before torch is imported
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.formatting import bracket, format_parts

    if not json:
        print(f"{record}: training length {run.recipe.shape.length}, parts: {format_parts(run.recipe)}")
        print(f"{'test set':<14}{'length':>8}  perplexity (95% interval over documents, one seed)")

    limit = 0  # tokens that the model can use at most

    def show_score(score: LengthScore) -> None:
        nonlocal limit
        limit = score.sees if score.sees < score.length else limit
        if json:
            print(dumps(asdict(score)), flush=True)
        elif score.perplexity is None:
            print(f"{score.test:<14}{score.length:>8}  not possible: {score.why_not}", flush=True)
        else:
            print(f"{score.test:<14}{score.length:>8}  {score.perplexity:.1f}{bracket(score.interval)}", flush=True)

    call(run, on_score=show_score)
    if limit and not json:
        from fairtrial.inspection.surprisal import LIMITED

        print(LIMITED.format(limit))


@command(
    "inspect errors",
    Run.errors,
    "Look inside",
    "inspect errors runs/my-run --html errors.html",
    deprecated=["errors"],
)
def errors(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    run = api.load(record, "classify", plugins=plugins or [])
    facts = call(run).facts
    if json:
        print(dumps(facts))
        return
    from fairtrial.report.text import errors_lines

    for number, (name, of_test) in enumerate(facts["tests"].items()):
        print("\n" * (number > 0) + "\n".join(errors_lines(name, of_test, facts["labels"])))
    if "html" in call.given:
        print(f"page: {call.given['html']}")


@command("explore", api.explore, "Look inside", "explore studies/my-study", arguments=["folder"])
def explore(call: Call) -> None:
    host = call.given["host"]
    if host not in ("127.0.0.1", "localhost", "::1"):
        notice(f"listening on {host}: everyone who can reach it and knows the address reads this folder, unencrypted")
    with call() as explorer:
        print(f"exploring {explorer.folder}\nopen {explorer.url}\nCtrl-C stops it", flush=True)
        explorer.wait()
