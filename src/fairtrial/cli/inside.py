"""`fairtrial show`, `look`, `explore`, `puzzle`, and what `inspect` has."""

from __future__ import annotations

from dataclasses import asdict, replace
from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, TextFile, With, check_utf8, command, notice, read_texts
from fairtrial.cli.judge import Json
from fairtrial.events import event_json
from fairtrial.puzzles import puzzle as solve_puzzle
from fairtrial.recipe import one_of, to_table
from fairtrial.record import Record, sibling
from fairtrial.run import Run
from fairtrial.typed import unstructure

MANY_SCORES = 32  # that take long enough for a notice
Figure = Annotated[Path | None, Option(help="Draw it (.png, .svg, .pdf).", metavar="FILE")]
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
    texts = call.given.pop("texts", None)
    given = read_texts(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    shape = opened.recipe.shape
    scores = len(opened.trial.test_sets) * (shape.layers * shape.heads + 1)
    if call.given["ablate"] and scores > MANY_SCORES and not opened.recipe.external:
        notice(f"ablating each head takes {scores} scores of whole test sets; --no-ablate skips them")
    call.given.setdefault("out", sibling(record, "look"))
    print(call(api.load(record, plugins=plugins or []), given))


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


@command(
    "inspect predict",
    Run.predict,
    "Look inside",
    'inspect predict runs/my-run "That is in America\'s interest." --words',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["predict"],
)
def predict(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None, json: Json = False) -> None:
    given = read_texts(call.given.pop("texts", None), file)
    run = api.load(record, "classify", plugins=plugins or [])
    names = call.given.pop("names", None) or (run.labels if json else None)  # machines compare answers with labels
    result = call(run, given, names=names)
    if json:
        print("\n".join(map(dumps, result.to_json())))
        return
    print(result)


@command(
    "inspect surprisal",
    Run.surprisal,
    "Look inside",
    'inspect surprisal runs/my-lm "Our children will pay the future."',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["surprisal"],
)
def surprisal(
    call: Call,
    record: RecordFolder,
    file: TextFile = None,
    table: Annotated[
        bool | None, Option("--table/--no-table", help="One row per token.", show_default="with a single sentence")
    ] = None,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per sentence, and one for the set.")] = False,
) -> None:
    given = read_texts(call.given.get("texts"), file)
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.report.render import render

    result = run.surprisal(given)
    if json:
        for text in result.texts:
            row = {"text": text.text, "perplexity": text.perplexity, "nll": text.nll, "counted": text.counted}
            print(dumps(row | {"tokens": [asdict(token) for token in text.tokens]}))
        print(dumps({"set": asdict(result.totals), "notices": result.notices, "counting": result.counting}))
        return
    print(render(result.describe(table), "terminal"))


@command(
    "inspect generate",
    Run.generate,
    "Look inside",
    'inspect generate runs/my-lm "My fellow Americans" --temperature 0.8',
    arguments=["prompt"],
    deprecated=["generate"],
)
def generate(
    call: Call,
    record: RecordFolder,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per text.")] = False,
) -> None:
    check_utf8(call.given["prompt"], "the prompt")
    run = api.load(record, "lm", plugins=plugins or [])
    generation = call(run)
    sampling = {name: call.given.get(name) for name in ("temperature", "top_k", "top_p")}
    if json:
        for sample in generation.samples:
            print(dumps(asdict(sample) | sampling | {"notices": generation.notices}))
        return
    for text in generation.notices:
        notice(text)
    print("\n".join(sample.text for sample in generation.samples))


@command("puzzle", solve_puzzle, "Look inside", "puzzle average 0 1", arguments=["ask", "words"])
def puzzle(call: Call, figure: Figure = None, json: Json = False) -> None:
    result = call()
    print(dumps(result.to_json()) if json else result)
    if figure is not None:
        from fairtrial.report.plots import write_figure

        write_figure(result, figure)
        if not json:
            print(f"figure: {figure}")
