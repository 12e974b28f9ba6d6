"""Attention maps of each variant for one sentence, and its parameter ledger, for the page."""

from __future__ import annotations

from typing import Any

from fairtrial.engines.job import Answer, Engine, Job, Stop
from fairtrial.study.beside import write_json
from fairtrial.study.events import Listen
from fairtrial.study.gather import finished
from fairtrial.study.plan import Plan
from fairtrial.study.trials import run_jobs

SECONDS = 120.0


def draw_portraits(plan: Plan, engine: Engine, listen: Listen, stop: Stop) -> None:
    sentence = plan.study.sentence or next(iter(plan.grounds.values())).sentence
    drawn: dict[str, dict[str, Any]] = {task: {} for task in plan.recipes}

    def accept(answer: Answer) -> None:
        if answer.facts is not None:
            task, variant, _ = answer.job.key
            drawn[task][variant] = answer.facts

    run_jobs(engine, portrait_jobs(plan, sentence), listen, stop, accept)
    words = {
        task: {name: named[name]["words"] for name in plan.recipes[task] if name in named}
        for task, named in drawn.items()
    }
    first: list[str] = next((each for named in words.values() for each in named.values()), [])
    write_json(
        plan.folder / "maps.json",
        {
            "sentence": sentence,
            "words": first,
            "words_of": words,  # parts may set vectors of their own before a sentence
            "variants": {
                task: {name: named[name]["weights"] for name in plan.recipes[task] if name in named}
                for task, named in drawn.items()
            },
        },
    )
    ledgers = {
        task: {name: facts["ledger"] for name, facts in named.items()} for task, named in plan.calibration.items()
    }
    write_json(plan.folder / "ledger.json", ledgers)


def portrait_jobs(plan: Plan, sentence: str) -> list[Job]:
    """One for each variant: its first seed that finished."""
    jobs = []
    for task in plan.recipes:
        for name, records in finished(plan, task).items():
            for record in list(records.values())[:1]:
                key = (task, name, "maps")
                strangers = plan.study.variant(name).strangers
                jobs.append(
                    Job(
                        key,
                        "portrait",
                        folder=str(record.folder),
                        strangers=strangers,
                        seconds=SECONDS,
                        options={"sentence": sentence},
                    )
                )
    return jobs
