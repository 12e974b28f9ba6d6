"""Loggers: events sent to TensorBoard or Weights & Biases, too. The record stays the reference, unchanged: files go
to `<record>.tensorboard` and `<record>.wandb` beside it. wandb is offline unless WANDB_MODE says otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fairtrial.errors import BadInput
from fairtrial.recipe import to_table
from fairtrial.registry import did_you_mean

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe


class Logger(Protocol):
    def show(self, event: Any) -> None: ...

    def close(self) -> None: ...


@contextmanager
def open_loggers(names: Sequence[str], folder: Path, recipe: Recipe) -> Iterator[Callable[[Any], None]]:
    """Several loggers as one listener."""
    with ExitStack() as stack:
        loggers = [stack.enter_context(closing(open_logger(name, folder, recipe))) for name in names]

        def on_event(event: Any) -> None:
            for logger in loggers:
                logger.show(event)

        yield on_event


def open_logger(name: str, folder: Path, recipe: Recipe) -> Logger:
    try:
        if name == "tensorboard":
            return TensorBoardLogger(folder)
        if name == "wandb":
            return WandbLogger(folder, recipe)
    except ImportError as error:
        raise BadInput(f"{name} is not installed", f"install it with: pip install 'fairtrial[{name}]'") from error
    raise BadInput(f"no logger is called {name!r}{did_you_mean(name, ['tensorboard', 'wandb'])}")


def numbers(event: Any) -> dict[str, float]:
    """The plain numbers of an event, named as `train/loss` or `validation/accuracy`."""
    if event.kind not in ("step", "score"):
        return {}
    split = event.facts.get("split", "train")
    return {f"{split}/{key}": float(value) for key, value in event.facts.items() if isinstance(value, int | float)}


class TensorBoardLogger:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.with_name(folder.name + ".tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self.make = SummaryWriter
        self.writer: SummaryWriter | None = None  # opened by the first event: a refused trial leaves nothing behind

    def show(self, event: Any) -> None:
        if self.writer is None:
            # a resumed trial repeats the steps after its checkpoint; TensorBoard drops the earlier ones
            self.writer = self.make(str(self.folder), purge_step=event.step + 1 if event.step else None)
        for name, value in numbers(event).items():
            self.writer.add_scalar(name, value, event.step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class WandbLogger:
    def __init__(self, folder: Path, recipe: Recipe) -> None:
        import wandb

        self.wandb, self.folder, self.recipe = wandb, folder, recipe
        self.run: Any = None  # opened by the first event, so that a refused trial leaves nothing behind

    def open(self) -> Any:
        folder = self.folder.with_name(self.folder.name + ".wandb")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return self.wandb.init(
                project=os.environ.get("WANDB_PROJECT", "fairtrial"),
                name=self.folder.name,
                dir=str(folder),
                config=to_table(self.recipe),
                mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
                settings=self.wandb.Settings(silent=True, console="off"),
            )
        except (self.wandb.Error, ValueError) as error:
            raise BadInput(f"wandb: {error}", "without WANDB_MODE it works offline") from error

    def show(self, event: Any) -> None:
        if self.run is None:
            self.run = self.open()
        if values := numbers(event):
            self.run.log(values, step=event.step)

    def close(self) -> None:
        if self.run is not None:
            self.run.finish()
