"""`fairtrial mix`: a trained transformer and models that count words, as one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.train import With


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
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Mix a transformer with Kneser-Ney (or, for classifiers, naive Bayes and logistic regression).

    The weights are chosen on validation alone; then mixture and models are scored on the test sets, over all seeds.
    """
    from json import dumps

    from fairtrial.cli.baseline import tell_progress
    from fairtrial.mix.run import mix_records
    from fairtrial.record import Record
    from fairtrial.report.mix_text import mix_lines
    from fairtrial.strangers import load_files
    from fairtrial.trial import use_machine

    opened = [Record.open(folder) for folder in records]
    choosing = [Record.open(folder) for folder in chosen_on or []]
    load_files(strangers or [])
    with use_machine(1):
        found = mix_records(
            opened, choosing, more or [], tests=tests, tell=(lambda what: None) if json else tell_progress
        )
    if json:
        print(dumps(found))
        return
    tell_progress("")
    print("\n".join(mix_lines(found)))
