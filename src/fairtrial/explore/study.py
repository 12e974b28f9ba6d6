"""The study view's answers: the verdict of a finished study, and its items one by one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.explore.library import Library
from fairtrial.explore.requests import JobHandle, Plain, RequestParams
from fairtrial.record import Record
from fairtrial.results.study import StudyFiles
from fairtrial.results.values import Verdict
from fairtrial.results.verdict_tables import comparison_numbers
from fairtrial.statistics import SetOutcomes
from fairtrial.study import by_set, stacked
from fairtrial.typed import unstructure

MOST_ITEMS = 20  # at a time
ORDERS = ("variant better", "variant worse", "either", "as in the file")
MOST_OPEN = 4  # studies whose outcomes are held


@dataclass(frozen=True)
class Opened:
    """A finished study with the outcome of every item, read once."""

    files: StudyFiles
    name: str
    outcomes: dict[str, dict[str, dict[str, SetOutcomes]]] = field(default_factory=dict)  # task, variant, test set

    @cached_property
    def verdict(self) -> Verdict:
        return self.files.verdict

    def records(self, task: str, variant: str) -> dict[int, Record]:
        """The finished ones of the judged seeds."""
        found = self.files.records.get(task, {}).get(variant, [])
        seeds = set(self.verdict.tasks[task].seeds)
        return {each.trial.seed: each for each in found if each.complete and each.trial.seed in seeds}

    def of(self, task: str, variant: str, test: str) -> SetOutcomes:
        known = self.outcomes.setdefault(task, {})
        if variant not in known:
            records, tests = self.records(task, variant), dict.fromkeys(self.verdict.tasks[task].sets, 0)
            if not records:
                raise BadInput(f"{variant} has no finished trial", "matched variants are judged in the report")
            arrays = {seed: by_set(record.outcomes(), tests) for seed, record in records.items()}
            known[variant] = stacked(arrays, variant, records)
        return known[variant][test]

    def status(self, task: str, test: str) -> np.ndarray | None:
        audit = self.files.data_audits.get(task)
        copied = audit.sets.get(test) if audit else None
        return None if copied is None else np.array(copied.status, dtype=np.int8)


OPEN: OrderedDict[tuple[str, float], Opened] = OrderedDict()


def opened(library: Library, params: RequestParams) -> Opened:
    name = params.text("study", most=1000)
    files = library.study(name)
    key = (str(files.folder), (files.folder / "verdict.json").stat().st_mtime)
    if key not in OPEN:
        files.check_unchanged()
    found = OPEN.setdefault(key, Opened(files, name))
    OPEN.move_to_end(key)
    while len(OPEN) > MOST_OPEN:
        OPEN.popitem(last=False)
    return found


def overview(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """The verdict's first screen, and what may be chosen."""
    study = opened(library, params)
    verdict = study.verdict
    tasks = {}
    for name, task in verdict.tasks.items():
        tasks[name] = {
            "metric": task.metric.name,
            "sets": unstructure(task.sets),
            "variants": [variant for variant in task.scores if study.records(name, variant)],
            "comparisons": [comparison_numbers(each) | {"by_seed": each.by_seed} for each in task.comparisons],
        }
    return {
        "name": verdict.name,
        "baseline": verdict.baseline,
        "folder": str(study.files.folder),
        "sentences": unstructure(verdict.sentences),
        "tasks": tasks,
    }


@dataclass(frozen=True)
class Chosen:
    """Two variants on one test set."""

    study: Opened
    task: str
    variant: str
    against: str
    test: str

    @classmethod
    def read(cls, library: Library, params: RequestParams) -> Chosen:
        study = opened(library, params)
        tasks = study.verdict.tasks
        task = params.one_of("task", list(tasks), next(iter(tasks)))
        variants = list(tasks[task].scores)
        against = params.one_of("against", variants, study.verdict.baseline or variants[0])
        other = next((each for each in variants if each != against), against)
        variant = params.one_of("variant", variants, other)
        test = params.one_of("set", list(tasks[task].sets), next(iter(tasks[task].sets)))
        return cls(study, task, variant, against, test)

    @cached_property
    def outcomes(self) -> tuple[SetOutcomes, SetOutcomes]:
        return self.study.of(self.task, self.variant, self.test), self.study.of(self.task, self.against, self.test)


def items(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """Items where two variants differ most over seeds: text, label, and what every seed answered."""
    chosen = Chosen.read(library, params)
    ours, theirs = chosen.outcomes
    order, offset = params.one_of("order", ORDERS, "either"), params.whole("offset", 0, 10_000_000, 0)
    classify = "guess" in ours.arrays
    one, other = (goodness(each) for each in chosen.outcomes)  # seed item
    if one.shape[1] != other.shape[1]:
        raise BadInput("the two variants were scored on different items")
    gain = one.mean(0) - other.mean(0)
    rank = {
        "variant better": -gain,
        "variant worse": gain,
        "either": -np.abs(gain),
        "as in the file": np.arange(len(gain)),
    }
    places = np.argsort(rank[order], kind="stable")
    texts, notice = texts_of(library, chosen)
    if wanted := params.text("containing", "", 200).lower():
        places = np.array([at for at in places if texts and wanted in texts[at].lower()], dtype=int)
    status = chosen.study.status(chosen.task, chosen.test)
    names = next(iter(chosen.study.records(chosen.task, chosen.variant).values())).class_names()
    rows = []
    for at in places[offset : offset + MOST_ITEMS].tolist():
        row: Plain = {"item": at, "text": texts[at] if texts else None, "gain": float(gain[at])}
        row["copy"] = None if status is None else int(status[at])
        for side, outcomes, good in (("variant", ours, one), ("against", theirs, other)):
            if classify:
                guesses = outcomes["guess"][:, at]
                row["label"] = names[int(outcomes["label"][0, at])]
                row[side] = [
                    {"seed": seed, "answer": names[int(guess)], "right": bool(right)}
                    for seed, guess, right in zip(outcomes.seeds, guesses, good[:, at], strict=True)
                ]
            else:
                row[side] = [
                    {"seed": seed, "nll": -float(value)}
                    for seed, value in zip(outcomes.seeds, good[:, at], strict=True)
                ]
                row["tokens"] = int(outcomes["tokens"][0, at])
        rows.append(row)
    unit = "share of seeds that are right" if classify else "nats per token"
    return {"rows": rows, "count": len(places), "offset": offset, "unit": unit, "notice": notice}


def goodness(outcomes: SetOutcomes) -> np.ndarray:
    """What became of each item, the more the better [seed item]: right or wrong, or minus nats per token."""
    if "guess" in outcomes.arrays:
        return (outcomes["guess"] == outcomes["label"]).astype(float)
    found: np.ndarray = -outcomes["nll"] / np.maximum(1, outcomes["tokens"])
    return found


def texts_of(library: Library, chosen: Chosen) -> tuple[list[str], str]:
    """The texts of a test set, in the order of its outcomes; or why there are none."""
    record = next(iter(chosen.study.records(chosen.task, chosen.variant).values()))
    name = f"{'' if chosen.study.name == '.' else chosen.study.name + '/'}trials"
    name = f"{name}/{record.folder.relative_to(chosen.study.files.folder / 'trials').as_posix()}"
    try:
        library.need_data(record.recipe)
        documents = library.models.get(library, name).run.splits.tests[chosen.test]
    except (BadInput, KeyError) as error:
        return [], f"the texts cannot be shown: {error}"
    if len(documents) != chosen.outcomes[0].items:
        return [], "the texts cannot be shown: the test set has other documents than were scored"
    return [document.text for document in documents], ""
