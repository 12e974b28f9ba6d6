"""Records and study files edited in tests: written again with checksums that fit, as their writer would have."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fairtrial.recipe import fingerprint, load_recipe
from fairtrial.record import Record
from fairtrial.stored import write_document


def reseal(folder: Path, *, trial: dict[str, Any] | None = None, result: dict[str, Any] | None = None) -> Record:
    """A record with these changes, whose checksums are those of its files as they are now."""
    facts = json.loads((folder / "trial.json").read_text())
    here = [name for name in facts.get("sha256", {}) if (folder / name).is_file()]
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in here}
    proofs = {"recipe": fingerprint(load_recipe(folder / "recipe.toml"))} | ({"sha256": sums} if sums else {})
    write_document(folder / "trial.json", facts | (trial or {}) | proofs)
    if (folder / "result.json").is_file():
        told = json.loads((folder / "result.json").read_text())
        Record(folder).write_result(told | (result or {}))
    return Record.open(folder)
