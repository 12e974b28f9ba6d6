"""`fairtrial look`: where the heads of a trained network look, and what each is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.texts import TextFile, Texts, bar, beside, gather, notice
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.look.album import Album
    from fairtrial.record import Record

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
    strangers: With = None,
) -> None:
    """Draw attention maps before and after training, portray each head, and measure what it is worth. Without a text,
    the record's own test set is read."""
    from fairtrial.errors import BadInput
    from fairtrial.record import Record
    from fairtrial.strangers import load_files

    given = gather(texts, file) if texts or file is not None else []
    opened = Record.open(record)
    if format not in ("png", "svg", "pdf"):
        raise BadInput(f"--format {format!r} is not known", "take png, svg or pdf")
    heads = chosen_heads(opened, layer, head)
    folder = place_for(out, record)
    load_files(strangers or [])
    from fairtrial.look.album import fill_album, scores_needed, worth
    from fairtrial.report.look_text import album_lines
    from fairtrial.trial import use_machine

    with use_machine(1):
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
    from fairtrial.errors import BadInput
    from fairtrial.look.twin import before_training, twin_of_kept, untrained_twin
    from fairtrial.revive import revive

    try:
        revived = revive(record)
    except BadInput as error:
        from fairtrial.kept import kept_model

        if not given or record.recipe.task not in ("classify", "lm"):
            raise
        kept = kept_model(record, record.recipe.task)  # complains of all but the data, which maps can do without
        twin = twin_of_kept(kept, record.trial["seed"])
        return Sitter(kept.network, twin, kept.tokenizer, given, why_not=error.what)
    test = record.trial["test_sets"][0]
    texts = given or [each.text for each in revived.splits.tests[test] if each.text.strip()][:MOST_READ]
    try:
        twin, stage = before_training(revived)
    except BadInput as error:  # the encoder that it was fine-tuned from is gone
        notice(f"{error.what}: compared with first weights instead")
        twin, stage = untrained_twin(revived), "untrained"
    return Sitter(revived.bench.network, twin, revived.tokenizer, texts, stage, revived.bench)


def write_page(
    folder: Path, record: Record, album: Album, heads: list[tuple[int, int]], source: str, why_not: str
) -> None:
    from json import dumps
    from shlex import join
    from sys import argv

    from fairtrial.disk import disk_errors, write_text
    from fairtrial.report.look_page import Frame, look_page
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
    from fairtrial.disk import disk_errors, write_bytes
    from fairtrial.look.map_figure import map_figure

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
