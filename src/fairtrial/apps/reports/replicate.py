"""The five reports, retried from the first trial to the page: what `fairtrial replicate` calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.apps.reports.claims import Answer
from fairtrial.apps.reports.evidence import with_validated
from fairtrial.apps.reports.page import write_page
from fairtrial.apps.reports.published import chosen_reports, studies_of
from fairtrial.apps.reports.run import at_hand, estimate, find_answers, run_all
from fairtrial.engines import Stop, open_engine
from fairtrial.errors import Interrupted
from fairtrial.report import spoken_time
from fairtrial.study import OnEvent, Options


@dataclass(frozen=True)
class Answers:
    """What became of each claim, and the page that tells it."""

    page: Path
    answers: list[Answer]


def replicate(
    reports: Sequence[str] = (), *, data: str | Path | None = None, seeds: int | None = None, quick: bool = False,
    fine_tuning: bool = False, out: str | Path | None = None, page: str | Path | None = None, jobs: int | None = None,
    retry_failed: bool = False, dry_run: bool = False, on_event: OnEvent = lambda kind, facts: None,
    stop: Stop = lambda: False,
) -> Answers | None:  # fmt: skip
    """Retry the five reports, or some of them, as `fairtrial replicate` does; with `dry_run` only the plan is told."""
    chosen = chosen_reports(list(reports))
    place = None if data is None else Path(data)
    selection = at_hand(with_validated(studies_of(chosen)), place, seeds=seeds, quick=quick, fine_tuning=fine_tuning)
    folder = Path(out or ("replication-quick" if quick else "replication"))
    engine = open_engine("cores", jobs)

    def on_study_event(kind: str, facts: dict[str, Any]) -> None:
        if kind != "verdict":  # of a single study: the answers come at the end
            on_event(kind, facts)

    try:
        plans = estimate(selection, folder, engine, on_event, stop, write=not dry_run)
        on_event("notice", {"text": plan_text(plans, selection.left_out)})
        if dry_run:
            return None
        seconds = run_all(selection, folder, engine, Options(retry_failed=retry_failed), on_study_event, stop)
    except Interrupted as error:
        raise Interrupted(error.what, "the same command continues where this one stopped") from error
    found = find_answers(chosen, selection, folder, lambda text: on_event("notice", {"text": f"measuring: {text}"}))
    command = spoken_command(list(reports), seeds, quick, fine_tuning)
    target = Path(page) if page is not None else folder / "five-reports.md"
    written = write_page(found, target, command=command, quick=quick, seconds=seconds, width=engine.width)
    return Answers(written, found.answers)


def plan_text(plans: dict[str, Any], left_out: tuple[str, ...]) -> str:
    lines = ["Plan:"]
    for key, plan in plans.items():
        left, seconds = plan["left"], spoken_time(plan["expected_seconds"])
        lines.append(f"  {key}: {plan['trial_count']} trials, {left} left to run; about {seconds}")
    lines += [f"  left out: {line}" for line in left_out]
    total = sum(plan["expected_seconds"] for plan in plans.values())
    return "\n".join([*lines, f"about {spoken_time(total)} in total"])


def spoken_command(names: list[str], seeds: int | None, quick: bool, fine_tuning: bool) -> str:
    words = ["fairtrial", "replicate", *names, *(["--quick"] if quick else ["--data", "DIR"])]
    words += ["--seeds", str(seeds)] if seeds else []
    return " ".join([*words, *(["--fine-tuning"] if fine_tuning else [])])
