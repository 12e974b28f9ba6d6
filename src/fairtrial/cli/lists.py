"""Options that take several words: `--variants learned rope alibi`."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

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
