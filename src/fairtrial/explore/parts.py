"""The parts view's answers: every part with its options, drawn."""

from __future__ import annotations

import inspect
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from fairtrial import catalogue
from fairtrial.engines import Drawing, Ending, Job, JobResult, open_engine, run_job
from fairtrial.errors import BadInput
from fairtrial.explore.library import Library
from fairtrial.explore.requests import JobHandle, Plain, RequestParams, TooSlow
from fairtrial.model import parts as registered
from fairtrial.plugins import keep_written

DRAWING_SECONDS = 15.0  # a part of a user's own may hang


def parts(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """Those that are registered: no request loads a package."""
    rows = catalogue().rows()
    for row in rows:
        known, options = parameters_of(str(row["name"])), row["options"]
        assert isinstance(options, dict)
        row["options"] = [option_of(name, written, known.get(name)) for name, written in options.items()]
        row.pop("file")
    return {"parts": rows}


def parameters_of(part: str) -> dict[str, object]:
    """The options of a part with their types."""
    begun = registered.find(part).__init__
    try:
        return {name: each.annotation for name, each in inspect.signature(begun, eval_str=True).parameters.items()}
    except (NameError, TypeError, ValueError):  # of a part with odd annotations
        return {}


def option_of(name: str, written: str, kind: object) -> Plain:
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


def named(params: RequestParams) -> str:
    return params.one_of("part", [each.name for each in catalogue().entries])


def draw(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """What a part does, measured on initial weights. Ours are drawn here and at once, a user's in a process."""
    name = named(params)
    heads, length = params.whole("heads", 1, 16, 4), params.whole("length", 2, 96, 24)
    drawing = Drawing(name, params.options("options"), heads, length, params.flag("decoder", True))
    job = Job(("part", name), "drawing", seconds=DRAWING_SECONDS, drawing=drawing)
    if registered.find(name).__module__.startswith("fairtrial.parts"):
        result = run_job(job, lambda event: None, handle.ended.is_set)
    else:
        result = in_a_process(library, job, handle)
    if not isinstance(result.value, tuple):
        raise (TooSlow if result.ending is Ending.LATE else BadInput)(
            f"{name} cannot be drawn with these options: {result.error}"
        )
    return {"pictures": [asdict(picture) | {"range": picture.range} for picture in result.value]}


def in_a_process(library: Library, job: Job, handle: JobHandle) -> JobResult:
    """A part of a user's own may hang or crash: its process is killed when it takes too long or when nobody waits any
    more."""
    with tempfile.TemporaryDirectory(prefix="fairtrial-part-") as folder:
        files = [*map(str, library.plugins), *(str(each) for each in written(job.key[1], Path(folder)))]
        job = replace(job, plugins=tuple(files))
        results = list(open_engine("cores", 1).run([job], lambda event: None, handle.ended.is_set))
    handle.check()
    return results[0] if results else JobResult(job, error="it was stopped")


def written(name: str, folder: Path) -> list[Path]:
    """A part from a notebook has no file that another process could load: its source becomes one."""
    paths = []
    for file, source in keep_written([name]).items():
        paths.append(folder / file)
        paths[-1].write_bytes(source.encode())  # to the byte: its checksum is known
    return paths
