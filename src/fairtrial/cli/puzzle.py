"""`fairtrial puzzle`: make attention do what you ask, by construction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import Signature, signature
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairtrial.errors import BadInput

if TYPE_CHECKING:
    from fairtrial.puzzles.keys import Array, Table
    from fairtrial.puzzles.sentences import Found

app = typer.Typer(
    help="Make attention do what you ask, by construction; or learn why no query can.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Seed = Annotated[int, Option(help="Random seed of the keys.", min=0)]
Scale = Annotated[bool, Option("--scale/--no-scale", help="Divide scores by the square root of the keys' width.")]
Precision = Annotated[float, Option(help="Minimum share of its wanted weight that a wanted key gets.")]
Out = Annotated[Path | None, Option(help="Folder for the figure, the answer and query.csv.", metavar="FOLDER")]
Format = Annotated[str, Option("--format", help="Figures as png or svg.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class Puzzle:
    """The options that all questions share, and what they ask about."""

    keys: Annotated[Path | None, Option(help="Keys, one per line. Default: random keys.", metavar="FILE.csv")] = None
    count: Annotated[int | None, Option(help="Random keys: how many (4).", min=1, max=2000)] = None
    width: Annotated[int | None, Option(help="Random keys: numbers in each (3).", min=1, max=500)] = None
    seed: Seed = 0
    scale: Scale = True
    norm: Annotated[float | None, Option(help="Maximum length of the query.")] = None
    precision: Precision = 0.999
    out: Out = None
    kind: Format = "png"
    json: Json = False

    @cached_property
    def table(self) -> Table:
        """Keys and their names, from a file or random."""
        from fairtrial.puzzles.keys import Table, random_keys, read_table

        need_kind(self.kind)
        if self.keys is None:
            return Table(random_keys(self.count or 4, self.width or 3, self.seed), None)
        if self.count is not None or self.width is not None:
            raise BadInput("--count and --width are for random keys", "leave them out, or leave out --keys")
        return read_table(self.keys)

    @property
    def options(self) -> dict[str, Any]:
        how = {"scale": self.scale, "norm": self.norm, "precision": self.precision}
        return {"keys": self.table.numbers, "names": self.table.names, **how}

    def solve(self, what: str, name: str = "", **asked: Any) -> None:
        from fairtrial import puzzles

        self.show(getattr(puzzles, what)(**asked, **self.options), name)

    def show(self, found: Found, name: str = "", note: Sequence[str] = ()) -> None:
        """Print the answer and write its figure."""
        from fairtrial.puzzles.sentences import lines_of, plain_of

        plain = plain_of(found)
        if self.json:
            print(dumps(plain))
        else:
            table = self.table.numbers
            if self.keys is None and len(table) <= 12 and table.shape[1] <= 8:
                print(f"Random keys (seed {self.seed}):")
                print_rows(table)
                print()
            print(*note, *lines_of(found), sep="\n")
        if self.out is not None:
            self.write(self.out, name or plain["ask"].translate(str.maketrans(" :/", "-=-"))[:80], found, plain)

    def write(self, folder: Path, name: str, found: Found, plain: Any) -> None:
        from fairtrial.puzzles.plots import picture_of, write_files

        rows = [each["query"] for each in plain] if isinstance(plain, list) else [plain["query"]]
        table = "".join(",".join(map(repr, row)) + "\n" for row in rows)
        contents = {
            f"{name}.{self.kind}": picture_of(found, self.kind),
            f"{name}.json": dumps(plain, indent=1).encode(),
        }
        written = write_files(folder, {**contents, "query.csv": table.encode()})
        if not self.json:
            print(f"\nfigure: {written[0]}")


def question(command: Callable[..., None]) -> Callable[..., None]:
    """A command that has the options of a puzzle besides its own parameters."""
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    names = [parameter.name for parameter in own]
    shared = signature(Puzzle, eval_str=True).parameters.values()

    @wraps(command)
    def run(**given: Any) -> None:
        parameters = {name: given.pop(name) for name in names}
        command(Puzzle(**given), **parameters)

    all_parameters = [*own, *(parameter for parameter in shared if parameter.name not in names)]
    keyword_only = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in all_parameters]
    run.__signature__ = Signature(keyword_only)  # type: ignore[attr-defined]
    return run


@app.command("select")
@question
def select(
    puzzle: Puzzle,
    key: Annotated[str, Argument(help="The key to attend to: its number from 0, or its name in the file.")],
) -> None:
    """A query that attends to one key alone."""
    puzzle.solve("select", chosen=place_of(key, puzzle.table))


@app.command("identity")
@question
def identity(puzzle: Puzzle) -> None:
    """A query for each key that attends to it alone: a matrix that maps every position to itself."""
    puzzle.solve("identity", "identity")


@app.command("average")
@question
def average(
    puzzle: Puzzle, chosen: Annotated[list[str], Argument(help="The keys to attend to equally.", metavar="KEY...")]
) -> None:
    """A query that attends to the chosen keys equally, and to no other."""
    puzzle.solve("average", chosen=[place_of(word, puzzle.table) for word in chosen])


@app.command("mix")
@question
def mix(
    puzzle: Puzzle,
    shares: Annotated[list[str], Argument(help="Keys with their weights: 0:0.5 2:0.5", metavar="KEY:WEIGHT...")],
) -> None:
    """A query that gives the keys these weights."""
    puzzle.solve("mix", shares=shares_of(shares, puzzle.table))


@app.command("replace-key")
@question
def replace_key(
    puzzle: Puzzle,
    words: Annotated[list[str], Argument(help="The key to replace, then those that --to refers to.", metavar="KEY...")],
    to: Annotated[str, Option(help="What attention should do then: select, average or mix.")],
    query: Annotated[
        Path | None, Option(help="The fixed query. Default: one that averages two other keys.", metavar="FILE.csv")
    ] = None,
    norm: Annotated[float | None, Option(help="Length of the new key.")] = None,
) -> None:
    """Replace one key so that an unchanged query attends as you ask."""
    from fairtrial.puzzles import replace_key as replace

    place = place_of(words[0], puzzle.table)
    target = target_of(to, words[1:], puzzle.table)
    ask = f"replace-key {words[0]} --to {to} {' '.join(words[1:])}" + ("" if norm is None else f" --norm {norm:g}")
    note, fixed = fixed_query(query, place, puzzle)
    answer = replace(place=place, target=target, query=fixed, ask=ask, **{**puzzle.options, "norm": norm})
    puzzle.show(answer, f"replace-key-{place}", note)


@app.command("course")
def course(
    out: Annotated[Path, Option(help="Folder for figures and a page.", metavar="FOLDER")] = Path("puzzle-course"),
    seed: Seed = 0,
    scale: Scale = False,
    precision: Precision = 0.999,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """Six questions of the course behind the five reports, solved, explained and checked in real attention."""
    from fairtrial.puzzles.course import course_keys, course_questions, write_course
    from fairtrial.puzzles.sentences import lines_of, wrapped

    need_kind(kind)
    questions = course_questions(seed, scale, precision)
    if json:
        print(dumps([question.plain() for question in questions]))
    else:
        print(f"Four random keys of length 1 (seed {seed}):")
        print_rows(course_keys(seed))
        for question in questions:
            print("", f"{question.number}. {question.title.upper()}", "", *wrapped([question.lesson]), "", sep="\n")
            print(*lines_of(question.answers), sep="\n")
            print(f"Checked: fairtrial's own attention reaches a precision of {question.check():.6f}.")
    written = write_course(questions, out, kind)
    if not json:
        print(f"\nfigures and page: {written[-1]}")


@app.command("head")
def head(
    name: Annotated[
        list[str], Argument(help="previous token, first token, same word before, or induction.", metavar="NAME")
    ],
    words: Annotated[int, Option(help="Words that the network knows.", min=2, max=500)] = 8,
    length: Annotated[int, Option(help="Tokens that it reads at once.", min=2, max=500)] = 24,
    sequences: Annotated[int, Option(help="Random sequences to check it on.", min=1, max=10_000)] = 200,
    seed: Annotated[int, Option(help="Random seed of the sequences.", min=0)] = 0,
    out: Annotated[Path | None, Option(help="Folder for the map and the network's weights.", metavar="FOLDER")] = None,
    kind: Format = "png",
    json: Json = False,
) -> None:
    """A small network whose attention head is written by hand: its map, and its check on random sequences."""
    from fairtrial.puzzles.heads import show_head, show_lines, write_head_files

    need_kind(kind)
    shown = show_head(" ".join(name), words, length, sequences, seed)
    if json:
        print(dumps(shown.plain()))
    else:
        print(*show_lines(shown), sep="\n")
    if out is not None:
        written = write_head_files(shown, out, kind)
        if not json:
            print("", *(f"written: {path}" for path in written), sep="\n")
    if not shown.check.passed:
        raise typer.Exit(1)


def need_kind(kind: str) -> None:
    if kind not in ("png", "svg"):
        raise BadInput(f"--format must be png or svg, got {kind}")


def place_of(word: str, table: Table) -> int:
    """A key's number, or its name."""
    from fairtrial.puzzles.solve import need_place

    names, count = table.names or (), len(table.numbers)
    if word in names:
        return names.index(word)
    try:
        return need_place(int(word), count)
    except ValueError as error:
        hint = f"name it by its number, 0 to {count - 1}" + (f", or as {', '.join(names[:6])}" if names else "")
        raise BadInput(f"there is no key {word!r}", hint) from error


