"""`fairtrial clean`: a copy of a data set without its contamination."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli.baseline import tell_progress

OPTIONS = {"repeated texts": "--duplicates", "texts under two labels": "--conflicts"}


def clean(
    data: Annotated[str, typer.Option("--data", help="The data set; it is left as it is.", metavar="IN")],
    out: Annotated[Path, typer.Option("--out", help="A new folder for the cleaned copy.", metavar="OUT")],
    drop: Annotated[
        str,
        typer.Option(
            help="'train': take copies out of the training files, so that test sets stay as they are and scores can be"
            " compared; 'test': take the copied items out of the test sets, so that training stays as it is."
        ),
    ] = "train",
    near: Annotated[bool, typer.Option("--near/--exact", help="Near copies, too, or exact ones only.")] = True,
    across: Annotated[
        bool,
        typer.Option("--across", help="The course's folder: also between one task's training and the other's tests."),
    ] = False,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Also drop texts that repeat inside a training file; the first stays.")
    ] = False,
    conflicts: Annotated[
        bool, typer.Option("--conflicts", help="Also drop training texts that stand under two labels.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="What was dropped, as one JSON object.")] = False,
) -> None:
    """Write a cleaned copy of a data set: no test item stands in training. dropped.tsv lists what is not in it."""
    from json import dumps

    from fairtrial.recipe import one_of
    from fairtrial.text.cleaning import Wish, clean_data

    one_of("--drop", drop, ("train", "test"))
    wish = Wish(drop=drop, near=near, across=across, duplicates=duplicates, conflicts=conflicts)
    told = clean_data(data, out, wish, tell=(lambda what: None) if json else tell_progress)
    if json:
        print(dumps(told))
        return
    tell_progress("")
    for name, counts in told["files"].items():
        why = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items()) or "nothing dropped"
        print(f"{name}: {counts['kept']:,} of {counts['documents']:,} documents kept ({why})")
    for name, count in told["left"].items():
        print(f"left in place: {count:,} {name} (drop them with {OPTIONS[name]})")
    print(f"cleaned copy: {out}  (see: fairtrial audit --data {out})")
