"""`fairtrial params`: where a network's parameters are, and what it costs; of a record, or of a recipe untrained."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.look.flops import Flops
    from fairtrial.look.ledger import Ledger
    from fairtrial.recipe import Recipe


def params(
    what: Annotated[
        str,
        typer.Argument(
            help="A record, a recipe file, or a built-in recipe: 'course' or 'default'.",
            metavar="RECORD|RECIPE.toml|NAME",
        ),
    ],
    task: Annotated[
        str | None, typer.Option(help="With a built-in recipe: 'classify', 'lm' or 'mlm'.", show_default="all")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Text to make the vocabulary from, instead of the recipe's.", metavar="PATH")
    ] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Entries of the vocabulary: no data are read.", min=1)] = None,
    classes: Annotated[int | None, typer.Option(help="Classes of the classifier, with --vocabulary.", min=1)] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change one field: --set shape.heads=4. Repeatable.", metavar="FIELD=VALUE"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the validation share that a vocabulary must not see.", min=0)] = 0,
    kind: Annotated[str, typer.Option("--format", help="text, markdown, latex or csv (the ledger alone).")] = "text",
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each network.")] = False,
) -> None:
    """Count a network's parameters, component by component, beside the reports' way of counting, and its arithmetic."""
    from fairtrial.recipe import one_of
    from fairtrial.report.ledger_text import FORMATS

    one_of("--format", kind, FORMATS)
    recorded = os.path.isdir(what)
    known = recorded_sizes(Path(what), data, vocabulary, settings) if recorded else None
    recipes = [known[0]] if known else choose(what, task, data, settings or [])

    from fairtrial.look.flops import flops_of
    from fairtrial.look.ledger import fresh_network, ledger_of
    from fairtrial.strangers import load_files, load_installed

    load_files(strangers or [])
    for number, recipe in enumerate(map(with_its_encoder, recipes)):
        load_installed(choice.name for choice in recipe.parts)
        sizes = known[1:] if known else sizes_of(recipe, vocabulary, classes, seed)
        network = fresh_network(recipe, *sizes)
        cost = flops_of(network, rows_in_step=recipe.training.batch * recipe.training.accumulate)
        if json:
            print_json(recipe, sizes, ledger_of(network), cost)
        else:
            print("\n" * (number > 0), end="")
            print_tables(recipe, sizes, ledger_of(network), cost, kind)


def recorded_sizes(
    folder: Path, data: str | None, vocabulary: int | None, settings: list[str] | None
) -> tuple[Recipe, int, int]:
    """A record knows its recipe, its vocabulary and its classes."""
    from fairtrial.errors import BadInput
    from fairtrial.record import Record

    record = Record.open(folder)
    if data is not None or vocabulary is not None or settings:
        raise BadInput("a record's network is what it is", "leave out --data, --vocabulary and --set, or name a recipe")
    return record.recipe, int(record.trial["vocabulary"]), len(record.trial["labels"])


def choose(what: str, task: str | None, data: str | None, settings: list[str]) -> list[Recipe]:
    """The recipe that is meant; a built-in one for each of its tasks, unless one is named."""
    from fairtrial.errors import BadInput
    from fairtrial.recipe import TASKS, one_of
    from fairtrial.recipe_file import BUILT_IN, built_in_recipe, load_recipe, with_settings

    if task is not None:
        one_of("--task", task, TASKS)
    if what.endswith(".toml") or os.path.isfile(what):
        found = [load_recipe(Path(what))]
        if task not in (None, found[0].task):
            raise BadInput(f"{what} is a recipe for {found[0].task!r}, not {task!r}")
    elif what in TASKS:
        if task not in (None, what):
            raise BadInput(f"{what!r} is a task by itself, and --task says {task!r}", "leave one of them out")
        found = [built_in_recipe("default", what)]
    elif os.sep in what:
        raise BadInput(f"{what} is neither a record nor a recipe", "name a record's folder or a TOML file")
    else:
        both = [each for each in TASKS if (BUILT_IN / f"{what}-{each}.toml").is_file()] or TASKS[:1]
        found = [built_in_recipe(what, each) for each in ([task] if task else both)]
    if data is not None:
        found = [replace(recipe, data=replace(recipe.data, source=data)) for recipe in found]
    return [with_settings(recipe, settings) for recipe in found]


def with_its_encoder(recipe: Recipe) -> Recipe:
    """A recipe that starts from a pretrained encoder has that encoder's shape."""
    if recipe.encoder.source == "none" or recipe.encoder.sha256 != "none":
        return recipe
    from fairtrial.pretrained.encoder import open_encoder, with_encoder

    return with_encoder(recipe, open_encoder(recipe))


