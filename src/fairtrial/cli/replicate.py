"""`fairtrial replicate`: the five reports, retried."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairtrial.cli.options import Jobs
from fairtrial.cli.train import stopping

if TYPE_CHECKING:
    from fairtrial.apps.reports.claims import Answer


def replicate(
    reports: Annotated[
        list[str] | None, Argument(help="Which reports: r0 to r4. Default: all.", metavar="[REPORT]...")
    ] = None,
    data: Annotated[
        Path | None,
        Option(
            help="Folder that holds speeches/, lm1b/ and sst2/, or some of them (and r4-samples.tsv: normal, weird"
            " or long, a tab, the sentence as r4 prints it).",
            metavar="DIR",
        ),
    ] = None,
    seeds: Annotated[
        int | None, Option(help="Seeds of each variant; fewer than 5 get no verdict.", show_default="5", min=1)
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Small models on the embedded corpus, in a few minutes.")] = False,
    fine_tuning: Annotated[
        bool, Option("--fine-tuning", help="Also compare r4's optimizers on MiniLM: about an hour more.")
    ] = False,
    out: Annotated[
        Path | None, Option(help="Folder of the studies.", metavar="FOLDER", show_default="replication")
    ] = None,
    page: Annotated[
        Path | None,
        Option(help="The page; figures go beside it.", metavar="FILE.md", show_default="FOLDER/five-reports.md"),
    ] = None,
    jobs: Jobs = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Run failed trials again.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the plan and run no trial.")] = False,
    json: Annotated[bool, Option("--json", help="Events as JSON lines.")] = False,
) -> None:
    """Retry the five reports: every published figure and every claim, over several seeds, ending in a page. Each study
    is run as the report ran it and, except for fine-tuning, once more with weights chosen on validation.

    Finished trials are reused: the same command continues where it was stopped."""
    from fairtrial.apps.reports.replicate import replicate as retry
    from fairtrial.cli.screen import open_study_screen

    with open_study_screen(json) as on_event, stopping() as stop:
        found = retry(
            reports or (), data=data, seeds=seeds, quick=quick, fine_tuning=fine_tuning, out=out, page=page, jobs=jobs,
            retry_failed=retry_failed, dry_run=dry_run, on_event=on_event, stop=stop,
        )  # fmt: skip
    if found is None:
        return
    if json:
        print(dumps({"event": "answers", "page": str(found.page), "answers": [plain(each) for each in found.answers]}))
        return
    print()
    for each in found.answers:
        print(f"{each.claim.report}  {each.claim.says}", f"    {each.headline}. {each.because}", sep="\n")
    print(f"\npage: {found.page.resolve()}")


def plain(answer: Answer) -> dict[str, Any]:
    claim, at_one_rate = answer.claim, answer.at_one_rate.outcome if answer.at_one_rate else None
    return {
        "id": claim.id, "report": claim.report, "claim": claim.says, "outcome": answer.outcome,
        "at_one_rate": at_one_rate, "headline": answer.headline, "because": answer.because,
        "unsound": answer.unsound, "weak": answer.weak,
    }  # fmt: skip
