"""A study from its value to its verdict: the whole flow, the file to read first in this package."""

from __future__ import annotations

import hashlib
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairtrial.disk import disk_errors, write_text
from fairtrial.engines import Engine, InProcess, Job, JobResult, Stop
from fairtrial.errors import BadInput, Interrupted
from fairtrial.events import JobsListed, StudyJudged, StudyNotice, StudyPlanned, TrialsStarted
from fairtrial.progress import status
from fairtrial.recipe import PROBES
from fairtrial.results.sentences import limits_of
from fairtrial.results.study import write_verdict
from fairtrial.results.values import AuditLevel, Rule, TaskVerdict, Verdict
from fairtrial.statistics.multiplicity import ALPHA, LOOKS
from fairtrial.statistics.outcomes import TaskOutcomes
from fairtrial.statistics.power import expected_smallest
from fairtrial.statistics.verdict import judge_study
from fairtrial.stored import FailedTrial, PastLook, PlanSummary, StoredSearch
from fairtrial.study.artifacts import (
    baseline_jobs,
    blocked,
    data_audit_jobs,
    gather,
    keep_artifact,
    passport_jobs,
    trained_jobs,
)
from fairtrial.study.design import METRIC, Study
from fairtrial.study.folder import StudyFolder
from fairtrial.study.plan import (
    OnEvent,
    Plan,
    calibrate,
    fit_budget,
    make_plan,
    missing,
    recipes_of,
    run_jobs,
    to_run,
)
from fairtrial.study.search import (
    FACTORS,
    chosen_by,
    earlier_choice,
    run_search,
    search_again,
    search_seconds_left,
    tries_of,
    tuning_sentences,
)
from fairtrial.study.tables import load_study, study_from

JUDGED_BEFORE = "this study was judged before, on other data or with another question"


@dataclass(frozen=True)
class Options:
    """How a study is run; what it is, the study itself says."""

    budget_seconds: float | None = None
    most_seeds: int | None = None  # with a budget
    rule: Rule = Rule.FIXED
    retry_failed: bool = False
    dry_run: bool = False
    list_jobs: bool = False  # of the trials that are missing
    collect: bool = False  # all trials were run elsewhere


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
            plan = calibrate(plan.with_recipes(chosen_by(search)), engine, on_event, stop)
            plan.write()
        first = len(plan.study.seeds)
        planned = [look.seeds for look in LOOKS if look.seeds >= first]
        for seeds in planned if options.rule == Rule.UNTIL_CLEAR else [first]:
            if seeds != len(plan.study.seeds):
                on_event(StudyNotice(f"undecided at {len(plan.study.seeds)} seeds: going on to {seeds}"))
                plan = replace(plan, study=plan.study.with_seeds(seeds))
                plan.write(describe(plan, engine, options, decision))
            commands = run_missing(plan, engine, options, on_event, stop)
            if options.list_jobs:
                on_event(JobsListed(tuple(commands)))
                return None
            with status("judging"):
                verdict, look = judge(plan, options.rule, search)
            if look is not None and not any(look.same(past) for past in plan.looks):
                plan = replace(plan, looks=(*plan.looks, look))
            plan.write()  # what was judged
            decided = [
                (task, each.variant)
                for task in verdict.tasks
                for each in verdict.tasks[task].comparisons
                if each.decided
            ]
            plan = replace(plan, settled={**dict.fromkeys(decided, seeds), **plan.settled})
            if verdict.clear:
                break
        write_verdict(home.path / "verdict.json", verdict)  # it stands before the page is drawn
        from fairtrial.report.page import write_study_page

        with status("drawing the page"):
            page = write_study_page(folder)
        on_event(StudyJudged(verdict, str(page), str(folder)))
    return verdict


def plan_study(
    study: Study, home: StudyFolder, engine: Engine, options: Options, on_event: OnEvent, stop: Stop
) -> tuple[Plan, str]:
    """The plan, with the speed of every variant; and what a budget decided, in words."""
    started = time.monotonic()
    if options.rule == Rule.UNTIL_CLEAR:
        study = study.with_seeds(LOOKS[0].seeds)
    plan = make_plan(study, home)
    for note in dict.fromkeys(note for sets in plan.eval_sets.values() for note in sets.notes):
        on_event(StudyNotice(note))
    plan = plan.with_recipes(earlier_choice(plan))
    missing(plan, plan.trials())  # a folder that holds another study is refused before any work
    plan = calibrate(plan, engine, on_event, stop)
    if options.budget_seconds is None:
        return plan, ""
    searching = search_seconds_left(plan) / engine.width  # tuning is a part of the budget
    spent = time.monotonic() - started
    return fit_budget(plan, engine.width, options.budget_seconds, options.most_seeds, searching, spent)


