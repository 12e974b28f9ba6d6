"""Stored files of version 0.2 (format 2), brought to today's shape: the only place that knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

from fairtrial.stored import DataCounts, TrialInfo
from fairtrial.stored_study import DataAudits, PlanSummary, StoredPlan

Plain = dict[str, object]
COUNTS = tuple(DataCounts.__dataclass_fields__)
SUMMARY = tuple(PlanSummary.__dataclass_fields__)


def upgrade(kind: type, plain: Plain) -> Plain:
    """A document of version 0.2 as one of this type is written today."""
    if kind == DataAudits:
        return {task: without(audit, "format") for task, audit in plain.items()}
    if not is_dataclass(kind):
        return plain
    plain = without_nulls(plain)
    if kind is TrialInfo:
        counts = {name: plain.pop(name) for name in COUNTS if name in plain}
        machine = plain.get("environment")
        if isinstance(machine, dict):  # torch.compile could be asked for
            plain["environment"] = {name: value for name, value in machine.items() if name != "compiled"}
        return {"asked": plain.get("recipe"), **plain, "counts": counts}
    return upgrade_plan(plain) if kind is StoredPlan else plain


def upgrade_plan(plain: Plain) -> Plain:
    """What described the plan stood beside what a later plan needs."""
    calibration = per_variant(plain.get("calibration"), {"ledger": "rows"})
    summary = {name: plain[name] for name in SUMMARY if name in plain}
    own: Plain = {name: plain[name] for name in ("tasks", "variants", "seeds", "trials") if name in plain}
    tasks, variants, looks = (listed(plain.get(name)) for name in ("tasks", "variants", "looks"))
    # a verdict was remembered by its number of seeds
    own["looks"] = [
        {"baseline": "", "seeds": {task: dict.fromkeys(variants, seeds) for task in tasks}} for seeds in looks
    ]
    return {**own, "calibration": calibration, **({"summary": summary} if summary else {})}


def listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def per_variant(plain: object, renamed: Mapping[str, str]) -> object:
    """Of each task and variant, fields under their new names; what has another shape is left for the reader."""
    if not isinstance(plain, dict):
        return plain or {}
    return {
        task: {variant: rename(fields, renamed) for variant, fields in named.items()}
        if isinstance(named, dict)
        else named
        for task, named in plain.items()
    }


def rename(fields: object, renamed: Mapping[str, str]) -> object:
    if not isinstance(fields, dict):
        return fields
    return {renamed.get(name, name): value for name, value in fields.items()}


def without(fields: object, name: str) -> object:
    return {key: value for key, value in fields.items() if key != name} if isinstance(fields, dict) else fields


def without_nulls(plain: Plain) -> Plain:
    """What was not known was null; today it is left out."""
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in plain.items()
        if value is not None
    }
