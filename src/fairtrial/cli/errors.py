"""`fairtrial errors`: what a classifier gets wrong, how sure it is, and which words tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairtrial.cli.predict import Names, shown_names
from fairtrial.cli.texts import bar
from fairtrial.cli.train import With


def errors(
    record: Annotated[Path, typer.Argument(help="The record of a trained classifier. Its data are read again.")],
    test: Annotated[str | None, typer.Option(help="One test set only.", show_default="all")] = None,
    bins: Annotated[int, typer.Option(help="Bins of the reliability curve.", min=1, max=100)] = 10,
    most: Annotated[int, typer.Option(help="Mistakes and words to show.", min=1)] = 10,
    telling: Annotated[bool, typer.Option("--telling/--no-telling", help="Look for the most telling words.")] = True,
    names: Names = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to open in a browser, too.", metavar="FILE")] = None,
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Show a classifier's confusions, its calibration, its most confident mistakes and its most telling words."""
    from fairtrial.errors import BadInput
    from fairtrial.names import near
    from fairtrial.record import Record

    opened = Record.open(record)
    if opened.recipe.task != "classify":
        raise BadInput(
            f"{record} is no classifier; only classifiers have a confusion", "see: fairtrial surprise --help"
        )
    tests = [str(name) for name in opened.trial["test_sets"]]
    if test is not None and test not in tests:
        raise BadInput(f"this record has no test set {test!r}{near(test, tests)}")
    labels = shown_names(tuple(str(label) for label in opened.trial["labels"]), names)
    from typing import cast

    from fairtrial.look.errors import MOST_TEXTS, errors_of
    from fairtrial.report.words import spoken_parts
    from fairtrial.revive import revive
    from fairtrial.strangers import load_files
    from fairtrial.train.bench import ClassifyBench
    from fairtrial.trial import use_machine

    load_files(strangers or [])
    whole: dict[str, Any] = {
        "record": record.resolve().name,
        "parts": spoken_parts(opened.recipe),
        "labels": list(labels),
        "tests": {},
    }
    with use_machine(1):
        revived = revive(opened)
        bench = cast(ClassifyBench, revived.bench)
        for name in tests if test is None else [test]:
            rows, answers = bench.sets[name]
            with bar("looking for telling words", min(len(rows), MOST_TEXTS)) as tell:
                whole["tests"][name] = errors_of(
                    bench.network,
                    revived.tokenizer,
                    revived.splits.tests[name],
                    rows,
                    answers,
                    labels,
                    known=[document.text for document in revived.splits.train],
                    bins=bins,
                    most=most,
                    telling=telling,
                    tell=tell,
                )
    if json:
        import json as writer

        print(writer.dumps(whole))
    else:
        from fairtrial.report.errors_text import errors_lines

        for number, (name, found) in enumerate(whole["tests"].items()):
            print("\n" * (number > 0) + "\n".join(errors_lines(name, found, labels)))
    if html is not None:
        from fairtrial.disk import write_text
        from fairtrial.report.errors_page import errors_page

        write_text(html, errors_page(whole))
        if not json:
            print(f"page: {html}")
