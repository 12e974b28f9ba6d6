"""`fairtrial study`, `demo`, `verdict`, `power` and `verify`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, command
from fairtrial.cli.train import DURATION, Events, asking_to_stop
from fairtrial.recipe import one_of

if TYPE_CHECKING:
    from fairtrial.results.values import Verdict

Json = Annotated[bool, Option("--json", help="Print JSON, for machines.")]


@command(
    "study",
    api.study,
    "Judge",
    "study --data novel.txt --variants learned rope alibi --seeds 5",
    arguments=["source"],
    fields=[*DURATION, *COLUMNS],
)
def study(call: Call, json: Events = False) -> None:
    run_with_screen(call, json)


@command("demo", api.demo, "Judge", "demo --out demo")
def demo(call: Call, json: Events = False) -> None:
    run_with_screen(call, json)


def run_with_screen(call: Call, json: bool) -> None:
    """Run a study and show its progress; Ctrl-C saves and tells how to continue."""
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(json) as on_event, asking_to_stop() as stop:
        call(options=replace(call.given["options"], on_event=on_event, stop=stop))


@command("verdict", api.verdict, "Judge", "verdict studies/my-study --format latex", arguments=["results"])
def verdict(
    call: Call,
    form: Annotated[
        str, Option("--format", help="text, markdown or latex (fits one column of a paper).", metavar="FORMAT")
    ] = "text",
    wide: Annotated[bool, Option("--wide", help="LaTeX: the tables of the text, wider than a column.")] = False,
    every: Annotated[
        bool,
        Option(
            "--all", help="All tables: also contamination, test reuse, audits, exploratory comparisons and the search."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        Option(help="Write a page to open in a browser, one file that needs no network.", metavar="FILE.html"),
    ] = None,
    json: Json = False,
) -> None:
    results = call.given.pop("results")
    judged = call(results[0] if len(results) == 1 else results)
    if out is not None:
        page = write_page(judged, results, out)
        facts = {"page": str(page), "bytes": page.stat().st_size}
        print(dumps(facts) if json else f"open this page: {page.resolve()}")
        return
    if json:
        print(dumps(judged.to_json()))
        return
    one_of("--format", form, ("text", "markdown", "latex"))
    if form == "latex":
        print(judged.to_latex(wide=wide, every=every))
    else:
        print(judged.to_text(every=every) if form == "text" else judged.to_markdown(every=every))


def write_page(judged: Verdict, results: Sequence[str], out: Path | None) -> Path:
    """The page of a study, which has more than its verdict, or of results."""
    from fairtrial.results.study import Study

    if len(results) == 1 and api.is_study(Path(results[0])):
        return Study(Path(results[0])).write_page(out)
    return judged.write_page(out or f"{judged.name}-report.html")


@command("verify", api.verify, "Judge", "verify submissions/* --data reviews.tsv", arguments=["records"])
def verify(call: Call, json: Json = False) -> None:
    """Exits with 1 if a claim is false."""
    verified = call(*call.given.pop("records"), quiet=json)
    print(dumps([record.to_json() for record in verified.records]) if json else verified)
    sys.exit(int(verified.false))


@command("power", api.power, "Judge", "power --seeds 5 --items 750 --spread 0.7")
def power(call: Call, json: Json = False) -> None:
    planned = call()
    numbers = {"needs": planned.rows()} if planned.needs else planned.rows()[0]
    print(dumps(numbers | {"sentence": planned.sentence}) if json else planned)
