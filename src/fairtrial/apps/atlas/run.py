"""The studies of an atlas one after the other, judged as one family: what `fairtrial atlas` calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairtrial.apps.atlas.page import Made, answers_of, ideas_of, write_page
from fairtrial.apps.series import Series, run_series
from fairtrial.engines import Stop, open_engine
from fairtrial.errors import BadInput
from fairtrial.statistics import judge_study
from fairtrial.study import OnEvent, Options, Plan, StudyFolder, gather, load_study, plan_study, study_from


@dataclass(frozen=True)
class Atlas:
    """Its page, what it says in short, and the verdict over all studies: a task of it is a study."""

    page: Path
    answers: dict[str, list[str]]  # better, worse, mixed, same, undetected ... -> ideas
    verdict: dict[str, Any]


def make_atlas(
    studies: Sequence[str | Path], *, data: str | Path | None = None, seeds: int | None = None,
    out: str | Path | None = None, page: str | Path | None = None, jobs: int | None = None, retry_failed: bool = False,
    dry_run: bool = False, on_event: OnEvent = lambda kind, facts: None, stop: Stop = lambda: False,
) -> Atlas | None:  # fmt: skip
    """Run the studies of these files, and judge them as one family; with `dry_run` only the plan is told."""
    series = at_hand([Path(each) for each in studies], None if data is None else Path(data), seeds)
    folder, engine = Path(out or "atlas"), open_engine("cores", jobs)
    options = Options(retry_failed=retry_failed, dry_run=dry_run)
    seconds = run_series(series, folder, engine, options, on_event, stop)
    if seconds is None:
        return None
    plans: dict[str, Plan] = {}
    for key, study in series.studies.items():
        plans[key], _ = plan_study(study, StudyFolder(folder / key), engine, Options(), on_event, stop)
    outcomes = {key: gather(plan, plan.study.tasks[0]) for key, plan in plans.items()}
    verdict = judge_study("atlas", outcomes, one_family=True)
    made = Made(spoken_command(studies, data is not None, seeds), seconds, engine.width, series.left_out)
    ideas = ideas_of(verdict, plans)
    written = write_page(verdict, plans, ideas, Path(page or folder / "atlas.md"), made)
    return Atlas(written, answers_of(ideas), verdict)


def at_hand(files: Sequence[Path], data: Path | None, seeds: int | None) -> Series:
    """The studies whose data are there, by the names of their files. Data other than the embedded speeches are a folder
    of `data`, if that is given."""
    studies, left_out = {}, []
    for file in files:
        study = study_from(load_study(file))
        if len(study.tasks) != 1 or study.search is not None:
            what = f"{file}: a study of an atlas has one task and no search"
            raise BadInput(what, f'tasks = ["{study.tasks[0]}"]; another file may hold the other task')
        key = file.stem.removeprefix("atlas-")
        if key in studies:
            raise BadInput(f"two study files are called {file.name}", "rename one: its name is the study's")
        if study.data not in ("", "sotu"):
            name = Path(study.data).name
            place = Path(study.data) if data is None else data / name
            if not place.exists():
                hint = "say where it is with --data DIR" if data is None else f"{data} has none of that name"
                left_out.append(f"{key}: its data, {name}, are not here ({hint})")
                continue
            study = replace(study, data=str(place.resolve()))
        studies[key] = study.with_seeds(seeds) if seeds else study
    if not studies:
        raise BadInput("nothing can be run: " + ("; ".join(left_out) or "no study file is given"))
    if len(baselines := {study.baseline for study in studies.values()}) > 1:
        raise BadInput(f"the studies have different baselines: {', '.join(sorted(baselines))}")
    return Series(studies, tuple(left_out))


def spoken_command(files: Sequence[str | Path], data: bool, seeds: int | None) -> str:
    words = ["fairtrial", "atlas", *(str(each) for each in files), *(["--data", "DIR"] if data else [])]
    return " ".join([*words, *(["--seeds", str(seeds)] if seeds else [])])
