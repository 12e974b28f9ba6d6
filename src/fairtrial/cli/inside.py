"""`fairtrial show`, `look`, `explore`, `inspect params`, `inspect length` and `inspect errors`."""

from __future__ import annotations

import sys
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, command
from fairtrial.cli.judge import Json
from fairtrial.cli.options import TextFile, With, notice, read_texts
from fairtrial.events import event_json
from fairtrial.progress import progress_bar
from fairtrial.recipe import one_of, to_table
from fairtrial.record import Record, sibling
from fairtrial.run import Run
from fairtrial.typed import unstructure

MANY_SCORES = 32  # that take long enough for a notice
RecordFolder = Annotated[Path, Argument(help="The folder of a finished record.", metavar="RECORD")]


@command("show", api.show, "Look inside", "show runs/my-run --figure curves.png", arguments=["records"])
def show(call: Call, json: Json = False) -> None:
    shown = call()
    if json and len(shown.listed) == 1 and not shown.listed[0].problem:
        record = shown.listed[0].record
        whole = {"recipe": to_table(record.recipe), "trial": unstructure(record.trial)}
        whole["result"] = unstructure(record.result) if record.complete else None
        print(
            dumps(whole | {"events": list(map(event_json, record.events())), "baseline": unstructure(record.baseline)})
        )
        return
    print("\n".join(map(dumps, shown.rows())) if json else shown)
    for name, label in (("figure", "figure"), ("html", "page")):
        if name in call.given and not json:
            print(f"{label}: {call.given[name]}")


@command(
    "look", Run.look, "Look inside", 'look runs/my-run "My fellow Americans, we will rebuild."', arguments=["texts"]
)
def look(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None) -> None:
    from shlex import join

    texts = call.given.pop("texts", None)
    given = read_texts(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    from fairtrial.inspection.look import Target, write_look

    shape, tests = opened.recipe.shape, list(opened.trial.test_sets)
    out = call.given.get("out")
    folder, typed = Path(out) if out is not None else sibling(record, "look"), join(["fairtrial", *sys.argv[1:]])
    ablate: bool = call.given["ablate"]
    target = Target(opened, folder, call.given.get("layer"), call.given.get("head"), call.given["format"], typed)
    scores = len(tests) * (shape.layers * shape.heads + 1)
    if ablate and scores > MANY_SCORES and not opened.recipe.external:
        notice(f"ablating each head takes {scores} scores of whole test sets; --no-ablate skips them")
    result = api.load(record, plugins=plugins or []).look(given, ablate=ablate)
    with progress_bar() as bar:
        result = write_look(result, target, bar.count)
    print(result)


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
    from fairtrial.report.render import render

    cost = call()
    described = cost.describe()
    if kind == "csv":  # the parameters only
        described = replace(described, tables=described.tables[:1])
    print(dumps(cost.to_json()) if json else render(described, "terminal" if kind == "text" else kind))


@command(
    "inspect length", Run.lengths, "Look inside", "inspect length runs/my-lm --times 1,2,4,8", deprecated=["length"]
)
def length(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    from fairtrial.run import factors_of

    factors_of(call.given["times"])  # before torch is imported
    run = api.load(record, "lm", plugins=plugins or [])
    scored = call(run)
    print("\n".join(map(dumps, scored.rows())) if json else scored)


@command(
    "inspect errors",
    Run.errors,
    "Look inside",
    "inspect errors runs/my-run --html errors.html",
    deprecated=["errors"],
)
def errors(call: Call, record: RecordFolder, plugins: With = None, json: Json = False) -> None:
    run = api.load(record, "classify", plugins=plugins or [])
    result = call(run)
    print(dumps(result.to_json()) if json else result)
    if "html" in call.given and not json:
        print(f"page: {call.given['html']}")


@command("explore", api.explore, "Look inside", "explore studies/my-study", arguments=["folder"])
def explore(call: Call) -> None:
    host = call.given["host"]
    if host not in ("127.0.0.1", "localhost", "::1"):
        notice(f"listening on {host}: everyone who can reach it and knows the address reads this folder, unencrypted")
    with call() as explorer:
        print(f"exploring {explorer.folder}\nopen {explorer.url}\nCtrl-C stops it", flush=True)
        explorer.wait()
