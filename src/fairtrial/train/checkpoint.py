"""Checkpoints: all that a trial needs to go on, checked by sha256, the last two kept.

safetensors refuses a file cut short but not a flipped bit, so every file's checksum stands in a manifest. The loader takes
the newest that verifies; one that does not is named, and the one before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from fairtrial.disk import append_line, disk_errors, sha256_of, write_whole
from fairtrial.train.loop import Loop

KEPT = 2


@dataclass(frozen=True)
class Checkpoints:
    folder: Path

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.jsonl"

    def save(self, loop: Loop, events_size: int) -> None:
        progress = loop.progress
        tensors = {f"weights/{name}": tensor for name, tensor in weights_of(loop.network).items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(loop.optimizer).items()}
        tensors |= {f"best/{name}": tensor for name, tensor in progress.best_weights.items()}
        with disk_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
        path = self.folder / f"step-{progress.step:08d}.safetensors"
        write_whole(path, lambda beside: save_file(tensors, beside))
        line = {
            "file": path.name,
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
            "events_size": events_size,
            "step": progress.step,
            "best_step": progress.best_step,
            "best_merit": progress.best_merit,
            "stale": progress.stale,
            "stopped": progress.stopped,
        }
        append_line(self.manifest, json.dumps(line))
        for old in sorted(self.folder.glob("step-*.safetensors"))[:-KEPT]:
            old.unlink()

    def load(self, loop: Loop, notice: Callable[[str], None]) -> int | None:
        """Put the newest sound checkpoint into the loop; the size of the event log at that moment, or None if there is none."""
        for line in reversed(self.lines()):
            path = self.folder / str(line["file"])
            if not path.is_file():
                continue
            if path.stat().st_size != line["bytes"] or sha256_of(path) != line["sha256"]:
                notice(f"{path} is damaged (its checksum differs); the checkpoint before it is used")
                continue
            tensors = load_file(path)
            put_weights(loop.network, under("weights/", tensors))
            put_optimizer(loop.optimizer, under("optimizer/", tensors))
            progress = loop.progress
            progress.step, progress.best_step, progress.stale = line["step"], line["best_step"], line["stale"]
            progress.best_merit = None if line["best_merit"] is None else tuple(line["best_merit"])
            progress.stopped, progress.best_weights = line["stopped"], under("best/", tensors)
            return int(line["events_size"])
        return None

    def lines(self) -> list[dict[str, Any]]:
        """The manifest's lines; torn or foreign ones are passed over, as the checksum decides anyway."""
        if not self.manifest.is_file():
            return []
        found = []
        for text in self.manifest.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
                if isinstance(line, dict) and {"file", "bytes", "sha256", "step", "events_size"} <= line.keys():
                    found.append(line)
            except json.JSONDecodeError:
                continue
        return found

    def size_needed(self, loop: Loop) -> int:
        """Bytes that one checkpoint takes: weights, two optimizer moments, best weights."""
        return 4 * sum(tensor.numel() * tensor.element_size() for tensor in weights_of(loop.network).values())


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and buffer once, also where two names share one tensor."""
    return {
        **{name: tensor.detach() for name, tensor in network.named_parameters()},
        **{name: tensor for name, tensor in network.named_buffers()},
    }


@torch.no_grad()
def put_weights(network: nn.Module, tensors: dict[str, Tensor]) -> None:
    for name, tensor in weights_of(network).items():
        tensor.copy_(tensors[name])


def optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    """`parameter number/what` -> tensor"""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}/{what}": tensor
        for number, entry in state.items()
        for what, tensor in entry.items()
        if isinstance(tensor, Tensor)
    }


def put_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    whole = optimizer.state_dict()
    whole["state"] = {}
    for name, tensor in tensors.items():
        number, what = name.split("/")
        whole["state"].setdefault(int(number), {})[what] = tensor
    optimizer.load_state_dict(whole)


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
