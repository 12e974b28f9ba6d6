"""The plan of a study: which trials, on which test items, what is there already, how long the rest takes, what fits a
time. Knows no torch."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from fairtrial.data.tokenizer import normalisation_of
from fairtrial.disk import disk_errors, sha256_of, write_text
from fairtrial.engines import Ending, Engine, Job, JobResult, Stop
from fairtrial.environment import busy_load, code_fingerprint
from fairtrial.errors import BadInput, DiskTrouble, Interrupted
from fairtrial.events import JobDone, JobFailed, StudyEvent, StudyNotice, TimingStarted
from fairtrial.formatting import format_time
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe, fingerprint, with_changes, write_recipe
from fairtrial.record import RESULT, Record
from fairtrial.registry import did_you_mean
from fairtrial.statistics.outcomes import CLEAN, describe_set
from fairtrial.stored import Calibration, PastLook, PlanSummary, Settings, StoredPlan, TimedSteps, TrialResult
from fairtrial.study.design import METRIC, Study, Variant, check_same_items, recipe_of
from fairtrial.study.folder import FAILURES, StudyFolder
from fairtrial.study.tables import write_study

OnEvent = Callable[[StudyEvent], None]
T = TypeVar("T")
Chosen = Mapping[str, Mapping[str, Settings]]  # task -> variant -> what a search found

CALIBRATION_SECONDS = 600.0  # a variant that does not take a few steps in this time is not going to finish
# measured on two calm cores: what comes beside the trials
PASSPORT_SECONDS = 10.0
BASELINE_SECONDS = 4.0
PAGE_SECONDS = 6.0
LEAST_SEEDS = 5  # fewer are refused a verdict
MOST_SEEDS = 40
RESERVE = 0.9  # of a budget: the rest is for timing, and machines are noisy


@dataclass(frozen=True)
class EvalSets:
    """What all variants of a task are tested on."""

    files: dict[str, str]  # sha256 of every file, by name
    labels: tuple[str, ...]
    items: dict[str, int]  # documents of each test set
    groups: dict[str, tuple[int, ...]]  # test set -> the speech or block of each document, where neighbours depend
    notes: tuple[str, ...] = ()  # what a user should know of how the data were read

    def units(
        self, endpoint: str | None = None, copied: Mapping[str, Sequence[int]] | None = None
    ) -> tuple[float, float]:
        """Independent units that a verdict is on, and items in each: groups where items fall into them, and clean items
        where many are `copied`. Of several test sets, as many as their mean is worth."""
        counts, items = [], 0
        for name in self.items if endpoint is None else [endpoint]:
            status = np.asarray((copied or {}).get(name, [CLEAN] * self.items[name]))
            clean = describe_set(status, self.items[name]).subset == "clean"
            kept = np.flatnonzero(status == CLEAN) if clean else np.arange(self.items[name])
            counts.append(len(kept) if name not in self.groups else len({self.groups[name][item] for item in kept}))
            items += len(kept)
        return len(counts) ** 2 / sum(1 / max(1, count) for count in counts), items / max(1, sum(counts))


@dataclass(frozen=True)
class Trial:
    task: str
    variant: Variant
    seed: int
    recipe: Recipe
    folder: Path

    def job(self) -> Job:
        key = (self.task, self.variant.name, f"seed {self.seed}")
        return Job(key, "trial", write_recipe(self.recipe), self.seed, str(self.folder), self.variant.plugins)


@dataclass(frozen=True)
class Plan:
    study: Study
    home: StudyFolder
    eval_sets: dict[str, EvalSets]
    recipes: dict[str, dict[str, Recipe]]  # task -> variant
    calibration: dict[str, dict[str, Calibration]] = field(default_factory=dict)  # task -> variant
    steps: Mapping[str, Mapping[str, TimedSteps]] = field(default_factory=dict)  # of durations in time, as above
    looks: tuple[PastLook, ...] = ()  # verdicts that were given in this folder
    settled: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (task, variant) that need only so many seeds

    def trials(self) -> list[Trial]:
        """Seed by seed, so that a study that is stopped early has whole pairs."""
        trials = []
        for index in range(len(self.study.seeds)):
            for task, recipes in self.recipes.items():
                for variant in self.study.variants_of(task):
                    enough = self.settled.get((task, variant.name))
                    if enough is not None and index >= enough:
                        continue
                    seed = self.study.seeds_of(variant)[index]
                    folder = self.home.trial(task, variant.name, seed)
                    trials.append(Trial(task, variant, seed, recipes[variant.name], folder))
        return trials

    def finished(self, task: str) -> dict[str, dict[int, Record]]:
        """Finished records of each variant by seed."""
        found: dict[str, dict[int, Record]] = {}
        for variant in self.study.variants_of(task):
            seeds = self.study.seeds_of(variant)
            records = {seed: self.home.finished(self.home.trial(task, variant.name, seed)) for seed in seeds}
            found[variant.name] = {seed: record for seed, record in records.items() if record is not None}
        return found

    def expected_seconds(self, width: int, seeds: int) -> float:
        """Wall-clock time of the whole study with so many seeds, nothing being there yet."""
        one_seed = sum(calibration.seconds for named in self.calibration.values() for calibration in named.values())
        audits = sum(map(len, self.recipes.values()))
        others = audits * PASSPORT_SECONDS + len(self.recipes) * seeds * BASELINE_SECONDS
        return (seeds * one_seed + others) / width + PAGE_SECONDS

    def with_recipes(self, chosen: Chosen) -> Plan:
        """Durations in time are those steps that were measured for them, if they were."""
        recipes = recipes_of(self.study, chosen)
        for task, named in self.steps.items():
            for name, own in named.items():
                recipes[task][name] = trained_for(recipes[task][name], own)
        return replace(self, recipes=recipes)

    def stored(self, summary: PlanSummary | None = None) -> StoredPlan:
        """plan.json. `summary`: by default that of the plan before."""
        folders = [trial.folder for trial in self.trials()]
        return StoredPlan(
            tasks=tuple(self.recipes),
            variants=tuple(variant.name for variant in self.study.variants),
            seeds=self.study.seeds,
            trials=tuple(map(self.home.name_of, folders)),
            records={self.home.name_of(path): sha256_of(path / RESULT) for path in folders if self.home.finished(path)},
            calibration=self.calibration,
            steps=self.steps,
            looks=self.looks,
            summary=summary or self.home.read_plan().summary,
        )

    def write(self, summary: PlanSummary | None = None) -> None:
        """study.toml and plan.json."""
        plan = self.stored(summary)
        with disk_errors(self.home.path):
            self.home.path.mkdir(parents=True, exist_ok=True)
        write_text(self.home.path / "study.toml", write_study(self.study))  # a folder without it is not a study
        self.home.write("plan.json", plan)


def make_plan(study: Study, home: StudyFolder) -> Plan:
    recipes = recipes_of(study, {})
    for task, named in recipes.items():
        for variant in study.variants_of(task):
            check_variant(task, variant, named[variant.name])
    eval_sets = {task: eval_sets_of(named, study.seeds[0]) for task, named in recipes.items()}
    for task, test_set in study.endpoint.items():
        if test_set not in (names := list(eval_sets[task].items)):
            what = f"endpoint = {test_set!r}: {task} has no such test set{did_you_mean(test_set, names)}"
            raise BadInput(
                what, f"test sets: {', '.join(names)}; one for each task: endpoint = {{{task} = {names[0]!r}}}"
            )
    if study.search is not None and "training.duration" in study.search.fields and timed(recipes):
        raise BadInput("a search over training.duration needs steps or epochs", "give no time as the duration")
    stored = home.read_plan()
    plan = Plan(study, home, eval_sets, recipes, looks=stored.looks)
    kept = {
        task: {name: stored.steps[task][name] for name in names if name in stored.steps.get(task, {})}
        for task, names in timed(recipes).items()
    }
    same = {
        task: {name: own for name, own in named.items() if own.mark == calibration_mark(plan, task, name)}
        for task, named in kept.items()
    }
    return replace(plan, steps=same).with_recipes({})


def timed(recipes: Mapping[str, Mapping[str, Recipe]]) -> dict[str, list[str]]:
    """Variants that train for a time, by task."""
    found = {
        task: [name for name, recipe in named.items() if recipe.training.duration.seconds is not None]
        for task, named in recipes.items()
    }
    return {task: names for task, names in found.items() if names}


def recipes_of(study: Study, chosen: Chosen) -> dict[str, dict[str, Recipe]]:
    """`chosen`: what a search found for a variant."""
    return {
        task: {
            each.name: recipe_of(study, task, each, chosen.get(task, {}).get(each.name))
            for each in study.variants_of(task)
        }
        for task in study.tasks
    }


def default_study_folder(study: Study) -> Path:
    """`studies/<name>-<mark>`: the same variants on the same data, with any seeds, have the same mark."""
    marks = [
        f"{task} {name} {fingerprint(recipe)} {Path(recipe.data.source).resolve()}"
        for task, named in recipes_of(study, {}).items()
        for name, recipe in named.items()
    ]
    marks.append(repr(study.search))
    mark = hashlib.sha256("\n".join(marks).encode()).hexdigest()[:6]
    return Path("studies") / f"{re.sub(r'[^a-z0-9]+', '-', study.name.lower()).strip('-')[:40]}-{mark}"


def check_variant(task: str, variant: Variant, recipe: Recipe) -> None:
    """A misspelled part is refused before any work. Parts of a plugin file are known only once its code has run, which
    the first job does in a process of its own."""
    from fairtrial.plugins import check_parts

    if not recipe.scoring.tests:
        raise BadInput(f"{variant.name!r} ({task}): scoring.tests is false, and a study judges by its test sets")
    try:
        if not variant.plugins:
            check_parts(recipe)
    except BadInput as error:
        raise BadInput(f"variant {variant.name!r}: {error.what}", error.hint) from error


def eval_sets_of(recipes: Mapping[str, Recipe], seed: int) -> EvalSets:
    """The test sets of one task. Its variants must share them."""
    check_same_items(recipes)
    check_same_texts(recipes, seed)
    recipe = next(iter(recipes.values()))
    prepared = prepare(recipe, seed)
    check_same_cuts(recipes, recipe, prepared)
    tests = prepared.splits.tests
    found = {name: prepared.groups(documents) for name, documents in tests.items()}
    groups = {name: tuple(group.tolist()) for name, group in found.items() if group is not None}
    items = {name: len(documents) for name, documents in tests.items()}
    corpus, splits = prepared.corpus, prepared.splits
    return EvalSets(corpus.files, splits.labels, items, groups, prepared.notes)


def check_same_texts(recipes: Mapping[str, Recipe], seed: int) -> None:
    """A language model of lower-cased text need not predict capitals: another question, so nothing to compare."""
    found = {}
    for name, recipe in recipes.items():
        if recipe.task != "classify":
            fitted = recipe.tokens.fit in ("train", "course")
            facts = {"lowercase": recipe.tokens.lowercase} if fitted else prepare(recipe, seed).tokenizer.facts
            found[name] = normalisation_of(facts)
    if len(set(found.values())) > 1:
        lower, other = (next(name for name in found if bool(found[name]) == lossy) for lossy in (True, False))
        what = f"variant {lower!r} predicts a text in lower case, {other!r} the text as it is: not the same question"
        raise BadInput(what, "give all variants the same tokens.lowercase")


def check_same_cuts(recipes: Mapping[str, Recipe], first: Recipe, prepared: Prepared) -> None:
    """Words read a novel as sentences, characters and byte pairs as paragraphs: other items, so nothing to compare."""
    known = {(first.tokens.kind, first.encoder.source): texts_of(prepared)}
    for name, recipe in recipes.items():
        kind = (recipe.tokens.kind, recipe.encoder.source)
        if kind not in known:
            known[kind] = texts_of(prepare(recipe, prepared.seed))
        if known[kind] != known[first.tokens.kind, first.encoder.source]:
            what = f"variant {name!r} (tokens.kind = {kind[0]!r}) is not scored on the items of the others"
            hint = 'tokens decide where a running text is cut; read it line by line instead: "data.format" = "lines"'
            raise BadInput(what, hint)


def texts_of(prepared: Prepared) -> dict[str, list[str]]:
    tests = prepared.splits.tests
    return {name: [document.text.strip() for document in documents] for name, documents in tests.items()}


def missing(plan: Plan, trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """Trials that are still to be run, and notices about the others. A folder that holds something else under a trial's
    name is refused: nothing of a user's is ever overwritten."""
    left, other_code = [], 0
    for trial in trials:
        record = plan.home.record(trial.folder)
        if record is None or not record.complete:
            left.append(trial)
        if record is None:
            continue
        facts, mark = record.trial, fingerprint(trial.recipe)
        marks = (facts.asked, fingerprint(record.recipe), facts.recipe)
        plugins = {Path(name).name: sha256_of(Path(name)) for name in trial.variant.plugins}
        reasons = {
            "another recipe": mark not in marks or facts.seed != trial.seed,
            "other data": facts.data != plan.eval_sets[trial.task].files,
            f"another version of {', '.join(plugins)}": not plugins.items() <= facts.plugins.items(),
        }
        if why := next((why for why, holds in reasons.items() if holds), ""):
            hint = f"keep {plan.home.path} as it is and write the new study elsewhere with --out"
            raise BadInput(f"{trial.folder} holds a trial with {why} than the study asks for now", hint)
        other_code += record.complete and facts.code != code_fingerprint()
    notice = f"{other_code} finished trials were run by another version of fairtrial; they are used as they are"
    return left, [notice] if other_code else []


