"""`fairtrial inspect predict`, `surprisal` and `generate`: what a trained model makes of a text."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from json import dumps
from typing import TYPE_CHECKING, Annotated

from typer import Option

from fairtrial import api
from fairtrial.cli.declare import Call, command
from fairtrial.cli.inside import RecordFolder
from fairtrial.cli.judge import Json
from fairtrial.cli.options import TextFile, With, check_utf8, drawing, notice, read_texts
from fairtrial.description import ShadedText
from fairtrial.run import Run

if TYPE_CHECKING:
    from rich.text import Text


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
    texts, samples = call.given.get("texts"), call.given["samples"]
    given = read_texts(texts, file) if texts or file is not None or not samples else []
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.report.render import render

    result = run.surprisal(given, samples=samples)
    if json:
        for text in result.texts:
            row: dict[str, object] = {"name": text.name} if text.name else {}
            row |= {"text": text.text, "perplexity": text.perplexity, "nll": text.nll, "counted": text.counted}
            print(dumps(row | {"tokens": [asdict(token) for token in text.tokens]}))
        print(dumps({"set": asdict(result.totals), "notices": result.notices, "counting": result.counting}))
        return
    described = result.describe(table)
    if sys.stdout.isatty():  # in colours
        console = drawing()
        for chart in described.charts:
            if isinstance(chart, ShadedText):
                console.print(*shaded(chart), end="")
        described = replace(described, charts=())
    print(render(described, "terminal"))


def shaded(chart: ShadedText) -> tuple[Text, Text]:
    """A shade behind each piece: the deeper, the more surprising; and what the shades mean."""
    from rich.text import Text

    from fairtrial.report.charts import SURPRISE, shade_of

    text, legend = Text(), Text("\nnats:  below 2 ")
    for piece, nats in chart.pieces:
        colour, word = shade_of(nats), piece.rstrip()
        text.append(word, style=f"black on {colour}" if colour else "dim" if nats is None else "")
        text.append(piece[len(word) :])
    for least, colour in SURPRISE:
        legend.append(f" {least:g}+ ", style=f"black on {colour}")
    return text, legend.append("\n")


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
    json: Annotated[bool, Option("--json", help="One JSON line per text, when it is done.")] = False,
) -> None:
    check_utf8(call.given["prompt"], "the prompt")
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.report.render import plain

    def print_piece(text: str) -> None:
        print("\n".join(plain(line) for line in text.split("\n")), end="", flush=True)

    samples, seed = call.given.pop("samples"), call.given.pop("seed")
    generator = run.generator(**call.given)
    sampling = {name: call.given.get(name) for name in ("temperature", "top_k", "top_p", "repetition_penalty")}
    for text in () if json else generator.notices:
        notice(text)
    for number in range(samples):
        if json:
            row = asdict(generator.sample(seed, number)) | sampling | {"notices": generator.notices}
            print(dumps(row), flush=True)
        else:
            generator.sample(seed, number, print_piece)
            print(flush=True)
