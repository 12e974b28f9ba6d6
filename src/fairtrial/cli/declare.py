"""Commands made from public functions: a function's signature and docstring become its command's arguments, options and
help. What a command adds (how it prints, what only a terminal has) stands in a function of its own, which is handed the
public function with what the user gave. Written by hand because typer, cyclopts and jsonargparse either import what the
annotations name (torch, numpy) or need the options declared once more."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from typer import Argument, Option
from typer.core import TyperCommand
from typer.models import ArgumentInfo

from fairtrial.api import RunOptions, StudyOptions
from fairtrial.errors import BadInput
from fairtrial.recipe import Data, read_settings

TextFile = Annotated[Path | None, Option("--text-file", help="A file with one sentence per line.", metavar="FILE")]
With = Annotated[
    list[Path] | None, Option("--with", help="A Python file that adds your own parts. Repeatable.", metavar="FILE.py")
]
SEVERAL_WORDS = ("--variants", "--set", "--with")
OPTION_GROUPS = {"RunOptions": RunOptions, "StudyOptions": StudyOptions}
PYTHON_ONLY = ("self", "quiet", "on_event", "stop")  # a terminal has Ctrl-C and a screen of its own
FLAGS = {"plugins": "--with", "columns": "--column"}
METAVARS = {"plugins": "FILE.py", "out": "FOLDER", "data": "PATH", "figure": "FILE", "html": "FILE"}
SEVERAL = re.compile(r"^(Texts|Runs|Results|Variants|Sequence|Mapping)\b\[?")
COLUMNS = ("text_column", "label_column", "split_column", "group_column")
SHORTCUTS: dict[str, tuple[type, str]] = {  # fields of a recipe that many change
    "steps": (int, "Optimizer steps."),
    "epochs": (float, "Epochs."),
    **{name: (str, get_args(get_type_hints(Data, include_extras=True)[name])[1]) for name in COLUMNS},
}


class Command(NamedTuple):
    """One entry of the command line. `path`: its name, below a group where it has two words."""

    path: str
    section: str
    example: str
    source: Callable[..., Any]
    function: Callable[..., None]
    help: str
    deprecated: tuple[str, ...] = ()


@dataclass
class Call:
    """A public function with what the user gave: its own parameters, and fields of the recipe."""

    source: Callable[..., Any]
    given: dict[str, Any]
    fields: dict[str, Any]

    def __call__(self, *values: Any, **more: Any) -> Any:
        return self.source(*values, **(self.given | more), **self.fields)


class Documented(NamedTuple):
    """What a docstring says: the text before `Args:`, and each argument's metavar and help."""

    text: str
    arguments: dict[str, tuple[str, str]]


def read_docstring(function: Callable[..., Any] | type) -> Documented:
    """
    >>> def f(seed): '''Train it.\\n\\n    Args:\\n        seed (NUMBER): Random seed.\\n    '''
    >>> read_docstring(f)
    Documented(text='Train it.', arguments={'seed': ('NUMBER', 'Random seed.')})
    """
    text, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:\n")
    arguments: dict[str, tuple[str, str]] = {}
    name = ""
    for line in rest.splitlines():
        if not line.startswith("    "):
            break  # an empty line, `Returns:` or an example
        started = re.match(r"    (\w+)(?: \(([^)]*)\))?: (.*)", line)
        if started and not line.startswith("     "):
            name = started[1]
            arguments[name] = (started[2] or "", started[3])
        elif name:
            metavar, help_text = arguments[name]
            arguments[name] = (metavar, f"{help_text} {line.strip()}")
    return Documented(text.partition("\n>>>")[0].strip(), arguments)


def command(
    path: str,
    source: Callable[..., Any],
    section: str,
    example: str,
    *,
    arguments: Sequence[str] = (),
    optional: Sequence[str] = (),
    hidden: Sequence[str] = (),
    fields: Sequence[str] = (),
    deprecated: Sequence[str] = (),
) -> Callable[[Callable[..., None]], Command]:
    """Decorates what a command does beside calling `source`; it is handed `call`, the public function with the user's
    options, and declares only options that `source` does not have.

    Args:
        path: The name of the command, such as 'train' or 'inspect predict'.
        source: The public function whose parameters become options.
        section: The heading under which `fairtrial --help` lists it.
        example: A command line, without `fairtrial`, that its help begins with.
        arguments: Parameters that are given by place, not by name.
        optional: Parameters that the command can do without, though the function cannot.
        hidden: Parameters that only Python has.
        fields: Fields of the recipe that have an option of their own, of `SHORTCUTS`.
        deprecated: Earlier names of the command.
    """

    def declare(show: Callable[..., None]) -> Command:
        documented = read_docstring(source)
        own = inspect.signature(show, eval_str=True)
        parameters, groups = source_parameters(source, arguments, optional, {*hidden, *own.parameters})
        takes_fields = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(source).parameters.values())
        parameters += field_parameters(fields) if takes_fields else []
        added = [each.replace(kind=each.KEYWORD_ONLY) for name, each in own.parameters.items() if name != "call"]
        parameters += added
        parameters.sort(key=lambda each: (not is_argument(each), each not in added))  # places of its own come first
        shown = set(own.parameters)
        sources = inspect.signature(source).parameters.items()
        pairs = [name for name, each in sources if str(each.annotation).startswith("Mapping")]

        def run(**given: Any) -> None:
            kept = {name: value for name, value in given.items() if name not in shown and value is not None}
            changes = dict(read_settings(kept.pop("set_fields", ()))) if takes_fields else {}
            if own_option := next((name for name in changes if name in dict(sources)), None):
                raise BadInput(f"--set {own_option}: use {flag_of(own_option)} instead")
            changes |= {name: kept.pop(name) for name in fields if name in kept}
            kept |= {name: split_pairs(flag_of(name), kept[name]) for name in pairs if name in kept}
            for group, (kind, names) in groups.items():
                kept[group] = kind(**{name: kept.pop(name) for name in names if name in kept})
            show(Call(source, kept, changes), **{name: given[name] for name in shown if name != "call"})

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        help_text = documented.text + ("\n\n" + inspect.cleandoc(show.__doc__) if show.__doc__ else "")
        return Command(path, section, example, source, run, help_text, tuple(deprecated))

    return declare


