"""What a study makes beside its trials: passports, the audit of the data, baselines, attention maps. Each has a path, a
mark that says what it depends on, and a job that makes it; what is there and fresh is not made again. And how records
and artifacts become what the statistics are given."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from fairtrial.data.tokenizer import normalisation_of
from fairtrial.disk import sha256_of
from fairtrial.engines import AuditedVariant, AuditSubject, Job, JobResult
from fairtrial.errors import BadInput
from fairtrial.finding import REPORT, Passport, worst
from fairtrial.recipe import OPTIMIZERS, Scoring, fingerprint, to_table, write_recipe
from fairtrial.record import Record
from fairtrial.results.values import (
    AuditLevel,
    AuditSummary,
    Cost,
    DataFinding,
    Failure,
    OwnCode,
    TaskSearch,
    TestReuse,
    TrainingEnd,
    TrainingEndKind,
)
from fairtrial.statistics.crossed import Array
from fairtrial.statistics.outcomes import (
    SetOutcomes,
    TaskOutcomes,
    Vocabulary,
    stack_outcomes,
)
from fairtrial.statistics.speedup import Curve
from fairtrial.stored import DataAudit, Metrics, StoredBaselines, TrialResult, read_arrays, read_document
from fairtrial.study.design import METRIC, Variant
from fairtrial.study.plan import Plan

PASSPORT_SECONDS = 180.0  # and so many more for each variant: a part that loops forever is killed
BySeed = dict[int, dict[str, dict[str, Array]]]  # seed -> test set -> name -> array
NamedArrays = tuple[tuple[str, ...], dict[str, Array]]  # of baselines
OWN_CODE = {"O1": OwnCode.OPTIMIZER, "O2": OwnCode.LOSS, "O3": OwnCode.TABLES}  # by check of the leak audit


def data_audit_jobs(plan: Plan) -> list[Job]:
    known, jobs = plan.home.read_data_audits(), []
    for task in plan.recipes:
        if task not in known or known[task].mark != data_mark(plan, task):
            recipe = plan.recipes[task][plan.study.baseline]
            whole = replace(recipe, data=replace(recipe.data, train_share=1.0))  # each seed takes a share of its own
            jobs.append(Job((task, "data", "audit"), "contamination", write_recipe(whole), plan.study.seeds[0]))
    return jobs


def passport_jobs(plan: Plan, *, alone: bool = False) -> list[Job]:
    """Built-in parts together; plugins, which may take a process down, each alone."""
    together, jobs = [], []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants_of(task):
            known = plan.home.read_passport(task, variant.name)
            if known is None or known.mark != passport_mark(plan, task, variant.name):
                subject = AuditSubject(task, variant.name, write_recipe(recipes[variant.name]))
                if alone or variant.plugins:
                    jobs.append(passport_job((subject,), plan.study.seeds[0], variant.plugins))
                else:
                    together.append(subject)
    return [*([passport_job(tuple(together), plan.study.seeds[0])] if together else []), *jobs]


def passport_job(subjects: tuple[AuditSubject, ...], seed: int, plugins: tuple[str, ...] = ()) -> Job:
    first = subjects[0]
    key = (first.task, first.variant, "passport") if len(subjects) == 1 else ("all", "variants", "passports")
    seconds = PASSPORT_SECONDS * (1 + len(subjects))
    return Job(key, "passport", seed=seed, plugins=plugins, seconds=seconds, subjects=subjects)


def trained_jobs(plan: Plan) -> list[Job]:
    """The leak audit of one trained network of each variant that has not been audited since it was trained."""
    jobs = []
    for task in plan.recipes:
        for variant in plan.study.variants_of(task):
            record = first_record(plan, task, variant)
            if record is not None and trained_passport(record) is None:
                key = (task, variant.name, "trained")
                jobs.append(Job(key, "trained", folder=str(record.folder), plugins=variant.plugins))
    return jobs


def first_record(plan: Plan, task: str, variant: Variant) -> Record | None:
    finished = plan.finished(task)[variant.name]
    return finished[min(finished)] if finished else None


def trained_passport(record: Record) -> Passport | None:
    """The leak audit of these very weights; None: there is none."""
    path = record.folder / "passport.json"
    try:
        passport = read_document(path, Passport) if path.is_file() else None
    except BadInput:
        return None
    return passport if passport is not None and passport.mark == record.result.model_sha256 else None


def blocked(plan: Plan, task: str, variant: Variant) -> bool:
    """Whether a variant failed its leak audit, and that was not accepted: it is not trained."""
    audit = passport_of(plan, task, variant.name, trained=False)
    return audit.level == AuditLevel.RED and not audit.accepted


def baseline_jobs(plan: Plan) -> list[Job]:
    jobs = []
    for seed in plan.study.seeds:
        for task in plan.recipes:
            path, mark = plan.home.baselines(task, seed), data_mark(plan, task)
            if baseline_arrays(plan, task, seed, mark) is None:
                text = write_recipe(plan.recipes[task][plan.study.baseline])
                key = (task, "baselines", f"seed {seed}")
                jobs.append(Job(key, "baselines", text, seed, str(path), mark=mark))
    return jobs


def keep_artifact(plan: Plan, result: JobResult) -> list[str]:
    """Write down what a job found; baselines write their own arrays. What stands in the way of a verdict is told at
    once, not after the last trial."""
    if isinstance(audit := result.value, DataAudit):
        task = result.job.key[0]  # of the study: a probe's recipe is of another task
        marked = replace(audit, mark=data_mark(plan, task))
        plan.home.write("contamination.json", plan.home.read_data_audits() | {task: marked})
        return []
    told = []
    if result.job.kind == "passport" and isinstance(result.value, tuple):
        for audited in result.value:
            assert isinstance(audited, AuditedVariant)
            task, variant = audited.task, audited.variant
            passport = replace(audited.passport, mark=passport_mark(plan, task, variant))
            plan.home.write(f"passports/{task}/{variant}.json", passport)
            told += failed_passport(plan, task, variant)
    return told


def failed_passport(plan: Plan, task: str, variant: str) -> list[str]:
    audit = passport_of(plan, task, variant, trained=False)
    if audit.level != AuditLevel.RED or audit.accepted:
        return []
    checks = "; ".join(audit.failed)
    return [f"[{task}] {variant} failed its leak audit and is not trained ({checks})"]


def passport_of(plan: Plan, task: str, variant: str, *, trained: bool = True) -> AuditSummary:
    """Level and failed checks, as the statistics take them: of the network before training and, if asked for, of a
    trained one. An audit that broke down has found nothing: the next run of the study makes it again."""
    own = plan.study.variant(variant)
    passports = [plan.home.read_passport(task, variant)]
    if trained and (record := first_record(plan, task, own)) is not None:
        passports.append(trained_passport(record))
    findings = [each for passport in passports if passport for each in passport.findings]
    level = AuditLevel(worst(findings)) if all(passports) or worst(findings) == "red" else AuditLevel.UNAUDITED
    failed = [f"{each.id} {each.name}" for each in findings if level != AuditLevel.PASS and each.severity == level]
    told = {each.id for each in findings if each.verdict == REPORT}
    own_step = plan.recipes[task][variant].training.optimizer not in OPTIMIZERS
    code = tuple(code for id, code in OWN_CODE.items() if id in told or (own_step and code == OwnCode.OPTIMIZER))
    return AuditSummary(level, tuple(dict.fromkeys(failed)), own.accept_failed_audit, code)


def data_mark(plan: Plan, task: str) -> str:
    """What an audit of data, or a baseline, depends on."""
    table, files = to_table(plan.recipes[task][plan.study.baseline]), plan.eval_sets[task].files
    depends_on = [2, task, table["data"] | {"source": ""}, table["tokens"], table["shape"]["length"], files]
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:16]


def passport_mark(plan: Plan, task: str, variant: str) -> str:
    plugins = [hashlib.sha256(Path(name).read_bytes()).hexdigest()[:8] for name in plan.study.variant(variant).plugins]
    return "-".join([fingerprint(plan.recipes[task][variant]), *plugins])


def gather(plan: Plan, task: str, search: TaskSearch | None = None) -> TaskOutcomes:
    """Records, baselines and audits of a task -> what the statistics are given."""
    records, baseline = plan.finished(task), plan.study.baseline
    failures = [
        Failure(row.variant, row.seed, row.error)
        for row in plan.home.failures()
        if row.variant in records and row.task == task
    ]
    if not records[baseline]:
        if blocked(plan, task, plan.study.variant(baseline)):
            failed = ", ".join(passport_of(plan, task, baseline, trained=False).failed)
            hint = "choose another baseline, or accept it: accept_failed_audit = true in the study file"
            raise BadInput(
                f"the baseline {baseline!r} failed its leak audit ({failed}), so nothing can be judged", hint
            )
        errors = [failure.error for failure in failures if failure.variant == baseline]
        hint = f"its error: {errors[-1]}" if errors else ""
        raise BadInput(f"no trial of the baseline {baseline!r} ({task}) has finished, so nothing can be judged", hint)
    audit, sets = plan.home.read_data_audits().get(task), plan.eval_sets[task]
    copied = audit.sets if audit else {}
    ran = {name: by_seed for name, by_seed in records.items() if by_seed}
    check_same_scoring([record for by_seed in ran.values() for record in by_seed.values()])
    return TaskOutcomes(
        task=task,
        baseline=baseline,
        least_difference=plan.study.least_difference[METRIC[task]],
        variants={
            name: stacked({seed: proven_outcomes(record, sets.items) for seed, record in own.items()}, name, own)
            for name, own in ran.items()
        },
        baselines=baselines(plan, task, records[baseline]),
        labels=sets.labels,
        endpoint=plan.study.endpoint.get(task),
        status={name: np.array(own.status, dtype=np.int8) for name, own in copied.items() if name in sets.items},
        clusters={name: np.array(groups) for name, groups in sets.groups.items()},
        audits={name: passport_of(plan, task, name) for name in records},
        training={name: training_ends(own) for name, own in ran.items()},
        idle=tuple(name for name, own in ran.items() if not attention_is_used(own.values())),
        about_attention=tuple(name for name in ran if concerns_attention(ran[name], ran[baseline])),
        contexts=strided(next(iter(records[baseline].values()))),
        curves={name: validation_curves(own) for name, own in ran.items()} if METRIC[task] == "perplexity" else {},
        cost=cost(plan, task, records),
        test_reuse={name: test_reuse([record.result for record in own.values()]) for name, own in ran.items()},
        failures=tuple(failures),
        data_findings=failed_findings(audit),
        search=search,
    )


def attention_is_used(records: Iterable[Record]) -> bool:
    """By at least half of the networks that were asked."""
    asked = [record.result.attention for record in records if record.result.attention]
    return not asked or 2 * sum(use.used for use in asked) >= len(asked)


def concerns_attention(ours: Mapping[int, Record], theirs: Mapping[int, Record]) -> bool:
    """Whether the two differ in a part that changes attention or positions, also by leaving positions out."""
    first, second = next(iter(ours.values())), next(iter(theirs.values()))
    uses = [record.result.attention for record in (first, second)]
    named = {name for use in uses if use for name in use.parts}
    mine, other = first.recipe.parts, second.recipe.parts
    return any(choice.name in named for choice in (*mine, *other) if (choice in mine) != (choice in other))


def validation_curves(records: Mapping[int, Record]) -> dict[int, Curve]:
    """Of each seed whose validation was scored while it trained."""
    points = {seed: record.curve("validation") for seed, record in records.items()}
    return {
        seed: Curve(np.array([step for step, _ in own], float), np.array([loss for _, loss in own]))
        for seed, own in points.items()
        if own
    }


def proven_outcomes(record: Record, sets: Mapping[str, int]) -> dict[str, dict[str, Array]]:
    """A record's outcomes; refused where its own metrics cannot be computed from them again."""
    outcomes = by_set(record.outcomes(), sets)
    for test, arrays in outcomes.items():
        if "guess" in arrays:
            key, value = "accuracy", float((arrays["guess"] == arrays["label"]).mean())
        else:
            key, value = "perplexity", math.exp(min(700.0, float(arrays["nll"].sum() / arrays["tokens"].sum())))
        told = record.result.tests.get(test, Metrics())
        if getattr(told, key) is None or not math.isclose(told.figure(key), value, rel_tol=1e-9):
            message = f"its {key} on {test!r} is {value:.6g}, result.json says {getattr(told, key)}"
            raise BadInput(message, "train it again", path=record.folder / "outcomes.safetensors")
    return outcomes


