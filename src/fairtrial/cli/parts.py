"""`fairtrial parts`, `audit` and `clean`."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.options import Json, Model, Settings, Task, With, takes_columns
from fairtrial.disk import write_bytes
from fairtrial.errors import BadInput, HelperDied

if TYPE_CHECKING:
    from fairtrial.analysis.catalogue import Entry

WIDTH = 80  # of what is shown of one part
PATIENCE_SECONDS = 15.0  # beyond twice its time limit, for an audit to end by itself
CLEANING_OPTIONS = {"repeated texts": "--duplicates", "texts under two labels": "--conflicts"}


def parts(
    name: Annotated[str | None, Argument(help="A part to show; without it, all are listed.")] = None,
    draw: Annotated[bool, Option("--draw", help="Plot what the part does.")] = False,
    out: Annotated[Path | None, Option(help="Also write the plot to a .png or .svg file.", metavar="FILE")] = None,
    heads: Annotated[int, Option(help="Heads in the plot.", min=1, max=16)] = 4,
    length: Annotated[int, Option(help="Positions in the plot.", min=1, max=100)] = 18,
    encoder: Annotated[bool, Option("--encoder", help="Plot it in an encoder (bidirectional), as all pools.")] = False,
    plugins: With = None,
    page: Annotated[Path | None, Option(help="Write a Markdown page of all parts, plotted.", metavar="FILE.md")] = None,
    json: Json = False,
) -> None:
    """List all parts, or show what one of them is and does."""
    drawing = draw or out is not None
    if drawing and name is None:
        raise BadInput("nothing to plot", "name a part: fairtrial parts alibi --draw")
    if page is not None and (name is not None or drawing):
        raise BadInput("--page is about all parts", "leave out the part's name, --draw and --out")
    kind = out.suffix[1:].lower() if out is not None else "png"
    if kind not in ("png", "svg"):
        raise BadInput("a plot is a .png or .svg file", path=out)
    if page is not None and page.suffix != ".md":
        raise BadInput("the page is a .md file", path=page)

    found = api.catalogue(name, plugins=plugins or [], page=page, quiet=json)
    entries, broken = found.entries, found.broken
    from fairtrial.analysis.catalogue import plot_part

    if json:
        print(dumps([asdict(entry) for entry in entries]))
    elif page is not None:
        print(f"page: {page}")
    elif name is None:
        print("\n".join(list_lines(entries, broken)))
    else:
        print("\n".join(entry_lines(entries[0])))
    if drawing:
        from fairtrial.report.plots import image, picture_lines

        causal = not (encoder or "pool" in entries[0].verbs)
        pictures = plot_part(entries[0].name, heads=heads, length=length, causal=causal)
        for picture in () if json else pictures:
            print("\n".join(["", *picture_lines(picture)]))
        if out is not None:
            write_bytes(out, image(pictures, entries[0].name, kind))
            if not json:
                print(f"plot: {out}")


def list_lines(entries: Sequence[Entry], broken: Mapping[str, str]) -> Iterator[str]:
    """Parts by what they change; on a terminal wrapped to its width, elsewhere one line each."""
    from fairtrial.analysis.catalogue import GROUPS

    name_width = max(map(len, [entry.name for entry in entries] + list(broken)))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    indent = " " * (name_width + 4)
    found: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
    for entry in entries:
        brackets = "; ".join(", ".join(words) for words in (options_of(entry), entry.claims) if words)
        line = entry.line + (f"  [{brackets}]" if brackets else "")
        found.setdefault(entry.changes, []).append((entry.name, line))
    found["cannot be used"] = list(broken.items())
    for group, rows in found.items():
        yield from [f"{group}:"] * bool(rows)
        for name, line in rows:
            yield from textwrap.wrap(f"  {name:<{name_width}}  {line}", width, subsequent_indent=indent)


def options_of(entry: Entry) -> list[str]:
    return [f"{name} = {default}" for name, default in entry.options.items()]


def entry_lines(entry: Entry) -> list[str]:
    facts = {
        "options": ", ".join(options_of(entry)) or "none", "": entry.options_help,
        "changes": entry.changes, "uses": ", ".join(entry.verbs) or "no verb",
        "claims": ", ".join(entry.claims) or "nothing", "file": entry.file,
    }  # fmt: skip
    lines = [
        line
        for word, text in facts.items()
        if text
        for line in textwrap.wrap(f"{word:<8} {text}", WIDTH, subsequent_indent=" " * 9, break_long_words=False)
    ]
    paragraphs = [textwrap.wrap(text, WIDTH, break_long_words=False) for text in entry.definition.split("\n\n")]
    return [entry.name, "", *(line for paragraph in paragraphs for line in [*paragraph, ""]), *lines]


@takes_columns
def audit(
    what: Annotated[
        str | None,
        Argument(help="A part (rope), a recipe file (TOML), or a record's folder.", metavar="PART|RECIPE.toml|RECORD"),
    ] = None,
    model: Model = None,
    bf16: Annotated[bool, Option("--bf16", help="Ask a network under autocast to bfloat16, too.")] = False,
    plugins: With = None,
    data: Annotated[
        str | None, Option(help="Audit a data set instead: copies, label leaks, vocabulary, drift.", metavar="PATH")
    ] = None,
    task: Task = None,
    recipe: Annotated[
        str | None, Option(help="With --data: whose split and vocabulary: 'default', 'course' or a TOML file.")
    ] = None,
    settings: Settings = None,
    time_limit: Annotated[
        str | None, Option(help="What is not reached in it is not tested.", metavar="TIME", show_default="5m")
    ] = None,
    json: Json = False,
    columns: Sequence[str] = (),
) -> None:
    """Does it cheat? Check that a variant sees no future, padding or other batch items.

    Its own claims (such as "by distance alone") are checked, too. Exits with 1 if a check fails.

    With --model: a network of your own, as a language model or as --task says; --set shape.layers=2.

    With --data: does a test set measure what it should? Exits with 1 if a check is red."""
    if data is not None:
        if what is not None or plugins or model or time_limit:
            raise BadInput("--data audits a data set: it takes no part, recipe, model, record or --time-limit")
        settings = [*columns, *(settings or [])]
        audited = api.audit_data(data, task=task, recipe=recipe, settings=settings, quiet=json)
        from fairtrial.report.text import audit_lines

        for number, facts in enumerate(audited.data.values()):
            print(dumps(facts) if json else "\n" * bool(number) + "\n".join(audit_lines(facts)), flush=True)
        sys.exit(int(audited.level == "red"))
    if (what is None) == (model is None):
        hint = "fairtrial audit rope, fairtrial audit RECORD, fairtrial audit --model FILE.py:build, or --data FOLDER"
        raise BadInput("nothing to audit was named" if what is None else "--model is what is audited", hint)
    if recipe or columns or (model is None and (task or settings)):
        raise BadInput("--task, --recipe, --set and columns need --data; --task and --set fit --model, too")
    from fairtrial.finding import as_passport, summary, table_lines

    with ending_hung(time_limit := time_limit or "5m"):
        found = api.audit(
            what, model=model, task=task, settings=settings or [], plugins=plugins or [], bf16=bf16,
            time_limit=time_limit, quiet=json,
        )  # fmt: skip
    name = what or found.what
    if json:
        print(dumps(as_passport(name, found.findings)))
    else:
        print("\n".join([f"passport of {name}\n", *table_lines(found.findings), summary(found.findings)]))
        if what is not None and os.path.isdir(what):
            print(f"written to {Path(what) / 'passport.json'}")
    sys.exit(int(not found.passed))


@contextmanager
def ending_hung(time_limit: str) -> Iterator[None]:
    """An audit ends in its time, unless the network hangs in code of another language, which Python cannot interrupt:
    then this process ends, and those that it started end with it."""
    from fairtrial.formatting import format_time, read_time

    limit = read_time(time_limit)
    seconds = 2 * limit + PATIENCE_SECONDS  # a busy machine is no finding about the network

    def end() -> None:
        what = f"the audit did not end in twice its {format_time(limit)}"
        why = "the network hangs where Python cannot interrupt it, or this machine is very busy"
        hint = "nothing was found about it; with a larger --time-limit it may end"
        os.write(2, f"\nfairtrial: {what}: {why}\n  {hint}\n".encode())
        os._exit(HelperDied.exit_code)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@takes_columns
def clean(
    data: Annotated[str, Option("--data", help="The data set; it is not changed.", metavar="IN")],
    out: Annotated[Path, Option("--out", help="A new folder for the cleaned copy.", metavar="OUT")],
    drop: Annotated[
        str,
        Option(
            help="'train': remove copies from the training files, so that the test sets and their scores stay"
            " comparable; 'test': remove the copied items from the test sets, so that training stays the same."
        ),
    ] = "train",
    near: Annotated[bool, Option("--near/--exact", help="Remove near duplicates, too, or exact copies only.")] = True,
    across: Annotated[
        bool,
        Option("--across", help="Format 'course': also between one task's training set and the other's tests."),
    ] = False,
    duplicates: Annotated[
        bool, Option("--duplicates", help="Also drop repeated texts within a training file; the first stays.")
    ] = False,
    conflicts: Annotated[bool, Option("--conflicts", help="Also drop training texts with two labels.")] = False,
    json: Json = False,
    columns: Sequence[str] = (),
) -> None:
    """Write a copy of a data set without test items that also occur in the training set.

    dropped.tsv in the copy lists what was removed."""
    result = api.clean(
        data, out, drop=drop, near=near, across=across, duplicates=duplicates, conflicts=conflicts, settings=columns,
        quiet=json,
    )  # fmt: skip
    if json:
        print(dumps(result))
        return
    for note in result["notes"]:
        print(f"note: {note}")
    for name, counts in result["files"].items():
        why = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items()) or "nothing dropped"
        gone = "" if counts["kept"] or not counts["documents"] else ", so it is left out"
        print(f"{name}: {counts['kept']:,} of {counts['documents']:,} documents kept ({why}){gone}")
    for name, count in result["left"].items():
        print(f"left in place: {count:,} {name} (drop them with {CLEANING_OPTIONS[name]})")
    print(f"cleaned copy: {out}  (see: fairtrial audit --data {out})")


def cache(
    clear: Annotated[bool, Option("--clear", help="Remove everything; it is made again when it is needed.")] = False,
    json: Json = False,
) -> None:
    """Show what was computed from large data sets and kept, or remove it.

    The folder is ~/.cache/fairtrial, or what FAIRTRIAL_CACHE names ('off': nothing is kept). It stays below 4 GB: what
    was not used for longest goes first."""
    before, found = api.cache(), api.cache(clear)
    if json:
        sizes = {"bytes": before.bytes, "most_bytes": found.most_bytes, "freed": found.freed or 0}
        print(dumps({"folder": found.folder and str(found.folder), **sizes, "files": before.files}))
        return
    for each in found.files:
        print(f"{each['bytes'] / 1e6:10,.1f} MB  {each['what']}")
    print(found.describe().sentences[0])
