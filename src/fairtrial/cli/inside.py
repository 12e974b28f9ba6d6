"""`fairtrial show` and `fairtrial recipe`: look at a record or a recipe. No torch.

`fairtrial look`: where the heads of a trained network look, and what each is worth.

`fairtrial params`: where a network's parameters are, and what it costs; of a record, or of a recipe untrained.

`fairtrial length`: does a language model handle longer texts than it was trained on?

`fairtrial errors`: what a classifier gets wrong, how sure it is, and which words tell it.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.options import TextFile, Texts, bar, beside, gather, notice
from fairtrial.cli.text import Names, shown_names
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.analysis.look import Album
    from fairtrial.analysis.parameters import Flops, Ledger
    from fairtrial.recipe import Recipe
    from fairtrial.record import Record


def show(
    record: Annotated[Path, typer.Argument(help="The folder of a record.")],
    html: Annotated[Path | None, typer.Option(help="Write a page to open in a browser, too.", metavar="FILE")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw loss and score of all splits in one figure (.png, .svg, .pdf).", metavar="FILE"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object, for machines.")] = False,
) -> None:
    """Show what was trained: recipe, parameter count, curves, results, fingerprints."""
    from fairtrial.record import Record

    opened = Record.open(record)
    if json:
        import json as writer

        from fairtrial.recipe import to_table

        result = opened.result if opened.complete else None
        whole = {"recipe": to_table(opened.recipe), "trial": opened.trial, "result": result, "events": opened.events()}
        print(writer.dumps(whole))
    else:
        from fairtrial.report.text import record_lines

        for line in record_lines(opened):
            print(line)
    if figure is not None:
        from fairtrial.disk import write_bytes
        from fairtrial.report.plots import curves_figure

        write_bytes(figure, curves_figure(opened, figure.suffix.lstrip(".").lower() or "png"))
        if not json:
            print(f"figure: {figure}")
    if html is not None:
        from fairtrial.disk import write_text
        from fairtrial.report.page import records_page

        write_text(html, records_page([opened], f"fairtrial: {record.name}"))
        if not json:
            print(f"page: {html}")


def recipe(
    task: Annotated[str, typer.Argument(help="'classify', 'lm' or 'mlm'.")] = "classify",
    name: Annotated[str, typer.Argument(help="A built-in recipe: 'default', 'course' or 'finetune'.")] = "default",
) -> None:
    """Print a built-in recipe as TOML with every field and its meaning, to start your own from."""
    from fairtrial.recipe import TASKS, built_in_recipe, one_of, write_recipe

    one_of("task", task, TASKS)
    print(write_recipe(built_in_recipe(name, task)), end="")


MOST_READ = 1000  # texts of a test set that are read where none are given
MANY = 32  # heads, or scores, that take their time


@dataclass(frozen=True)
class Sitter:
    """A trained network and its untrained twin, ready to be looked at."""

    network: Any
    twin: Any
    tokenizer: Any
    texts: list[str]
    stage: str = "untrained"  # what the twin is
    bench: Any = None  # with its test sets
    why_not: str = ""  # there is no bench


def look(
    record: Annotated[Path, typer.Argument(help="The record of a trained network.")],
    texts: Texts = None,
    file: TextFile = None,
    layer: Annotated[int | None, typer.Option(help="Draw this layer only; layers count from 0.", min=0)] = None,
    head: Annotated[int | None, typer.Option(help="Draw this head only; heads count from 0.", min=0)] = None,
    format: Annotated[str, typer.Option(help="Of the figures: png, svg or pdf.")] = "png",
    out: Annotated[
        Path | None, typer.Option(help="A folder for page and figures.", show_default="RECORD-look", metavar="FOLDER")
    ] = None,
    ablate: Annotated[
        bool, typer.Option(help="Switch each head off in turn and score whole test sets without it.")
    ] = True,
    plugins: With = None,
) -> None:
    """Draw attention maps before and after training, portray each head, and measure what it is worth. Without a text,
    the record's own test set is read."""
    from fairtrial.errors import BadInput
    from fairtrial.plugins import load_files
    from fairtrial.record import Record

    given = gather(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    if format not in ("png", "svg", "pdf"):
        raise BadInput(f"--format {format!r} is not known", "take png, svg or pdf")
    heads = chosen_heads(opened, layer, head)
    folder = place_for(out, record)
    load_files(plugins or [])
    from fairtrial.analysis.look import fill_album, scores_needed, worth
    from fairtrial.environment import use_threads
    from fairtrial.report.text import album_lines

    with use_threads(1):
        sitter = seat(opened, given)
        with bar("reading", len(sitter.texts)) as tell:
            album = fill_album(sitter.network, sitter.twin, sitter.tokenizer, sitter.texts, tell, sitter.stage)
        tests = opened.trial["test_sets"]
        if ablate and sitter.bench is not None:
            scores = scores_needed(sitter.bench, tests)
            if scores > MANY:
                notice(f"{scores} scores of whole test sets, a head switched off in each; --no-ablate does without")
            with bar("switching heads off", scores, least=1) as tell:
                album = replace(album, effects=worth(sitter.bench, tests, tell))
    for line in album_lines(album):
        print(line)
    if album.texts > len(album.drawn):
        notice(f"portraits are over all {album.texts:,} texts, maps of the first {len(album.drawn)}")
    if album.cut and album.texts > 1:
        notice(f"{album.cut:,} of {album.texts:,} texts are longer than {album.length} tokens and were cut there")
    if ablate:
        notice(sitter.why_not and f"no head was switched off: {sitter.why_not}")
    source = "texts that were given" if given else f"texts of the test set {tests[0]!r}"
    write_page(folder, opened, album, heads, source, sitter.why_not if ablate else "as --no-ablate asks")
    draw_figures(folder, opened, album, heads, format)


def chosen_heads(record: Record, layer: int | None, head: int | None) -> list[tuple[int, int]]:
    from fairtrial.errors import BadInput

    shape = record.recipe.shape
    for name, asked, count in (("layer", layer, shape.layers), ("head", head, shape.heads)):
        if asked is not None and asked >= count:
            raise BadInput(f"there is no {name} {asked}", f"this network has {name}s 0 to {count - 1}")
    layers = range(shape.layers) if layer is None else [layer]
    return [(each, place) for each in layers for place in (range(shape.heads) if head is None else [head])]


def place_for(out: Path | None, record: Path) -> Path:
    """The folder to write to: never a record, which holds its own files only."""
    from fairtrial.errors import BadInput

    home = record.resolve()
    folder = beside(record, "look") if out is None else out
    inside = folder.resolve()
    if home in (inside, *inside.parents) or (folder / "trial.json").exists():
        raise BadInput(f"{folder} is a record or lies in one", "take another folder with --out")
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file", "take another folder with --out")
    return folder


def seat(record: Record, given: list[str]) -> Sitter:
    from fairtrial.analysis.attention import before_training
    from fairtrial.errors import BadInput
    from fairtrial.trial import load

    run = load(record)
    try:
        task = run.task
    except BadInput as error:  # maps of given texts need no data
        if not given or record.recipe.task not in ("classify", "lm"):
            raise
        return Sitter(run.network, run.initial_network(), run.tokenizer, given, why_not=error.what)
    test = record.trial["test_sets"][0]
    texts = given or [each.text for each in run.splits.tests[test] if each.text.strip()][:MOST_READ]
    try:
        initial, stage = before_training(run)
    except BadInput as error:  # the encoder that it was fine-tuned from is gone
        notice(f"{error.what}: compared with first weights instead")
        initial, stage = run.initial_network(), "untrained"
    return Sitter(run.network, initial, run.tokenizer, texts, stage, task)


def write_page(
    folder: Path, record: Record, album: Album, heads: list[tuple[int, int]], source: str, why_not: str
) -> None:
    from json import dumps
    from shlex import join
    from sys import argv

    from fairtrial.disk import disk_errors, write_text
    from fairtrial.report.page import Frame, look_page
    from fairtrial.report.words import spoken_parts

    recipe, trial = record.recipe, record.trial
    kind = {"classify": "An encoder and classifier", "lm": "A decoder language model"}.get(recipe.task, "An encoder")
    about = (
        f"{kind} of {recipe.shape.layers} layers with {recipe.shape.heads} heads each; parts: {spoken_parts(recipe)};"
        f" seed {trial['seed']}. It reads {album.length} tokens at once."
    )
    one = "the one text above (many texts say more: give a file, or no text to read a test set)"
    frame = Frame(
        title=f"Where the heads of {record.folder.resolve().name} look",
        about=about,
        notes=trial["notes"],
        read=f"{album.texts:,} {source}" if album.texts > 1 else one,
        command=join(["fairtrial", *argv[1:]]),
        why_not=why_not,
    )
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "index.html", look_page(album, heads, frame))
    write_text(folder / "look.json", dumps(album.to_dict(), indent=1, ensure_ascii=False) + "\n")
    print(f"page: {folder / 'index.html'}")


