"""`fairtrial`: the list of commands, and how errors are shown."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from fairtrial import __version__
from fairtrial.api import RunOptions, recipe_of, verdict
from fairtrial.cli import commands
from fairtrial.cli.declare import Command, SeveralWords
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
from fairtrial.progress import progress_bar

COMMANDS: list[Command] = [
    *(commands.demo, commands.train, commands.tune, commands.finetune, commands.doctor),
    *(commands.study, commands.verdict, commands.power, commands.audit, commands.verify),
    commands.grade,
    *(commands.gate_show, commands.gate_new, commands.gate_add, commands.gate_run, commands.gate_next),
    *(commands.gate_confirm, commands.gate_final, commands.gate_self_test, commands.mcp),
    *(commands.show, commands.look, commands.params, commands.length, commands.errors),
    *(commands.predict, commands.surprisal, commands.generate),
    *(commands.explore, commands.export, commands.parts, commands.puzzle),
    *(commands.audit_data, commands.baseline, commands.clean),
]
SECTIONS = ("Train", "Judge", "Look inside", "Data")
GROUPS = {  # a first word that several commands share -> its section and what they are for
    "gate": ("Judge", "Keep, discard or one more pair: a ledger of hundreds of proposals and one error budget."),
    "inspect": ("Look inside", "Ask a trained network: params, predict, errors, surprisal, generate, length."),
    "data": ("Data", "Audit and clean data, and score simple baselines on them."),
}
HINTS = dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit (ulimit -n)")
HINTS |= dict.fromkeys((errno.EACCES, errno.EPERM), "allow access, or choose another place")
HINTS |= {errno.ENOMEM: "there is too little memory", errno.EAGAIN: "raise the limit (ulimit -u)"}
# commands of a terminal, and characters that turn the direction of what follows or show nothing
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Sections(TyperGroup):
    """Lists commands by section, their descriptions in full. Plain text, so that `--help` is fast."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for section in SECTIONS:
            rows = [
                (name, command.get_short_help_str(limit=1000))
                for name, command in self.commands.items()
                if not command.hidden and getattr(command, "rich_help_panel", "") == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=Sections, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
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


def add_command(entry: Command) -> None:
    """Help begins with the example; the list of commands shows the first paragraph."""
    group, _, name = entry.path.rpartition(" ")
    place, help_text = apps[group] if group else app, f"\b\nExample: fairtrial {entry.example}\n\n{entry.help}"
    short = " ".join(entry.help.split("\n\n")[0].split())
    command = place.command(name, cls=SeveralWords, help=help_text, short_help=short, rich_help_panel=entry.section)
    command(entry.function)
    for old in entry.deprecated:
        app.command(old, help=help_text, hidden=True, cls=SeveralWords)(renamed(old, entry))


def renamed(old: str, entry: Command) -> Callable[..., None]:
    """The command under its earlier name, which says what to type instead."""

    @wraps(entry.function)
    def run(**given: Any) -> None:
        print(f"note: `fairtrial {old}` is now `fairtrial {entry.path}`", file=sys.stderr)
        entry.function(**given)

    return run


class ShownByDefault(TyperGroup):
    """`fairtrial gate LEDGER` is `fairtrial gate show LEDGER`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        given = args if args[0] in self.commands or args[0].startswith("-") else ["show", *args]
        return super().resolve_command(ctx, given)


apps: dict[str, typer.Typer] = {}
for group, (section, help_text) in GROUPS.items():
    apps[group] = typer.Typer(
        cls=ShownByDefault if group == "gate" else TyperGroup,
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.add_typer(apps[group], name=group, rich_help_panel=section)
for entry in COMMANDS:
    add_command(entry)


@app.command("resume", hidden=True)
def resume(
    record: Path,
    anyway: Annotated[bool, Option("--anyway")] = False,
    json: Annotated[bool, Option("--json")] = False,
    plugins: Annotated[list[Path] | None, Option("--with")] = None,
) -> None:
    """Renamed: fairtrial train --resume RECORD"""
    print("note: `fairtrial resume` is now `fairtrial train --resume`", file=sys.stderr)
    commands.resume_record(record, anyway, plugins or (), RunOptions(), json)


@app.command("recipe", hidden=True)
def recipe(task: Annotated[str, Argument()] = "classify", name: Annotated[str, Argument()] = "default") -> None:
    """Renamed: fairtrial train TASK --print-recipe"""
    print("note: `fairtrial recipe` is now `fairtrial train --print-recipe`", file=sys.stderr)
    print(recipe_of(task, None, name, {}).to_toml(), end="")


@app.command("report", hidden=True)
def report(what: list[str], out: Annotated[Path | None, Option("--out")] = None) -> None:
    """Renamed: fairtrial verdict RESULTS --out FILE.html"""
    print("note: `fairtrial report` is now `fairtrial verdict --out FILE.html`", file=sys.stderr)
    judged = verdict(what[0] if len(what) == 1 else what)
    print(f"open this page: {commands.write_page(judged, what, out).resolve()}")


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
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is on_signal:  # it was not stopped
                signal.signal(number, handler)


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
            with progress_bar(quiet=not sys.stderr.isatty()):
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
            from fairtrial.plugins import explained_error

            if (mistake := explained_error(error)) is None:
                raise
            give_up(mistake)
        give_up(FairtrialError("not enough memory", "try a smaller shape or batch, or raise the limit (ulimit -v)"))
