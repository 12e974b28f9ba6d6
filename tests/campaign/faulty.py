"""Commands in child processes to which something happens: an operation on the disk that fails or kills, a limit,
another user, a kill after so many seconds. The children are forked from one process that has torch loaded, and a
library of ours (faults.c) between it and the system; nothing in fairtrial knows of it."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import errno
import fcntl
import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NamedTuple

ACTS = {"count": 0, "fail": 1, "short": 2, "kill": 3, "torn": 4}
HANG = "hang"


@dataclass(frozen=True)
class Fault:
    act: str = "count"  # short: half of a write, then fail; torn: half of it, then kill -9
    at: int = 0  # the how manieth operation
    error: int = errno.ENOSPC
    lasting: bool = False  # all later ones fail, too


@dataclass(frozen=True)
class Order:
    words: list[str]
    root: str = "/nowhere"  # operations below this folder count
    fault: Fault = field(default_factory=Fault)
    limits: dict[str, int] = field(default_factory=dict)  # RLIMIT_x -> value
    user: int | None = None
    kill_after: float | None = None  # seconds
    until_gone: bool = False  # wait for the processes that it started, too
    seconds: float = 600.0  # longer is a hang
    cwd: str = "/"
    own_server: bool = False  # its processes are forked by a server that it starts itself, which takes seconds


class Answer(NamedTuple):
    code: int | str
    out: str
    err: str
    operations: str  # w, s (fsync), r (rename), m (mkdir), o (open for writing), t (truncate), in their order
    memory: str  # bytes of address space that a child begins with
    seconds: float
    gone: float  # seconds after its end until no process that it had started was left, if that was waited for

    @property
    def trouble(self) -> str:
        """What no command may ever do, whatever happens to it."""
        if self.code == HANG:
            return "it hangs"
        if "Traceback" in self.out + self.err or "Aborted!" in self.err:
            return f"a traceback: {self.err[-1500:]}"
        if self.code in (0, -signal.SIGKILL):
            return ""
        if self.code not in (2, 3, 4, 5, 6, 130):
            return f"exit code {self.code}: {self.err[-500:]}"
        return "" if "fairtrial: " in self.err else f"exit code {self.code} without a word: {self.err[-300:]}"


class Faulty:
    """Runs orders, one at a time."""

    def __init__(self, workspace: Path) -> None:
        library = workspace / "faults.so"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            raise FileNotFoundError("no C compiler")
        source = Path(__file__).with_name("faults.c")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        where = os.environ | {"LD_PRELOAD": str(library), "FAULTS": str(library)}
        where |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._server = subprocess.Popen(
            [sys.executable, __file__], env=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, order: Order) -> Answer:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asdict(order)) + "\n")
        self._server.stdin.flush()
        return Answer(*json.loads(self._server.stdout.readline()))

    def close(self) -> None:
        self._server.communicate()


def serve() -> None:
    import typer.main

    import fairtrial.audit.run
    import fairtrial.cli.main
    import fairtrial.inspection.heads
    import fairtrial.study.run
    import fairtrial.trial
    from fairtrial.engines.processes import PRELOADED, one_thread

    for name in PRELOADED:
        __import__(name)
    for name in ("ascii", "unicode-escape"):  # another user may not be allowed to read Python's own files
        codecs.lookup(name)
    os.environ.pop("LD_PRELOAD")  # processes of a study are new ones
    forkserver.set_forkserver_preload(PRELOADED)
    with one_thread():
        forkserver.ensure_running()
    typer.main.get_command = functools.cache(typer.main.get_command)  # it would build all commands in every child
    typer.main.get_command(fairtrial.cli.main.app)
    library = ctypes.CDLL(os.environ["FAULTS"])
    answers = os.dup(1)
    for line in sys.stdin:
        order = json.loads(line)
        order["fault"] = Fault(**order["fault"])
        answer = run_order(Order(**order), library)
        os.write(answers, (json.dumps(answer) + "\n").encode())


def run_order(order: Order, library: Any) -> Answer:
    workspace = Path(tempfile.mkdtemp())
    workspace.chmod(0o777)
    started = time.monotonic()
    pipes = [os.pipe(), os.pipe()]  # files would count for a limit on their size
    for reader, _ in pipes:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.set_blocking(reader, False)  # a process that is left behind may hold the other end
    child = os.fork()
    if child == 0:
        run_child(order, library, workspace, [writer for _, writer in pipes])
    code: int | str | None = None
    limit = order.seconds if order.kill_after is None else order.kill_after
    while code is None:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
        elif time.monotonic() - started > limit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            code = HANG if order.kill_after is None else -signal.SIGKILL
        else:
            time.sleep(0.002)
    ended_after, gone = time.monotonic() - started, until_gone(child) if order.until_gone else 0.0
    said = [drain(*pipe) for pipe in pipes]
    names = ("operations", "memory")
    texts = [(workspace / name).read_text(errors="replace") if (workspace / name).exists() else "" for name in names]
    shutil.rmtree(workspace)
    return Answer(code, *said, *texts, ended_after, gone)


def until_gone(session: int) -> float:
    """Seconds until no process of a command's session is left; those that are there after a minute are killed."""
    started = time.monotonic()
    while left := [number for number in map(int, filter(str.isdigit, os.listdir("/proc"))) if lives(number, session)]:
        if time.monotonic() - started > 60:
            for number in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
        time.sleep(0.01)
    return time.monotonic() - started


def lives(process: int, session: int) -> bool:
    try:
        state, _, _, its = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:
        return False
    return int(its) == session and state != "Z"


def drain(reader: int, writer: int) -> str:
    os.close(writer)
    found = b""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(reader, 1 << 20):
            found += piece
    os.close(reader)
    return found.decode(errors="replace")


def choose_server(own: bool) -> None:
    """A command's own server of processes, or the one that all commands share here."""
    server = forkserver._forkserver  # type: ignore[attr-defined]
    if own:
        server._forkserver_pid = server._forkserver_address = server._forkserver_alive_fd = None
    else:  # it is no child of ours, and would be taken for dead
        server.ensure_running = forkserver.ensure_running = lambda: None


def run_child(order: Order, library: Any, workspace: Path, pipes: list[int]) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir(order.cwd)
        for number, pipe in enumerate(pipes, 1):
            os.dup2(pipe, number)
        operations = os.open(workspace / "operations", os.O_WRONLY | os.O_CREAT, 0o666)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        (workspace / "memory").write_text(str(pages * resource.getpagesize()))
        sys.stdin = open(os.devnull)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        sys.argv = ["fairtrial", *order.words]
        choose_server(order.own_server)
        if order.user is not None:
            os.setgid(order.user)
            os.setuid(order.user)
        for name, value in order.limits.items():
            number = getattr(resource, f"RLIMIT_{name}")
            resource.setrlimit(number, (value, value))
        fault = order.fault
        library.faults_arm(order.root.encode(), fault.at, ACTS[fault.act], fault.error, fault.lasting)
        from fairtrial.cli.main import run

        try:
            run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        os.write(operations, (ctypes.c_char * 65536).in_dll(library, "faults_log").value)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
