"""The work of an audit: the passports of one or several variants.

Several share the two fresh processes that prove determinism, which take longer to start than all else."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from fairtrial.engines.job import Job, Stop, Tell
from fairtrial.passport.finding import as_passport
from fairtrial.passport.run import audit_each
from fairtrial.passport.subject import plan_of_recipe
from fairtrial.pretrained.encoder import open_encoder, with_encoder
from fairtrial.recipe_file import recipe_from
from fairtrial.strangers import load_files, load_installed
from fairtrial.trial import use_machine


def run(job: Job, tell: Tell, stop: Stop) -> dict[str, Any]:
    """`options["plans"]`: task, variant and recipe of each."""
    load_files(Path(name) for name in job.strangers)
    asked = job.options["plans"]
    recipes = [recipe_from(tomllib.loads(each["recipe"])) for each in asked]
    load_installed(choice.name for recipe in recipes for choice in recipe.parts)
    with use_machine(1):
        plans = [plan_of_recipe(with_encoder(recipe, open_encoder(recipe))) for recipe in recipes]
        found = audit_each(plans)
    passports = [
        {"task": each["task"], "variant": each["variant"], "passport": as_passport(each["variant"], findings)}
        for each, findings in zip(asked, found, strict=True)
    ]
    return {"passports": passports}