def check_same_scoring(records: Sequence[Record]) -> None:
    """Large sets are scored in strides, with less context: not to be compared with exact scores of another version."""
    ways: dict[tuple[str, float | None], Path] = {}
    for record in records:
        for test, score in record.result.tests.items():
            ways.setdefault((test, score.full_context), record.folder)
    for test in {test for test, _ in ways}:
        folders = [str(folder) for (name, _), folder in ways.items() if name == test]
        if len(folders) > 1:
            what = f"{test!r} was scored at full context in one trial and in strides in another ({', '.join(folders)})"
            raise BadInput(what, "remove the older trial and run the study again")


def strided(record: Record) -> dict[str, float]:
    """Test sets that were scored with less than full context: the least share of a length that a token sees."""
    own, usual = record.recipe.scoring.full_context, Scoring().full_context
    scores = {test: score for test, score in record.result.tests.items() if score.perplexity is not None}
    contexts = {test: score.full_context if score.full_context is not None else own for test, score in scores.items()}
    return {test: share for test, share in contexts.items() if share < usual}


def by_set(outcomes: Mapping[str, Array], sets: Mapping[str, int]) -> dict[str, dict[str, Array]]:
    """`set/name` -> arrays of each test set. Validation is not a test set."""
    arrays: dict[str, dict[str, Array]] = {}
    for path, array in outcomes.items():
        test, _, name = path.rpartition("/")
        if test in sets:
            arrays.setdefault(test, {})[name] = array
    return {test: arrays[test] for test in sets if test in arrays}


