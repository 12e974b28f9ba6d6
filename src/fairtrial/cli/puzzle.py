"""`fairtrial puzzle`: make attention do what you ask, by construction."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Option

from fairtrial.cli.declare import Call, command
from fairtrial.cli.judge import Json
from fairtrial.puzzles import puzzle as solve_puzzle

Figure = Annotated[Path | None, Option(help="Draw it (.png, .svg, .pdf).", metavar="FILE")]


@command("puzzle", solve_puzzle, "Look inside", "puzzle average 0 1", arguments=["ask", "words"])
def puzzle(call: Call, figure: Figure = None, json: Json = False) -> None:
    result = call()
    print(dumps(result.to_json()) if json else result)
    if figure is not None:
        from fairtrial.report.plots import write_figure

        write_figure(result, figure)
        if not json:
            print(f"figure: {figure}")
