"""Running what is missing: trials on the engine, with one failure never stopping another; failures are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fairtrial.disk import append_line, write_text
from fairtrial.engines.job import Answer, Engine, Job, News, Stop
from fairtrial.errors import Interrupted
from fairtrial.study.events import Listen
from fairtrial.study.plan import Plan, Trial, missing

Accept = Callable[[Answer], None]
FAILURES = "failures.jsonl"


def run_jobs(engine: Engine, jobs: Sequence[Job], listen: Listen, stop: Stop, accept: Accept) -> None:
    """Every answer is accepted as it comes. Raises `Interrupted` where the user asked to stop."""

    def hear(news: News) -> None:
        listen(news.kind, {"key": list(news.job.key), "work": news.job.work, **news.facts})

    for answer in engine.run(jobs, hear, stop):
        if answer.stopped:
            continue
        accept(answer)
        key = {"key": list(answer.job.key), "work": answer.job.work}
        if answer.facts is None:
            listen("failed", key | {"error": answer.error})
        else:
            listen("done", key | {"seconds": round(answer.seconds, 2)} | scores_of(answer))
    if stop():
        raise Interrupted("stopped; all is saved")


def scores_of(answer: Answer) -> dict[str, Any]:
    if answer.job.work != "trial" or answer.facts is None:
        return {}
    result = answer.facts["result"]
    sets = result["tests"] or {"validation": result["validation"] or {}}
    return {"scores": {name: score.get("accuracy", score.get("perplexity")) for name, score in sets.items()}}


def jobs_to_run(plan: Plan, listen: Listen, *, retry_failed: bool = False) -> list[Job]:
    """Trials that are neither finished nor known to fail."""
    left, notices = missing(plan, plan.trials())
    for text in notices:
        listen("notice", {"text": text})
    if retry_failed:
        forget_failures(plan.folder, left)
    failed = {(each["task"], each["variant"], each["seed"]) for each in read_failures(plan.folder)}
    known = [trial for trial in left if (trial.task, trial.variant.name, trial.seed) in failed]
    if known:
        listen(
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