def stacked(by_seed: BySeed, name: str, records: Mapping[int, Record]) -> dict[str, SetOutcomes]:
    """`records`: whose vocabulary was used."""
    words, found = vocabulary(records, sorted(by_seed)), {}
    for test in next(iter(by_seed.values())):
        outcomes = stack_outcomes({seed: sets[test] for seed, sets in by_seed.items()}, f"{name}, {test}")
        found[test] = replace(outcomes, vocabulary=words)
    return found


def vocabulary(records: Mapping[int, Record], seeds: list[int]) -> Vocabulary | None:
    """What perplexities are about; None for classifiers."""
    first = next(iter(records.values()))
    if first.recipe.task == "classify":
        return None
    table = to_table(first.recipe)
    settings = json.dumps(table["tokens"] | {"train_share": table["data"]["train_share"]}, sort_keys=True)
    prints = [sha256_of(records[seed].checked("tokenizer.json")) if seed in records else "" for seed in seeds]
    return Vocabulary(normalisation_of(first.trial.tokenizer), settings, tuple(prints))


def baselines(plan: Plan, task: str, records: Mapping[int, Record]) -> dict[str, dict[str, SetOutcomes]]:
    found: dict[str, BySeed] = {}
    for seed in plan.study.seeds:
        names, arrays = baseline_arrays(plan, task, seed) or ((), {})
        for name in names:
            own = {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}
            found.setdefault(name, {})[seed] = by_set(own, plan.eval_sets[task].items)
    return {name: stacked(by_seed, name, records) for name, by_seed in found.items()}