def is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(told, ArgumentInfo) for told in get_args(parameter.annotation))


def source_parameters(
    source: Callable[..., Any], arguments: Sequence[str], optional: Sequence[str], left_out: Collection[str]
) -> tuple[list[inspect.Parameter], dict[str, tuple[type, list[str]]]]:
    """What a public function, or a group of options, takes, as typer has it; groups are spread out, and told by their
    names."""
    documented = read_docstring(source)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, each in inspect.signature(source).parameters.items():
        written = str(each.annotation)
        if name in PYTHON_ONLY or name in left_out or each.kind is each.VAR_KEYWORD:
            continue
        if (kind := OPTION_GROUPS.get(written)) is not None:
            spread, _ = source_parameters(kind, (), (), ())
            groups[name] = (kind, [one.name for one in spread])
            parameters += spread
            continue
        if name not in documented.arguments:
            raise TypeError(f"the docstring of {source.__qualname__} does not describe {name!r}")
        several = bool(SEVERAL.match(written)) or each.kind is each.VAR_POSITIONAL
        default = None if each.default in (each.empty, ()) else each.default
        required = each.default is each.empty and name not in optional
        parameters.append(
            typer_parameter(name, written, several, default, documented.arguments[name], name in arguments, required)
        )
    return parameters, groups


def typer_parameter(
    name: str,
    written: str,
    several: bool,
    default: Any,
    described: tuple[str, str],
    by_place: bool,
    required: bool,
) -> inspect.Parameter:
    metavar, help_text = described[0], re.sub(r"[;.]? [Ii]n Python\b.*", ".", described[1])
    kind = kind_of(written)
    annotated: Any = list[kind] if several else kind  # type: ignore[valid-type]
    if not required and default is None:
        annotated = annotated | None
    help_text += " Repeatable." if several and not by_place else ""
    metavar = metavar or METAVARS.get(name, "")
    told: Any
    if by_place:
        told = Argument(help=help_text, metavar=metavar or None)
    elif kind is bool and default is False:
        told = Option(flag_of(name), help=help_text)
    elif kind is bool:
        told = Option(f"{flag_of(name)}/--no-{name.replace('_', '-')}", help=help_text)
    else:
        told = Option(flag_of(name), help=help_text, metavar=metavar or None)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=Annotated[annotated, told],
    )


def kind_of(written: str) -> type:
    """What a terminal's word is read as, from the text of an annotation: torch's and numpy's types are not imported.

    >>> [kind_of(text).__name__ for text in ("int | None", "Sequence[float]", "Source | Run", "bool")]
    ['int', 'float', 'str', 'bool']
    """
    if written.startswith("Mapping"):
        return str  # NAME=VALUE
    inner = SEVERAL.sub("", written)
    return next((kind for kind in (bool, int, float) if re.match(rf"{kind.__name__}\b", inner)), str)


def flag_of(name: str) -> str:
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def field_parameters(names: Sequence[str]) -> list[inspect.Parameter]:
    """`--set FIELD=VALUE`, and an option for each field that has one."""
    option = inspect.Parameter.KEYWORD_ONLY
    found = []
    for name in names:
        kind, help_text = SHORTCUTS[name]
        help_text = help_text[0].upper() + help_text[1:].rstrip(".") + "."
        told = Option(f"--{name.replace('_', '-')}", help=help_text, metavar="NAME" if name in COLUMNS else None)
        found.append(inspect.Parameter(name, option, default=None, annotation=Annotated[kind | None, told]))
    told = Option("--set", help="Change fields of the recipe: --set shape.heads=4.", metavar="FIELD=VALUE")
    kept = inspect.Parameter("set_fields", option, default=None, annotation=Annotated[list[str] | None, told])
    return [*found, kept]


def split_pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """`value=score` -> {"value": "score"}"""
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, (name, _, value) in zip(texts, pairs, strict=True) if not (name and value)]:
        raise BadInput(f"{flag} takes NAME=VALUE: {wrong[0]!r}", f"such as {flag} value=score")
    return {name: value for name, _, value in pairs}


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
        check_utf8(text, f"text {number}")
        if not text.strip():
            raise BadInput(f"text {number} is empty", 'give a sentence in quotes: "My fellow Americans"')
    if file is not None:
        from fairtrial.data.tables import read_lines, require_file

        require_file(file)
        lines = [line for _, line in read_lines(file).numbered() if line.strip()]
        if not lines:
            raise BadInput("the file has no sentences", "write one sentence per line", path=file)
        found += lines
    if not found:
        raise BadInput("no text was given", "give a sentence in quotes, or --text-file FILE with one per line")
    return found


def check_utf8(text: str, name: str) -> None:
    """Bytes from a terminal that are not UTF-8 arrive as lone surrogates, which no tokenizer reads."""
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(f"{name} is not UTF-8", "set your terminal to UTF-8, or give a file with --text-file")


def notice(text: str) -> None:
    print(f"notice: {text}", file=sys.stderr)
