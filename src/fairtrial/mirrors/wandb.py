"""Weights & Biases: offline unless WANDB_MODE says otherwise; its files stand under `<record>.wandb`, next to the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import wandb

from fairtrial.mirrors import numbers
from fairtrial.recipe import Recipe
from fairtrial.recipe_file import to_table


class WandbMirror:
    def __init__(self, folder: Path, recipe: Recipe) -> None:
        beside = folder.with_name(folder.name + ".wandb")
        beside.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "fairtrial"),
            name=folder.name,
            dir=str(beside),
            config=to_table(recipe),
            mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
            settings=wandb.Settings(silent=True, console="off"),
        )

    def show(self, event: Any) -> None:
        if values := numbers(event):
            self.run.log(values, step=event.step)

    def close(self) -> None:
        self.run.finish()