def run_missing(plan: Plan, engine: Engine, options: Options, on_event: OnEvent, stop: Stop) -> list[str]:
    """Run what so many seeds still need; or give its trials as commands."""

    def accept(result: JobResult) -> None:
        if result.job.kind != "trial":
            for text in keep_artifact(plan, result):
                on_event(StudyNotice(text))
        elif result.value is None:
            task, variant, _ = result.job.key
            plan.home.add_failure(FailedTrial(error=result.error, task=task, variant=variant, seed=result.job.seed))

    audits = [*data_audit_jobs(plan), *passport_jobs(plan)]
    run_jobs(engine, audits, on_event, stop, accept)
    again = [job for job in passport_jobs(plan, alone=True) if job.key not in {each.key for each in audits}]
    run_jobs(engine, again, on_event, stop, accept)  # where auditing all together broke down
    left = to_run(plan, plan.trials(), on_event, retry_failed=options.retry_failed)
    trials = [trial.job() for trial in left if not blocked(plan, trial.task, trial.variant)]
    if options.list_jobs:
        return [command_of(plan, job) for job in trials]
    if options.collect and trials:
        hint = f"run them: fairtrial study {plan.home.path} --list-jobs prints a command for each"
        raise BadInput(f"{len(trials)} of {len(plan.trials())} trials are missing, the first {trials[0].folder}", hint)
    others = baseline_jobs(plan)
    on_event(TrialsStarted(len(plan.trials()), len(trials), len(others)))
    run_jobs(engine, [*others, *trials], on_event, stop, accept)
    run_jobs(engine, trained_jobs(plan), on_event, stop, accept)
    return []


def command_of(plan: Plan, job: Job) -> str:
    """Runs a trial in a process of its own, or continues it, on any machine that sees this folder."""
    task, variant, _ = job.key
    file = plan.home.path / "jobs" / task / f"{variant}.toml"
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, job.recipe)
    plugins = [word for name in job.plugins for word in ("--with", str(name))]
    begun = (Path(job.folder) / "trial.json").is_file()
    what = ["--resume", job.folder] if begun else [str(file), "--seed", str(job.seed), "--out", job.folder]
    return shlex.join(["fairtrial", "train", *what, *plugins])


def judge(plan: Plan, rule: Rule, search: StoredSearch | None = None) -> tuple[Verdict, PastLook | None]:
    """The verdict, and how it is remembered; None where nothing could be claimed."""
    chosen = search.tasks if search else {}
    tasks = {task: gather(plan, task, chosen.get(task)) for task in plan.recipes}
    now = look_of(plan, tasks, rule)
    verdict = judge_outcomes(plan, tasks, now)
    judged = any(each.p_adjusted is not None or each.q is not None for each in verdict.comparisons)
    sentences, task_of = list(verdict.sentences), verdict.tasks.items()
    at = next((at for at, each in enumerate(sentences) if each.limit), len(sentences))
    sentences[at:at] = limits_of({name: data_sentences(task) for name, task in task_of})
    for texts in (
        {name: tuning_sentences(plan, name, task) for name, task in task_of},
        {name: training_sentences(plan, name) for name, _ in task_of},
        {name: own_weights_sentences(plan, name) for name, _ in task_of},
    ):
        sentences += limits_of(texts)
    return replace(verdict, sentences=tuple(sentences)), now if judged else None


def look_of(plan: Plan, tasks: Mapping[str, TaskOutcomes], rule: Rule) -> PastLook:
    return PastLook(
        baseline=plan.study.baseline,
        seeds={
            task: {each.name: len(finished[each.name]) for each in plan.study.variants_of(task)}
            for task, finished in ((task, plan.finished(task)) for task in tasks)
        },
        margins={METRIC[task]: plan.study.least_difference[METRIC[task]] for task in tasks},
        endpoint=plan.study.endpoint,
        rule=rule,
        outcomes=hashlib.sha256("".join(outcomes.digest for outcomes in tasks.values()).encode()).hexdigest()[:16],
    )


