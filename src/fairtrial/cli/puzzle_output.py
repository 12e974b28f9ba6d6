"""What `fairtrial puzzle` says and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.puzzles.solve import Answer


def tell(
    answers: list[Answer], given: dict[str, Any], keys: Path | None, seed: int, out: Path | None, kind: str, json: bool,
    whole: bool = False,
) -> None:  # fmt: skip
    """Say the answer, and write its figure. `whole`: all answers are one query matrix."""
    from fairtrial.puzzles.plain import plain_answer
    from fairtrial.puzzles.words import answer_lines, identity_lines

    plain: Any = [plain_answer(answer) for answer in answers] if whole else plain_answer(answers[0])
    if json:
        say_json(plain)
    else:
        say_keys(given, keys, seed)
        print(*(identity_lines(answers) if whole else answer_lines(answers[0])), sep="\n")
    if out is not None:
        from fairtrial.puzzles.draw import answer_picture, identity_picture

        picture = identity_picture(answers, kind) if whole else answer_picture(answers[0], kind)
        name = "identity" if whole else answers[0].ask.replace(" ", "-").replace(":", "=").replace("/", "-")
        write_out(out, name[:80], kind, picture, plain, json)


def say_keys(given: dict[str, Any], keys: Path | None, seed: int) -> None:
    table = given["keys"]
    if keys is None and len(table) <= 12 and table.shape[1] <= 8:
        print(f"Random keys (seed {seed}):")
        print_rows(table, [f"key {number}" for number in range(len(table))])
        print()


def print_rows(table: Any, names: list[str]) -> None:
    wide = max(map(len, names))
    for name, row in zip(names, table, strict=True):
        print(f"{name:<{wide}}  " + " ".join(f"{number:8.4f}" for number in row))


def say_json(plain: Any) -> None:
    from json import dumps

    print(dumps(plain))


def write_out(folder: Path, name: str, kind: str, picture: bytes, plain: Any, quiet: bool) -> None:
    from json import dumps

    from fairtrial.disk import disk_errors, write_bytes, write_text

    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / f"{name}.{kind}", picture)
    write_text(folder / f"{name}.json", dumps(plain, indent=1))
    rows = [each["query"] for each in plain] if isinstance(plain, list) else [plain["query"]]
    write_text(folder / "query.csv", "".join(",".join(map(repr, row)) + "\n" for row in rows))
    if not quiet:
        print(f"\nfigure: {folder / f'{name}.{kind}'}")
