"""What user code knows beside its input and its weights: what it holds and does not train (O3), what it reads while it
computes (O4), and what changes from call to call (S2). A fault that waits for a day, a file, a count of calls or an
answer in its callers' variables cannot be waited for; where it looks can be seen."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping, Sized
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fairtrial.audit.subject import Subject, of_library
from fairtrial.finding import Measured, at_most
from fairtrial.model.external import is_library_file, seeded

DEPTH = 6  # of values inside values that are looked at
BITS, LETTERS = 8, 4  # of a number or a text, for each entry of a vocabulary that it could hold
SETTLING, CALLS = 3, 3  # calls in which a network may fill its caches, and those that must then change nothing
STDLIB = Path(sysconfig.get_path("stdlib"))
FILES, CALLERS, CLOCK, ENVIRONMENT = "files", "the variables of its callers", "the clock", "environment variables"
MODULES = {"time": CLOCK, "gc": CALLERS, "_io": FILES, "io": FILES, "mmap": FILES, "_socket": "the network"}
SYSTEM = frozenset("open stat lstat listdir scandir access readlink remove unlink rename replace mkdir system".split())
FUNCTIONS = {"_getframe": CALLERS, "_current_frames": CALLERS, "datetime.now": CLOCK, "datetime.today": CLOCK}
FUNCTIONS |= {"datetime.utcnow": CLOCK, "date.today": CLOCK}
ENVIRON: frozenset[CodeType] = frozenset(
    cast(FunctionType, each).__code__ for each in (os._Environ.__getitem__, os._Environ.__setitem__)
)
TRANSPARENT = ("numpy", "torch/serialization.py", "safetensors")  # read files in the name of whoever calls them
QUIET = ("logging", "warnings.py", "linecache.py", "traceback.py")  # look at callers to name them


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python or to an installed package: not to the user."""
    return path.startswith("<frozen") or "site-packages" in path or "dist-packages" in path or is_standard(path)


def is_standard(path: str) -> bool:
    return path.startswith("<frozen") or ("-packages" not in path and Path(path).is_relative_to(STDLIB))


class Watch:
    """Notes what user code reads of the world while it runs, and where."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def __enter__(self) -> Watch:
        self.before = sys.getprofile()
        sys.setprofile(self.note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(self.before)

    def note(self, frame: FrameType, event: str, called: Any) -> None:
        kind, caller = "", cast("FrameType | None", frame)
        if event == "c_call":
            kind = kind_of(called)
        elif event == "call" and frame.f_code in ENVIRON:
            kind, caller = ENVIRONMENT, frame.f_back
        if kind and kind not in self.seen and (where := user_code(caller)):
            self.seen[kind] = where


def kind_of(called: BuiltinFunctionType) -> str:
    name, module = called.__name__, called.__module__ or ""
    if module in ("posix", "nt"):
        return FILES if name in SYSTEM else ""
    if (module == "time" and name in ("sleep", "strftime", "gmtime", "localtime")) or name in ("collect", "disable"):
        return ""
    return MODULES.get(module) or FUNCTIONS.get(name) or FUNCTIONS.get(called.__qualname__, "")


def user_code(frame: FrameType | None) -> str:
    """The line of user code that a call comes from; empty: a library's own."""
    while frame is not None:
        path = frame.f_code.co_filename
        if any(name in path for name in QUIET):
            return ""
        transparent = is_standard(path) or any(name in path for name in TRANSPARENT)
        if not transparent:
            mine = not is_installed(path) and not is_library_file(Path(path))
            return f"{Path(path).name}:{frame.f_lineno}" if mine else ""
        frame = frame.f_back
    return ""


def reads_more(subject: Subject) -> Measured | None:
    """While it answers and while it is trained. Callers and the memory of the process have the answers."""
    if not subject.own_code:
        return None
    training = subject.another().train()
    with seeded(0), Watch() as watch:
        subject.log_p(subject.full_rows)
        training(subject.full_rows)
    found = ", ".join(f"{kind} ({where})" for kind, where in sorted(watch.seen.items()))
    good, bad = "It reads nothing but its input and its weights.", f"While it computes, it reads {found}."
    measured = at_most(float(len(watch.seen)), 0.0, good, bad)
    return Measured(measured.value, "0", measured.passed, measured.meaning, "red" if CALLERS in watch.seen else "amber")


def keeps_state(subject: Subject) -> Measured | None:
    """What the same call changes every time, in evaluation or in training, and no record keeps: a counter, a list."""
    if not subject.own_code:
        return None
    changing: dict[str, None] = {}
    for network in (subject.another(), subject.another().train()):
        before: dict[str, str] = {}
        for call in range(SETTLING + CALLS):
            with seeded(0):
                network(subject.full_rows)
            after = {name: digest_of(value) for name, value in held(network)}
            changing |= {name: None for name in after if call >= SETTLING and after[name] != before.get(name)}
            before = after
    names = ", ".join(list(changing)[:3])
    bad = f"Every call changes {names}, which no record keeps: what it does after more calls was not tested."
    return at_most(float(len(changing)), 0.0, "The same call changes nothing that it holds.", bad)


