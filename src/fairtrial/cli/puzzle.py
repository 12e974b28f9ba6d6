"""`fairtrial puzzle`: make attention do what you ask, by construction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.puzzle_input import fixed_query, gather, need_kind, place_of, shares_of, target_of
from fairtrial.cli.puzzle_output import print_rows, say_json, say_keys, tell, write_out

app = typer.Typer(
    help="Make attention do what you ask, by construction; or learn why no query can.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Keys = Annotated[Path | None, typer.Option(help="Keys, one on each line; without it, random ones.", metavar="FILE.csv")]
Values = Annotated[
    Path | None, typer.Option(help="Values, one on each line, to see what comes out.", metavar="FILE.csv")
]
Count = Annotated[int | None, typer.Option(help="Random keys: how many (4).", min=1, max=2000)]
Width = Annotated[int | None, typer.Option(help="Random keys: numbers in each (3).", min=1, max=500)]
Seed = Annotated[int, typer.Option(help="Names the dice of random keys.", min=0)]
Scale = Annotated[bool, typer.Option("--scale/--no-scale", help="Divide scores by the square root of the keys' width.")]
Norm = Annotated[float | None, typer.Option(help="Greatest length of the query.")]
Precision = Annotated[float, typer.Option(help="Least share of its wanted weight that a wanted key is to get.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the figure, the answer and query.csv.", metavar="FOLDER")]
Format = Annotated[str, typer.Option("--format", help="Figures as png or svg.")]
Json = Annotated[bool, typer.Option("--json", help="The answer for machines.")]


@app.command("select")
def select(
    key: Annotated[str, typer.Argument(help="The key to attend to: its number from 0, or its name in the file.")],
    keys: Keys = None, values: Values = None, count: Count = None, width: Width = None, seed: Seed = 0,
    scale: Scale = True, norm: Norm = None, precision: Precision = 0.999, out: Out = None, kind: Format = "png",
    json: Json = False,
) -> None:  # fmt: skip
    """A query that attends to one key alone."""
    from fairtrial.puzzles import ask

    given = gather(keys, values, count, width, seed, kind)
    options = {**given, "scale": scale, "norm": norm, "precision": precision}
    tell([ask.select(chosen=place_of(key, given), **options)], given, keys, seed, out, kind, json)


@app.command("identity")
def identity(
    keys: Keys = None, values: Values = None, count: Count = None, width: Width = None, seed: Seed = 0,
    scale: Scale = True, norm: Norm = None, precision: Precision = 0.999, out: Out = None, kind: Format = "png",
    json: Json = False,
) -> None:  # fmt: skip
    """A query for each key that attends to it alone: a matrix that maps every position to itself."""
    from fairtrial.puzzles import ask

    given = gather(keys, values, count, width, seed, kind)
    options = {**given, "scale": scale, "norm": norm, "precision": precision}
    tell(ask.identity(**options), given, keys, seed, out, kind, json, whole=True)


@app.command("average")
def average(
    chosen: Annotated[list[str], typer.Argument(help="The keys to attend to alike.", metavar="KEY...")],
    keys: Keys = None, values: Values = None, count: Count = None, width: Width = None, seed: Seed = 0,
    scale: Scale = True, norm: Norm = None, precision: Precision = 0.999, out: Out = None, kind: Format = "png",
    json: Json = False,
) -> None:  # fmt: skip
    """A query that attends to the chosen keys alike, and to no other."""
    from fairtrial.puzzles import ask

    given = gather(keys, values, count, width, seed, kind)
    options = {**given, "scale": scale, "norm": norm, "precision": precision}
    places = [place_of(word, given) for word in chosen]
    tell([ask.average(chosen=places, **options)], given, keys, seed, out, kind, json)


@app.command("mix")
def mix(
    shares: Annotated[list[str], typer.Argument(help="Keys with their weights: 0:0.5 2:0.5", metavar="KEY:WEIGHT...")],
    keys: Keys = None, values: Values = None, count: Count = None, width: Width = None, seed: Seed = 0,
    scale: Scale = True, norm: Norm = None, precision: Precision = 0.999, out: Out = None, kind: Format = "png",
    json: Json = False,
) -> None:  # fmt: skip
    """A query that gives the keys these weights."""
    from fairtrial.puzzles import ask

    given = gather(keys, values, count, width, seed, kind)
    options = {**given, "scale": scale, "norm": norm, "precision": precision}
    tell([ask.mix(shares=shares_of(shares, given), **options)], given, keys, seed, out, kind, json)


@app.command("replace-key")
def replace_key(
    words: Annotated[
        list[str], typer.Argument(help="The key to replace, then those that --to speaks of.", metavar="KEY...")
    ],
    to: Annotated[str, typer.Option(help="What attention is to do then: select, average or mix.")],
    query: Annotated[
        Path | None,
        typer.Option(help="The query, which stays; without it, one that averages two other keys.", metavar="FILE.csv"),
    ] = None,
    keys: Keys = None, values: Values = None, count: Count = None, width: Width = None, seed: Seed = 0,
    scale: Scale = True, norm: Annotated[float | None, typer.Option(help="Length that the new key must have.")] = None,
    precision: Precision = 0.999, out: Out = None, kind: Format = "png", json: Json = False,
) -> None:  # fmt: skip
    """A new key for one place, so that an unchanged query attends as you ask."""
    from fairtrial.puzzles.plain import plain_replacement
    from fairtrial.puzzles.replace_key import replace_key as replace
    from fairtrial.puzzles.replacement_words import replacement_lines

    given = gather(keys, values, count, width, seed, kind)
    place = place_of(words[0], given)
    target = target_of(to, words[1:], given)
    asked = f"replace-key {words[0]} --to {to} {' '.join(words[1:])}" + ("" if norm is None else f" --norm {norm:g}")
    told, fixed = fixed_query(query, place, given, scale, precision)
    answer = replace(
        place=place, target=target, query=fixed, ask=asked, scale=scale, norm=norm, precision=precision, **given
    )
    if json:
        say_json(plain_replacement(answer))
    else:
        say_keys(given, keys, seed)
        print(*told, *replacement_lines(answer), sep="\n")
    if out is not None:
        from fairtrial.puzzles.draw import replacement_picture

        write_out(out, f"replace-key-{place}", kind, replacement_picture(answer, kind), plain_replacement(answer), json)


@app.command("course")
def course(
    out: Annotated[Path, typer.Option(help="Folder for figures and a page.", metavar="FOLDER")] = Path("puzzle-course"),
    seed: Seed = 0, scale: Scale = False, precision: Precision = 0.999, kind: Format = "png", json: Json = False,
) -> None:  # fmt: skip
    """All six questions of the course, solved, explained and checked in fairtrial's own attention."""
    from fairtrial.puzzles.course import course_keys, course_questions, write_course
    from fairtrial.puzzles.words import wrapped

    need_kind(kind)
    questions = course_questions(seed, scale, precision)
    if json:
        say_json([question.plain() for question in questions])
    else:
        print(f"Four random keys of length 1 (seed {seed}):")
        print_rows(course_keys(seed), [f"key {number}" for number in range(4)])
        for question in questions:
            print("", f"{question.number}. {question.title.upper()}", "", *wrapped([question.lesson]), "", sep="\n")
            print(*question.lines(), sep="\n")
            print(f"Checked: fairtrial's own attention reaches a precision of {question.check():.6f}.")
    written = write_course(questions, out, kind)
    if not json:
        print(f"\nfigures and page: {written[-1]}")


@app.command("head")
def head(
    name: Annotated[
        list[str], typer.Argument(help="previous token, first token, same word before, or induction.", metavar="NAME")
    ],
    words: Annotated[int, typer.Option(help="Words that the network knows.", min=2, max=500)] = 8,
    length: Annotated[int, typer.Option(help="Tokens that it reads at once.", min=2, max=500)] = 24,
    sequences: Annotated[int, typer.Option(help="Random sequences to check it on.", min=1, max=10_000)] = 200,
    seed: Annotated[int, typer.Option(help="Names the dice of the sequences.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the map and the network's weights.", metavar="FOLDER")
    ] = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """A small network whose attention head is written by hand: its map, and its check on random sequences."""
    from fairtrial.puzzles.head_words import show_head, show_lines, write_head_files

    need_kind(kind)
    show = show_head(" ".join(name), words, length, sequences, seed)
    if json:
        say_json(show.plain())
    else:
        print(*show_lines(show), sep="\n")
    if out is not None:
        written = write_head_files(show, out, kind)
        if not json:
            print("", *(f"written: {path}" for path in written), sep="\n")
    if not show.check.passed:
        raise typer.Exit(1)
