"""A study from its value to its verdict: the whole flow, the file to read first in this package."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.engines.job import Engine, InProcess, JobResult, Stop
from fairtrial.errors import Interrupted
from fairtrial.events import StudyJudged, StudyNotice, StudyPlanned, TrialsStarted
from fairtrial.formatting import vocabulary_of
from fairtrial.progress import status
from fairtrial.results.values import AuditLevel, Sentence, TaskVerdict, Untuned, Verdict
from fairtrial.results.verdict_file import write_verdict
from fairtrial.statistics.multiplicity import ALPHA, LOOKS, Look
from fairtrial.statistics.outcomes import TaskOutcomes
from fairtrial.statistics.power import expected_smallest
from fairtrial.statistics.verdict import judge_study
from fairtrial.stored_study import FailedTrial, PlanSummary, StoredSearch
from fairtrial.study.artifacts import (
    baseline_jobs,
    data_audit_jobs,
    gather,
    keep_artifact,
    passport_jobs,
    write_parameters,
)
from fairtrial.study.design import Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.match import match_parameters, match_sentences, match_summary
from fairtrial.study.plan import (
    Chosen,
    OnEvent,
    Plan,
    calibrate,
    fit_budget,
    make_plan,
    missing,
    run_jobs,
    to_run,
)
from fairtrial.study.search import (
    chosen_by,
    earlier_choice,
    run_search,
    search_seconds_left,
    search_summary,
    tries_of,
    tuning_sentences,
)
from fairtrial.study.tables import load_study, study_from


@dataclass(frozen=True)
class Options:
    """How a study is run; what it is, the study itself says."""

    budget_seconds: float | None = None
    most_seeds: int | None = None  # with a budget
    until_clear: bool = False
    retry_failed: bool = False
    dry_run: bool = False


def run_study(
    study: Study,
    folder: Path,
    engine: Engine,
    options: Options | None = None,
    on_event: OnEvent = lambda event: None,
    stop: Stop = lambda: False,
) -> Verdict | None:
    """Run what is missing in `folder`, judge, and write the page. None: only the plan was asked for."""
    options, home = options or Options(), StudyFolder(folder)
    home.check_own_folder()
    try:
        plan, decision = plan_study(study, home, engine, options, on_event, stop)
    except Interrupted as error:
        raise Interrupted("stopped while planning: no trial was run, nothing was saved") from error
    summary = describe(plan, engine, options, decision)
    on_event(StudyPlanned(summary))
    if options.dry_run:
        return None
    with home.hold():
        plan.write(summary)
        search: StoredSearch | None = None
        if plan.study.search is not None:
            search = run_search(plan, engine, on_event, stop, retry_failed=options.retry_failed)
            chosen = chosen_by(search)
            plan = measured(plan.with_recipes(chosen), chosen, engine, on_event, stop)
            plan.write()
        first = len(plan.study.seeds)
        for seeds in [look.seeds for look in LOOKS if look.seeds >= first] if options.until_clear else [first]:
            if seeds != len(plan.study.seeds):
                on_event(StudyNotice(f"inconclusive at {len(plan.study.seeds)} seeds: going on to {seeds}"))
                plan = replace(plan, study=plan.study.with_seeds(seeds))
                plan.write(describe(plan, engine, options, decision))
            run_missing(plan, engine, options, on_event, stop)
            with status("judging"):
                verdict = judge(plan, options, search)
            plan = replace(plan, looks=tuple(dict.fromkeys((*plan.looks, seeds))))
            if verdict.clear:
                break
        plan.write()  # that so many seeds were judged
        write_parameters(plan)
        write_verdict(home.path / "verdict.json", verdict)  # it stands before the page is drawn
        from fairtrial.report.study_page import write_study_page

        with status("drawing the page"):
            page = write_study_page(folder)
        on_event(StudyJudged(verdict, str(page), str(folder)))
    return verdict


def plan_study(
    study: Study, home: StudyFolder, engine: Engine, options: Options, on_event: OnEvent, stop: Stop
) -> tuple[Plan, str]:
    """The plan, with the speed of every variant; and what a budget decided, in words."""
    started = time.monotonic()
    if options.until_clear:
        study = study.with_seeds(LOOKS[0].seeds)
    plan = make_plan(study, home)
    every = plan.eval_sets.values()
    few = [why for sets in every for name in sets.items if (why := sets.too_few(name))]
    for note in dict.fromkeys([*(note for sets in every for note in sets.notes), *few]):
        on_event(StudyNotice(note))
    chosen = earlier_choice(plan)
    plan = plan.with_recipes(chosen)
    missing(plan, plan.trials())  # a folder that holds another study is refused before any work
    plan = measured(plan, chosen, engine, on_event, stop)
    if options.budget_seconds is None:
        return plan, ""
    searching = search_seconds_left(plan) / engine.width
    spent = time.monotonic() - started
    return fit_budget(plan, engine.width, options.budget_seconds, options.most_seeds, searching, spent)


def measured(plan: Plan, chosen: Chosen, engine: Engine, on_event: OnEvent, stop: Stop) -> Plan:
    """With the speed of every variant, those with matched parameters included."""
    plan = match_parameters(calibrate(plan, engine, on_event, stop), chosen)
    return calibrate(plan, engine, on_event, stop) if plan.study.match else plan


def run_missing(plan: Plan, engine: Engine, options: Options, on_event: OnEvent, stop: Stop) -> None:
    """Run what so many seeds still need."""

    def accept(result: JobResult) -> None:
        if result.job.kind != "trial":
            for text in keep_artifact(plan, result):
                on_event(StudyNotice(text))
        elif result.value is None:
            task, variant, _ = result.job.key
            plan.home.add_failure(FailedTrial(error=result.error, task=task, variant=variant, seed=result.job.seed))

    trials = [trial.job() for trial in to_run(plan, plan.trials(), on_event, retry_failed=options.retry_failed)]
    artifacts = [*data_audit_jobs(plan), *passport_jobs(plan), *baseline_jobs(plan)]
    on_event(TrialsStarted(len(plan.trials()), len(trials), len(artifacts)))
    run_jobs(engine, [*artifacts, *trials], on_event, stop, accept)
    again = [job for job in passport_jobs(plan, alone=True) if job.key not in {each.key for each in artifacts}]
    run_jobs(engine, again, on_event, stop, accept)  # where auditing all together broke down


def judge(plan: Plan, options: Options, search: StoredSearch | None = None) -> Verdict:
    chosen = {task: search_summary(own) for task, own in search.tasks.items()} if search else {}
    tasks = {task: gather(plan, task, chosen.get(task)) for task in plan.recipes}
    look = next(look for look in LOOKS if look.seeds == len(plan.study.seeds)) if options.until_clear else None
    verdict = with_untuned(plan, judge_study(plan.study.name, tasks, until_clear=options.until_clear, look=look), look)
    if plan.study.match:
        matched = {name: replace(task, match=match_summary(plan, name)) for name, task in verdict.tasks.items()}
        verdict = replace(verdict, tasks=matched)
    further = [Sentence(text, name) for name, task in verdict.tasks.items() for text in match_sentences(task)]
    for name, task in verdict.tasks.items():
        further += [Sentence(text, name) for text in tuning_sentences(plan, name, task)]
    further += training_sentences(plan)
    further += [Sentence(text, name) for name, task in verdict.tasks.items() for text in data_sentences(task)]
    further += [*own_weights_sentences(plan), *(Sentence(text) for text in earlier_looks(plan, options))]
    return replace(verdict, sentences=(*verdict.sentences, *further))


def gather_outcomes(folder: Path) -> dict[str, TaskOutcomes]:
    """Of every task of a study that was run, as its verdict is given them."""
    home = StudyFolder(folder)
    study = study_from(load_study(home.path / "study.toml"))
    plan, _ = plan_study(study, home, InProcess(), Options(), lambda event: None, lambda: False)
    return {task: gather(plan, task) for task in plan.recipes}


def own_weights_sentences(plan: Plan) -> list[Sentence]:
    """Networks of the user's own start from weights of their own, which a pair of trials does not share."""
    sentences = []
    for task, recipes in plan.recipes.items():
        own = {name: recipe.model.name for name, recipe in recipes.items() if recipe.external}
        if own:
            text = (
                f"{', '.join(own)}: the network is the user's own ({', '.join(dict.fromkeys(own.values()))})."
                " Splits, batches and schedule are shared with the baseline, first weights are not: seeds are not"
                " paired, and a difference needs more of them."
            )
            sentences.append(Sentence(text, task))
    return sentences


