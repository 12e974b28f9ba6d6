"""Makes the pages that are not written by hand: `python docs/build.py` writes api.md from the docstrings, and
`python docs/build.py NOTEBOOK...` runs notebooks and stores them with their outputs."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
# what functions and runs give, beside the public names
RESULTS = {
    "report.shown": ("Shown",),
    "results": ("Baselines", "Ensemble", "Power", "Records", "Cache"),
    "analysis.attention": ("AttentionMaps",),
    "analysis.look": ("LookResult",),
    "analysis.parameters": ("Parameters",),
    "analysis.surprisal": ("Surprisal", "Lengths"),
    "analysis.predictions": ("Predictions",),
    "analysis.generation": ("Generation",),
    "analysis.errors": ("Errors",),
    "analysis.catalogue": ("Catalogue",),
}
HEAD = """# API reference

Made from the docstrings by `python docs/build.py`; [python.md](python.md) is the introduction. Every example is run
by the tests, with `reviews` (a file of labelled texts), `classifier` and `language_model` (small runs), `encoder` (the
folder of a masked language model) and `finished` (a study) at hand.
"""


def reference() -> str:
    """The page, of all public names and of what they give."""
    import fairtrial as ft

    names = {name: getattr(ft, name) for name in ft.PUBLIC}
    results = {name: getattr(import_module(f"fairtrial.{room}"), name) for room in RESULTS for name in RESULTS[room]}
    functions = {name: thing for name, thing in names.items() if inspect.isfunction(thing)}
    kinds = {name: thing for name, thing in names.items() if isinstance(thing, type)}
    errors = {name: kind for name, kind in kinds.items() if issubclass(kind, Exception)}
    groups = {
        "Functions": functions,
        "Recipes and parts": {name: kinds[name] for name in ("Recipe", "Part")},
        "What functions give": {name: kinds[name] for name in ("Run", "Study", "Verdict", "Audit", "Comparison")},
        "What runs and further functions give": results,
        "Errors": errors,
    }
    assert {name for group in groups.values() for name in group} >= set(names)
    lines = [HEAD]
    for title, group in groups.items():
        lines.append(f"## {title}\n")
        for name, thing in group.items():
            lines += entry("### ", f"ft.{name}" if name in names else name, thing)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def entry(mark: str, name: str, thing: Any) -> Iterator[str]:
    """A function, a class with its attributes and methods, or a property."""
    plain = function_of(thing)
    yield f"{mark}{name}\n"
    if inspect.isfunction(thing) or plain is not thing:
        called = not isinstance(thing, property) and not hasattr(thing, "func")
        yield f"```python\n{signature(name, plain, called=called)}\n```\n"
    yield prose(inspect.getdoc(plain) or "")
    if isinstance(thing, type):
        yield attributes(thing)
        for own, member in members(thing):
            yield from entry("#### ", f"{thing.__name__}.{own}", member)


def function_of(thing: Any) -> Any:
    """Of a property, a cached one or a class method."""
    return getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that it does not inherit. How a result shows itself is told once."""
    from fairtrial.report.shown import Shown

    told = set(vars(Shown)) if kind is not Shown and issubclass(kind, Shown) else set()
    for name, member in vars(kind).items():
        called = inspect.isfunction(member) or isinstance(member, property | classmethod) or hasattr(member, "func")
        doc = getattr(function_of(member), "__doc__", "") or ""
        if called and not name.startswith("_") and doc and (name not in told or ">>>" in doc):
            yield name, member


def signature(name: str, function: Any, *, called: bool) -> str:
    """As it is written, on lines of at most 110 columns."""
    given = inspect.signature(function)
    short = name.split(".")[-1] if name.startswith("ft.") else name
    back = "" if given.return_annotation is given.empty else f" -> {given.return_annotation}"
    if not called:
        return f"{short}{back}"
    pieces: list[str] = []
    for each in given.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not any(piece.startswith("*") for piece in pieces):
            pieces.append("*")
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        typed = "" if each.annotation is each.empty else f": {each.annotation}"
        default = getattr(each.default, "__name__", repr(each.default))
        pieces.append(f"{mark}{each.name}{typed}" + ("" if each.default is each.empty else f" = {default}"))
    pieces = [piece for piece in pieces if piece not in ("self", "cls")]
    line = f"{short}({', '.join(pieces)}){back}"
    return line if len(line) <= 110 else f"{short}(\n" + "".join(f"    {each},\n" for each in pieces) + f"){back}"


def attributes(kind: type) -> str:
    """Fields of a dataclass, with the comments beside them."""
    if not dataclasses.is_dataclass(kind):
        return ""
    source, rows = inspect.getsource(kind), []
    for each in dataclasses.fields(kind):
        found = re.search(rf"(?m)^    {each.name}:[^#\n]*(?:#\s*(.*))?$", source)
        comment = found.group(1) if found else None
        kind_of = str(each.type).split('"')[0].removeprefix("Annotated[").rstrip(", ")
        rows.append(f"- `{each.name}`: `{kind_of}`" + (f", {comment}" if comment else ""))
    return "\n".join(rows) + "\n"


def prose(doc: str) -> str:
    """Markdown: text as it is, examples as code."""
    blocks = []
    for block in re.split(r"\n\s*\n", doc):
        shown = re.sub(r"  # doctest:.*", "", block)
        blocks.append(f"```python\n{shown}\n```" if shown.lstrip().startswith(">>>") else shown)
    return "\n\n".join(blocks) + "\n"


def run_notebook(path: Path, folder: Path) -> Any:
    """The notebook with its outputs; it is run in `folder`, so that no output names a place on this machine."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=1800, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the time of day
        if cell.cell_type == "code":  # a bar that has gone
            cell.outputs = [each for each in cell.outputs if each.get("data") != {"text/html": "", "text/plain": ""}]
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> None:
    if not sys.argv[1:]:
        (HERE / "api.md").write_text(reference(), encoding="utf-8")
    for name in sys.argv[1:]:
        import nbformat

        with TemporaryDirectory() as folder:
            done = run_notebook(Path(name), Path(folder))
        nbformat.write(done, name)


if __name__ == "__main__":
    main()
