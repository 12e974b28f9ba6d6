"""Records and study files edited in tests: written again with checksums that fit, as their writer would have."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fairtrial.events import event_json
from fairtrial.recipe import fingerprint, load_recipe
from fairtrial.record import Record
from fairtrial.stored import CHECKSUM, TrialInfo, TrialResult, write_document
from fairtrial.typed import structure


def events_of(record: Record) -> list[dict[str, Any]]:
    """The log of a record as plain values."""
    return [event_json(event) for event in record.events()]


def plain_of(path: Path) -> dict[str, Any]:
    """A document without its format and checksum."""
    return {key: value for key, value in json.loads(path.read_text()).items() if key not in ("format", CHECKSUM)}


def reseal(folder: Path, *, trial: dict[str, Any] | None = None, result: dict[str, Any] | None = None) -> Record:
    """A record with these changes, whose checksums are those of its files as they are now."""
    facts = plain_of(folder / "trial.json")
    here = [name for name in facts.get("sha256", {}) if (folder / name).is_file()]
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in here}
    proofs = {"recipe": fingerprint(load_recipe(folder / "recipe.toml"))} | ({"sha256": sums} if sums else {})
    write_document(folder / "trial.json", structure(TrialInfo, facts | (trial or {}) | proofs))
    if (folder / "result.json").is_file():
        told = plain_of(folder / "result.json")
        Record(folder).write_result(structure(TrialResult, told | (result or {})))
    return Record.open(folder)
