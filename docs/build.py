"""Makes the pages that are not written by hand: `python docs/build.py` writes api.md from the docstrings, commands.md
from the command line's parser, recipe.md from the fields of a recipe, the table of a part's methods in
add-a-part.md, and schemas/ from the dataclasses that `--json` prints; `python docs/build.py docs/parts.md` writes
the page of parts; `python docs/build.py NOTEBOOK...` runs notebooks and stores them with their outputs; `python
docs/build.py PAGE.html` takes the picture at the top of the README, the first screen of a study's page (`make demo`
makes one), in Debian's chromium."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from fairtrial.finding import Finding

HERE = Path(__file__).resolve().parent
RESEARCH = HERE.parent / "research"
# what functions and runs give, beside the public names
RESULTS = {
    "description": ("Result", "Description", "Table"),
    "results.records": ("Baselines", "Records", "Tuned"),
    "results.power": ("Power",),
    "grading": ("Grades",),
    "inspection.attention": ("AttentionMaps",),
    "inspection.heads": ("LookResult",),
    "inspection.parameters": ("Parameters",),
    "inspection.language": ("Surprisal", "Lengths", "Generation"),
    "inspection.classifier": ("Predictions", "Errors"),
    "inspection.catalogue": ("Catalogue",),
}
GIVEN = (
    *("Run", "Study", "Outcomes", "Audit", "Verdict", "TaskVerdict", "Comparison", "Interval", "Metric", "Score"),
    *("Speedup", "Speedups", "VerdictKind", "Question", "Gate", "ProposalState", "SelfTest", "SanityCheck"),
)
ARGUMENTS = r"(?m)^Args:\n((?:    .*\n?)+)"  # of a docstring
HEAD = """# API reference

Made from the docstrings by `python docs/build.py`; [Python and notebooks](python.md) is the introduction. Every example
is run by the tests, with `reviews` (a file of labelled texts), `classifier` and `language_model` (small runs),
`encoder` (the folder of a masked language model) and `finished` (a study) at hand.
"""


def reference() -> str:
    """The page, of all public names and of what they give."""
    import fairtrial as ft

    names = {name: getattr(ft, name) for name in ft.PUBLIC}
    results = {
        name: getattr(import_module(f"fairtrial.{package}"), name) for package in RESULTS for name in RESULTS[package]
    }
    functions = {name: thing for name, thing in names.items() if inspect.isfunction(thing)}
    kinds = {name: thing for name, thing in names.items() if isinstance(thing, type)}
    errors = {name: kind for name, kind in kinds.items() if issubclass(kind, Exception)}
    groups = {
        "Functions": functions,
        "Options, recipes and parts": {name: kinds[name] for name in ("RunOptions", "StudyOptions", "Recipe", "Part")},
        "What functions give": {name: kinds[name] for name in GIVEN},
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
    text = inspect.getdoc(plain) or ""
    yield prose(re.sub(ARGUMENTS, "", text) if dataclasses.is_dataclass(thing) else text)
    if isinstance(thing, type):
        yield attributes(thing)
        for own, member in members(thing):
            yield from entry("#### ", f"{thing.__name__}.{own}", member)


def function_of(thing: Any) -> Any:
    """Of a property, a cached one or a class method."""
    return getattr(thing, "fget", None) or getattr(thing, "func", None) or getattr(thing, "__func__", thing)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that it does not inherit, without old names of others. How a result
    shows itself is told once."""
    from fairtrial.description import Result

    told = set(vars(Result)) if kind is not Result and issubclass(kind, Result) else set()
    for name, member in vars(kind).items():
        called = inspect.isfunction(member) or isinstance(member, property | classmethod) or hasattr(member, "func")
        doc = getattr(function_of(member), "__doc__", "") or ""
        old = getattr(function_of(member), "__name__", name) != name
        if called and not old and not name.startswith("_") and doc and (name not in told or ">>>" in doc):
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
    """Fields of a dataclass, with what its docstring or the comments beside them say."""
    if not dataclasses.is_dataclass(kind):
        return ""
    rows, comments = [], field_comments(kind)
    for each in dataclasses.fields(kind):
        kind_of = str(each.type).split('"')[0].removeprefix("Annotated[").rstrip(", ")
        rows.append(f"- `{each.name}`: `{kind_of}`" + (f", {comments[each.name]}" if each.name in comments else ""))
    return "\n".join(rows) + "\n"


