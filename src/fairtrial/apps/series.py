"""Several studies, one after the other: what is left of each and how long it takes, then all of them, in one folder."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors, read_json, write_text
from fairtrial.engines import Engine, Stop
from fairtrial.errors import Interrupted
from fairtrial.report import spoken_time
from fairtrial.study import (
    OnEvent,
    Options,
    Plan,
    Study,
    StudyFolder,
    describe,
    earlier_choice,
    make_plan,
    plan_study,
    run_study,
)

TIMES = "replication.json"  # the seconds of each study, over all runs


@dataclass(frozen=True)
class Series:
    """What is run, and what is not and why."""

    studies: dict[str, Study]
    left_out: tuple[str, ...]


def run_series(
    series: Series, out: Path, engine: Engine, options: Options, on_event: OnEvent, stop: Stop
) -> float | None:
    """Tell the plan, then run what is missing. Returns the seconds of all runs so far; None: only the plan was asked
    for."""

    def on_study_event(kind: str, facts: dict[str, Any]) -> None:
        if kind != "verdict":  # of a single study: the answers come at the end
            on_event(kind, facts)

    try:
        plans = estimate(series, out, engine, on_event, stop, write=not options.dry_run)
        on_event("notice", {"text": plan_text(plans, series.left_out)})
        return None if options.dry_run else run_all(series, out, engine, options, on_study_event, stop)
    except Interrupted as error:
        raise Interrupted(error.what, "the same command continues where this one stopped") from error


def estimate(
    series: Series, out: Path, engine: Engine, on_event: OnEvent, stop: Stop, *, write: bool
) -> dict[str, Any]:
    """The plan of every study by its name. With `write` the measured speed is stored, to be measured once."""
    plans = {}
    for key, study in series.studies.items():
        home = StudyFolder(out / key)
        home.check_own_folder()
        plan, _ = plan_study(study, home, engine, Options(), on_event, stop)
        if stop():
            raise Interrupted("stopped before any trial")
        plans[key] = describe(plan, engine, Options(), "")
        if write:
            plan.write(plans[key])
    return plans


def plan_text(plans: dict[str, Any], left_out: tuple[str, ...]) -> str:
    lines = ["Plan:"]
    for key, plan in plans.items():
        left, seconds = plan["left"], spoken_time(plan["expected_seconds"])
        lines.append(f"  {key}: {plan['trial_count']} trials, {left} left to run; about {seconds}")
    lines += [f"  left out: {line}" for line in left_out]
    total = sum(plan["expected_seconds"] for plan in plans.values())
    return "\n".join([*lines, f"about {spoken_time(total)} in total"])


def run_all(series: Series, out: Path, engine: Engine, options: Options, on_event: OnEvent, stop: Stop) -> float:
    """Run what is missing. Returns the seconds of all runs so far."""
    path = out / TIMES
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for key, study in series.studies.items():
        before, began = finished_trials(out / key), time.monotonic()
        try:
            run_study(study, out / key, engine, options, on_event, stop)
        finally:
            seconds = read_json(path).get("seconds", {})
            new = finished_trials(out / key) > before  # reading finished ones again does not count
            took = time.monotonic() - began if new else 0.0
            seconds[key] = round(seconds.get(key, 0.0) + took, 1)
            write_text(path, json.dumps({"format": 1, "seconds": seconds}, indent=1) + "\n")
    return float(sum(seconds for key, seconds in read_json(path)["seconds"].items() if key in series.studies))


def finished_trials(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("result.json"))


def planned(study: Study, folder: Path) -> Plan:
    """The plan, with what a search chose in this folder before."""
    plan = make_plan(study, StudyFolder(folder))
    return plan.with_recipes(earlier_choice(plan))