def sizes_of(recipe: Recipe, vocabulary: int | None, classes: int | None, seed: int) -> tuple[int, int]:
    """Entries of the vocabulary and classes, as told, or as a trial on these data would find them."""
    from fairtrial.errors import BadInput

    if vocabulary is not None:
        if recipe.task == "classify" and classes is None:
            raise BadInput("how many classes?", "say --classes 3, or give --data instead of --vocabulary")
        return vocabulary, classes or 0
    if classes is not None:
        raise BadInput("--classes goes with --vocabulary")
    from fairtrial.text.reading import read
    from fairtrial.text.shaping import fitting_tokens, shape_documents
    from fairtrial.text.splitting import split
    from fairtrial.trial import fit_tokenizer

    try:
        corpus = read(recipe.data, recipe.task)
        recipe = replace(recipe, tokens=fitting_tokens(corpus, recipe.tokens))
        corpus = shape_documents(corpus, recipe.tokens.kind)
        splits = split(corpus, recipe.data, seed)
        texts = [document.text for document in splits.train]
        return fit_tokenizer(recipe, corpus, texts).size, len(splits.labels)
    except BadInput as error:
        hint = "or say how large the vocabulary is: --vocabulary 5755 --classes 3"
        raise BadInput(error.what, f"{error.hint}; {hint}" if error.hint else hint) from error


def print_tables(recipe: Recipe, sizes: tuple[int, int], ledger: Ledger, cost: Flops, kind: str) -> None:
    from fairtrial.report.ledger_text import cost_table, ledger_table

    rows = [(row.component, row.formula, row.count, row.bias_free) for row in ledger.rows]
    table = ledger_table(rows, kind)
    if kind == "csv":
        print(table, end="")
        return
    network = {"classify": f"classifier of {sizes[1]} classes", "lm": "language model"}.get(recipe.task, recipe.task)
    sign = "% " if kind == "latex" else ""
    print(f"{sign}{recipe.name or 'recipe'}: {network}, vocabulary of {sizes[0]:,}{'' if kind == 'latex' else chr(10)}")
    print(table)
    notes = [
        "The reports' way counts the token embedding and the weight matrices of attention and feed-forward alone:",
        "no biases, norms, positions or other parts, no classifier or output layer.",
    ]
    print("\n".join(sign + note for note in notes) + "\n")
    print(cost_table([(row.component, row.formula, row.flops) for row in cost.rows], kind))
    notes = [
        f"Floating-point operations of one row at its full length of {cost.length} tokens, forward:",
        f"{cost.per_token:,.0f} for each token; {cost.per_step:,} in a training step (forward and backward over"
        f" {cost.rows_in_step} rows).",
    ]
    print("\n".join(sign + note for note in notes))


def print_json(recipe: Recipe, sizes: tuple[int, int], ledger: Ledger, cost: Flops) -> None:
    import json

    whole: dict[str, Any] = {
        "task": recipe.task,
        "vocabulary": sizes[0],
        "classes": sizes[1],
        "rows": [asdict(row) for row in ledger.rows],
        "total": ledger.total,
        "bias_free": ledger.bias_free,
        "flops": {
            "rows": [asdict(row) for row in cost.rows],
            "length": cost.length,
            "forward_per_row": cost.forward,
            "backward_per_row": cost.backward,
            "per_token": cost.per_token,
            "rows_in_step": cost.rows_in_step,
            "per_step": cost.per_step,
        },
    }
    print(json.dumps(whole))
