"""`fairtrial show` and `fairtrial recipe`: look at a record or a recipe. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def show(
    record: Annotated[Path, typer.Argument(help="The folder of a record.")],
    html: Annotated[Path | None, typer.Option(help="Write a page to open in a browser, too.", metavar="FILE")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw loss and score of all splits in one figure (.png, .svg, .pdf).", metavar="FILE"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object, for machines.")] = False,
) -> None:
    """Show what was trained: recipe, parameter count, curves, results, fingerprints."""
    from fairtrial.record import Record

    opened = Record.open(record)
    if json:
        import json as writer

        from fairtrial.recipe_file import to_table

        result = opened.result if opened.complete else None
        whole = {"recipe": to_table(opened.recipe), "trial": opened.trial, "result": result, "events": opened.events()}
        print(writer.dumps(whole))
    else:
        from fairtrial.report.record_text import record_lines

        for line in record_lines(opened):
            print(line)
    if figure is not None:
        from fairtrial.disk import write_bytes
        from fairtrial.report.curves_figure import curves_figure

        write_bytes(figure, curves_figure(opened, figure.suffix.lstrip(".").lower() or "png"))
        if not json:
            print(f"figure: {figure}")
    if html is not None:
        from fairtrial.disk import write_text
        from fairtrial.report.page import records_page

        write_text(html, records_page([opened], f"fairtrial: {record.name}"))
        if not json:
            print(f"page: {html}")


def recipe(
    task: Annotated[str, typer.Argument(help="'classify', 'lm' or 'mlm'.")] = "classify",
    name: Annotated[str, typer.Argument(help="A built-in recipe: 'default', 'course' or 'finetune'.")] = "default",
) -> None:
    """Print a built-in recipe as TOML with every field and its meaning, to start your own from."""
    from fairtrial.recipe import TASKS, one_of
    from fairtrial.recipe_file import built_in_recipe, write_recipe

    one_of("task", task, TASKS)
    print(write_recipe(built_in_recipe(name, task)), end="")