def to_run(
    plan: Plan, trials: Sequence[Trial], on_event: OnEvent, log: str = FAILURES, *, retry_failed: bool = False
) -> list[Trial]:
    """Trials that are neither finished nor, by this log, known to fail; the user is told of the others."""
    left, notices = missing(plan, trials)
    for record in (plan.home.finished(trial.folder) for trial in trials):
        if record is not None:
            record.tidy()  # its process may have been killed in the last moment
    if retry_failed:
        plan.home.forget_failures({trial.folder for trial in left}, log)
    failed = {plan.home.failed(row) for row in plan.home.failures(log)}
    found = [trial for trial in left if trial.folder not in failed]
    if known := len(left) - len(found):
        word = "trials" if log == FAILURES else "tries"
        notices.append(f"{known} {word} failed before and are left out; --retry-failed tries them again")
    for text in notices:
        on_event(StudyNotice(text))
    return found


def run_jobs(
    engine: Engine, jobs: Sequence[Job], on_event: OnEvent, stop: Stop, accept: Callable[[JobResult], None]
) -> None:
    """Every result is accepted as it comes; jobs that someone else stopped are resumed once. Raises `Interrupted` where
    the user asked to stop."""
    for _ in range(2):
        stopped = []
        for result in engine.run(jobs, on_event, stop):
            if result.ending is Ending.STOPPED:
                stopped.append(result.job)
                continue
            if result.ending is Ending.DISK:
                raise DiskTrouble(result.error, "fix the disk, then continue the study with the same command")
            accept(result)
            if result.value is None:
                on_event(JobFailed(result.job.key, result.job.kind, result.error))
            else:
                on_event(done_event(result))
        if stop():
            raise Interrupted("stopped; all is saved")
        if not stopped:
            return
        jobs = stopped
    raise Interrupted(f"{len(jobs)} jobs were stopped by a signal, twice; all is saved")


