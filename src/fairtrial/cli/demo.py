"""`fairtrial demo`: the main job on the embedded corpus, ending in a page to open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.train import Json, choose_recipe, listening, stopping


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the records and the page.", metavar="FOLDER")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Names all dice.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Train a classifier and a language model on the embedded speeches, and write a page to open."""
    from fairtrial.disk import write_text
    from fairtrial.record import Record
    from fairtrial.report.page import records_page
    from fairtrial.trial import resume_trial, run_trial

    records = []
    for task in ("classify", "lm"):
        recipe = choose_recipe(task, "default", None, [])
        folder = out / f"{task}-seed{seed}"
        with listening(folder, recipe, json, None) as listen, stopping() as stop:
            if (folder / "trial.json").is_file():
                records.append(resume_trial(folder, listen=listen, stop=stop))
            else:
                records.append(run_trial(recipe, seed, folder, listen=listen, stop=stop))
        if not json:
            print()
    page = out / "report.html"
    write_text(
        page, records_page([Record.open(record.folder) for record in records], "A classifier and a language model")
    )
    if not json:
        print(f"open this page: {page.resolve()}")
