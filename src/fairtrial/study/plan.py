"""What a study tells while it runs: a kind and plain facts, for a screen, for lines, for JSON.

The ground that a task's variants share: which files, which test items. Knows no torch.

The plan of a study: which trials, where they lie, and what stands in the folder already.

Running what is missing: trials on the engine, with one failure never stopping another; failures are kept.

How long it will take: a few real steps of every variant on this machine, before anything is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairtrial.data.corpus import Document, Splits
from fairtrial.disk import append_line, sha256_of, write_text
from fairtrial.engines.job import Answer, Engine, Job, News, Stop
from fairtrial.environment import code_fingerprint
from fairtrial.errors import BadInput, Interrupted
from fairtrial.prepare import Prepared, prepare
from fairtrial.recipe import Recipe, fingerprint, write_recipe
from fairtrial.record import Record
from fairtrial.statistics.crossed import contiguous_blocks
from fairtrial.study.design import Settings, Study, Variant, recipe_of, refuse_other_items

OnEvent = Callable[[str, dict[str, Any]], None]

# plan       what is about to happen: trials, seconds, what so many seeds can see
# notice     something that a user should know
# begin      a job begins: key, work
# step       a trial's progress: key, step, steps
# done       a job is done: key, work, and a trial's scores
# failed     a job failed: key, work, error
# verdict    the verdict file


def nobody(kind: str, facts: dict[str, Any]) -> None:
    """Listens to nothing."""


FEW, MANY = 6, 14  # words of a sentence that fits an attention map


@dataclass(frozen=True)
class Ground:
    files: dict[str, str]  # sha256 of every file, by name
    labels: tuple[str, ...]
    items: dict[str, int]  # documents of each test set
    sentence: str  # one of the first test set's, for the attention maps
    groups: dict[str, tuple[int, ...]]  # test set -> the speech or stretch of each document, where neighbours depend


def survey(recipes: Mapping[str, Recipe], seed: int) -> Ground:
    """The ground of one task. Its variants must share it."""
    refuse_other_items(recipes)
    recipe = next(iter(recipes.values()))
    prepared = prepare(recipe, seed)
    refuse_other_cuts(recipes, recipe, prepared, seed)
    items = {name: len(documents) for name, documents in prepared.splits.tests.items()}
    groups = {name: grouped(documents, prepared) for name, documents in prepared.splits.tests.items()}
    known = {name: group for name, group in groups.items() if group}
    return Ground(prepared.corpus.files, prepared.splits.labels, items, map_sentence(prepared.splits), known)


def refuse_other_cuts(recipes: Mapping[str, Recipe], first: Recipe, prepared: Prepared, seed: int) -> None:
    """Words read a novel as sentences, characters and byte pairs as paragraphs: other items, so nothing to compare."""
    known = {first.tokens.kind: texts_of(prepared)}
    for name, recipe in recipes.items():
        kind = recipe.tokens.kind
        if kind not in known:
            known[kind] = texts_of(prepare(recipe, seed))
        if known[kind] != known[first.tokens.kind]:
            what = f"variant {name!r} (tokens.kind = {kind!r}) is not scored on the items of the others"
            hint = 'these data are cut into items as tokens ask for; one sentence a line (data.format = "lines") is not'
            raise BadInput(what, hint)


def texts_of(prepared: Prepared) -> dict[str, list[str]]:
    return {name: [each.text.strip() for each in documents] for name, documents in prepared.splits.tests.items()}


def grouped(documents: tuple[Document, ...], prepared: Prepared) -> tuple[int, ...]:
    """Documents that belong together count as one item: in running text blocks of neighbours, else the groups that the
    data names. Empty where every document stands alone."""
    if prepared.corpus.ordered:
        words = np.array([len(document.text.split()) for document in documents])
        return tuple(contiguous_blocks(words, prepared.recipe.shape.length).tolist())
    if not any(document.group for document in documents):
        return ()
    names = [document.group or f"alone {place}" for place, document in enumerate(documents)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(numbers[name] for name in names)


def map_sentence(splits: Splits) -> str:
    """A test sentence of a readable length."""
    texts = [document.text for documents in splits.tests.values() for document in documents]
    fitting = [text for text in texts if FEW <= len(text.split()) <= MANY]
    return (fitting or sorted(texts, key=len)[len(texts) // 2 :])[0]


Chosen = Mapping[str, Mapping[str, Settings]]  # task -> variant -> what a search found


@dataclass(frozen=True)
class Trial:
    task: str
    variant: Variant
    seed: int
    recipe: Recipe
    folder: Path

    @property
    def key(self) -> tuple[str, ...]:
        return (self.task, self.variant.name, f"seed {self.seed}")

    def job(self, save_seconds: float = 10.0) -> Job:
        return Job(
            self.key,
            "trial",
            write_recipe(self.recipe),
            self.seed,
            str(self.folder),
            self.variant.plugins,
            options={"save_seconds": save_seconds},
        )


@dataclass(frozen=True)
class Plan:
    study: Study
    folder: Path
    grounds: dict[str, Ground]
    recipes: dict[str, dict[str, Recipe]]  # task -> variant
    calibration: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)  # task -> variant
    looks: tuple[int, ...] = ()  # numbers of seeds at which verdicts were told, in this folder

    def trials(self) -> list[Trial]:
        """Seed by seed, so that a study that is stopped early has whole pairs."""
        return list(self._trials())

    def _trials(self) -> Iterator[Trial]:
        for place in range(len(self.study.seeds)):
            for task, recipes in self.recipes.items():
                for variant in self.study.variants:
                    seed = self.study.seeds_of(variant)[place]
                    yield Trial(task, variant, seed, recipes[variant.name], self.place(task, variant.name, seed))

    def place(self, task: str, variant: str, seed: int) -> Path:
        return self.folder / "trials" / task / variant / f"seed-{seed}"

    def record(self, task: str, variant: str, seed: int) -> Record | None:
        """A finished record, or None."""
        folder = self.place(task, variant, seed)
        return Record.open(folder) if (folder / "result.json").is_file() else None

    def with_recipes(self, chosen: Chosen) -> Plan:
        return replace(self, recipes=recipes_of(self.study, chosen))


def make_plan(study: Study, folder: Path) -> Plan:
    recipes = recipes_of(study, {})
    for task, named in recipes.items():
        for name, recipe in named.items():
            if not recipe.scoring.tests:
                raise BadInput(f"{name!r} ({task}): scoring.tests is false, and a study judges by its test sets")
    grounds = {task: survey(named, study.seeds[0]) for task, named in recipes.items()}
    old = read_plan(folder)
    return Plan(study, folder, grounds, recipes, looks=tuple(old.get("looks", ())))


def recipes_of(study: Study, chosen: Chosen) -> dict[str, dict[str, Recipe]]:
    return {
        task: {
            variant.name: recipe_of(study, task, variant, chosen.get(task, {}).get(variant.name))
            for variant in study.variants
        }
        for task in study.tasks
    }


def missing(plan: Plan, trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """Trials that are still to be run, and what a user should know of those that are not. A folder that holds something
    else under a trial's name is refused: nothing of a user's is ever overwritten."""
    asked = read_plan(plan.folder).get("asked", {})
    left, others = [], 0
    for trial in trials:
        if not (trial.folder / "trial.json").is_file():
            left.append(trial)
            continue
        record = Record.open(trial.folder)
        facts = record.trial
        name = trial.folder.relative_to(plan.folder).as_posix()
        mark = fingerprint(trial.recipe)
        if mark not in (asked.get(name), fingerprint(record.recipe), facts["recipe"]) or facts["seed"] != trial.seed:
            raise stale(plan, trial, "another recipe")
        if facts["data"] != plan.grounds[trial.task].files:
            raise stale(plan, trial, "other data")
        brought = {Path(name).name: sha256_of(Path(name)) for name in trial.variant.plugins}
        if not set(brought.items()) <= set(record.plugins.items()):
            raise stale(plan, trial, "another version of " + ", ".join(brought))
        if record.complete:
            others += facts["code"] != code_fingerprint()
        else:
            left.append(trial)
    notices = [f"{others} finished trials were run by another version of fairtrial; they are used as they are"]
    return left, notices if others else []


def stale(plan: Plan, trial: Trial, why: str) -> BadInput:
    return BadInput(
        f"{trial.folder} holds a trial with {why} than the study asks for now",
        f"keep {plan.folder} as it is and write the new study elsewhere with --out",
    )


def write_plan(plan: Plan, facts: Mapping[str, Any]) -> None:
    """Plain numbers for readers; and what was asked of every folder, for a later plan to compare with."""
    asked, before = asked_of(plan, plan.trials()), read_plan(plan.folder)
    told = {
        **before,
        "format": 1,
        "tasks": list(plan.recipes),
        "variants": [variant.name for variant in plan.study.variants],
        "seeds": list(plan.study.seeds),
        "trials": list(asked),
        "items": {task: ground.items for task, ground in plan.grounds.items()},
        "calibration": plan.calibration,
        "looks": list(plan.looks),
        **facts,
        "asked": before.get("asked", {}) | asked,
        "ground": {task: asdict(replace(ground, groups={})) for task, ground in plan.grounds.items()},
    }
    write_text(plan.folder / "plan.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def asked_of(plan: Plan, trials: Sequence[Trial]) -> dict[str, str]:
    """What a study asks of each folder. A record may tell more: a pretrained encoder brings its shape and parts."""
    return {trial.folder.relative_to(plan.folder).as_posix(): fingerprint(trial.recipe) for trial in trials}


def note_asked(plan: Plan, trials: Sequence[Trial]) -> None:
    """For trials beside the study's own, such as tries of a search."""
    told = read_plan(plan.folder)
    told["asked"] = told.get("asked", {}) | asked_of(plan, trials)
    write_text(plan.folder / "plan.json", json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def read_plan(folder: Path) -> dict[str, Any]:
    path = folder / "plan.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is damaged: {error}", "take it away; finished trials are found without it") from error
    if not isinstance(found, dict):
        raise BadInput(f"{path} is damaged: not a JSON object")
    return found