def baseline_arrays(plan: Plan, task: str, seed: int, mark: str = "") -> NamedArrays | None:
    """Names of the baselines of one seed, and their arrays; None where they are missing, damaged, or not of `mark`."""
    path = plan.home.baselines(task, seed)
    stored = plan.home.read(f"{plan.home.name_of(path)}.json", StoredBaselines)
    arrays = Path(f"{path}.safetensors")
    if stored is None or (mark and stored.mark != mark) or not arrays.is_file() or stored.sha256 != sha256_of(arrays):
        return None
    return stored.baselines, read_arrays(arrays, "remove it: it is made again")


def training_ends(records: Mapping[int, Record]) -> dict[int, TrainingEnd]:
    """By seed, where scores were enough to tell."""
    results = {seed: record.result for seed, record in records.items()}
    return {
        seed: TrainingEnd(TrainingEndKind(result.training_end), result.best_step or 0, result.steps)
        for seed, result in results.items()
        if result.training_end
    }


def cost(plan: Plan, task: str, records: Mapping[str, Mapping[int, Record]]) -> dict[str, Cost]:
    """Parameters, FLOPs, and the time of a step: the median over seeds of each trial's median."""
    costs = {}
    for name, named in records.items():
        measured = plan.calibration.get(task, {}).get(name)
        clocks = [entry for record in named.values() for entry in record.clock()]
        paces = [entry.step_seconds for entry in clocks if entry.step_seconds is not None]
        peaks = [entry.peak_memory_mb for entry in clocks if entry.peak_memory_mb]
        costs[name] = Cost(
            parameters=measured.parameters if measured else None,
            flops_per_step=measured.flops_per_step if measured else None,
            seconds_per_step=median(paces) if paces else None,
            peak_memory_mb=median(peaks) if peaks else None,
            load=max((entry.load for entry in clocks if entry.load is not None), default=None),
        )
    base = costs[plan.study.baseline].seconds_per_step
    return {
        name: replace(
            own, seconds_ratio=round(own.seconds_per_step / base, 3) if own.seconds_per_step and base else None
        )
        for name, own in costs.items()
    }


