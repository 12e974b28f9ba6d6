"""`fairtrial`: the list of commands, and how errors are shown."""

from __future__ import annotations

import errno
import inspect
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from fairtrial import __version__
from fairtrial.cli import inside, judge, parts, puzzle, text, train
from fairtrial.cli.options import SeveralWords, waiting_line
from fairtrial.errors import (
    DiskTrouble,
    FairtrialError,
    FairtrialWarning,
    Interrupted,
    PipeClosed,
    Stopped,
    is_out_of_memory,
    missing_package,
)

# group -> command, its function, an example
COMMANDS: dict[str, list[tuple[str, Callable[..., None], str]]] = {
    "Train": [
        ("train", train.train, "train lm --data novel.txt --steps 500"),
        ("finetune", train.finetune, "finetune --encoder minilm --data reviews.tsv --epochs 3"),
        ("resume", train.resume, "resume runs/my-run"),
        ("recipe", train.recipe, "recipe classify > recipe.toml"),
        ("export", train.export, "export runs/my-run --to hf"),
    ],
    "Judge": [
        ("study", judge.study, "study --data novel.txt --variants learned rope alibi --seeds 5"),
        ("verdict", judge.verdict, "verdict studies/my-study --format latex"),
        ("report", judge.report, "report studies/my-study"),
        ("verify", judge.verify, "verify submissions/* --data reviews.tsv"),
        ("power", judge.power, "power --seeds 5 --items 750 --spread 0.7"),
        ("baseline", judge.baseline, "baseline --data reviews.tsv"),
        ("demo", judge.demo, "demo --out demo"),
    ],
    "Look inside": [
        ("show", inside.show, "show runs/my-run --figure curves.png"),
        ("look", inside.look, 'look runs/my-run "My fellow Americans, we will rebuild."'),
        ("params", inside.params, "params runs/my-run"),
        ("predict", text.predict, 'predict runs/my-run "That is in America\'s interest." --words'),
        ("errors", inside.errors, "errors runs/my-run --html errors.html"),
        ("surprisal", text.surprisal, 'surprisal runs/my-lm "Our children will pay the future."'),
        ("generate", text.generate, 'generate runs/my-lm "My fellow Americans" --temperature 0.8'),
        ("length", inside.length, "length runs/my-lm --times 1,2,4,8"),
        ("explore", inside.explore, "explore studies/my-study"),
    ],
    "Parts and audits": [("parts", parts.parts, "parts alibi --draw"), ("audit", parts.audit, "audit alibi")],
    "Data": [
        ("clean", parts.clean, "clean --data reviews/ --out reviews-clean"),
        ("cache", parts.cache, "cache --clear"),
    ],
    "Learn": [],
}
HINTS = dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit (ulimit -n)")
HINTS |= dict.fromkeys((errno.EACCES, errno.EPERM), "allow access, or choose another place")
HINTS |= {errno.ENOMEM: "there is too little memory", errno.EAGAIN: "raise the limit (ulimit -u)"}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
OLD_NAMES = {"surprise": "surprisal"}


