"""The parts view's answers: every part with its options, drawn; and its passport, check by check."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairtrial import catalogue
from fairtrial.analysis import plot_part
from fairtrial.audit import audit_plans, plans_of_part
from fairtrial.errors import BadInput
from fairtrial.explore.asked import Asked
from fairtrial.explore.library import Library
from fairtrial.explore.pool import Ticket
from fairtrial.finding import Finding, worst

Plain = dict[str, Any]


def parts(library: Library, asked: Asked, ticket: Ticket) -> Plain:
    """Those that are registered: no request loads a package."""
    rows = catalogue(installed=False).rows()
    for row in rows:
        row["options"] = [option_of(name, written) for name, written in row["options"].items()]
        row.pop("file")
    return {"parts": rows}


def option_of(name: str, written: str) -> Plain:
    """What a control needs to know of an option, from its default as it is written."""
    if written in ("true", "false"):
        return {"name": name, "kind": "bool", "default": written == "true"}
    for kind, read in (("int", int), ("float", float)):
        try:
            return {"name": name, "kind": kind, "default": read(written)}
        except ValueError:
            continue
    known = written[:1] in "'\""
    return {"name": name, "kind": "text" if known else "unknown", "default": written.strip("'\"") if known else None}


def named(asked: Asked) -> str:
    return asked.one_of("part", [each.name for each in catalogue(installed=False).entries])


def draw(library: Library, asked: Asked, ticket: Ticket) -> Plain:
    """What a part does, measured on initial weights."""
    name, options = named(asked), asked.options("options")
    heads, length = asked.whole("heads", 1, 16, 4), asked.whole("length", 2, 96, 24)
    try:
        pictures = plot_part(name, heads=heads, length=length, causal=asked.flag("decoder", True), **options)
    except (TypeError, ValueError, RuntimeError, AssertionError, IndexError) as error:  # of a part with odd options
        raise BadInput(f"{name} cannot be drawn with these options: {str(error).splitlines()[0][:200]}") from error
    return {"pictures": [asdict(each) | {"range": each.range} for each in pictures]}


def passport(library: Library, asked: Asked, ticket: Ticket) -> Plain:
    """Each check as it ends."""
    name = named(asked)

    def on_finding(finding: Finding) -> None:
        ticket.check()
        ticket.send({"finding": finding.to_dict()})

    return {"level": worst(audit_plans(plans_of_part(name), on_finding))}