Accept = Callable[[Answer], None]
FAILURES = "failures.jsonl"


def run_jobs(engine: Engine, jobs: Sequence[Job], on_event: OnEvent, stop: Stop, accept: Accept) -> None:
    """Every answer is accepted as it comes. Raises `Interrupted` where the user asked to stop."""

    def hear(news: News) -> None:
        on_event(news.kind, {"key": list(news.job.key), "work": news.job.work, **news.facts})

    for answer in engine.run(jobs, hear, stop):
        if answer.stopped:
            continue
        accept(answer)
        key = {"key": list(answer.job.key), "work": answer.job.work}
        if answer.facts is None:
            on_event("failed", key | {"error": answer.error})
        else:
            on_event("done", key | {"seconds": round(answer.seconds, 2)} | scores_of(answer))
    if stop():
        raise Interrupted("stopped; all is saved")


def scores_of(answer: Answer) -> dict[str, Any]:
    if answer.job.work != "trial" or answer.facts is None:
        return {}
    result = answer.facts["result"]
    sets = result["tests"] or {"validation": result["validation"] or {}}
    return {"scores": {name: score.get("accuracy", score.get("perplexity")) for name, score in sets.items()}}


def jobs_to_run(plan: Plan, on_event: OnEvent, *, retry_failed: bool = False) -> list[Job]:
    """Trials that are neither finished nor known to fail."""
    left, notices = missing(plan, plan.trials())
    for text in notices:
        on_event("notice", {"text": text})
    if retry_failed:
        forget_failures(plan.folder, left)
    failed = {(each["task"], each["variant"], each["seed"]) for each in read_failures(plan.folder)}
    known = [trial for trial in left if (trial.task, trial.variant.name, trial.seed) in failed]
    if known:
        on_event(
            "notice", {"text": f"{len(known)} trials failed before and are left out; --retry-failed tries them again"}
        )
    return [trial.job() for trial in left if trial not in known]


