"""The work of one trial: run it, or go on where it was."""

from __future__ import annotations

import shutil
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.errors import Busy, OtherBits
from fairtrial.recipe_file import recipe_from
from fairtrial.record import Record
from fairtrial.strangers import load_files
from fairtrial.train.loop import Event
from fairtrial.trial import resume_trial, run_trial

BUSY_SECONDS = 30.0  # a process whose asker was killed ends after its step


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    recipe = recipe_from(tomllib.loads(job.recipe))
    folder = Path(job.folder)
    save_seconds = float(job.options.get("save_seconds", 10.0))
    steps = 0

    def listen(event: Event) -> None:
        nonlocal steps
        if event.kind == "start":
            steps = event.facts["steps"]
        if event.kind in ("start", "step"):
            tell("step", {"step": event.step, "steps": steps})
        elif event.kind == "testing":
            tell("testing", {"split": event.facts["split"], "share": event.facts["share"]})
        elif event.kind == "notice":
            tell("notice", {"text": event.facts["text"]})

    def begin() -> Record:
        return run_trial(
            recipe, job.seed, folder, listen=listen, stop=stop, save_seconds=save_seconds, strangers=strangers
        )

    def go_on() -> Record:
        return resume_trial(folder, listen=listen, stop=stop, save_seconds=save_seconds)

    strangers = load_files(Path(name) for name in job.strangers)
    if not (folder / "trial.json").is_file():
        record = patiently(begin)
    else:
        try:
            record = patiently(go_on)
        except OtherBits as error:  # begun by another torch, machine or code: its bits would be nobody's
            tell("notice", {"text": f"{'/'.join(job.key)} is started anew: {error.what}"})
            shutil.rmtree(folder)
            record = patiently(begin)
    return {"result": record.result}


def patiently(write: Callable[[], Record]) -> Record:
    """Where a process of a killed study is still saving, wait for it."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return write()
        except Busy:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
