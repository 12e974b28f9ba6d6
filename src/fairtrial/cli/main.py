"""`fairtrial`: the commands, and how a user's mistake is told."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairtrial import __version__
from fairtrial.cli import inside, judge, parts, puzzle, replicate, text, train
from fairtrial.cli.options import Lists
from fairtrial.errors import FairtrialError

app = typer.Typer(
    help="A fair trial for every transformer idea: train it, score it honestly, keep the record.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def tell_version(asked: bool) -> None:
    if asked:
        print(f"fairtrial {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=tell_version, is_eager=True)
    ] = False,
) -> None:
    """The callback of `--version` answers before a command is asked for."""


app.command("train")(train.train)
app.command("finetune")(train.finetune)
app.command("resume")(train.resume)
app.command("show")(inside.show)
app.command("recipe")(inside.recipe)
app.command("length")(inside.length)
app.command("look")(inside.look)
app.command("parts")(parts.parts)
app.command("params")(inside.params)
app.command("surprise")(text.surprise)
app.command("generate")(text.generate)
app.command("predict")(text.predict)
app.command("errors")(inside.errors)
app.command("audit")(parts.audit)
app.command("export")(train.export)
app.command("baseline")(judge.baseline)
app.command("clean")(parts.clean)
app.command("mix")(judge.mix)
app.command("study", cls=Lists)(judge.study)
app.command("verdict")(judge.verdict)
app.command("report")(judge.report)
app.command("replicate")(replicate.replicate)
app.add_typer(puzzle.app, name="puzzle")
app.command("demo")(train.demo)


def run() -> None:
    """The entry point. A user's mistake is one sentence and a hint, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that lacks a letter shows a question mark, not a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="fairtrial")
    except FairtrialError as error:
        print(f"fairtrial: {error.what}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("fairtrial: stopped", file=sys.stderr)
        sys.exit(130)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        print("fairtrial: not enough memory\n  try a smaller shape or batch", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