def with_untuned(plan: Plan, verdict: Verdict, look: Look | None) -> Verdict:
    """With the comparisons of the variants as they were given, beside those of the tuned ones."""
    as_given = plan.study.untuned
    if not as_given or not all(plan.finished(task)[as_given[plan.study.baseline].name] for task in plan.recipes):
        return verdict
    outcomes = {task: gather(plan, task, variants=as_given) for task in plan.recipes}
    given = judge_study(plan.study.name, outcomes, until_clear=verdict.until_clear, look=look).tasks
    tasks = {
        name: replace(task, untuned=Untuned(given[name].comparisons, given[name].scores))
        for name, task in verdict.tasks.items()
    }
    return replace(verdict, tasks=tasks)


def training_sentences(plan: Plan) -> list[Sentence]:
    """Steps and epochs of each variant, where variants differ in batches or duration: of finished trials (some may stop
    early), else as planned."""
    sentences = []
    for task, measured in plan.calibration.items():
        told, asked = [], set()
        for name, own in measured.items():
            training = plan.recipes[task][name].training
            asked.add((training.batch, own.steps, own.steps_per_epoch))
            results = (record.result for record in plan.finished(task)[name].values())
            trials = [(each.steps, each.steps_per_epoch) for each in results] or [(own.steps, own.steps_per_epoch)]
            steps = span([count for count, _ in trials], ",")
            epochs = span([count / per_epoch for count, per_epoch in trials], ".1f")
            told.append(f"{name} {steps} steps of {training.batch} rows ({epochs} epochs)")
        if len(asked) > 1:
            sentences.append(Sentence(f"Training differs: {', '.join(told)}.", task))
    return sentences


