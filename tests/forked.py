"""Fewer new Pythons, which take seconds to import torch: commands in processes that are forked from a server, the one
that studies use; audits and plugins in the test's own process. What must see a new Python (imports, hash seed) starts
one."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from fairtrial.engines.processes import PRELOADED, one_thread


class Forked:
    """`fairtrial words...`, much like a Popen with pipes. It has a process group of its own."""

    def __init__(self, *words: object) -> None:
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        with one_thread():
            forkserver.ensure_running()
        reader, writer = context.Pipe(duplex=False)
        handle, path = tempfile.mkstemp()  # a pipe that nobody reads could fill up
        os.close(handle)
        self._err = Path(path)
        self._process = context.Process(target=run_words, args=([*map(str, words)], writer, path))
        self._process.start()
        atexit.register(self._process.kill)  # else a test that failed would be waited for
        writer.close()
        self.stdout = os.fdopen(os.dup(reader.fileno()), "r")
        reader.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def communicate(self) -> tuple[str, str]:
        """What is left of its output, and its errors, once it has ended."""
        with self.stdout:
            out = self.stdout.read()
        self._process.join()
        err = self._err.read_text()
        self._err.unlink()
        return out, err


def run_words(words: list[str], out: Connection, err: str) -> None:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # a study's fork server blocks it
    os.dup2(out.fileno(), 1)
    os.dup2(os.open(err, os.O_WRONLY), 2)
    out.close()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    sys.argv = ["fairtrial", *words]
    from fairtrial.cli.main import run

    run()


@contextmanager
def auditing_here() -> Iterator[None]:
    """Within it, audits in this process prove determinism by training twice here, not in two new Pythons, and ask for
    the state after fewer calls: for tests of what an audit is used for. tests/audit proves the whole of it."""
    from fairtrial.audit import run, subject

    with mock.patch.object(run, "RepeatedRuns", return_value=nullcontext()), mock.patch.object(subject, "CALLS", 20):
        yield


@contextmanager
def leaving_plugins() -> Iterator[Callable[[], None]]:
    """What is registered within it is gone afterwards; call it to be rid of them earlier, as in a new process."""
    from fairtrial import plugins

    before = {name for registry in plugins.REGISTRIES for name in registry.list()}

    def leave() -> None:
        for registry in plugins.REGISTRIES:
            for name in set(registry.list()) - before:
                registry.drop(name)
        plugins._loaded.clear()

    yield leave
    leave()
