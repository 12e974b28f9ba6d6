"""Loggers: events sent to TensorBoard or Weights & Biases, too. The record stays the reference, unchanged: files go
to `<record>.tensorboard` and `<record>.wandb` beside it. wandb is offline unless WANDB_MODE says otherwise.

A logger is a generator that is sent events. It opens its files with the first one, so that a refused trial leaves
nothing behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from fairtrial.errors import BadInput
from fairtrial.events import Event, Scored, Stepped
from fairtrial.recipe import Recipe, to_table
from fairtrial.registry import did_you_mean

Logger = Generator[None, Event, None]


@contextmanager
def open_loggers(names: Sequence[str], folder: Path, recipe: Recipe) -> Iterator[Callable[[Event], None]]:
    """Several loggers as one listener."""
    with ExitStack() as stack:
        loggers = [stack.enter_context(closing(open_logger(name, folder, recipe))) for name in names]

        def on_event(event: Event) -> None:
            for logger in loggers:
                logger.send(event)

        yield on_event


def open_logger(name: str, folder: Path, recipe: Recipe) -> Logger:
    if name not in LOGGERS:
        raise BadInput(f"no logger is called {name!r}{did_you_mean(name, list(LOGGERS))}")
    logger = LOGGERS[name](folder.with_name(f"{folder.name}.{name}"), recipe)
    try:
        next(logger)  # up to its first event: it imports its package
    except ImportError as error:
        raise BadInput(f"{name} is not installed", f"install it with: pip install 'fairtrial[{name}]'") from error
    return logger


def numbers(event: Event) -> dict[str, float]:
    """The plain numbers of an event, named as `train/loss` or `validation/accuracy`."""
    if isinstance(event, Stepped):
        return {"train/loss": event.loss, "train/learning_rate": event.learning_rate}
    figures = event.metrics.known() if isinstance(event, Scored) else {}
    split = event.split if isinstance(event, Scored) else ""
    return {f"{split}/{name}": float(value) for name, value in figures.items() if isinstance(value, int | float)}


def log_to_tensorboard(folder: Path, recipe: Recipe) -> Logger:
    from torch.utils.tensorboard import SummaryWriter

    event = yield
    # a resumed trial repeats the steps after its checkpoint; TensorBoard drops the earlier ones
    with closing(SummaryWriter(str(folder), purge_step=event.step + 1 if event.step else None)) as writer:
        while True:
            for name, value in numbers(event).items():
                writer.add_scalar(name, value, event.step)
            event = yield


def log_to_wandb(folder: Path, recipe: Recipe) -> Logger:
    import wandb

    event = yield
    folder.mkdir(parents=True, exist_ok=True)
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "fairtrial"),
            name=folder.stem,
            dir=str(folder),
            config=to_table(recipe),
            mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type]
            settings=wandb.Settings(silent=True, console="off"),
        )
    except (wandb.Error, ValueError) as error:
        raise BadInput(f"wandb: {error}", "without WANDB_MODE it works offline") from error
    try:
        while True:
            if values := numbers(event):
                run.log(values, step=event.step)
            event = yield
    finally:
        run.finish()


LOGGERS: dict[str, Callable[[Path, Recipe], Logger]] = {"tensorboard": log_to_tensorboard, "wandb": log_to_wandb}
