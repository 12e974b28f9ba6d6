"""Whether an installation works: tiny trainings, repeated, stopped and resumed, and the same on a GPU where one is.
The report can be sent to others: it names no folder, machine or person."""

from __future__ import annotations

import getpass
import math
import os
import platform
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from fairtrial.api import RunOptions, resume, train
from fairtrial.description import Cell, Description, Result, Table, row
from fairtrial.disk import temporary_folder
from fairtrial.environment import describe, peak_memory_mb
from fairtrial.errors import FairtrialError, Interrupted
from fairtrial.events import Stepped
from fairtrial.recipe import Training
from fairtrial.run import Run
from fairtrial.stored import Environment
from fairtrial.training.device import choose_device, is_there

ROOM_MB = 500  # a study of small models fits
STEPS, SPEED_STEPS = 24, 8
AGREES, AGREES_AT_END, AGREES_BFLOAT16 = 1e-4, 0.03, 0.05  # relative differences of losses, after so much training
DECIDED = ("events.jsonl", "result.json", "outcomes.safetensors", "model.safetensors")  # files with the same bits
SMALL = {"layers": 2, "width": 32, "hidden": 32, "length": 16, "batch": 8}
LARGE = {"layers": 4, "width": 128, "hidden": 512, "length": 64, "batch": 32}  # where a GPU begins to pay
GOLDEN: dict[str, dict[str, Any]] = {  # one training of each kind of network that the package ships
    "lm": {},
    "lm of today": {"parts": ["rope", "swiglu", "qk-norm", "grouped-query"], "norm": "rms"},
    "classify": {},
    "mlm": {},
}
WORDS = [f"{before}{after}" for before in ("ba", "do", "ki", "lu", "mo") for after in ("n", "r", "s", "t", "la", "mi")]
DRAW = random.Random(0)
TEXTS = [" ".join(DRAW.choices(WORDS[at % 2 :: 2] + WORDS[:4], k=12)) for at in range(200)]  # a class has its words


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool | None  # None: told, not judged
    details: str


@dataclass(frozen=True, repr=False)
class Checkup(Result):
    """What `fairtrial doctor` found.

    >>> ft.doctor(quiet=True).passed
    True
    """

    environment: Environment
    device: str | None  # the GPU that was checked
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.passed is not False for check in self.checks)

    def describe(self) -> Description:
        wrong = [check.name for check in self.checks if check.passed is False]
        sentence = f"Something is wrong: {', '.join(wrong)}." if wrong else "This installation works."
        gpu = f"The device {self.device} was checked, too." if self.device else "No GPU was found: the CPU was checked."
        known = [("fairtrial", self.environment.fairtrial), ("Python", self.environment.python)]
        known += [(name, getattr(self.environment, name)) for name in ("torch", "numpy", "tokenizers", "safetensors")]
        states = {True: Cell("ok", kind="better"), False: Cell("wrong", kind="not_comparable"), None: Cell("")}
        rows = tuple(row(check.name, states[check.passed], check.details) for check in self.checks)
        versions = Table("", ("version", ""), tuple(row(*each) for each in known), text_columns=2)
        return Description([sentence, gpu], [Table("", ("check", "result", "details"), rows, text_columns=3), versions])

    def to_json(self) -> dict[str, object]:
        return {"passed": self.passed, **asdict(self), "checks": [asdict(check) for check in self.checks]}


def examine(device: str | None, show: Callable[[str], None] = lambda text: None) -> Checkup:
    """`device`: cuda, cuda:1, mps, or cpu to try what is asked of a GPU without one. None: the GPU that is there."""
    if device is not None:
        choose_device(Training(device=device).device, 0, 0)  # one that is unknown or missing is refused
    chosen = device or next((name for name in ("cuda", "mps") if is_there(name)), None)
    environment = describe(torch.get_num_threads())
    with temporary_folder() as folder:
        bench = Bench(folder, show)
        checks = [machine(environment), *(writable(*place) for place in PLACES)]
        for task in ("lm", "classify"):
            checks += [
                bench.tried(f"repeat {task}", bench.repeats, task),
                bench.tried(f"resume {task}", bench.resumes, task),
            ]
        if chosen is not None:
            there: dict[str, Callable[[str], tuple[bool | None, str]]] = {"agrees": bench.agrees}
            there |= {"repeats": bench.repeats_there, "bfloat16": bench.bfloat16}
            there |= {"speed": bench.speed, "memory": device_memory}
            checks += [bench.tried(f"{chosen} {name}", check, chosen) for name, check in there.items()]
    return Checkup(environment, chosen, tuple(checks))


def machine(environment: Environment) -> Check:
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    told = f"{environment.system} {environment.machine}, {environment.cores} cores{load}; torch uses"
    return Check("machine", None, f"{told} {environment.threads} threads and {environment.cpu} instructions")


PLACES = (("working folder", Path), ("temporary folder", lambda: Path(tempfile.gettempdir())))


def writable(name: str, place: Callable[[], Path]) -> Check:
    """Whether it takes files, and how many."""
    try:
        with tempfile.TemporaryDirectory(dir=place(), prefix="fairtrial-doctor-") as folder:
            (Path(folder) / "file").write_bytes(b"fairtrial")
        free = shutil.disk_usage(place()).free / 1e6
    except OSError as error:
        return Check(name, False, f"cannot be written: {error.strerror}")
    return Check(name, free >= ROOM_MB, f"writable, {free / 1e3:,.1f} GB free")


