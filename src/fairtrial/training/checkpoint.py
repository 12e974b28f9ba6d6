"""Checkpoints: all that a trial needs to resume, checked by sha256; the last two are kept. safetensors detects a
truncated file but not a flipped bit, so a manifest holds every file's checksum. The newest file that verifies is
loaded; one that does not is reported, and the one before it is used."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from fairtrial.disk import append_line, disk_errors, write_bytes
from fairtrial.errors import BadInput
from fairtrial.model.external import Groups
from fairtrial.recipe import OPTIMIZERS, Training
from fairtrial.stored import SavedProgress, to_line
from fairtrial.training.loop import Loop, put_weights, weights_of
from fairtrial.training.optimizer import own_groups, own_optimizer
from fairtrial.typed import WrongValue, structure

KEPT = 2  # checkpoints


@dataclass(frozen=True)
class Checkpoints:
    folder: Path

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.jsonl"

    def save(self, loop: Loop, events_size: int, events_sha256: str) -> None:
        """`events_...`: of the event log so far, which a resumed trial goes on writing."""
        progress = loop.progress
        tensors = {f"weights/{name}": tensor for name, tensor in weights_of(loop.network).items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(loop.optimizer).items()}
        tensors |= {f"best/{name}": tensor for name, tensor in progress.best_weights.items()}
        with disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
        saved = SavedProgress(
            step=progress.step,
            best_step=progress.best_step,
            events_size=events_size,
            events_sha256=events_sha256,
            best_merit=progress.best_key,
        )
        content = save(
            {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, {"progress": to_line(saved)}
        )
        path = self.folder / f"step-{progress.step:08d}.safetensors"
        write_bytes(path, content)
        digest = hashlib.sha256(content).hexdigest()
        append_line(self.manifest, json.dumps({"file": path.name, "bytes": len(content), "sha256": digest}))
        # the last that were written, not those of the highest steps: after damage, training starts from further back
        kept = list(dict.fromkeys(str(line["file"]) for line in reversed(self.lines())))[:KEPT]
        with disk_errors(self.folder):
            for old in self.folder.glob("step-*"):
                if old.name not in kept:
                    old.unlink()

    def load(self, loop: Loop, sha256_at: Callable[[int], str | None], notice: Callable[[str], None]) -> int | None:
        """Load the newest intact checkpoint into the loop; the event log's size at that moment, or None.

        `sha256_at`: of the first so many bytes of the event log, None where it is shorter."""
        seen = set()
        for line in reversed(self.lines()):
            path = self.folder / Path(str(line["file"])).name
            if path in seen or not path.is_file():
                continue
            seen.add(path)
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != line["sha256"]:
                notice(f"{path} is damaged (its checksum differs); the checkpoint before it is used")
                continue
            saved = read_progress(path)
            log_sha256 = sha256_at(saved.events_size)
            if log_sha256 is None:
                notice(f"{path} is ahead of the event log, which has lost its end; the checkpoint before it is used")
                continue
            if saved.events_sha256 != log_sha256:
                log = self.folder.with_name("events.jsonl")
                notice(f"{log} was damaged or changed since {path.name} was saved; the checkpoint before it is used")
                continue
            fill(loop, load(content), saved, path)
            return saved.events_size
        if not seen and any(self.folder.glob("step-*.safetensors")):
            notice(f"{self.manifest} is missing or damaged: no checkpoint can be verified; training starts over")
        return None

    def lines(self) -> list[dict[str, Any]]:
        """The manifest's lines; torn or unknown ones are skipped, as the checksum decides anyway."""
        if not self.manifest.is_file():
            return []
        found = []
        for text in self.manifest.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError, RecursionError):
                line = json.loads(text)
                if isinstance(line, dict) and {"file", "sha256"} <= line.keys():
                    found.append(line)
        return found

    def size_needed(self, loop: Loop) -> int:
        """Bytes that one checkpoint takes: weights, two optimizer moments, best weights."""
        return 4 * sum(tensor.numel() * tensor.element_size() for tensor in weights_of(loop.network).values())


