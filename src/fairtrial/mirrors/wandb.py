"""Weights & Biases: offline unless WANDB_MODE says otherwise; its files stand in `<record>.wandb` beside the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import wandb

from fairtrial.errors import BadInput
from fairtrial.mirrors import numbers
from fairtrial.recipe import Recipe
from fairtrial.recipe_file import to_table


class WandbMirror:
    def __init__(self, folder: Path, recipe: Recipe) -> None:
        self.folder, self.recipe = folder, recipe
        self.run: Any = None  # opened by the first event, so that a refused trial leaves nothing behind

    def open(self) -> Any:
        beside = self.folder.with_name(self.folder.name + ".wandb")
        beside.mkdir(parents=True, exist_ok=True)
        try:
            return wandb.init(
                project=os.environ.get("WANDB_PROJECT", "fairtrial"),
                name=self.folder.name,
                dir=str(beside),
                config=to_table(self.recipe),
                mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
                settings=wandb.Settings(silent=True, console="off"),
            )
        except (wandb.Error, ValueError) as error:
            raise BadInput(f"wandb: {error}", "without WANDB_MODE it works offline") from error

    def show(self, event: Any) -> None:
        if self.run is None:
            self.run = self.open()
        if values := numbers(event):
            self.run.log(values, step=event.step)

    def close(self) -> None:
        if self.run is not None:
            self.run.finish()
