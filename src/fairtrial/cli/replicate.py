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
    from fairtrial.apps.reports.evidence import with_validated
    from fairtrial.apps.reports.page import write_page
    from fairtrial.apps.reports.published import chosen_reports, studies_of
    from fairtrial.apps.reports.run import at_hand, estimate, find_answers, run_all
    from fairtrial.cli.screen import open_study_screen
    from fairtrial.engines.processes import Processes
    from fairtrial.errors import Interrupted
    from fairtrial.study.run import Options

    chosen = chosen_reports(reports or [])
    selection = at_hand(with_validated(studies_of(chosen)), data, seeds=seeds, quick=quick, fine_tuning=fine_tuning)
    folder = out or Path("replication-quick" if quick else "replication")
    engine = Processes(jobs)
    with open_study_screen(json) as on_event, stopping() as stop:

        def on_study_event(kind: str, facts: dict[str, Any]) -> None:
            if kind != "verdict":  # of a single study: the answers come at the end
                on_event(kind, facts)

        try:
            plans = estimate(selection, folder, engine, on_event, stop, write=not dry_run)
            on_event("notice", {"text": plan_text(plans, selection.left_out)})
            if dry_run:
                return
            seconds = run_all(selection, folder, engine, Options(retry_failed=retry_failed), on_study_event, stop)
        except Interrupted as error:
            raise Interrupted(error.what, "the same command continues where this one stopped") from error
        found = find_answers(chosen, selection, folder, lambda text: on_event("notice", {"text": f"measuring: {text}"}))
        command = spoken_command(reports or [], seeds, quick, fine_tuning)
        target = page or folder / "five-reports.md"
        written = write_page(found, target, command=command, quick=quick, seconds=seconds, width=engine.width)
    if json:
        print(dumps({"event": "answers", "page": str(written), "answers": [plain(each) for each in found.answers]}))
        return
    print()
    for each in found.answers:
        print(f"{each.claim.report}  {each.claim.says}", f"    {each.headline}. {each.because}", sep="\n")
    print(f"\npage: {written.resolve()}")


def plan_text(plans: dict[str, Any], left_out: tuple[str, ...]) -> str:
    from fairtrial.report.words import spoken_time

    lines = ["Plan:"]
    for key, plan in plans.items():
        left, seconds = plan["left"], spoken_time(plan["expected_seconds"])
        lines.append(f"  {key}: {plan['trial_count']} trials, {left} left to run; about {seconds}")
    lines += [f"  left out: {line}" for line in left_out]
    total = sum(plan["expected_seconds"] for plan in plans.values())
    return "\n".join([*lines, f"about {spoken_time(total)} in total"])


def plain(answer: Answer) -> dict[str, Any]:
    claim, at_one_rate = answer.claim, answer.at_one_rate.outcome if answer.at_one_rate else None
    return {
        "id": claim.id, "report": claim.report, "claim": claim.says, "outcome": answer.outcome,
        "at_one_rate": at_one_rate, "headline": answer.headline, "because": answer.because,
        "unsound": answer.unsound, "weak": answer.weak,
    }  # fmt: skip


def spoken_command(names: list[str], seeds: int | None, quick: bool, fine_tuning: bool) -> str:
    words = ["fairtrial", "replicate", *names, *(["--quick"] if quick else ["--data", "DIR"])]
    words += ["--seeds", str(seeds)] if seeds else []
    return " ".join([*words, *(["--fine-tuning"] if fine_tuning else [])])
