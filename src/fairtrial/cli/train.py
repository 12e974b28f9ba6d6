"""`fairtrial train`, `finetune` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, command
from fairtrial.errors import BadInput, Stopped
from fairtrial.events import Ended, event_json
from fairtrial.progress import stopping
from fairtrial.recipe import Recipe, built_in_recipe, load_recipe, one_of
from fairtrial.record import Record, sibling
from fairtrial.run import Run

Events = Annotated[bool, Option("--json", help="Print events and the result as JSON lines, for machines.")]
DURATION = ("steps", "epochs")


@command(
    "train",
    api.train,
    "Train",
    "train lm --data novel.txt --steps 500",
    arguments=["task"],
    fields=[*DURATION, *COLUMNS],
    optional=["task"],
)
def train(
    call: Call,
    resume: Annotated[
        Path | None, Option("--resume", help="Continue the stopped or killed trial in this folder.", metavar="RECORD")
    ] = None,
    ignore_changes: Annotated[
        bool, Option("--ignore-changes", help="With --resume: accept other torch, threads, code or plugins.")
    ] = False,
    print_recipe: Annotated[
        bool, Option("--print-recipe", help="Print the recipe as TOML, every field with its meaning, and exit.")
    ] = False,
    json: Events = False,
) -> None:
    given = call.given
    if resume is not None:
        if extra := [*(name for name in given if name not in ("seed", "reuse", "options", "plugins")), *call.fields]:
            raise BadInput(f"--resume continues a record as it is: it takes no {', '.join(extra)}")
        resume_record(resume, ignore_changes, given.get("plugins", ()), given["options"], json)
        return
    if "task" not in given:
        raise BadInput("no task was given", "fairtrial train lm, fairtrial train classify, or a recipe file (TOML)")
    recipe = api.recipe_of(given["task"], given.get("data"), given.get("recipe"), call.fields)
    if print_recipe:
        print(recipe.to_toml(), end="")
    else:
        run_with_screen(call, recipe, json)


def resume_record(record: Path, ignore_changes: bool, plugins: Any, options: api.RunOptions, json: bool) -> None:
    opened = Record.open(record)
    if opened.complete:
        opened.tidy()
        event = Ended(opened.result.steps, opened.result, opened.baseline)
        print(dumps(event_json(event)) if json else f"{record} is already finished; see: fairtrial show {record}")
        return
    from fairtrial.cli.screen import open_screen

    with open_screen(load_recipe(record / "recipe.toml"), json) as on_event, asking_to_stop() as stop:
        listening = replace(options, on_event=on_event, stop=stop)
        api.resume(record, ignore_changes=ignore_changes, plugins=plugins, options=listening)


def run_with_screen(call: Call, recipe: Recipe, json: bool) -> None:
    from fairtrial.cli.screen import open_screen

    with open_screen(recipe, json) as on_event, asking_to_stop() as stop:
        call(options=replace(call.given["options"], on_event=on_event, stop=stop))


@command(
    "finetune",
    api.finetune,
    "Train",
    "finetune --encoder minilm --data reviews.tsv --epochs 3",
    fields=[*DURATION, *COLUMNS],
)
def finetune(call: Call, json: Events = False) -> None:
    run_with_screen(call, built_in_recipe("finetune", "classify"), json)


def asking_to_stop() -> AbstractContextManager[Callable[[], bool]]:
    """Ctrl-C and SIGTERM request a stop after the current step, with everything saved; a second one stops at once."""

    def say() -> None:
        print("stopping (press again to stop at once)", file=sys.stderr)

    return stopping(on_request=say, at_once=Stopped)


@command("export", Run.export, "Look inside", "export runs/my-run --to hf")
def export(
    call: Call,
    record: Annotated[Path, Argument(help="The folder of a finished record.")],
    to: Annotated[str, Option(help="'hf': a folder that `transformers` loads.")] = "hf",
) -> None:
    from fairtrial.pretrained.export import export_record

    one_of("--to", to, ("hf",))
    out = call.given.get("out")
    done = export_record(Record.open(record), Path(out) if out is not None else sibling(record, "hf"))
    loader = f"transformers.{done.auto_class}.from_pretrained({str(done.folder)!r})"
    print(f"{done.folder}: {done.architecture}; load it with {loader}")
    if not done.whole:
        print("only the encoder was exported: no architecture of `transformers` has this pooling or activation")
