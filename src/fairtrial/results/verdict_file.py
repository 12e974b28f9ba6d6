"""A verdict as JSON, written and read in one place; files of version 0.2.0 come through `legacy`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.results.legacy import verdict_of_0_2
from fairtrial.results.values import Verdict
from fairtrial.stored import read_plain, write_document
from fairtrial.typed import WrongValue, structure, unstructure

VERSION = 3  # of what verdict.json holds
HINT = "write it again with `fairtrial study STUDY`"


def to_json(verdict: Verdict) -> dict[str, object]:
    """Plain values, as verdict.json holds them."""
    plain = unstructure(verdict)
    assert isinstance(plain, dict)
    return {"version": VERSION, **plain}


def from_json(plain: Mapping[str, object], where: Path | str = "the verdict") -> Verdict:
    """Refused where a value is missing, unknown or of another type."""
    known = {name: value for name, value in plain.items() if name not in ("version", "format")}
    try:
        if "version" not in plain:
            return verdict_of_0_2(known)
        if plain["version"] != VERSION:
            raise BadInput(
                f"{where} has version {plain['version']!r}; this fairtrial reads {VERSION}", "update fairtrial"
            )
        return structure(Verdict, _finite(known))
    except WrongValue as error:
        raise BadInput(f"{where} is damaged at {error}", HINT) from error


def _finite(value: object) -> object:
    """NaN and infinities mean unknown, as null does: they must not reach a sentence or a page."""
    if isinstance(value, dict):
        return {name: _finite(own) for name, own in value.items()}
    if isinstance(value, list):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_verdict(path: Path) -> Verdict:
    return from_json(read_plain(path, HINT), path)


def is_of_0_2(path: Path) -> bool:
    """Whether a file was written by version 0.2.0, which stored less."""
    return "version" not in read_plain(path, HINT)


def write_verdict(path: Path, verdict: Verdict) -> None:
    write_document(path, to_json(verdict))
