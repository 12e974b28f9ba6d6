"""`fairtrial verdict` and `fairtrial report`: a study's verdict as tables, its page written again. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(help="The folder of a study.", metavar="STUDY")]


def verdict(
    study: Folder,
    form: Annotated[
        str, typer.Option("--format", help="Tables as 'text', 'markdown' or 'latex' (booktabs).", metavar="FORMAT")
    ] = "text",
    every: Annotated[
        bool,
        typer.Option("--all", help="Every table: contamination, looks at test, passports, exploration, search, too."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The whole verdict as one JSON object, for machines.")] = False,
) -> None:
    """Is it really better? The verdict of a finished study, in sentences and tables."""
    from fairtrial.recipe import one_of
    from fairtrial.report.study_folder import StudyFolder

    if json:
        from json import dumps

        print(dumps(StudyFolder.open(study).read("verdict.json")))
        return
    from fairtrial.report.verdict_text import FORMATS, verdict_lines

    one_of("--format", form, tuple(FORMATS))
    for line in verdict_lines(StudyFolder.open(study).verdict, form, every=every):
        print(line)


def report(
    study: Folder,
    json: Annotated[bool, typer.Option("--json", help="Print where the page is as JSON, for machines.")] = False,
) -> None:
    """Write a study's page again (report.html in its folder), one file that needs no network."""
    from fairtrial.report.study_page import write_study_page

    page = write_study_page(study)
    if json:
        from json import dumps

        print(dumps({"page": str(page), "bytes": page.stat().st_size}))
    else:
        print(f"open this page: {page.resolve()}")
