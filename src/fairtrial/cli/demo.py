"""`fairtrial demo`: a small study on the embedded corpus, ending in a verdict and a page to open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.train import Json

FILE = Path(__file__).parents[1] / "studies" / "demo.toml"


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the study and its page.", metavar="FOLDER")] = Path("demo"),
    jobs: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="as many as cores", min=1)] = None,
    json: Json = False,
) -> None:
    """Three ways to tell a transformer where words stand, two tasks, five seeds: a verdict and a page in a few minutes.

    Run again, it goes on where it was stopped."""
    from fairtrial.cli.study import complete, conduct, open_engine
    from fairtrial.study.file import load_study
    from fairtrial.study.run import Wishes

    study = complete(load_study(FILE), [])
    conduct(study, out, open_engine("cores", jobs, None), Wishes(), json)
