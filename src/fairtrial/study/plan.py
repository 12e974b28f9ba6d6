"""The plan of a study: which trials, where they lie, and what stands in the folder already."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.disk import sha256_of, write_text
from fairtrial.engines.job import Job
from fairtrial.environment import code_fingerprint
from fairtrial.errors import BadInput
from fairtrial.recipe import Recipe
from fairtrial.recipe_file import fingerprint, write_recipe
from fairtrial.record import Record
from fairtrial.study.design import Settings, Study, Variant, recipe_of
from fairtrial.study.ground import Ground, survey

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
            self.variant.strangers,
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
        brought = {Path(name).name: sha256_of(Path(name)) for name in trial.variant.strangers}
        if not set(brought.items()) <= set(facts.get("strangers", {}).items()):
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
