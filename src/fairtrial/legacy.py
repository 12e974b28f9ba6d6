"""Stored files of version 0.2 (format 2), brought to today's shape: the only place that knows it."""

from __future__ import annotations

from dataclasses import is_dataclass

from fairtrial.stored import DataCounts, TrialInfo

Plain = dict[str, object]
COUNTS = tuple(DataCounts.__dataclass_fields__)


def upgrade(kind: type, plain: Plain) -> Plain:
    """A document of version 0.2 as one of this type is written today."""
    if not is_dataclass(kind):
        return plain
    plain = without_nulls(plain)
    if kind is TrialInfo:
        counts = {name: plain.pop(name) for name in COUNTS if name in plain}
        machine = plain.get("environment")
        if isinstance(machine, dict):  # torch.compile could be asked for
            plain["environment"] = {name: value for name, value in machine.items() if name != "compiled"}
        return {"asked": plain.get("recipe"), **plain, "counts": counts}
    return plain


def without_nulls(plain: Plain) -> Plain:
    """What was not known was null; today it is left out."""
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in plain.items()
        if value is not None
    }