def field_comments(kind: type) -> dict[str, str]:
    """What the docstring of a dataclass, or the comments beside its fields, say of each."""
    from fairtrial.cli.declare import read_docstring

    found, described = {}, read_docstring(kind).arguments
    for each in dataclasses.fields(kind):
        owner = next(base for base in kind.__mro__ if each.name in inspect.get_annotations(base))
        line = re.search(rf"(?m)^    {each.name}:[^#\n]*#\s*(.*)$", inspect.getsource(owner))
        if comment := described.get(each.name, ("", line[1] if line else ""))[1]:
            found[each.name] = comment
    return found


def prose(doc: str) -> str:
    """Markdown: text as it is, arguments as a list, examples as code."""
    doc = re.sub(ARGUMENTS, lambda match: argument_list(match[1]) + "\n", doc)
    blocks = []
    for block in re.split(r"\n\s*\n", doc):
        shown = re.sub(r"  # doctest:.*", "", block)
        blocks.append(f"```python\n{shown}\n```" if shown.lstrip().startswith(">>>") else shown)
    return "\n\n".join(blocks) + "\n"


def argument_list(text: str) -> str:
    joined = re.sub(r"\n {8,}", " ", text)
    return re.sub(r"(?m)^    (\w+)(?: \([^)]*\))?: ", r"- `\1`: ", joined)


COMMANDS_HEAD = """# Commands

Made from the command line's parser by `python docs/build.py`. `fairtrial COMMAND --help` prints the same;
[Every command by example](tour.md) shows the commands in use. Exit codes: 0 done, 1 a check failed (`audit`, `verify`),
2 a mistake in what was given, 3 the folder is in use, 4 training diverged, 5 the disk, 6 a fault of fairtrial or of a
process that it started, 130 stopped by Ctrl-C, 141 a closed pipe.
"""


def command_reference() -> str:
    """Every command of the command line with its arguments and options, by group."""
    import typer.main

    from fairtrial.cli.main import SECTIONS, app

    top = typer.main.get_command(app)
    lines = [COMMANDS_HEAD]
    for group in SECTIONS:
        lines.append(f"## {group}\n")
        for name, command in top.commands.items():  # type: ignore[attr-defined]
            if not command.hidden and getattr(command, "rich_help_panel", "") == group:
                lines += command_entry(f"fairtrial {name}", command)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def command_entry(name: str, command: Any) -> Iterator[str]:
    """A command, or the commands of a group of them."""
    text = inspect.cleandoc((command.help or "").replace("\b\n", ""))
    example, rest = re.match(r"(?:Example: (.*)\n+)?([\s\S]*)", text).groups()  # type: ignore[union-attr]
    yield f"### {name}\n"
    yield f"{rest}\n"
    if example:
        yield f"```sh\n{example}\n```\n"
    context = command.make_context(name, [], resilient_parsing=True)
    rows = [each.get_help_record(context) for each in command.params]
    shown = [(option, " ".join(said.split())) for option, said in (row for row in rows if row)]
    if shown:
        yield "| argument or option | meaning |\n|---|---|"
        yield from (f"| `{escaped(option)}` | {marked(said)} |" for option, said in shown)
        yield ""
    for inner, each in getattr(command, "commands", {}).items():
        yield from command_entry(f"{name} {inner}", each)


def escaped(text: str) -> str:
    """For a cell of a table."""
    return text.replace("|", r"\|")


def marked(text: str) -> str:
    """Also outside of code, where `<unk>` would be read as HTML."""
    return re.sub(r"<(?=[a-z])", r"\\<", escaped(text))


RECIPE_HEAD = """# Recipe fields

Made from `recipe.py` by `python docs/build.py`. `fairtrial train classify --print-recipe > recipe.toml` prints a recipe
with every field and its meaning, to be edited and trained by `fairtrial train recipe.toml`; `--set shape.heads=4`
changes one field on the command line, `heads=4` in Python. Defaults are those of the recipe `default` for each task; a
dash: the same as the first.
"""