def draw_figures(folder: Path, record: Record, album: Album, heads: list[tuple[int, int]], kind: str) -> None:
    """For each text that is drawn, a grid of all chosen heads, and a figure of each."""
    from fairtrial.analysis.look import map_figure
    from fairtrial.disk import disk_errors, write_bytes

    name = record.folder.resolve().name
    alone = {f"layer-{each}-head-{head}": [(each, head)] for each, head in heads}
    grid = {"grid": heads} if len(heads) > 1 else {}
    # of many heads, the further texts have the grid only
    plans = [grid | alone if number == 0 or len(heads) <= MANY else grid for number in range(len(album.drawn))]
    done = 0
    for old in folder.glob("text-*"):  # of other texts, perhaps
        for figure in [*old.glob("grid.*"), *old.glob("layer-*-head-*.*")]:
            with disk_errors(figure):
                figure.unlink()
        if not any(old.iterdir()):
            with disk_errors(old):
                old.rmdir()
    with bar("drawing", sum(map(len, plans)), least=2) as tell:
        for number, (drawn, wanted) in enumerate(zip(album.drawn, plans, strict=True), 1):
            place = folder / f"text-{number}"
            with disk_errors(place):
                place.mkdir(exist_ok=True)
            for stem, some in wanted.items():
                title = f"{name}: {drawn.text}"
                picture = map_figure(drawn.trained, drawn.untrained, some, album.captions, title, kind, album.stage)
                write_bytes(place / f"{stem}.{kind}", picture)
                done += 1
                tell(done)
    more = f" and {done - 1} more beside it" if done > 1 else ""
    print(f"figures: {folder / 'text-1' / next(iter(plans[0]))}.{kind}{more}")


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
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object for each network.")] = False,
) -> None:
    """Count a network's parameters, component by component, beside the reports' way of counting, and its arithmetic."""
    from fairtrial.recipe import one_of
    from fairtrial.report.text import FORMATS

    one_of("--format", kind, FORMATS)
    recorded = os.path.isdir(what)
    known = recorded_sizes(Path(what), data, vocabulary, settings) if recorded else None
    recipes = [known[0]] if known else choose(what, task, data, settings or [])

    from fairtrial.analysis.parameters import flops_of, fresh_network, ledger_of
    from fairtrial.plugins import load_files, load_installed

    load_files(plugins or [])
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
    from fairtrial.recipe import BUILT_IN, TASKS, built_in_recipe, load_recipe, one_of, with_settings

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
    from fairtrial.prepare import prepare

    try:
        prepared = prepare(recipe, seed)
        return prepared.tokenizer.size, len(prepared.splits.labels)
    except BadInput as error:
        hint = "or say how large the vocabulary is: --vocabulary 5755 --classes 3"
        raise BadInput(error.what, f"{error.hint}; {hint}" if error.hint else hint) from error