def own_tables(subject: Subject) -> Measured | None:
    """What user code holds and does not train, and what could hold what was read elsewhere: tensors, arrays, containers
    and numbers as large as the vocabulary, neither constant nor made for positions; and files read to build it."""
    if not subject.own_code:
        return None
    network = cast(nn.Module, subject.fresh)
    fixed: list[tuple[str, object]] = [
        (name, each) for name, each in network.named_parameters() if not each.requires_grad
    ]
    fixed += network.named_buffers()
    own = tuple(f"body.parts.{name}." for name, part in subject.parts.items() if not of_library(part))
    fixed = [(name, each) for name, each in fixed if subject.external is not None or name.startswith(own)]
    values = {name.removeprefix("model."): each for name, each in (*fixed, *held(network))}
    tables = [f"{name} {size_of(each)}" for name, each in values.items() if could_hold_text(subject, each)]
    if subject.plan.module is None:
        with Watch() as watch:
            subject.plan.build()
        tables += [f"files read at {where}" for kind, where in watch.seen.items() if kind == FILES]
    if not tables:
        return None
    meaning = f"It holds tables that are not trained ({', '.join(tables[:3])}): a comparison is of network and tables."
    return Measured(float(len(tables)), "-", None, meaning)


def held(network: nn.Module) -> Iterator[tuple[str, object]]:
    """Plain attributes of the user's modules and classes, and what their functions use: globals, closures, defaults."""
    usual, found = vars(nn.Module()).keys(), dict[Any, None]()
    for name, module in network.named_modules():
        if not is_installed(str(getattr(sys.modules.get(type(module).__module__), "__file__", ""))):
            found |= dict.fromkeys(kind for kind in type(module).__mro__ if not is_of_library(kind))
            for key, value in vars(module).items() if not of_library(module) else ():
                if isinstance(value, FunctionType):
                    found[value] = None
                elif key not in usual:
                    yield f"{name}.{key}".lstrip(".").removeprefix("model."), value
    waiting = list(found)
    while waiting:
        used = waiting.pop()
        for key, value in vars(used).items() if isinstance(used, type) else used_by(used):
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType | type):
                if function not in found and is_users(function):
                    found[function] = None
                    waiting.append(function)
            elif is_data(key, value):
                yield f"{used.__name__}.{key}" if isinstance(used, type) else key, value


def used_by(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Globals, closures and defaults of a function, by name."""
    codes, names = [function.__code__], dict[str, None]()
    while codes:
        code = codes.pop()
        names |= dict.fromkeys(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    yield from ((name, function.__globals__[name]) for name in names if name in function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield from ((f"{function.__name__}.{name}", contents(cell)) for name, cell in cells)
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from ((f"default of {function.__name__}", value) for value in defaults)


def is_users(used: FunctionType | type) -> bool:
    if isinstance(used, type):
        path = str(getattr(sys.modules.get(used.__module__), "__file__", ""))
        return not is_of_library(used) and not is_installed(path)
    path = used.__code__.co_filename
    return not is_installed(path) and not is_library_file(Path(path))


def is_of_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "fairtrial", "builtins", "typing", "abc")


def is_data(name: str, value: object) -> bool:
    return not name.startswith("__") and not isinstance(value, ModuleType | type | nn.Module) and not callable(value)


def contents(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is not filled
        return None


def inside(value: object) -> list[object] | None:
    """The values that a container or an object holds; None: it is a value itself."""
    if isinstance(value, Mapping):
        return [each for pair in value.items() if is_data("", pair[1]) for each in pair]
    if isinstance(value, list | tuple | set | frozenset | deque):
        return list(value)
    if isinstance(value, nn.Module | ModuleType | type) or callable(value):
        return []
    return list(vars(value).values()) if hasattr(value, "__dict__") and not isinstance(value, Tensor) else None


def digest_of(value: object, depth: int = DEPTH) -> str:
    if isinstance(value, Tensor):
        value = value.detach().cpu().double().numpy() if value.is_floating_point() else value.cpu().numpy()
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if (others := inside(value)) is not None:
        return f"[{','.join(digest_of(each, depth - 1) for each in others)}]" if depth else ""
    return repr(value) if isinstance(value, bool | int | float | complex | str | bytes | bytearray) else ""


def leaves(value: object, depth: int = DEPTH) -> int:
    """How many entries a value could hold, those inside its values included."""
    if isinstance(value, str | bytes | bytearray):
        return 1 + len(value) // LETTERS
    if isinstance(value, Tensor | np.ndarray):
        return int(np.prod(value.shape))
    if isinstance(value, int):
        return 1 + value.bit_length() // BITS
    return sum(leaves(each, depth - 1) for each in inside(value) or ()) if depth else 0


def size_of(value: object) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return str(list(value.shape))
    return f"[{len(value) if isinstance(value, Sized) else leaves(value)}]"


def could_hold_text(subject: Subject, value: object) -> bool:
    vocabulary, lengths = subject.plan.vocabulary, {subject.plan.shape.length, subject.longest}
    if not isinstance(value, Tensor | np.ndarray):
        return leaves(value) >= vocabulary
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy() if value.dtype != torch.bfloat16 else value.detach().float().cpu().numpy()
    if value.dtype == bool or not value.size:
        return False
    large = vocabulary in value.shape or (value.size >= vocabulary and not lengths & set(value.shape))
    return large and bool((value != value.flat[0]).any())
