"""Options that take several words: `--variants learned rope alibi`.

Texts from the command line or from a file, and a bar while many are read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fairtrial.errors import BadInput

SEVERAL = ("--variants", "--set", "--with")


class Lists(TyperCommand):
    """Repeats such an option before each of its words, as the parser underneath wants it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """`--variants a b --seeds 5` -> `--variants a --variants b --seeds 5`"""
    found: list[str] = []
    option = ""
    for place, word in enumerate(args):
        if word.startswith("-") and word != "-":
            option = word if word in SEVERAL else ""
            found.append(word)
        elif option and args[place - 1] != option:
            found += [option, word]
        else:
            found.append(word)
    return found


Texts = Annotated[list[str] | None, typer.Argument(help="One sentence or several, each in quotes.", metavar="TEXT")]
TextFile = Annotated[
    Path | None, typer.Option("--text-file", help="A file with one sentence in each line.", metavar="FILE")
]


def gather(texts: Sequence[str] | None, file: Path | None) -> list[str]:
    """All sentences that were given. Blank lines of a file are left out."""
    found = list(texts or [])
    for number, text in enumerate(found, 1):
        refuse_bytes(text, f"text {number}")
        if not text.strip():
            raise BadInput(f"text {number} is empty", 'give a sentence in quotes: "My fellow Americans"')
    if file is not None:
        from fairtrial.data.lines import read_lines, require_file

        require_file(file)
        lines = [line for _, line in read_lines(file).numbered() if line.strip()]
        if not lines:
            raise BadInput("there is no sentence in this file", "write one sentence in each line", path=file)
        found += lines
    if not found:
        raise BadInput("no text was given", "give a sentence in quotes, or --text-file FILE with one in each line")
    return found


def refuse_bytes(text: str, name: str) -> None:
    """What a terminal sends that is not UTF-8 comes as lone surrogates, which no tokenizer reads."""
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise BadInput(f"{name} is not UTF-8", "set your terminal to UTF-8, or give a file with --text-file")


def beside(record: Path, what: str) -> Path:
    """`runs/mine` -> `runs/mine-look`, also where the record is called `.`"""
    home = record.resolve()
    return (home.parent if record.name in ("", "..") else record.parent) / f"{home.name}-{what}"


@contextmanager
def bar(what: str, total: int, least: int = 200) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal's error stream; few things to do, or no terminal, need none."""
    if total < least or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def notice(text: str) -> None:
    """Something that a reader must know, beside what was asked for."""
    if text:
        print(f"notice: {text}", file=sys.stderr)
