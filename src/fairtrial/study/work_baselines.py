"""The work of baselines: what a transformer must beat, fitted and scored as a trial of that seed would be."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from fairtrial.baselines.run import baseline_outcomes
from fairtrial.disk import write_bytes, write_text
from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.recipe_file import recipe_from


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    """Arrays are named `baseline/set/what`; the JSON beside them is written last, so that what has it is whole."""
    outcomes = baseline_outcomes(recipe_from(tomllib.loads(job.recipe)), job.seed)
    arrays = {f"{name}/{place}": array for name, places in outcomes.items() for place, array in places.items()}
    path = Path(job.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path.with_name(path.name + ".safetensors"), save(arrays))
    facts = {"format": 1, "mark": job.options["mark"], "seed": job.seed, "baselines": list(outcomes)}
    write_text(path.with_name(path.name + ".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return facts