def judge_outcomes(plan: Plan, tasks: Mapping[str, TaskOutcomes], now: PastLook) -> Verdict:
    """By the rule of this look, given those before it."""
    if now.rule == Rule.OPEN_ENDED:
        family = len(now.compared.union(*(past.compared for past in plan.looks)))
        return judge_study(plan.study.name, tasks, open_ended=True, family=family)
    text = JUDGED_BEFORE if uncorrected(plan.looks, now) else ""
    if now.rule == Rule.FIXED:
        return judge_study(plan.study.name, tasks, earlier=text)
    looks = [look for look in LOOKS if look.seeds <= len(plan.study.seeds)]
    if not looks:
        raise BadInput(f"no look is planned for so few seeds: {len(plan.study.seeds)}")
    *before, look = looks
    at = [(each, replace(plan, study=plan.study.with_seeds(each.seeds))) for each in before]
    past = [(each, {task: gather(own, task) for task in tasks}) for each, own in at]
    return judge_study(plan.study.name, tasks, look=look, before=past, earlier=text)


def uncorrected(looks: Sequence[PastLook], now: PastLook) -> PastLook | None:
    """The first verdict that this one is a second look at: on other data, or with another question. A verdict that was
    given before is no second one, and planned looks are corrected for."""
    for past in looks:
        if past.same(now):
            return None
        if not (past.rule == now.rule == Rule.UNTIL_CLEAR and past.question == now.question):
            return past
    return None


def open_plan(folder: Path, data: str | None = None) -> Plan:
    """The plan of a study that was run. `data`: where they are now."""
    table = load_study(folder / "study.toml")
    plan = make_plan(study_from(table if data is None else table | {"data": data}), StudyFolder(folder))
    return plan.with_recipes(earlier_choice(plan))


def gather_outcomes(folder: Path) -> dict[str, TaskOutcomes]:
    """Of every task of a study that was run, as its verdict is given them."""
    plan = planned_again(open_plan(folder))
    return {task: gather(plan, task) for task in plan.recipes}


def planned_again(plan: Plan) -> Plan:
    """With the speeds that its folder keeps; refused where a trial is not the one that its place asks for."""
    missing(plan, plan.trials())
    return calibrate(plan, InProcess(), lambda event: None, lambda: False)


def judge_again(plan: Plan, rule: Rule, *, rebuild: bool = False) -> Verdict:
    """What the files of a study give, its search included. `rebuild`: what is missing is made first."""
    plan = planned_again(plan)
    if rebuild:
        run_missing(plan, InProcess(), Options(), lambda event: None, lambda: False)
    return judge(plan, rule, search_again(plan) if plan.study.search else None)[0]


def own_weights_sentences(plan: Plan, task: str) -> list[str]:
    """Networks of the user's own start from weights of their own, which a pair of trials does not share."""
    own = {name: recipe.model.name for name, recipe in plan.recipes[task].items() if recipe.external}
    if not own:
        return []
    return [
        f"{', '.join(own)}: the network is your own ({', '.join(dict.fromkeys(own.values()))}). It shares splits,"
        " batches and schedule with the baseline, but not initial weights. Seeds are therefore not paired, and"
        " detecting a difference takes more of them."
    ]


def position_sentences(plan: Plan) -> list[str]:
    """Of variants whose parts tell no positions, where the baseline's do; without any part, none are expected."""
    from fairtrial.inspection.catalogue import POSITIONS, describe
    from fairtrial.model.part import parts

    known, sentences = parts.list(), []  # a plugin's are not loaded here
    for task, recipes in plan.recipes.items():
        used = {name: [each.name for each in recipe.parts] for name, recipe in recipes.items() if not recipe.external}
        used = {name: own for name, own in used.items() if set(own) <= set(known)}
        kept = {name: [each for each in own if describe(each).changes == POSITIONS] for name, own in used.items()}
        lost = [name for name in kept if not kept[name] and set(used[name]) - {"none"}]
        if (base := kept.get(plan.study.baseline)) and lost:
            own = (f"{part.name}{settings_of(part.options)}" for part in recipes[lost[0]].parts)
            sentences.append(
                f"[{task}] Warning: the baseline has {', '.join(base)} positions, {', '.join(lost)} has none:"
                f" two things change at once. To keep positions, use: {'+'.join([*base, *own])}."
            )
    return sentences


