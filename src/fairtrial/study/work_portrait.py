"""The work of a portrait: where the heads of a trained variant look in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.look.maps import attention_maps
from fairtrial.record import Record
from fairtrial.revive import revive
from fairtrial.strangers import load_files
from fairtrial.trial import use_machine


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    load_files(Path(name) for name in job.strangers)
    with use_machine(1):
        maps = attention_maps(revive(Record.open(Path(job.folder))), job.options["sentence"])
    weights = maps.weights[:, :, : maps.real, : maps.real].round(4)
    return {"words": list(maps.words[: maps.real]), "weights": weights.tolist()}
