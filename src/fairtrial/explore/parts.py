"""The parts view's answers: every part with its options, drawn; and its passport, check by check."""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fairtrial import catalogue
from fairtrial.analysis import plot_part
from fairtrial.engines import Job, open_engine
from fairtrial.errors import BadInput, FairtrialError
from fairtrial.explore.asked import Asked
from fairtrial.explore.library import Library
from fairtrial.explore.pool import Ticket, TooSlow
from fairtrial.model import parts as registered
from fairtrial.plugins import keep_written

Plain = dict[str, Any]
PASSPORT_SECONDS = 300.0  # a part of a user's own may hang


def parts(library: Library, asked: Asked, ticket: Ticket) -> Plain:
    """Those that are registered: no request loads a package."""
    rows = catalogue(installed=False).rows()
    for row in rows:
        known = parameters_of(row["name"])
        row["options"] = [option_of(name, written, known.get(name)) for name, written in row["options"].items()]
        row.pop("file")
    return {"parts": rows}


def parameters_of(part: str) -> dict[str, Any]:
    """The options of a part with their types."""
    begun = registered.find(part).__init__
    try:
        return {name: each.annotation for name, each in inspect.signature(begun, eval_str=True).parameters.items()}
    except (NameError, TypeError, ValueError):  # of a part with odd annotations
        return {}


def option_of(name: str, written: str, kind: Any) -> Plain:
    """What a control needs to know of an option, from its default as it is written, or its type where none is set."""
    if written in ("true", "false"):
        return {"name": name, "kind": "bool", "default": written == "true"}
    for word, read in (("int", int), ("float", float)):
        try:
            return {"name": name, "kind": word, "default": read(written)}
        except ValueError:
            continue
    if written[:1] in ("'", '"'):
        return {"name": name, "kind": "text", "default": written[1:-1]}
    types = {each.__name__ for each in getattr(kind, "__args__", ()) if each in (int, float, str)}
    return {"name": name, "kind": next((each for each in ("int", "float") if each in types), "text"), "default": None}


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
    """Each check as it ends. A part of a user's own may hang or crash, so that they run in a process of their own,
    which is killed when it takes too long or when nobody waits any more."""
    name = named(asked)

    def on_progress(job: Job, kind: str, facts: Plain) -> None:
        ticket.send({kind: facts})  # begin, finding, notice

    with tempfile.TemporaryDirectory(prefix="fairtrial-part-") as folder:
        files = [*map(str, library.plugins), *(str(each) for each in written(name, Path(folder)))]
        job = Job(("part", name), "part", plugins=tuple(files), seconds=PASSPORT_SECONDS, options={"part": name})
        results = list(open_engine("cores", 1).run([job], on_progress, ticket.ended.is_set))
    ticket.check()
    if not results or results[0].facts is None:
        why = results[0].error if results else "it was stopped"
        raise (TooSlow if "took longer" in why else FairtrialError)(f"the passport of {name} was not finished: {why}")
    return dict(results[0].facts)


def written(name: str, folder: Path) -> list[Path]:
    """A part from a notebook has no file that another process could load: its source becomes one."""
    paths = []
    for file, source in keep_written([name]).items():
        paths.append(folder / file)
        paths[-1].write_text(source, encoding="utf-8")
    return paths