def settings_of(options: Mapping[str, object]) -> str:
    """As they are typed: `:size=5`."""
    return "".join(f"{':' if not at else ','}{name}={value}" for at, (name, value) in enumerate(options.items()))


def training_sentences(plan: Plan, task: str) -> list[str]:
    """Steps and epochs of each variant, where variants differ in batches or duration."""
    told = {}
    for name, own in plan.calibration.get(task, {}).items():
        rows, epochs = plan.recipes[task][name].training.batch, own.steps / own.steps_per_epoch
        told[name] = f"{own.steps:,} steps of {rows} rows ({epochs:.1f} epochs)"
    text = ", ".join(f"{name} {each}" for name, each in told.items())
    if times := plan.steps.get(task):
        asked = recipes_of(plan.study, {})[task]
        each = " or ".join(dict.fromkeys(str(asked[name].training.duration) for name in times))
        text += f". For {each} of training; these steps were measured once, when the study was planned"
    differs = len(set(told.values())) > 1
    return [f"Training{' differs' * differs}: {text}."] if differs or times else []


def data_sentences(verdict: TaskVerdict) -> list[str]:
    """Red findings on the data that clean items do not mend. All variants share them, so differences stand."""
    if verdict.data_findings is None:
        return ["The data could not be audited, so copies of test items in the training set are unknown."]
    findings = (each for each in verdict.data_findings if each.level == AuditLevel.RED)
    red = dict.fromkeys(each.name for each in findings if not each.id.startswith("D1"))
    if not red:
        return []
    return [
        f"The data audit failed ({', '.join(red)}). All variants share this, so differences stand, but"
        " scores on new text will differ."
    ]


def describe(plan: Plan, engine: Engine, options: Options, decision: str) -> PlanSummary:
    study, seeds, trials = plan.study, len(plan.study.seeds), plan.trials()
    measured = [own for named in plan.calibration.values() for own in named.values()]
    left, _ = missing(plan, trials)
    searching = search_seconds_left(plan) / engine.width
    share_left = len(left) / max(1, len(trials))
    final = sum(own.final_seconds for own in measured)
    paired = {task: not any(recipe.external for recipe in named.values()) for task, named in plan.recipes.items()}
    alpha = LOOKS[0].alpha if options.rule == Rule.UNTIL_CLEAR else ALPHA
    audits = plan.home.read_data_audits()
    copied = {task: {name: own.status for name, own in audit.sets.items()} for task, audit in audits.items()}
    units = {task: sets.units(study.endpoint.get(task), copied.get(task)) for task, sets in plan.eval_sets.items()}
    open_ended = options.rule == Rule.OPEN_ENDED
    family = sum(len(named) - 1 for named in plan.recipes.values())
    return PlanSummary(
        name=study.name,
        engine=engine.name,
        width=engine.width,
        seed_count=seeds,
        trial_count=len(trials),
        left=len(left),
        expected_seconds=round(plan.expected_seconds(engine.width, seeds) * share_left + searching, 1),
        trial_seconds={
            task: {name: round(own.seconds, 2) for name, own in named.items()}
            for task, named in plan.calibration.items()
        },
        final_seconds=round(seeds * final / engine.width * share_left, 1),
        memory_mb=max((own.memory_mb for own in measured), default=0.0),
        comparisons=dict.fromkeys(plan.eval_sets, family),
        smallest_detectable={
            task: ""
            if open_ended
            else str(
                expected_smallest(
                    PROBES.get(task, task), seeds, count, alpha, family, paired=paired[task], in_group=in_group
                )
                or ""
            )
            for task, (count, in_group) in units.items()
        },
        training=(
            *position_sentences(plan),
            *(f"[{task}] {text}" for task in plan.recipes for text in training_sentences(plan, task)),
        ),
        search_tries=0 if study.search is None else len(FACTORS) if study.search.tune else len(tries_of(study.search)),
        until_clear=options.rule == Rule.UNTIL_CLEAR,
        open_ended=open_ended,
        endpoint=study.endpoint,
        decision=decision,
        folder=str(plan.home.path),
    )