def recipe_reference() -> str:
    """Every field of a recipe with its meaning and its defaults by task."""
    from fairtrial.recipe import TASKS, Recipe, built_in_recipe, field_hints, to_table, toml

    recipes = [to_table(built_in_recipe("default", task)) for task in TASKS]
    sections = [name for name, value in recipes[0].items() if isinstance(value, dict)]
    lines = [RECIPE_HEAD]
    for section in ("", *sections):
        kind = field_hints(Recipe)[section][0] if section else Recipe
        if section:
            lines.append(f"## {section}\n\n{kind.__doc__.splitlines()[0]}\n")
        lines.append(f"| field | meaning | {' | '.join(TASKS)} |\n|---|---|{'---|' * len(TASKS)}")
        for name, (_, said) in field_hints(kind).items():
            if name in sections:
                continue
            given = [toml((recipe[section] if section else recipe)[name]) for recipe in recipes]
            cells = [f"`{each}`" if not at or each != given[0] else "–" for at, each in enumerate(given)]
            lines.append(f"| `{section}{'.' * bool(section)}{name}` | {marked(said)} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


METHODS = re.compile(r"(?<=<!-- methods: python docs/build.py -->\n).*?(?=\n<!-- end -->)", flags=re.S)


def part_page() -> str:
    """The page as it is, with the table of methods made anew."""
    from fairtrial.model.part import HOOKS, Part

    rows = ["", "| method | what it gets -> what it gives |", "|---|---|"]
    for name in HOOKS:
        method = getattr(Part, name)
        given = ", ".join(list(inspect.signature(method).parameters)[1:])
        rows.append(f"| `{name}({given})` | {marked(' '.join((inspect.getdoc(method) or '').split()))} |")
    page = (HERE / "add-a-part.md").read_text(encoding="utf-8")
    return METHODS.sub(lambda _: "\n".join([*rows, ""]), page)


# What each command prints with `--json`: "module:Class" is a dataclass of fairtrial, a dict an object ("name?" may be
# missing, "&" has the fields of another, "*" is any further name), a list one of several, (X,) a list of X.
EVENTS = [
    {"event": Literal["start"], "&": "events:Started"},
    {"event": Literal["step"], "&": "events:Stepped"},
    {"event": Literal["score"], "step": int, "split": str, "&": "stored:Metrics"},
    {"event": Literal["best"], "&": "events:Improved"},
    {"event": Literal["stop"], "&": "events:StoppedEarly"},
    {"event": Literal["estimate"], "&": "events:Estimated"},
    {"event": Literal["testing"], "&": "events:FinalScoring"},
    {"event": Literal["notice"], "&": "events:Notice"},
    {"event": Literal["baseline"], "&": "events:ScoringBaseline"},
    {"event": Literal["end"], "step": int, "baseline?": "stored:BaselineScores", "&": "stored:TrialResult"},
]
VERDICT = {"version": int, "&": "results.values:Verdict"}
STUDY_EVENTS = [
    {"event": Literal["plan"], "&": "stored:PlanSummary"},
    {"event": Literal["timing"], "&": "events:TimingStarted"},
    {"event": Literal["search"], "&": "events:SearchStarted"},
    {"event": Literal["jobs"], "&": "events:TrialsStarted"},
    {"event": Literal["notice"], "&": "events:StudyNotice"},
    {"event": Literal["commands"], "&": "events:JobsListed"},
    {"event": Literal["notice"], "&": "events:JobNotice"},
    {"event": Literal["begin"], "&": "events:JobStarted"},
    {"event": Literal["step"], "&": "events:JobStepped"},
    {"event": Literal["testing"], "&": "events:JobScoring"},
    {"event": Literal["done"], "&": "events:JobDone"},
    {"event": Literal["failed"], "&": "events:JobFailed"},
    {"event": Literal["verdict"], "verdict": VERDICT, "text": (str,), "page": str, "folder": str},
]
GATE = {
    "answer": ["gate.decision:Answer", None],
    "sentence": str,
    "current": ["gate.state:ProposalState", None],
    "&": "gate.state:Gate",
}
NEEDED = {"seeds": int, "items_low": [int, None], "items_high": [int, None]}
CHECKED = {"record": str, "state": "results.audit:ClaimState"}
CHECKED["claims"] = ({"claim": str, "state": "results.audit:ClaimState", "detail": str},)
SOLVED = {
    "ask": str,
    "possible": bool,
    "in_the_way": (int,),
    "keys": ((float,),),
    "wanted": (float,),
    "query": (float,),
    "query_length": float,
    "weights": (float,),
    "precision": float,
    "best_weights": (float,),
    "direction": [(float,), None],
    "lead": float,
    "balance": [(float,), None],
}
RECORD = {
    "recipe": {"task": str, "*": object},
    "trial": "stored:TrialInfo",
    "result": ["stored:TrialResult", None],
    "events": (EVENTS,),
    "baseline": ["stored:BaselineScores", None],
}
OUTPUTS: dict[str, Any] = {
    **dict.fromkeys(("train", "finetune"), EVENTS),
    **dict.fromkeys(("study", "demo"), STUDY_EVENTS),
    "verdict": [VERDICT, {"page": str, "bytes": int}],
    "power": [
        {"metric": str, "seeds": int, "items": int, "comparisons": int, "low": float, "high": float, "sentence": str},
        {"needs": (NEEDED,), "sentence": str},
    ],
    "audit": "finding:Passport",
    "doctor": {
        "passed": bool,
        "environment": "stored:Environment",
        "device": [str, None],
        "checks": ("checkup:Check",),
    },
    "grade": {
        "submission": str,
        "points": float,
        "verified": str,
        "copies": str,
        "problem": str,
        "*": object,
    },
    "verify": ({**CHECKED, "trials?": (CHECKED,)},),
    **dict.fromkeys(("gate show", "gate new", "gate add", "gate run", "gate confirm", "gate final"), GATE),
    "gate self-test": "gate.state:SelfTest",
    "show": [RECORD, {"folder": str, "state": str, "problem": str, "*": object}],
    "inspect params": {
        "task": str,
        "vocabulary": int,
        "classes": int,
        "flops": "inspection.parameters:Flops",
        "&": "inspection.parameters:Ledger",
    },
    "inspect length": "inspection.language:LengthScore",
    "inspect errors": "inspection.classifier:Errors",
    "inspect predict": {
        "text": str,
        "guess": str,
        "probabilities": {"*": float},
        "unknown": (str,),
        "cut": bool,
    },
    "inspect surprisal": [
        {
            "text": str,
            "perplexity": [float, None],
            "nll": float,
            "counted": int,
            "tokens": ("inspection.language:Token",),
        },
        {"perplexity": [float, None], "counted": int, "notices": (str,)},
    ],
    "inspect generate": {
        "temperature": [float, None],
        "notices": (str,),
        "&": "inspection.language:Generated",
    },
    "parts": ("inspection.catalogue:Entry",),
    "puzzle": SOLVED,
    "data audit": "stored:DataAudit",
    "data baseline": "stored:TaskBaselines",
    "data clean": "data.cleaning:Cleaned",
}
LINE_BY_LINE = {"train", "finetune", "study", "demo", "grade", "show", "data audit", "data baseline"}
LINE_BY_LINE |= {f"inspect {name}" for name in ("length", "predict", "surprisal", "generate")}
JSON_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", None: "null", NoneType: "null"}


def schema_file(command: str) -> str:
    """The JSON Schema of what a command prints with `--json`."""
    shared: dict[str, object] = {}
    each = "each line of " if command in LINE_BY_LINE else ""
    title = f"{each}what fairtrial {command} --json prints"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps({**head, **schema_of(OUTPUTS[command], shared), "$defs": shared}, indent=1) + "\n"


def schema_of(kind: Any, shared: dict[str, object]) -> dict[str, object]:
    """Of a type, or of what `OUTPUTS` holds; dataclasses are defined once, in `shared`."""
    if isinstance(kind, str):
        module, _, name = kind.partition(":")
        kind = getattr(import_module(f"fairtrial.{module}"), name)
    if isinstance(kind, dict):
        return object_schema(kind, shared)
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, list) or origin in (Union, UnionType):
        return {"anyOf": [schema_of(each, shared) for each in (kind if isinstance(kind, list) else inner)]}
    if isinstance(kind, tuple):
        return {"type": "array", "items": schema_of(kind[0], shared)}
    if origin is Annotated:
        least = [each.least for each in inner[1:] if hasattr(each, "least")]
        return schema_of(inner[0], shared) | ({"minimum": least[0]} if least else {})
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple and inner[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [schema_of(each, shared) for each in inner], "items": False}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(inner[0], shared)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], shared)}
    if kind in JSON_NAMES:
        return {"type": JSON_NAMES[kind]}
    if kind is object:
        return {}
    if origin is not None:  # an array of numpy
        return {"type": "array"}
    if issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    if not dataclasses.is_dataclass(kind):
        return {"type": "string"}  # a path
    if kind.__name__ not in shared:
        shared[kind.__name__] = {}
        shared[kind.__name__] = object_schema({"&": kind}, shared)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def object_schema(fields: Mapping[str, Any], shared: dict[str, object]) -> dict[str, object]:
    fields, comments = dict(fields), {}
    rest = schema_of(fields.pop("*"), shared) if "*" in fields else False
    if (spread := fields.pop("&", None)) is not None:
        if isinstance(spread, str):
            module, _, name = spread.partition(":")
            spread = getattr(import_module(f"fairtrial.{module}"), name)
        comments, fields = field_comments(spread), {**fields, **field_types(spread)}
    properties = {name.removesuffix("?"): schema_of(kind, shared) for name, kind in fields.items()}
    for name, comment in comments.items():
        properties[name] = properties[name] | {"description": comment}
    needed = [name for name in fields if not name.endswith("?")]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": rest}