def read_progress(path: Path) -> SavedProgress:
    """The progress of training; stored inside the file, so that the checksum covers it."""
    try:
        with safe_open(path, "pt") as file:
            return structure(SavedProgress, json.loads(file.metadata()["progress"]))
    except (SafetensorError, TypeError, KeyError, WrongValue, ValueError, RecursionError) as error:
        raise BadInput("not a checkpoint of fairtrial", "start a new record", path=path) from error


def fill(loop: Loop, tensors: dict[str, Tensor], saved: SavedProgress, path: Path) -> None:
    progress = loop.progress
    try:
        put_weights(loop.network, under("weights/", tensors))
        put_optimizer(loop.optimizer, under("optimizer/", tensors))
        progress.begun, progress.best_weights = True, under("best/", tensors)
        progress.best_key, progress.step, progress.best_step = saved.best_merit, saved.step, saved.best_step
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise BadInput(f"the checkpoint does not fit the network ({error})", "start a new record", path=path) from error


NUMBERS = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}  # of Python, which a state may hold, too


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """`parameter number/what` -> tensor; of a number `parameter number/what/its type`."""
    found = {}
    for number, entry in optimizer.state_dict()["state"].items():
        for what, value in entry.items():
            kind = type(value).__name__
            if isinstance(value, Tensor):
                found[f"{number}/{what}"] = value
            elif kind in NUMBERS:
                found[f"{number}/{what}/{kind}"] = torch.tensor(value, dtype=NUMBERS[kind])
    return found


def put_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    state = optimizer.state_dict()
    state["state"] = {}
    for name, tensor in tensors.items():
        number, what, *kind = name.split("/")
        state["state"].setdefault(int(number), {})[what] = tensor.item() if kind else tensor
    optimizer.load_state_dict(state)


BEFORE, AFTER = 3, 9  # steps on either side of a checkpoint


def check_resumes(network: Any, training: Training) -> None:
    """Refuse an optimizer of the user's own whose state a checkpoint cannot hold. Copies of the weights are moved by
    random gradients, once by an optimizer that goes on and once by one whose state was stored: to the same bits."""
    if training.optimizer in OPTIMIZERS:
        return
    rng = torch.Generator().manual_seed(0)

    def copied(groups: Groups) -> tuple[Groups, Optimizer]:
        copies = [
            {**group, "params": [nn.Parameter(each.detach().clone()) for each in group["params"]]} for group in groups
        ]
        return copies, own_optimizer([dict(group) for group in copies], training)

    def move(steps: int, *optimizers: Optimizer) -> None:
        for _ in range(steps):
            for weights in zip(*map(weights_in, optimizers), strict=True):
                gradient = torch.randn(weights[0].shape, generator=rng).to(weights[0])
                for each in weights:
                    each.grad = gradient.clone()
            for optimizer in optimizers:
                optimizer.step()

    groups, first = copied(own_groups(network, training))
    try:
        move(BEFORE, first)
        _, second = copied(groups)
        tensors = {name: tensor.cpu().contiguous() for name, tensor in optimizer_tensors(first).items()}
        put_optimizer(second, load(save(tensors)))
        move(AFTER, first, second)
        same = all(map(torch.equal, weights_in(first), weights_in(second))) and options_of(first) == options_of(second)
        problem = "" if same else "it does not continue with the same bits"
    except BadInput:
        raise
    except Exception as error:  # of a user's code, or what safetensors cannot store
        problem = f"{type(error).__name__}: {error}"
    if problem:
        what = f"optimizer {training.optimizer!r} cannot be resumed from a checkpoint: {problem}"
        raise BadInput(what, "keep tensors and numbers in self.state[parameter], and nothing elsewhere")


def weights_in(optimizer: Optimizer) -> list[Tensor]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def options_of(optimizer: Optimizer) -> list[dict[str, Any]]:
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