def note_failure(plan: Plan, answer: Answer) -> None:
    if answer.facts is None:
        task, variant, _ = answer.job.key
        row = {"task": task, "variant": variant, "seed": answer.job.seed, "error": answer.error}
        append_line(plan.folder / FAILURES, json.dumps(row, ensure_ascii=False))


def read_failures(folder: Path, name: str = FAILURES) -> list[dict[str, Any]]:
    path = folder / name
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def forget_failures(folder: Path, trials: Sequence[Trial]) -> None:
    tried = {(trial.task, trial.variant.name, trial.seed) for trial in trials}
    kept = [row for row in read_failures(folder) if (row["task"], row["variant"], row["seed"]) not in tried]
    write_text(folder / FAILURES, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))


SECONDS = 600.0  # a variant that does not take a few steps in this time is not going to finish
# measured on two calm cores: what comes beside the trials
PASSPORT_SECONDS = 7.0
BASELINE_SECONDS = 4.0
PAGE_SECONDS = 6.0


def calibrate(plan: Plan, engine: Engine, on_event: OnEvent, stop: Stop) -> Plan:
    """The plan with the pace of every variant. What was measured in this folder before is not measured again."""
    known = read_plan(plan.folder).get("calibration", {})
    found: dict[str, dict[str, Any]] = {task: {} for task in plan.recipes}
    jobs = []
    for task, recipes in plan.recipes.items():
        for variant in plan.study.variants:
            mark = calibration_mark(plan, task, variant.name)
            old = known.get(task, {}).get(variant.name, {})
            if old.get("mark") == mark:
                found[task][variant.name] = old
                continue
            key = (task, variant.name, "calibration")
            text = write_recipe(recipes[variant.name])
            jobs.append(Job(key, "calibrate", text, plan.study.seeds[0], plugins=variant.plugins, seconds=SECONDS))

    def accept(answer: Answer) -> None:
        task, name = answer.job.key[:2]
        if answer.facts is not None:
            found[task][name] = answer.facts | {"mark": calibration_mark(plan, task, name)}
        elif answer.mistake:
            raise BadInput(f"variant {name!r} ({task}): {answer.error}")

    run_jobs(engine, jobs, on_event, stop, accept)
    ordered = {
        task: {name: named[name] for name in plan.recipes[task] if name in named} for task, named in found.items()
    }
    return replace(plan, calibration=ordered)


def calibration_mark(plan: Plan, task: str, variant: str) -> str:
    """What a measured pace belongs to: this recipe on these data."""
    data = "".join(sorted(plan.grounds[task].files.values()))[:64]
    return f"{fingerprint(plan.recipes[task][variant])}-{data}"


def trial_seconds(facts: Mapping[str, Any], share: float = 1.0) -> float:
    """Of one trial, at a share of its steps."""
    return float(facts["set_up_seconds"] + share * (facts["steps"] * facts["step_seconds"] + facts["score_seconds"]))


def expected_seconds(plan: Plan, width: int, seeds: int, share: float = 1.0) -> float:
    """Wall-clock time of the whole study with so many seeds, nothing being there yet."""
    one_seed = sum(trial_seconds(facts, share) for named in plan.calibration.values() for facts in named.values())
    beside = len(plan.recipes) * (len(plan.study.variants) * PASSPORT_SECONDS + seeds * BASELINE_SECONDS)
    return (seeds * one_seed + beside) / width + PAGE_SECONDS