def print_tables(recipe: Recipe, sizes: tuple[int, int], ledger: Ledger, cost: Flops, kind: str) -> None:
    from fairtrial.report.text import cost_table, ledger_table

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


def length(
    record: Annotated[Path, typer.Argument(help="The record of a trained language model.")],
    times: Annotated[str, typer.Option(help="Multiples of the trained length.", metavar="LIST")] = "1,2,4,8",
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each score.")] = False,
) -> None:
    """Score a language model at 1x, 2x, 4x and 8x its training length; parts that cannot go there say so."""
    from fairtrial.errors import BadInput
    from fairtrial.record import Record

    opened = Record.open(record)
    if opened.recipe.task != "lm":
        raise BadInput(f"{record} is no language model: only these have a perplexity at each length")
    try:
        factors = [int(word) for word in times.split(",")]
    except ValueError as error:
        raise BadInput(f"--times {times!r} is not a list of whole numbers", "write it as --times 1,2,4,8") from error
    if min(factors) < 1:
        raise BadInput(f"--times {times!r}: a multiple must be at least 1")
    from fairtrial.plugins import load_files

    load_files(plugins or [])
    from dataclasses import asdict
    from json import dumps
    from typing import cast

    from fairtrial.analysis.surprisal import stretch
    from fairtrial.environment import use_threads
    from fairtrial.report.words import bracket, spoken_parts
    from fairtrial.training.tasks import LanguageTask
    from fairtrial.trial import load

    with use_threads(1):
        run = load(opened)
        bench = cast(LanguageTask, run.task)
        if not json:
            print(f"{record}: trained at length {bench.length}, parts: {spoken_parts(run.recipe)}")
            print(f"{'test set':<14}{'length':>8}  perplexity (95% over documents, this one seed)")
        for each in stretch(bench, opened.trial["test_sets"], factors):
            if json:
                print(dumps(asdict(each)), flush=True)
            elif each.perplexity is None:
                print(f"{each.test:<14}{each.length:>8}  cannot go there: {each.why_not}", flush=True)
            else:
                print(f"{each.test:<14}{each.length:>8}  {each.perplexity:.1f}{bracket(each.interval)}", flush=True)