class Groups(TyperGroup):
    """Lists commands by group, their descriptions in full. Plain text, so that `--help` is fast."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for group in COMMANDS:
            rows = [
                (name, command.get_short_help_str(limit=1000))
                for name, command in self.commands.items()
                if not command.hidden and getattr(command, "rich_help_panel", "") == group
            ]
            with formatter.section(group):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=Groups, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="A fair trial for every transformer idea: train it, compare it over several seeds, look inside.",
)  # fmt: skip


def print_version(given: bool) -> None:
    if given:
        print(f"fairtrial {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """`--version` is handled by its callback, before a command is required."""


def add_command(group: str, name: str, function: Callable[..., None], example: str) -> None:
    """Help begins with the example; the list of commands shows the first paragraph of the docstring."""
    doc = inspect.getdoc(function) or ""
    for known in (name, *(old for old, new in OLD_NAMES.items() if new == name)):
        app.command(
            known, cls=SeveralWords if name == "study" else TyperCommand, hidden=known != name, rich_help_panel=group,
            help=f"\b\nExample: fairtrial {example}\n\n{doc}", short_help=" ".join(doc.split("\n\n")[0].split()),
        )(function)  # fmt: skip


for group, commands in COMMANDS.items():
    for entry in commands:
        add_command(group, *entry)
app.add_typer(puzzle.app, name="puzzle", rich_help_panel="Learn")


def give_up(error: FairtrialError) -> NoReturn:
    if isinstance(error, Interrupted) and threading.current_thread() is threading.main_thread():
        # a second Ctrl-C must not disturb the end: Python would print where it was
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(f"fairtrial: {error.what}" + (f"\n  {error.hint}" if error.hint else ""), file=sys.stderr)
    sys.exit(error.exit_code)


@contextmanager
def telling_of_a_closed_pipe() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EINVAL):  # the second is what Windows calls it
            raise
        raise PipeClosed from None


class PlainStream:
    """Prints control characters as \ufffd: names, labels and sentences of other people must not command the terminal.
    What draws (rich) writes to `drawn`."""

    def __init__(self, stream: Any) -> None:
        self.drawn = stream
        if hasattr(stream, "reconfigure"):
            # a terminal that lacks a character shows a question mark, not a traceback; a file lacks none
            shown = stream.isatty() or "PYTHONIOENCODING" in os.environ
            stream.reconfigure(encoding=stream.encoding if shown else "utf-8", errors="replace")

    def write(self, text: str) -> Any:
        with telling_of_a_closed_pipe():
            return self.drawn.write(CONTROL.sub("\ufffd", text))

    def flush(self) -> None:
        with telling_of_a_closed_pipe():
            self.drawn.flush()

    def forget(self) -> None:
        """What a closed pipe did not take goes nowhere: Python would fail to write it at its end."""
        try:
            self.flush()
        except PipeClosed:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.drawn.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.drawn, name)


def tell(message: Warning | str, *_: object, **__: object) -> None:
    print(f"note: {message}", file=sys.stderr)


def run() -> None:
    """The entry point. A user's mistake is one sentence and a hint, never a traceback."""
    out, err = PlainStream(sys.stdout), PlainStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("once", FairtrialWarning)
        warnings.showwarning = tell
        with catching_ctrl_c() as stopped:
            try:
                run_command(stopped)
            except PipeClosed:
                out.forget()
                err.forget()
                sys.exit(141)


@contextmanager
def catching_ctrl_c() -> Iterator[list[int]]:
    """Ctrl-C raises `Stopped` and not KeyboardInterrupt, of which typer makes "Aborted!". Yields the signals so far.
    While a library is loading, which may abort or swallow what is raised, the process ends: nothing is to be saved."""
    caught: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        if importing(frame):
            show_cursor = "\x1b[?25h\r" if sys.stderr.isatty() and os.name == "posix" else ""
            os.write(2, f"{show_cursor}fairtrial: stopped\n".encode())
            os._exit(Interrupted.exit_code)
        raise Stopped

    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield caught
    finally:
        if signal.getsignal(signal.SIGINT) is on_signal:  # it was not stopped
            signal.signal(signal.SIGINT, before)


def importing(frame: FrameType | None) -> bool:
    """Whether a command, of which this is the innermost frame, is loading a module."""
    while frame is not None and frame.f_code is not run_command.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def run_command(stopped: list[int]) -> None:
    try:
        try:
            if not {"--help", "--version"} & set(sys.argv):
                from fairtrial.environment import check_memory

                check_memory(0, "this command")  # before anything is imported: libraries crash where they find none
            with waiting_line():
                app(prog_name="fairtrial")
        finally:
            sys.stdout.flush()
    except (KeyboardInterrupt, Stopped):
        give_up(Interrupted("stopped"))
    except FairtrialError as error:
        give_up(error)
    except ModuleNotFoundError as error:
        if (missing := missing_package(error)) is None:
            raise
        give_up(missing)
    except OSError as error:
        if error.errno is None:
            raise
        hint = HINTS.get(error.errno, "what was saved before is intact")
        give_up(DiskTrouble(f"{error.filename or 'the system'}: {error.strerror}", hint))
    except BaseException as error:  # a library in Rust raises what is no Exception
        if isinstance(error, SystemExit | PipeClosed):
            raise
        if stopped and isinstance(error, ImportError | MemoryError | RuntimeError):
            give_up(Interrupted("stopped"))  # while a library was loading, which made an error of its own of it
        if not is_out_of_memory(error):
            raise
        give_up(FairtrialError("not enough memory", "try a smaller shape or batch, or raise the limit (ulimit -v)"))
