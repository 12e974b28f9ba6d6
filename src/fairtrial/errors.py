"""What a user did wrong or the machine could not do, said in one sentence with a way out."""

from __future__ import annotations

from pathlib import Path


class FairtrialError(Exception):
    """What happened, and what to do about it. The command line prints both and exits with `exit_code`."""

    exit_code = 2

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class BadInput(FairtrialError):
    """A file, a recipe or an option that cannot be used. `where` is a file, or a file and line."""

    def __init__(self, what: str, hint: str = "", *, path: Path | str | None = None, line: int | None = None) -> None:
        place = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        super().__init__(place + what, hint)


class EnvironmentChanged(BadInput):
    """A record that was begun on another machine, or by other code: it could not end with the same bits."""


class Busy(FairtrialError):
    """Another process is writing this record."""

    exit_code = 3


class Diverged(FairtrialError):
    """The loss is no longer a finite number."""

    exit_code = 4


class DiskTrouble(FairtrialError):
    """The disk refused a write; what was saved before is intact."""

    exit_code = 5


class Interrupted(FairtrialError):
    """The user asked to stop; the record can be resumed."""

    exit_code = 130