def errors(
    record: Annotated[Path, typer.Argument(help="The record of a trained classifier. Its data are read again.")],
    test: Annotated[str | None, typer.Option(help="One test set only.", show_default="all")] = None,
    bins: Annotated[int, typer.Option(help="Bins of the reliability curve.", min=1, max=100)] = 10,
    most: Annotated[int, typer.Option(help="Mistakes and words to show.", min=1)] = 10,
    telling: Annotated[bool, typer.Option("--telling/--no-telling", help="Look for the most telling words.")] = True,
    names: Names = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to open in a browser, too.", metavar="FILE")] = None,
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Show a classifier's confusions, its calibration, its most confident mistakes and its most telling words."""
    from fairtrial.errors import BadInput
    from fairtrial.record import Record
    from fairtrial.registry import did_you_mean

    opened = Record.open(record)
    if opened.recipe.task != "classify":
        raise BadInput(
            f"{record} is no classifier; only classifiers have a confusion", "see: fairtrial surprise --help"
        )
    tests = [str(name) for name in opened.trial["test_sets"]]
    if test is not None and test not in tests:
        raise BadInput(f"this record has no test set {test!r}{did_you_mean(test, tests)}")
    labels = shown_names(tuple(str(label) for label in opened.trial["labels"]), names)
    from typing import cast

    from fairtrial.analysis.errors import MOST_TEXTS, errors_of
    from fairtrial.environment import use_threads
    from fairtrial.plugins import load_files
    from fairtrial.report.words import spoken_parts
    from fairtrial.training.tasks import ClassifyTask
    from fairtrial.trial import load

    load_files(plugins or [])
    whole: dict[str, Any] = {
        "record": record.resolve().name,
        "parts": spoken_parts(opened.recipe),
        "labels": list(labels),
        "tests": {},
    }
    with use_threads(1):
        run = load(opened)
        bench = cast(ClassifyTask, run.task)
        for name in tests if test is None else [test]:
            rows, answers = bench.sets[name]
            with bar("looking for telling words", min(len(rows), MOST_TEXTS)) as tell:
                whole["tests"][name] = errors_of(
                    bench.network,
                    run.tokenizer,
                    run.splits.tests[name],
                    rows,
                    answers,
                    labels,
                    known=[document.text for document in run.splits.train],
                    bins=bins,
                    most=most,
                    telling=telling,
                    tell=tell,
                )
    if json:
        import json as writer

        print(writer.dumps(whole))
    else:
        from fairtrial.report.text import errors_lines

        for number, (name, found) in enumerate(whole["tests"].items()):
            print("\n" * (number > 0) + "\n".join(errors_lines(name, found, labels)))
    if html is not None:
        from fairtrial.disk import write_text
        from fairtrial.report.page import errors_page

        write_text(html, errors_page(whole))
        if not json:
            print(f"page: {html}")
