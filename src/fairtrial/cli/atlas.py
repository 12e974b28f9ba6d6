"""`fairtrial atlas`: many ideas in several studies, on one page."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairtrial.cli.options import Jobs
from fairtrial.cli.train import stopping


def atlas(
    studies: Annotated[list[Path], Argument(help="Study files, each with one task.", metavar="STUDY.toml...")],
    data: Annotated[
        Path | None, Option(help="Folder that holds the data that the studies name, or some of them.", metavar="DIR")
    ] = None,
    seeds: Annotated[
        int | None,
        Option(help="Seeds of each variant; fewer than 5 get no verdict.", show_default="as they say", min=1),
    ] = None,
    out: Annotated[Path | None, Option(help="Folder of the studies.", metavar="FOLDER", show_default="atlas")] = None,
    page: Annotated[
        Path | None,
        Option(help="The page; its figure goes beside it.", metavar="FILE.md", show_default="FOLDER/atlas.md"),
    ] = None,
    jobs: Jobs = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Run failed trials again.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the plan and run no trial.")] = False,
    json: Annotated[bool, Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Run several studies and judge them as one family: what helps, what hurts, what cannot be seen, on one page.

    P-values are corrected over all comparisons of all studies. A study whose data are not at hand is left out, and the
    page says so. Finished trials are reused: the same command continues where it was stopped."""
    from fairtrial.apps.atlas.page import WORDS
    from fairtrial.apps.atlas.run import make_atlas
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(json) as on_event, stopping() as stop:
        found = make_atlas(
            studies, data=data, seeds=seeds, out=out, page=page, jobs=jobs, retry_failed=retry_failed, dry_run=dry_run,
            on_event=on_event, stop=stop,
        )  # fmt: skip
    if found is None:
        return
    if json:
        print(dumps({"event": "atlas", "page": str(found.page), "verdict": found.verdict}))
        return
    for kind, ideas in found.answers.items():
        if ideas:
            print(f"{WORDS.get(kind, 'helps here and hurts there')}: {', '.join(ideas)}")
    print(f"\npage: {found.page.resolve()}")