def shares_of(words: list[str], table: Table) -> dict[int, float]:
    from fairtrial.puzzles.keys import is_number

    shares: dict[int, float] = {}
    for word in words:
        name, mark, share = word.rpartition(":")
        if not mark or not is_number(share):
            raise BadInput(f"{word!r} is not a key with its weight", "write 0:0.5 2:0.3 3:0.2")
        place = place_of(name, table)
        if place in shares:
            raise BadInput(f"key {name} is named twice", "give each key one weight")
        shares[place] = float(share)
    return shares


def target_of(to: str, words: list[str], table: Table) -> Array:
    from fairtrial.puzzles import average_target, mix_target, select_target

    count = len(table.numbers)
    if to == "select" and len(words) == 1:
        return select_target(count, place_of(words[0], table))
    if to == "average":
        return average_target(count, [place_of(word, table) for word in words])
    if to == "mix":
        return mix_target(count, shares_of(words, table))
    what = f"--to must be select, average or mix with keys, got {' '.join([to, *words])}"
    raise BadInput(what, "--to select 2, --to average 0 1 2 or --to mix 0:0.5 2:0.5")


def fixed_query(path: Path | None, place: int, puzzle: Puzzle) -> tuple[list[str], Array]:
    """The fixed query, and a note if it was not given."""
    from fairtrial.puzzles.keys import read_table
    from fairtrial.puzzles.solve import average

    table = puzzle.table.numbers
    width = table.shape[1]
    if path is not None:
        numbers = read_table(path).numbers
        if numbers.size != width or 1 not in numbers.shape:
            raise BadInput(f"a query of {width} numbers is needed, as wide as the keys", path=path)
        return [], numbers.reshape(-1)
    first = [other for other in range(len(table)) if other != place][:2]
    if not first:
        raise BadInput("there is one key only", "give a query: --query q.csv")
    note = f"No query given: using one that averages keys {' and '.join(map(str, first))} as well as it can."
    return [note, ""], average(table, first, scale=puzzle.scale, precision=puzzle.precision).query


def print_rows(table: Array) -> None:
    wide = len(f"key {len(table) - 1}")
    for number, row in enumerate(table):
        print(f"{f'key {number}':<{wide}}  " + " ".join(f"{value:8.4f}" for value in row))