class Bench:
    """Trains the same tiny network in several ways."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self.folder = folder
        self.show = show
        self.known: dict[str, Run] = {}

    def tried(self, name: str, check: Callable[[str], tuple[bool | None, str]], of: str) -> Check:
        """What goes wrong in a check is its result."""
        self.show(name)
        try:
            return Check(name, *check(of))
        except Exception as error:  # whatever a driver raises is what the report is for
            what = error.what if isinstance(error, FairtrialError) else f"{type(error).__name__}: {error}"
            return Check(name, False, anonymous(" ".join(what.split())[:300]))

    def train(self, name: str, task: str = "lm", stop_after: float = math.inf, **fields: Any) -> Run:
        """Once for each name. `stop_after`: so many steps, after which it is resumed."""
        if name not in self.known:
            left = [stop_after]

            def stop() -> bool:
                left[0] -= 1
                return left[0] <= 0

            options = RunOptions(threads=1, on_event=lambda event: None, stop=stop)
            shape = {**SMALL, "steps": STEPS, "dropout": 0.1, **fields}
            labelled = [(f"class {at % 2}", text) for at, text in enumerate(TEXTS)]
            place = self.folder / name.replace(":", "-").replace(" ", "-")
            try:
                self.known[name] = train(
                    task, labelled if task == "classify" else TEXTS, out=place, options=options, **shape
                )
            except Interrupted:
                self.known[name] = resume(place, options=replace(options, stop=lambda: False))
        return self.known[name]

    def repeats(self, task: str) -> tuple[bool, str]:
        return self.compare(f"{task}", f"{task}-again", task=task)

    def resumes(self, task: str) -> tuple[bool, str]:
        same, told = self.compare(f"{task}", f"{task}-stopped", task=task, stop_after=STEPS // 2)
        return same, f"stopped after step {STEPS // 2} and resumed: {told}"

    def compare(self, one: str, other: str, task: str, stop_after: float = math.inf, **fields: Any) -> tuple[bool, str]:
        first = self.train(one, task, **fields)
        second = self.train(other, task, stop_after, **fields)
        differ = [name for name in DECIDED if (first.folder / name).read_bytes() != (second.folder / name).read_bytes()]
        return not differ, f"{', '.join(differ)} differ" if differ else "the same bits"

    def agrees(self, device: str) -> tuple[bool, str]:
        """From the same weights: the first loss is one forward pass, the last one all that training adds up."""
        first = last = 0.0
        for name, fields in GOLDEN.items():
            task = name.partition(" ")[0]
            there = f"on-{device}" if name == "lm" else f"{name}-on-{device}"
            ours = losses(self.train(name, task, **fields))
            theirs = losses(self.train(there, task, device=device, **fields))
            first, last = (max(worst, abs(theirs[at] / ours[at] - 1)) for worst, at in ((first, 0), (last, -1)))
        told = f"losses of {len(GOLDEN)} trainings ({', '.join(GOLDEN)}) differ from the CPU's by at most"
        return first <= AGREES and last <= AGREES_AT_END, f"{told} {first:.1e} at step 1 and {last:.1e} at step {STEPS}"

    def repeats_there(self, device: str) -> tuple[bool, str]:
        same, told = self.compare(f"on-{device}", f"again-on-{device}", "lm", device=device)
        lost = self.train(f"on-{device}", device=device).record.result.not_deterministic
        return same, told + (f"; torch does not guarantee the same bits for {', '.join(lost)}" if lost else "")

    def bfloat16(self, device: str) -> tuple[bool, str]:
        exact = losses(self.train(f"on-{device}", device=device))
        rounded = losses(self.train(f"bfloat16-on-{device}", device=device, precision="bfloat16"))
        off = max(abs(one / other - 1) for one, other in zip(rounded, exact, strict=True))
        return off <= AGREES_BFLOAT16, f"losses differ from float32 by at most {off:.1%}"

    def speed(self, device: str) -> tuple[None, str]:
        """For information: which is faster depends on the size of a model."""
        told = []
        sizes: dict[str, dict[str, int]] = {"small": {}, "larger": {**LARGE, "steps": SPEED_STEPS}}
        for size, fields in sizes.items():
            paces = []
            for where in ("cpu", device):
                clock = self.train(f"{size}-speed-on-{where}", "lm", math.inf, device=where, **fields).record.clock()
                paces.append(next(entry.step_seconds for entry in clock if entry.what == "trained"))
            cpu, there = (f"{1000 * pace:.1f}" if pace else "?" for pace in paces)
            told.append(f"{size} network: {there} ms a step, one CPU thread {cpu}")
        return None, "; ".join(told)


def losses(run: Run) -> list[float]:
    return [event.loss for event in run.record.events() if isinstance(event, Stepped)]


def device_memory(device: str) -> tuple[None, str]:
    """What the trainings took at most, and what is there."""
    if device.startswith("cuda"):
        whole = torch.cuda.get_device_properties(device)
        took = torch.cuda.max_memory_allocated(device)
        return None, f"{whole.name}: {took / 1e6:,.0f} MB at most, of {whole.total_memory / 1e9:,.1f} GB"
    if device == "mps":
        return None, f"{platform.mac_ver()[0]}: {torch.mps.driver_allocated_memory() / 1e6:,.0f} MB allocated"
    return None, f"{peak_memory_mb() or 0:,} MB at most, of this process"


def anonymous(text: str) -> str:
    """Without the home folder, the user and the machine."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # it has no name
        user = ""
    for name in (tempfile.gettempdir(), str(Path.home()), str(Path.cwd()), platform.node(), user):
        text = text.replace(name, "…") if len(name) > 2 else text
    return text
