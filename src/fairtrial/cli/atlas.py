"""`fairtrial atlas` and `fairtrial scaling`: many ideas in several studies, one study at several sizes."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairtrial.cli.options import Jobs
from fairtrial.cli.train import stopping
from fairtrial.errors import BadInput

Data = Annotated[Path | None, Option(help="Folder that holds the data that a study file names.", metavar="DIR")]
Seeds = Annotated[
    int | None,
    Option(help="Seeds of each variant; fewer than 5 get no verdict.", show_default="as the file says", min=1),
]
RetryFailed = Annotated[bool, Option("--retry-failed", help="Run failed trials again.")]
DryRun = Annotated[bool, Option("--dry-run", help="Show the plan and run no trial.")]
Json = Annotated[bool, Option("--json", help="Events as JSON lines.")]


def atlas(
    studies: Annotated[list[Path], Argument(help="Study files, each with one task.", metavar="STUDY.toml...")],
    data: Data = None,
    seeds: Seeds = None,
    out: Annotated[Path | None, Option(help="Folder of the studies.", metavar="FOLDER", show_default="atlas")] = None,
    page: Annotated[
        Path | None,
        Option(help="The page; its figure goes beside it.", metavar="FILE.md", show_default="FOLDER/atlas.md"),
    ] = None,
    jobs: Jobs = None,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    json: Json = False,
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


def scaling(
    study: Annotated[Path, Argument(help="A study file with one task.", metavar="STUDY.toml")],
    widths: Annotated[str, Option(help="Widths of the network.", metavar="LIST")] = "32,64,128",
    shares: Annotated[str, Option(help="Shares of the training text.", metavar="LIST")] = "0.25,0.5,1",
    data: Data = None,
    seeds: Seeds = None,
    out: Annotated[
        Path | None, Option(help="Folder of the studies.", metavar="FOLDER", show_default="scaling-STUDY")
    ] = None,
    page: Annotated[
        Path | None,
        Option(help="The page; its figure goes beside it.", metavar="FILE.md", show_default="FOLDER/scaling.md"),
    ] = None,
    jobs: Jobs = None,
    retry_failed: RetryFailed = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run a study at several widths with several amounts of training text: does a difference grow, stay or vanish?

    The feed-forward layer keeps its proportion to the width. Finished trials are reused: the same command continues
    where it was stopped."""
    from fairtrial.apps.atlas.scaling import in_words, make_scaling, per_doubling
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(json) as on_event, stopping() as stop:
        found = make_scaling(
            study, widths=[int(each) for each in numbers("--widths", widths)], shares=numbers("--shares", shares),
            data=data, seeds=seeds, out=out, page=page, jobs=jobs, retry_failed=retry_failed, dry_run=dry_run,
            on_event=on_event, stop=stop,
        )  # fmt: skip
    if found is None:
        return
    for one in found.found:
        for each in one.trends:
            words = f"{per_doubling(one, each)} with every doubling of the {each.size}: {in_words(one, each)}"
            fact = {"event": "trend", "variant": one.variant, "set": one.set, "metric": one.metric, **vars(each)}
            print(dumps(fact) if json else f"{one.variant}, {one.set}: {words}")
    print(dumps({"event": "page", "page": str(found.page)}) if json else f"\npage: {found.page.resolve()}")


def numbers(option: str, text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError as error:
        raise BadInput(f"{option} {text!r} is not a list of numbers", f"write it as {option} 32,64,128") from error
