"""TensorBoard: curves under `<record>.tensorboard`, next to the record, so that the record itself stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from fairtrial.mirrors import numbers


class TensorBoardMirror:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.with_name(folder.name + ".tensorboard")
        self.writer: SummaryWriter | None = (
            None  # opened by the first event, so that a refused trial leaves nothing behind
        )

    def show(self, event: Any) -> None:
        if self.writer is None:
            # a resumed trial repeats what came after its checkpoint; TensorBoard forgets what it has seen of it
            self.writer = SummaryWriter(str(self.folder), purge_step=event.step + 1 if event.step else None)
        for name, value in numbers(event).items():
            self.writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
