"""A study from its value to its verdict: the whole flow, the file to read first in this room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.disk import disk_errors, locked, write_text
from fairtrial.engines.job import Answer, Engine, Stop
from fairtrial.engines.processes import Cores
from fairtrial.errors import BadInput, Busy
from fairtrial.statistics.multiplicity import LOOKS, Look
from fairtrial.statistics.sentences import expected_smallest
from fairtrial.statistics.verdict import is_clear, judge_study
from fairtrial.study.artifacts import draw_portraits, gather, jobs_beside, keep, passport_jobs, write_json
from fairtrial.study.design import Study, load_study, study_from, write_study
from fairtrial.study.plan import (
    OnEvent,
    Plan,
    calibrate,
    expected_seconds,
    jobs_to_run,
    make_plan,
    missing,
    nobody,
    note_failure,
    read_plan,
    run_jobs,
    trial_seconds,
    write_plan,
)
from fairtrial.study.search import fit, remembered, run_search, search_left, tries_of


@dataclass(frozen=True)
class Wishes:
    """How a study is run; what it is stands in the study itself."""

    budget_seconds: float | None = None
    most_seeds: int | None = None  # with a budget
    until_clear: bool = False
    retry_failed: bool = False
    dry_run: bool = False


def run_study(
    study: Study,
    folder: Path,
    engine: Engine,
    wishes: Wishes | None = None,
    on_event: OnEvent = nobody,
    stop: Stop = lambda: False,
) -> dict[str, Any] | None:
    """Run what is missing in `folder`, judge, and write the page. None: only the plan was asked for."""
    wishes = wishes or Wishes()
    if wishes.until_clear:
        study = study.with_seeds(LOOKS[0].seeds)
    shortened = wishes.budget_seconds is not None and shortened_before(study, folder)
    study = shortened or study
    plan = make_plan(study, folder)
    plan = plan.with_recipes(remembered(plan))
    missing(plan, plan.trials())  # a folder that holds another study is refused before any work
    plan = calibrate(plan, engine, on_event, stop)
    decision = read_plan(folder).get("decision", "") if shortened else ""
    if wishes.budget_seconds is not None and not shortened:
        plan, decision = fit(plan, engine.width, wishes.budget_seconds, wishes.most_seeds or 40)
    on_event("plan", describe(plan, engine, wishes, decision))
    if wishes.dry_run:
        return None
    with holding(folder):
        write_text(folder / "study.toml", write_study(plan.study))
        write_plan(plan, describe(plan, engine, wishes, decision))
        told: dict[str, Any] = {}
        if plan.study.search is not None:
            found = run_search(plan, engine, on_event, stop, retry_failed=wishes.retry_failed)
            told = found.told
            plan = calibrate(plan.with_recipes(found.chosen), engine, on_event, stop)
        while True:
            verdict = one_look(plan, engine, wishes, told, on_event, stop)
            plan = looked(plan)
            following = next_seeds(plan, wishes, verdict)
            if following is None:
                break
            on_event("notice", {"text": f"not clear at {len(plan.study.seeds)} seeds: going on to {following}"})
            plan = replace(plan, study=plan.study.with_seeds(following))
            write_text(folder / "study.toml", write_study(plan.study))
        finish(plan, verdict, on_event, stop)
    return verdict


def shortened_before(study: Study, folder: Path) -> Study | None:
    """The study as an earlier budget cut it short in this folder: it goes on with those steps, as it was told."""
    path = folder / "study.toml"
    if not path.is_file():
        return None
    kept = study_from(load_study(path))
    same = replace(kept, seeds=study.seeds, task_settings=study.task_settings) == study
    return kept if same and kept.task_settings != study.task_settings else None


def one_look(
    plan: Plan, engine: Engine, wishes: Wishes, search: Mapping[str, Any], on_event: OnEvent, stop: Stop
) -> dict[str, Any]:
    """Run what so many seeds still need, and judge."""
    facts = describe(plan, engine, wishes, "")
    write_plan(plan, {name: fact for name, fact in facts.items() if name != "decision"})  # which was told before
    beside = Cores(engine.width) if engine.name == "ray" else engine  # data and parts are at hand here

    def accept(answer: Answer) -> None:
        if answer.job.work == "trial":
            note_failure(plan, answer)
        else:
            keep(plan, answer)

    trials = jobs_to_run(plan, on_event, retry_failed=wishes.retry_failed)
    on_event("jobs", {"trials": len(plan.trials()), "left": len(trials), "beside": len(jobs_beside(plan))})
    if beside is engine:
        run_jobs(engine, [*jobs_beside(plan), *trials], on_event, stop, accept)
    else:
        run_jobs(beside, jobs_beside(plan), on_event, stop, accept)
        run_jobs(engine, trials, on_event, stop, accept)
    run_jobs(beside, passport_jobs(plan, alone=True), on_event, stop, accept)  # where auditing all together broke down
    tasks = {task: gather(plan, task, search.get(task)) for task in plan.recipes}
    verdict = judge_study(plan.study.name, tasks, until_clear=wishes.until_clear, look=look_of(plan, wishes))
    verdict["sentences"] += [*data_lines(verdict), *earlier_looks(plan, wishes)]
    return verdict


def looked(plan: Plan) -> Plan:
    """The plan that remembers, also on the disk, that so many seeds were judged."""
    count = len(plan.study.seeds)
    plan = replace(plan, looks=plan.looks if count in plan.looks else (*plan.looks, count))
    write_plan(plan, {})
    return plan


def finish(plan: Plan, verdict: dict[str, Any], on_event: OnEvent, stop: Stop) -> None:
    """Maps, verdict and page; the verdict stands before the page is drawn."""
    draw_portraits(plan, Cores(), on_event, stop)
    write_json(plan.folder / "verdict.json", verdict)
    from fairtrial.report.study_page import write_study_page

    page = write_study_page(plan.folder)
    on_event("verdict", {"verdict": verdict, "page": str(page), "folder": str(plan.folder)})


def look_of(plan: Plan, wishes: Wishes) -> Look | None:
    if not wishes.until_clear:
        return None
    return next(look for look in LOOKS if look.seeds == len(plan.study.seeds))


def next_seeds(plan: Plan, wishes: Wishes, verdict: Mapping[str, Any]) -> int | None:
    """Seeds of the next look, where there is one and it is needed."""
    later = [look.seeds for look in LOOKS if look.seeds > len(plan.study.seeds)]
    return later[0] if wishes.until_clear and later and not is_clear(verdict) else None


def earlier_looks(plan: Plan, wishes: Wishes) -> list[str]:
    """Adding seeds after a verdict was seen is a stopping rule, and one that nobody corrects for."""
    earlier = [count for count in plan.looks if count != len(plan.study.seeds)]
    if wishes.until_clear or not earlier:
        return []
    counts = " and ".join(map(str, earlier))
    return [
        f"This study was judged before, with {counts} seeds: going on until something shows raises false alarms above"
        " 5%; --until-clear corrects for its looks."
    ]


def data_lines(verdict: Mapping[str, Any]) -> list[str]:
    """Red findings on the data that clean items do not mend. All variants share them, so differences stand."""
    lines = []
    for task, facts in verdict["tasks"].items():
        if not facts.get("contamination"):
            lines.append(f"{task}: the data could not be audited, so nobody knows which test items stand in train.")
        findings = (facts.get("contamination") or {}).get("findings", [])
        red = {each["name"]: None for each in findings if each["verdict"] == "RED" and not each["id"].startswith("D1")}
        if red:
            lines.append(
                f"{task}: the audit of the data is red ({', '.join(red)}). It is the same for all variants, so"
                " differences stand; the scores themselves are not what new text would get."
            )
    return lines


def describe(plan: Plan, engine: Engine, wishes: Wishes, decision: str) -> dict[str, Any]:
    """The plan in plain values."""
    study, seeds = plan.study, len(plan.study.seeds)
    trials = plan.trials()
    left, _ = missing(plan, trials)
    search = study.search
    search_seconds = search_left(plan) / engine.width
    share_left = len(left) / max(1, len(trials))
    smallest = {
        task: {name: str(expected_smallest(task, seeds, items) or "") for name, items in ground.items.items()}
        for task, ground in plan.grounds.items()
    }
    return {
        "name": study.name,
        "engine": engine.name,
        "width": engine.width,
        "seed_count": seeds,
        "trial_count": len(trials),
        "left": len(left),
        "expected_seconds": round(expected_seconds(plan, engine.width, seeds) * share_left + search_seconds, 1),
        "trial_seconds": {
            task: {name: round(trial_seconds(facts), 2) for name, facts in named.items()}
            for task, named in plan.calibration.items()
        },
        "smallest_detectable": smallest,
        "search_tries": len(tries_of(search)) if search else 0,
        "until_clear": wishes.until_clear,
        "decision": decision,
        "folder": str(plan.folder),
    }


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold the study's folder; a second `fairtrial study` on it is refused."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / "study.lock"):
            yield
    except Busy as error:
        if "study.lock" in str(error) or str(error).startswith(f"{folder}:"):
            raise Busy(
                f"{folder}: another process is running this study", "wait for it, or choose another --out"
            ) from error
        raise


def refuse_strange_folder(folder: Path) -> None:
    """A folder that holds something else is not turned into a study."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file", "choose another folder with --out")
    if (folder / "study.toml").is_file() or not folder.is_dir():
        return
    if any(path.name != "study.lock" for path in folder.iterdir()):
        raise BadInput(f"{folder} is not empty and holds no study", "choose another folder with --out")