def field_types(kind: Any) -> dict[str, Any]:
    """Fields as JSON has them: one that is None by default is left out where it is None. A finding has those of its
    kind, and null for a number that is not finite."""
    hints, own_form = get_type_hints(kind, include_extras=True), hasattr(kind, "to_plain")
    found: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        optional = each.default is None or (own_form and each.default is not dataclasses.MISSING)
        hint = hints[each.name]
        found[each.name + "?" * optional] = [hint, None] if own_form and hint is float else hint
    return found


# name of the page -> what writes it; a test sees that they are up to date
PAGES = {
    "api.md": reference,
    "commands.md": command_reference,
    "recipe.md": recipe_reference,
    "add-a-part.md": part_page,
    **{f"schemas/{name.replace(' ', '-')}.json": partial(schema_file, name) for name in OUTPUTS},
}


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


def take_picture(page: Path, picture: Path) -> None:
    """The first screen of a page, as a person with a laptop sees it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1100, "height": 620}, device_scale_factor=1.5)
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=picture)
        browser.close()


KINDS = {"classify": "encoder", "lm": "decoder"}


def parts_row(name: str, findings: Sequence[Finding]) -> str:
    """`| alibi | encoder, decoder | PASS | |`"""
    kinds = ", ".join(kind for task, kind in KINDS.items() if any(each.task == task for each in findings))
    red = dict.fromkeys(each.id for each in findings if each.severity == "red")
    amber = dict.fromkeys(f"{each.id} (amber)" for each in findings if each.severity == "amber")
    blind = [each for each in findings if each.id == "M8" and each.verdict == "REPORT" and each.value <= 1e-6]
    faults = [*red, *amber, *(f"sees no word order ({KINDS[each.task]})" for each in blind)]
    return f"| `{name}` | {kinds} | {'FAIL' if red or amber else 'PASS'} | {', '.join(faults)} |"


def write_parts(path: Path) -> None:
    """The page of all parts, plotted and audited, and the plots in a folder of the same name beside it."""
    from jinja2 import Environment

    import fairtrial as ft
    from fairtrial.inspection.catalogue import plot_part
    from fairtrial.report.plots import draw_pictures, figure_bytes, our_look

    entries, passports = ft.catalogue().entries, {}
    path.with_suffix("").mkdir(exist_ok=True)
    for entry in entries:
        passports[entry.name] = ft.audit(entry.name).findings
        pictures = plot_part(entry.name, causal="pool" not in entry.hooks)
        with our_look():
            drawn = figure_bytes(draw_pictures(pictures, entry.name), "svg")
        (path.with_suffix("") / f"{entry.name}.svg").write_bytes(drawn)
    template = Environment(trim_blocks=True, lstrip_blocks=True).from_string((HERE / "parts.jinja").read_text())
    values = {"entries": entries, "passports": passports, "plots": path.stem, "kinds": KINDS}
    path.write_text(template.render(values, parts_row=parts_row).rstrip() + "\n")


def main() -> None:
    if not sys.argv[1:]:
        (HERE / "schemas").mkdir(exist_ok=True)
        for name, write in PAGES.items():
            (HERE / name).write_text(write(), encoding="utf-8")
    for name in sys.argv[1:]:
        if name.endswith("parts.md"):
            write_parts(Path(name))
            continue
        if name.endswith(".html"):
            take_picture(Path(name), HERE / "images" / "verdict.png")
            continue
        import nbformat

        with TemporaryDirectory() as folder:
            done = run_notebook(Path(name), Path(folder))
        nbformat.write(done, name)


if __name__ == "__main__":
    main()
