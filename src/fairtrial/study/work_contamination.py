"""The work of a data audit: which test items stand in train, and what else is wrong with the data of a task."""

from __future__ import annotations

import tomllib
from typing import Any

from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.recipe_file import recipe_from
from fairtrial.text.contamination import audit_data


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    return audit_data(recipe_from(tomllib.loads(job.recipe)), job.seed)
