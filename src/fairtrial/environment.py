"""What a result depends on beside recipe, seed and data: code, versions, machine, threads. Memory, and the process that
this one was started by."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fairtrial import __version__
from fairtrial.errors import BadInput, EnvironmentChanged
from fairtrial.stored import Environment, TrialInfo

# must be equal for a resumed trial to end with the same bits
MOST_THREADS = 1024
DECISIVE = ("torch", "threads", "machine", "cpu")


def describe(threads: int) -> Environment:
    import torch

    packages = {name: _version(name) for name in ("torch", "numpy", "tokenizers", "safetensors")}
    return Environment(
        python=platform.python_version(),
        fairtrial=__version__,  # of the code that runs; the metadata of an editable install may be older
        threads=threads,
        machine=platform.machine(),
        system=platform.system(),
        cores=os.cpu_count(),
        cpu=torch.backends.cpu.get_cpu_capability(),
        **packages,
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


# packages and files whose code decides the numbers of a trial. A page, a chart or a command may change without them; a
# test compares this list with what they import
DECIDES_NUMBERS = (
    "data", "model", "parts", "pretrained", "training", "prepare.py", "recipe.py", "rng.py", "trial.py",
    "statistics/crossed.py", "statistics/outcomes.py", "statistics/spread.py",
)  # fmt: skip


@cache
def code_fingerprint(root: Path = Path(__file__).parent) -> str:
    """Sixteen hexadecimal digits of the sha256 of the source that decides numbers."""
    whole = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.partition("/")[0] in DECIDES_NUMBERS or name in DECIDES_NUMBERS:
            whole.update(name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:16]


TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # glibc's names for mallopt


def keep_freed_memory() -> None:
    """Ask glibc, where it is, to keep freed memory: giving large blocks back to the system and taking them again costs
    up to a third of a small model's step. Results do not change."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for name, megabytes in ((MMAP_THRESHOLD, 32), (TRIM_THRESHOLD, 512), (TOP_PAD, 64)):
        mallopt(name, megabytes << 20)


MOST_LOAD = 1.0  # for each core; above, a time that is measured is not that of a calm machine


def busy_load() -> float | None:
    """Programs that want to run, for each core, where they are more than the cores; None also where the system does not
    tell."""
    load = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 0.0
    return round(load, 1) if load > MOST_LOAD else None


def peak_memory_mb() -> int | None:
    """Peak memory of this process; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (1 << 20 if sys.platform == "darwin" else 1 << 10))  # macOS tells bytes, Linux kilobytes


def changed_since(trial: TrialInfo) -> list[str]:
    """What decides the bits of a trial and differs here, in words. A processor that is not known is not compared."""
    then, now = trial.environment, describe(trial.environment.threads)
    pairs = ((name, getattr(then, name), getattr(now, name)) for name in DECISIVE)
    changed = [f"{name} {old}, here {new}" for name, old, new in pairs if old and old != new]
    return changed + ["another version of fairtrial's code"] * (trial.code != code_fingerprint())


def check_environment(trial: TrialInfo) -> None:
    """Refuse to resume where results may differ from those of an uninterrupted trial."""
    if changed := changed_since(trial):
        message = f"this record was started with {'; '.join(changed)}: results may differ"
        raise EnvironmentChanged(message, "resume with --ignore-changes to accept that; the record will say so")


# what libraries take beside it, of which some crash where they find none; and what they take once they are imported
RESERVE_BYTES, LIBRARY_BYTES = 256e6, 700e6
CONTAINER = Path("/sys/fs/cgroup")  # where Linux tells of its limits
COUNTED = {"RLIMIT_AS": "VmSize", "RLIMIT_DATA": "VmData"}  # what counts for a limit, in /proc/self/status


def bytes_to_limit() -> float:
    """How much more memory the limits of this process allow (ulimit -v, ulimit -d)."""
    try:
        import resource

        status = Path("/proc/self/status").read_text(encoding="ascii")
    except (ImportError, OSError):  # no Linux
        return math.inf
    used = {name: int(value.split()[0]) << 10 for name, _, value in (row.partition(":") for row in status.splitlines())
            if name in COUNTED.values()}  # fmt: skip
    limits = {name: resource.getrlimit(getattr(resource, name))[0] for name in COUNTED}
    left = (most - used[COUNTED[name]] for name, most in limits.items() if most != resource.RLIM_INFINITY)
    return min(left, default=math.inf)


def bytes_free() -> float:
    """Memory that this machine, or the container that this process is in, has left."""
    try:
        free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        with open("/proc/meminfo", encoding="ascii") as file:  # tells what caches would give back, too
            free = max(free, *(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable")))
    except (OSError, ValueError, TypeError, AttributeError):
        return math.inf  # the system does not tell
    try:
        told = {name: (CONTAINER / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current", "stat")}
        unused = int(dict(map(str.split, told["stat"].splitlines()))["inactive_file"])
        return min(free, int(told["max"]) - int(told["current"]) + unused)  # ValueError: there is no limit ("max")
    except (OSError, ValueError, KeyError):
        return free


def check_memory(needed: float, what: str, hint: str = "") -> None:
    """Refuse before it is built what this machine, or a limit, cannot hold. `hint`: what else would help."""
    left = bytes_to_limit()
    whole = needed + RESERVE_BYTES + (0 if "torch" in sys.modules else LIBRARY_BYTES)
    if whole > left:
        told = f"{what} needs about {whole / 1e6:,.0f} MB of memory; the limit leaves {max(0, left) / 1e6:,.0f} MB"
        raise BadInput(told, f"raise it (ulimit -v), or take a smaller shape or batch{hint}")
    free = bytes_free()
    if needed > free:
        what = f"{what} needs about {needed / 1e9:,.1f} GB of memory; {free / 1e9:,.1f} GB are free"
        raise BadInput(what, f"take a smaller shape or batch{hint}")


@contextmanager
def use_threads(threads: int) -> Iterator[None]:
    """One thread by default: small models are slower with more, and their number decides the last digits. torch keeps
    the number for each Python thread, so two trainings do not disturb each other."""
    if threads > MOST_THREADS:
        raise BadInput(f"at most {MOST_THREADS} threads, got {threads}")
    import torch

    keep_freed_memory()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def kill_at_parents_end(kill: bool = True) -> None:
    """Linux kills this process when the thread that started it ends; False: not any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL if kill else 0)  # PR_SET_PDEATHSIG


def end_with_caller() -> None:
    """Whoever waits for this process may be killed, and a part may hang: nobody is left to end it then. The caller
    holds the other end of standard input, which every system closes with it. Its number says little: on Windows a
    virtual environment's Python is itself started by another, and an orphan keeps the number of its parent."""
    held = os.dup(0)

    def watch() -> None:
        os.read(held, 1)  # nothing is ever written
        os._exit(1)

    kill_at_parents_end()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # whoever reads it finds nothing, and on Windows would wait for us
    threading.Thread(target=watch, daemon=True).start()
