"""Options that several commands share, and what they print beside their results."""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option
from typer.core import TyperCommand

from fairtrial.errors import BadInput
from fairtrial.progress import Waiting
from fairtrial.recipe import toml

if TYPE_CHECKING:
    from rich.console import Console


SEVERAL_WORDS = ("--variants", "--set", "--with")

Texts = Annotated[list[str] | None, Argument(help="One sentence or several, each in quotes.", metavar="TEXT")]
TextFile = Annotated[Path | None, Option("--text-file", help="A file with one sentence per line.", metavar="FILE")]
With = Annotated[
    list[Path] | None, Option("--with", help="A Python file that adds your own parts. Repeatable.", metavar="FILE.py")
]
Model = Annotated[
    str | None,
    Option(
        help="A network of your own instead of ours: FILE.py:FUNCTION, hf:CLASS, x-transformers:Decoder; options follow"
        " a colon, hf:CLASS:n_layer=2. The file's code is run.",
        metavar="MODEL",
    ),
]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="Change one field of the recipe: --set shape.heads=4. Repeatable.", metavar="FIELD=VALUE"),
]
Seed = Annotated[int, Option(help="Random seed.", min=0, max=2**63 - 1)]
Json = Annotated[bool, Option("--json", help="Print JSON, for machines.")]
Html = Annotated[Path | None, Option(help="Also write a page to open in a browser.", metavar="FILE")]
Jobs = Annotated[int | None, Option(help="Trials at a time.", show_default="number of cores", min=1)]
Task = Annotated[str | None, Option(help="classify or lm.", show_default="what the data are for; some serve both")]
COLUMNS = {
    f"{kind}_column": Annotated[str | None, Option(help=help, metavar="NAME", show_default=default)]
    for kind, help, default in (
        ("text", "Column (or JSON key) of the text.", "found by its name"),
        ("label", "Column of the label.", "found by its name"),
        ("split", "Column that says train, validation, test or another test set; 'none'.", "found by its name"),
        ("group", "Column of what a text comes from (a speech, a book), never divided; 'none'.", "group"),
    )
}


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--text-column` and its like to a command, which gets them as `columns`: settings of a recipe."""
    own = inspect.signature(command, eval_str=True)
    added = {name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COLUMNS}
    parameters = [each for each in own.parameters.values() if each.name != "columns"]
    parameters += [each.replace(annotation=COLUMNS[name]) for name, each in added.items()]

    @wraps(command)
    def run(**given: Any) -> None:
        named = {name: given.pop(name, None) for name in COLUMNS}
        command(**given, columns=[f"data.{name}={toml(value)}" for name, value in named.items() if value is not None])

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


Some = list[str] | None
RESULTS = {
    name: Annotated[kind, Option(flag, help=help, metavar=metavar)]
    for name, kind, flag, metavar, help in (
        ("columns", Some, "--column", "OURS=THEIRS", "A table's own name of a column: value=score. Repeatable."),
        ("baseline", str | None, "--baseline", "VARIANT", "The variant to compare with. Default: the first."),
        ("metric", Some, "--metric", "NAME", "Judge this metric only. Repeatable."),
        ("lower_is_better", Some, "--lower-is-better", "METRIC", "A metric of which less is better. Repeatable."),
        ("least_difference", float | None, "--least-difference", "NUMBER", "The least difference of interest."),
        ("labels", str | None, "--labels", "FILE", "A table with the true labels, where only predictions are stored."),
        ("evaluation_seeds", bool, "--evaluation-seeds", "", "The seeds are those of evaluation, not of training."),
    )
}


def takes_results(command: Callable[..., None]) -> Callable[..., None]:
    """Adds options on results from elsewhere to a command, which gets them as `results`: keywords of `ft.verdict`."""
    own = inspect.signature(command, eval_str=True)
    kept = [each for each in own.parameters.values() if each.name != "results"]
    option, default = inspect.Parameter.KEYWORD_ONLY, {"evaluation_seeds": False}
    added = [
        inspect.Parameter(name, option, default=default.get(name), annotation=kind) for name, kind in RESULTS.items()
    ]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in kept] + added

    @wraps(command)
    def run(**given: Any) -> None:
        results = {name: given.pop(name) for name in RESULTS}
        pairs = [each.partition("=") for each in results["columns"] or []]
        if bad := [name + equal for name, equal, value in pairs if not (name and value)]:
            raise BadInput(f"--column takes OURS=THEIRS, got {bad[0]!r}", "such as --column value=score")
        results["columns"] = {name: value for name, _, value in pairs} or None
        results["metric"], results["lower_is_better"] = results["metric"] or [], results["lower_is_better"] or []
        command(**given, results=results)

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


class SeveralWords(TyperCommand):
    """A command with options that take several words: `--variants learned rope alibi`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, repeat_options(args))


def repeat_options(args: list[str]) -> list[str]:
    """`--variants a b --seeds 5` -> `--variants a --variants b --seeds 5`"""
    found: list[str] = []
    option = ""
    for index, word in enumerate(args):
        if word.startswith("-") and word != "-":
            option = word if word in SEVERAL_WORDS else ""
            found.append(word)
        elif option and args[index - 1] != option:
            found += [option, word]
        else:
            found.append(word)
    return found


def read_texts(texts: Sequence[str] | None, file: Path | None) -> list[str]:
    """All sentences that were given. Blank lines of a file are left out."""
    found = list(texts or [])
    for number, text in enumerate(found, 1):
        check_bytes(text, f"text {number}")
        if not text.strip():
            raise BadInput(f"text {number} is empty", 'give a sentence in quotes: "My fellow Americans"')
    if file is not None:
        from fairtrial.data.lines import read_lines, require_file

        require_file(file)
        lines = [line for _, line in read_lines(file).numbered() if line.strip()]
        if not lines:
            raise BadInput("the file has no sentences", "write one sentence per line", path=file)
        found += lines
    if not found:
        raise BadInput("no text was given", "give a sentence in quotes, or --text-file FILE with one per line")
    return found


def check_bytes(text: str, name: str) -> None:
    """Bytes from a terminal that are not UTF-8 arrive as lone surrogates, which no tokenizer reads."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(f"{name} is not UTF-8", "set your terminal to UTF-8, or give a file with --text-file")


def notice(text: str) -> None:
    print(f"notice: {text}", file=sys.stderr)


def drawing(stream: Any = None) -> Console:
    """Rich's way to the terminal: what it draws needs control characters, which are not printed elsewhere."""
    from rich.console import Console

    return Console(file=drawn_by(stream or sys.stdout), highlight=False)


def drawn_by(stream: Any) -> Any:
    """What takes control characters, too."""
    return getattr(stream, "drawn", stream)


def show_status(what: str) -> None:
    """On a terminal, one line that is overwritten; an empty text wipes it. Elsewhere nothing."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1  # blanks wipe the line on any terminal
        print(f"\r{(what + ' ...' * bool(what))[:width]:{width}}\r", end="", file=drawn_by(sys.stderr), flush=True)


@contextmanager
def waiting_line() -> Iterator[None]:
    """What takes longer than two seconds says so in the line of the status, and how long it will still take."""
    if not sys.stderr.isatty():
        yield
        return
    shown = False

    def show(words: str, share: float | None) -> None:
        nonlocal shown
        shown = True
        show_status(words)

    def wipe() -> None:
        nonlocal shown
        if shown:
            show_status("")
        shown = False

    with Waiting(show, 1.0, wipe):
        yield
    wipe()