def span(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def earlier_looks(plan: Plan, options: Options) -> list[str]:
    """Adding seeds after a verdict was seen is a stopping rule, and one that nobody corrects for."""
    earlier = [count for count in plan.looks if count != len(plan.study.seeds)]
    if options.until_clear or not earlier:
        return []
    counts = " and ".join(map(str, earlier))
    return [
        f"This study was judged before, with {counts} seeds: adding seeds until something shows raises false alarms"
        " above 5%; --until-clear corrects for its looks."
    ]


def data_sentences(verdict: TaskVerdict) -> list[str]:
    """Red findings on the data that clean items do not mend. All variants share them, so differences stand."""
    if verdict.data_findings is None:
        return ["The data could not be audited, so copies of test items in the training set are unknown."]
    findings = (each for each in verdict.data_findings if each.level == AuditLevel.RED)
    red = dict.fromkeys(each.name for each in findings if not each.id.startswith("D1"))
    if not red:
        return []
    return [
        f"The audit of the data is red ({', '.join(red)}). It is the same for all variants, so differences stand; the"
        " scores themselves are not what new text would get."
    ]


def describe(plan: Plan, engine: Engine, options: Options, decision: str) -> PlanSummary:
    study, seeds, trials = plan.study, len(plan.study.seeds), plan.trials()
    measured = [own for named in plan.calibration.values() for own in named.values()]
    left, _ = missing(plan, trials)
    searching = search_seconds_left(plan) / engine.width
    share_left = len(left) / max(1, len(trials))
    trained = {
        task: {name: own for name, own in named.items() if plan.trained_as(task, study.variant(name)) == name}
        for task, named in plan.calibration.items()
    }
    final = sum(own.final_seconds for named in trained.values() for own in named.values())
    paired = {task: not any(recipe.external for recipe in named.values()) for task, named in plan.recipes.items()}
    alpha = LOOKS[0].alpha if options.until_clear else ALPHA
    family = (len(study.judged) - 1) * len(plan.recipes)
    return PlanSummary(
        name=study.name,
        engine=engine.name,
        width=engine.width,
        seed_count=seeds,
        trial_count=len(trials),
        left=len(left),
        expected_seconds=round(plan.expected_seconds(engine.width, seeds) * share_left + searching, 1),
        trial_seconds={
            task: {name: round(own.seconds, 2) for name, own in named.items()} for task, named in trained.items()
        },
        final_seconds=round(seeds * final / engine.width * share_left, 1),
        memory_mb=max((own.memory_mb for own in measured), default=0.0),
        comparisons=dict.fromkeys(plan.eval_sets, family),
        vocabularies_differ=tuple(
            task for task, recipes in plan.recipes.items() if len(set(map(vocabulary_of, recipes.values()))) > 1
        ),
        smallest_detectable={
            task: str(expected_smallest(task, seeds, sets.units, alpha, family, paired=paired[task]) or "")
            for task, sets in plan.eval_sets.items()
        },
        training=tuple(f"[{each.task}] {each.text}" for each in training_sentences(plan)),
        search_tries=len(tries_of(study.search)) if study.search else 0,
        until_clear=options.until_clear,
        decision=decision,
        folder=str(plan.home.path),
    )
