"""Mirrors: events shown in TensorBoard or Weights & Biases too. The record stays the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fairtrial.errors import BadInput
from fairtrial.names import near

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe


class Mirror(Protocol):
    def show(self, event: Any) -> None: ...

    def close(self) -> None: ...


def open_mirror(name: str, folder: Path, recipe: Recipe) -> Mirror:
    try:
        if name == "tensorboard":
            from fairtrial.mirrors.tensorboard import TensorBoardMirror

            return TensorBoardMirror(folder)
        if name == "wandb":
            from fairtrial.mirrors.wandb import WandbMirror

            return WandbMirror(folder, recipe)
    except ImportError as error:
        raise BadInput(f"{name} is not installed", f"install it with: pip install 'fairtrial[{name}]'") from error
    raise BadInput(f"no mirror is called {name!r}{near(name, ['tensorboard', 'wandb'])}")


def numbers(event: Any) -> dict[str, float]:
    """The plain numbers of an event, named as `train/loss` or `validation/accuracy`."""
    if event.kind not in ("step", "score"):
        return {}
    room = event.facts.get("split", "train")
    return {f"{room}/{key}": float(value) for key, value in event.facts.items() if isinstance(value, int | float)}