def test_reuse(results: Sequence[TrialResult]) -> dict[str, TestReuse]:
    """How often each test set was read, and the mean over seeds of what picking the best moment on test would claim."""
    reuse = {}
    for test, first in results[0].tests.items():
        pairs = [(best, result.tests[test]) for result in results if (best := result.picked_on_test.get(test))]
        key = "accuracy" if first.accuracy is not None else "window_perplexity"
        reuse[test] = TestReuse(
            reads=sum(result.test_reads[test] for result in results),
            watched=any(result.test_watched for result in results),
            picked_on_test=mean_score(key, [best.score for best, _ in pairs]) if pairs else None,
            honest=mean_score(key, [score.figure(key) for _, score in pairs]) if pairs else None,
        )
    return reuse


def mean_score(key: str, values: list[float]) -> float:
    """Accuracy in points, or perplexity (its log averaged)."""
    return 100 * float(np.mean(values)) if key == "accuracy" else math.exp(np.mean(np.log(values)))


def failed_findings(audit: DataAudit | None) -> tuple[DataFinding, ...] | None:
    """The checks of the data that did not pass; None where it was not audited."""
    if audit is None:
        return None
    return tuple(
        DataFinding(each.id, each.name, AuditLevel(each.severity), each.where, each.shown, each.meaning)
        for each in audit.findings
        if each.severity != "pass"
    )
