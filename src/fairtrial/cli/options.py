"""What several commands share: how words, texts and notices are read and printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option
from typer.core import TyperCommand

from fairtrial.errors import BadInput

if TYPE_CHECKING:
    from rich.console import Console


TextFile = Annotated[Path | None, Option("--text-file", help="A file with one sentence per line.", metavar="FILE")]
With = Annotated[
    list[Path] | None, Option("--with", help="A Python file that adds your own parts. Repeatable.", metavar="FILE.py")
]
SEVERAL_WORDS = ("--variants", "--set", "--with")


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
        from fairtrial.data.lines import read_lines, require_file

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


def drawing() -> Console:
    """Rich's way to the terminal: what it draws needs control characters, which are not printed elsewhere."""
    from rich.console import Console

    return Console(file=getattr(sys.stdout, "drawn", sys.stdout), highlight=False)
