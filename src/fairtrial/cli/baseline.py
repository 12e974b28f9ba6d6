"""`fairtrial baseline`: what a transformer must beat."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fairtrial.recipe import Recipe

Source = Annotated[
    str, typer.Option("--data", help="A file or folder of text, or 'sotu' (the embedded speeches).", metavar="PATH")
]
Task = Annotated[
    str | None,
    typer.Option(help="'classify' or 'lm'. Default: what the data are for; the course's folder serves both."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change one field of the recipe: --set data.validation=0. Repeatable."),
]


def baseline(
    data: Source = "sotu",
    task: Task = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Whose split and vocabulary: 'default', 'course' (all training text, no validation), or a TOML file.",
            show_default="course for the course's folder, else default",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the trial whose split is used.", min=0)] = 0,
    settings: Settings = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each task, for machines.")] = False,
) -> None:
    """Score simple models, from the largest class to Kneser-Ney, on the very items of a trial: in seconds."""
    from json import dumps

    from fairtrial.report.baseline_text import baseline_lines

    for number, chosen in enumerate(recipes_for(data, task, recipe, settings or [], course="course")):
        found = measure(chosen, seed, tell=(lambda what: None) if json else tell_progress)
        if json:
            print(dumps(found), flush=True)
            continue
        tell_progress("")
        print("\n" * bool(number) + "\n".join(baseline_lines(found)), flush=True)


def measure(recipe: Recipe, seed: int, tell: Any) -> dict[str, Any]:
    """All baselines of one recipe and seed, on all, clean and contaminated items."""
    from fairtrial.baselines.figures import figures_of
    from fairtrial.baselines.run import outcomes_of
    from fairtrial.text.contamination import summary
    from fairtrial.text.copies import match
    from fairtrial.text.dealing import deal

    tell(f"{recipe.task}: reading")
    dealt = deal(recipe, seed)
    tell(f"{recipe.task}: looking for copies")
    known = [document.text for document in dealt.known]
    copies = {name: match(known, [each.text for each in tests]) for name, tests in dealt.splits.tests.items()}
    status = {name: found.status for name, found in copies.items()}
    outcomes = outcomes_of(dealt, lambda what: tell(f"{recipe.task}: {what}"))
    return {
        "format": 1,
        "task": recipe.task,
        "source": recipe.data.source,
        "recipe": recipe.name,
        "seed": seed,
        "documents": {"train": len(dealt.splits.train), "validation": len(dealt.splits.validation)},
        "sets": {name: {k: v for k, v in summary(found).items() if k != "status"} for name, found in copies.items()},
        "baselines": {name: figures_of(each, status) for name, each in outcomes.items()},
    }


def recipes_for(data: str, task: str | None, name: str | None, settings: list[str], course: str) -> list[Recipe]:
    """One recipe for each task that the data are for. `course`: which one the course's folder takes by default."""
    from fairtrial.cli.train import choose_recipe
    from fairtrial.recipe import Data, one_of
    from fairtrial.recipe_file import load_recipe
    from fairtrial.text.dealing import tasks_of
    from fairtrial.text.reading import find_format

    if name is not None and name.endswith(".toml"):
        from pathlib import Path

        chosen = load_recipe(Path(name)).task if task is None else task
        one_of("task", chosen, ("classify", "lm"))
        return [choose_recipe(chosen, name, data, settings)]
    if task is not None:
        one_of("task", task, ("classify", "lm"))
    source = Data(source=data)
    name = name or (course if find_format(source) == "course" else "default")
    return [choose_recipe(each, name, data, settings) for each in ([task] if task else tasks_of(source))]


def tell_progress(what: str) -> None:
    """On a terminal, one line that is overwritten, or wiped by nothing; elsewhere silence, for it takes seconds."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}{' ...' * bool(what)}\r", end="", file=sys.stderr, flush=True)
