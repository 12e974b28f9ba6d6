"""The five reports, retried from the first trial to the page: what `fairtrial replicate` calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.apps.reports.claims import Answer
from fairtrial.apps.reports.evidence import with_validated
from fairtrial.apps.reports.page import write_page
from fairtrial.apps.reports.published import chosen_reports, studies_of
from fairtrial.apps.reports.run import at_hand, find_answers
from fairtrial.apps.series import run_series
from fairtrial.engines import Stop, open_engine
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

    options = Options(retry_failed=retry_failed, dry_run=dry_run)
    seconds = run_series(selection, folder, engine, options, on_event, stop)
    if seconds is None:
        return None
    found = find_answers(chosen, selection, folder, lambda text: on_event("notice", {"text": f"measuring: {text}"}))
    command = spoken_command(list(reports), seeds, quick, fine_tuning)
    target = Path(page) if page is not None else folder / "five-reports.md"
    written = write_page(found, target, command=command, quick=quick, seconds=seconds, width=engine.width)
    return Answers(written, found.answers)


def spoken_command(names: list[str], seeds: int | None, quick: bool, fine_tuning: bool) -> str:
    words = ["fairtrial", "replicate", *names, *(["--quick"] if quick else ["--data", "DIR"])]
    words += ["--seeds", str(seeds)] if seeds else []
    return " ".join([*words, *(["--fine-tuning"] if fine_tuning else [])])
