"""`fairtrial length`: does a language model handle longer texts than it was trained on?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.train import With


def length(
    record: Annotated[Path, typer.Argument(help="The record of a trained language model.")],
    times: Annotated[str, typer.Option(help="Multiples of the trained length.", metavar="LIST")] = "1,2,4,8",
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each score.")] = False,
) -> None:
    """Score a language model at 1x, 2x, 4x and 8x its training length; parts that cannot go there say so."""
    from fairtrial.errors import BadInput
    from fairtrial.record import Record

    opened = Record.open(record)
    if opened.recipe.task != "lm":
        raise BadInput(f"{record} is no language model: only these have a perplexity at each length")
    try:
        factors = [int(word) for word in times.split(",")]
    except ValueError as error:
        raise BadInput(f"--times {times!r} is not a list of whole numbers", "write it as --times 1,2,4,8") from error
    if min(factors) < 1:
        raise BadInput(f"--times {times!r}: a multiple must be at least 1")
    from fairtrial.strangers import load_files

    load_files(strangers or [])
    from dataclasses import asdict
    from json import dumps
    from typing import cast

    from fairtrial.look.length import stretch
    from fairtrial.report.words import bracket, spoken_parts
    from fairtrial.revive import revive
    from fairtrial.train.bench import LanguageBench
    from fairtrial.trial import use_machine

    with use_machine(1):
        revived = revive(opened)
        bench = cast(LanguageBench, revived.bench)
        if not json:
            print(f"{record}: trained at length {bench.length}, parts: {spoken_parts(revived.recipe)}")
            print(f"{'test set':<14}{'length':>8}  perplexity (95% over documents, this one seed)")
        for each in stretch(bench, opened.trial["test_sets"], factors):
            if json:
                print(dumps(asdict(each)), flush=True)
            elif each.perplexity is None:
                print(f"{each.test:<14}{each.length:>8}  cannot go there: {each.why_not}", flush=True)
            else:
                print(f"{each.test:<14}{each.length:>8}  {each.perplexity:.1f}{bracket(each.interval)}", flush=True)