def done_event(result: JobResult) -> JobDone:
    """With the scores of a trial."""
    done = JobDone(result.job.key, result.job.kind, round(result.seconds, 2))
    if not isinstance(result.value, TrialResult):
        return done
    sets = result.value.tests or result.value.scores
    return replace(done, scores={name: score.figure(METRIC[result.value.task]) for name, score in sets.items()})


def calibrate(plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop) -> Plan:
    """The plan with the speed of every variant. What was measured in this folder before is not measured again."""
    known = plan.home.read_plan().calibration
    measured: dict[str, dict[str, Calibration]] = {task: {} for task in plan.recipes}
    jobs = []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants_of(task):
            old = known.get(task, {}).get(variant.name)
            if old is not None and old.mark == calibration_mark(plan, task, variant.name):
                measured[task][variant.name] = old
                continue
            key, text = (task, variant.name, "calibration"), write_recipe(recipes[variant.name])
            seed, seconds = plan.study.seeds[0], CALIBRATION_SECONDS
            jobs.append(Job(key, "calibrate", text, seed, plugins=variant.plugins, seconds=seconds))

    def accept(result: JobResult) -> None:
        task, name = result.job.key[:2]
        if isinstance(result.value, Calibration):
            measured[task][name] = replace(result.value, mark=calibration_mark(plan, task, name))
        elif result.ending is Ending.MISTAKE:
            raise BadInput(f"variant {name!r} ({task}): {result.error}")

    if jobs:
        on_event(TimingStarted(len(jobs)))
        if load := busy_load():
            text = f"this machine is busy (load {load:.1f} per core): the times of this plan may be too long"
            on_event(StudyNotice(text))
    run_jobs(engine, jobs, on_event, stop, accept)
    return in_steps(replace(plan, calibration=in_order(plan, measured)))


