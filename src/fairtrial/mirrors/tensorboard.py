"""TensorBoard: curves under `<record>.tensorboard`, next to the record, so that the record itself stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from fairtrial.mirrors import numbers


class TensorBoardMirror:
    def __init__(self, folder: Path) -> None:
        self.writer = SummaryWriter(str(folder.with_name(folder.name + ".tensorboard")))

    def show(self, event: Any) -> None:
        for name, value in numbers(event).items():
            self.writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        self.writer.close()