def in_steps(plan: Plan) -> Plan:
    """Durations in time become the steps that were measured: from here on they are the study's."""
    base = replace(plan, recipes=recipes_of(plan.study, {}))
    recipes = {task: dict(named) for task, named in plan.recipes.items()}
    calibration = {task: dict(named) for task, named in plan.calibration.items()}
    steps = {task: dict(named) for task, named in plan.steps.items()}
    fixed = replace(plan, recipes=recipes, calibration=calibration, steps=steps)
    for task, names in timed(plan.recipes).items():
        for name in names:
            if (measured := plan.calibration[task].get(name)) is None:
                what = f"the speed of {name!r} ({task}) could not be measured, so its duration gives no steps"
                raise BadInput(what, "give training.duration in steps to see why, or leave the variant out")
            own = TimedSteps(measured.steps, calibration_mark(base, task, name))
            steps.setdefault(task, {})[name] = own
            recipes[task][name] = trained_for(plan.recipes[task][name], own)
            calibration[task][name] = replace(measured, mark=calibration_mark(fixed, task, name))
    return fixed


def trained_for(recipe: Recipe, own: TimedSteps) -> Recipe:
    return with_changes(recipe, {"training.duration": f"{own.steps} steps"})


def in_order(plan: Plan, values: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
    """By task and variant in the order of the study, as jobs end in any order."""
    return {task: {name: named[name] for name in plan.recipes[task] if name in named} for task, named in values.items()}


def calibration_mark(plan: Plan, task: str, variant: str) -> str:
    """What a measured speed belongs to: this recipe on these data."""
    data = "".join(sorted(plan.eval_sets[task].files.values()))[:64]
    return f"{fingerprint(plan.recipes[task][variant])}-{data}"


def fit_budget(
    plan: Plan, width: int, seconds: float, most: int | None = None, search_seconds: float = 0.0, spent: float = 0.0
) -> tuple[Plan, str]:
    """The plan with as many seeds of the whole training as fit, and what was decided, in words. Refused where five do
    not fit: no training is shortened behind the user's back. `spent`: what planning took of the time."""
    check_few_seeds(most)
    for task, recipes in plan.recipes.items():
        if lost := [name for name in recipes if name not in plan.calibration.get(task, {})]:
            what = f"the speed of {lost[0]!r} ({task}) could not be measured, so no number of seeds can be promised"
            raise BadInput(what, "leave --budget out to see why, or leave the variant out")
    available = min(seconds * RESERVE, seconds - spent)
    counts = range(LEAST_SEEDS, (most or MOST_SEEDS) + 1)
    fitting = [count for count in counts if plan.expected_seconds(width, count) + search_seconds <= available]
    if not fitting:
        needed = (plan.expected_seconds(width, LEAST_SEEDS) + search_seconds) / RESERVE
        message = f"{format_time(seconds)} is too short: {LEAST_SEEDS} seeds need about {format_time(needed)}"
        raise BadInput(message, "give a larger --budget, fewer variants, one --task, or fewer --steps")
    plan = replace(plan, study=plan.study.with_seeds(fitting[-1]))
    share = f"; tuning takes {search_seconds / seconds:.0%} of it" if search_seconds else ""
    return plan, f"budget {format_time(seconds)}: {fitting[-1]} seeds fit{share}"


def check_few_seeds(most: int | None) -> None:
    if most is not None and most < LEAST_SEEDS:
        hint = f"--seeds is the most that --budget may take: leave it out, or give {LEAST_SEEDS} or more"
        raise BadInput(f"{most} seeds are too few for a verdict", hint)
