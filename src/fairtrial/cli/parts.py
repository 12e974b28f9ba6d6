"""`fairtrial parts`: list the parts, show one, draw one, write the page about all.

`fairtrial audit`: the passport of a part, a recipe or a trained record; with `--data`, the audit of a data set.

`fairtrial clean`: a copy of a data set without its contamination.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtrial.cli.judge import Settings, Task, recipes_for, tell_progress
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.analysis.catalogue import Entry
    from fairtrial.finding import Finding
    from fairtrial.record import Record


def parts(
    name: Annotated[str | None, typer.Argument(help="A part to show; without it, all are listed.")] = None,
    draw: Annotated[bool, typer.Option("--draw", help="Draw what the part does.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the drawing to a .png or .svg file, too.", metavar="FILE")
    ] = None,
    heads: Annotated[int, typer.Option(help="Heads in the drawing.", min=1, max=16)] = 4,
    length: Annotated[int, typer.Option(help="Positions in the drawing.", min=1, max=100)] = 24,
    encoder: Annotated[
        bool, typer.Option("--encoder", help="Draw it in an encoder, which sees to both sides; pools always are.")
    ] = False,
    plugins: With = None,
    page: Annotated[
        Path | None, typer.Option(help="Write a Markdown page about all parts, with drawings.", metavar="FILE.md")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="What the parts say of themselves, for machines.")] = False,
) -> None:
    """List all parts, or show what one of them is and does."""
    from fairtrial.errors import BadInput

    drawing = draw or out is not None
    if drawing and name is None:
        raise BadInput("nothing to draw", "name a part: fairtrial parts alibi --draw")
    kind = out.suffix[1:].lower() if out is not None else "png"
    if kind not in ("png", "svg"):
        raise BadInput("a drawing is a .png or .svg file", path=out)
    if page is not None and page.suffix != ".md":
        raise BadInput("the page is a .md file", path=page)

    from fairtrial.analysis.catalogue import catalogue, describe
    from fairtrial.plugins import load_all_installed, load_files, load_installed

    load_files(plugins or [])
    if page is not None:
        from fairtrial.analysis.catalogue import write_page

        write_page(page, catalogue(), print)
        print(f"page: {page}")
        return
    broken = load_all_installed() if name is None else {}
    if name is not None:
        load_installed([name])
    shown = catalogue() if name is None else [describe(name)]
    if json:
        import json as writer
        from dataclasses import asdict

        print(writer.dumps([asdict(entry) for entry in shown]))
    elif name is None:
        wide = max(len(entry.name) for entry in shown)
        for entry in shown:
            print(f"{entry.name:<{wide}}  {line_of(entry)}")
        for each, why in broken.items():
            print(f"{each:<{wide}}  (cannot be used: {why})")
    else:
        for line in lines_of(shown[0]):
            print(line)
    if drawing:
        draw_part(shown[0], out, kind, heads, length, encoder, quiet=json)


def line_of(entry: Entry) -> str:
    facts = [f"{name} = {default}" for name, default in entry.options.items()]
    brackets = "; ".join(", ".join(words) for words in (facts, entry.claims) if words)
    return entry.line + (f"  [{brackets}]" if brackets else "")


def lines_of(entry: Entry) -> list[str]:
    options = [f"{name} = {default}" for name, default in entry.options.items()]
    facts = {
        "options": ", ".join(options) or "none",
        "": entry.options_help,
        "uses": ", ".join(entry.verbs) or "no verb",
        "claims": ", ".join(entry.claims) or "nothing",
        "file": entry.file,
    }
    told = [f"{word:<8} {text}" for word, text in facts.items() if text]
    return [entry.name, "", *entry.definition.splitlines(), "", *told]


def draw_part(entry: Entry, out: Path | None, kind: str, heads: int, length: int, encoder: bool, quiet: bool) -> None:
    from fairtrial.analysis.catalogue import portray
    from fairtrial.disk import write_bytes
    from fairtrial.report.plots import image, picture_lines

    pictures = portray(entry.name, heads=heads, length=length, causal=not (encoder or "pool" in entry.verbs))
    for picture in () if quiet else pictures:
        print()
        for line in picture_lines(picture):
            print(line)
    if out is not None:
        write_bytes(out, image(pictures, entry.name, kind))
        if not quiet:
            print(f"drawing: {out}")


def audit(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A part ('rope'), a recipe file (TOML), or the folder of a record.",
            metavar="PART|RECIPE.toml|RECORD",
            show_default=False,
        ),
    ] = None,
    plugins: With = None,
    data: Annotated[
        str | None,
        typer.Option(help="Audit a data set instead: copies, labels, vocabulary, drift.", metavar="PATH"),
    ] = None,
    task: Task = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="With --data: whose split and vocabulary: 'default', 'course' or a TOML file."),
    ] = None,
    settings: Settings = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the findings as JSON, for machines; with --data one object for each task."),
    ] = False,
) -> None:
    """Does it cheat? Check that a variant sees no future, no padding, no batch mates, and keeps its own claims.
    Exits 1 where a check fails.

    With --data: does a test set test what it should? Exits 1 where a check is red."""
    from fairtrial.errors import BadInput

    if data is not None:
        if what is not None or plugins:
            raise BadInput("--data audits a data set: no part, recipe or record beside it")
        sys.exit(audit_source(data, task, recipe, settings or [], json))
    if what is None:
        hint = "fairtrial audit rope, fairtrial audit RECORD, or fairtrial audit --data FOLDER"
        raise BadInput("nothing to audit is named", hint)
    if task or recipe or settings:
        raise BadInput("--task, --recipe and --set are for --data")
    from fairtrial.plugins import load_files, load_installed

    load_files(plugins or [])
    record = None
    if os.path.isdir(what):
        from fairtrial.record import Record

        record = Record.open(Path(what))
        findings = audit_record(record)
    else:
        from fairtrial.audit.run import audit_plans
        from fairtrial.audit.subject import plan_of_recipe, plans_of_part

        if what.endswith(".toml") or os.path.isfile(what):
            from fairtrial.recipe import load_recipe

            loaded = load_recipe(Path(what))
            load_installed(choice.name for choice in loaded.parts)
            findings = audit_plans([plan_of_recipe(loaded)])
        else:
            load_installed([what])
            findings = audit_plans(plans_of_part(what))
    from fairtrial.finding import as_passport, summary, table_lines

    passport = as_passport(what, findings)
    if json:
        from json import dumps

        print(dumps(passport))
    else:
        print(f"passport of {what}\n")
        print("\n".join([*table_lines(findings), summary(findings)]))
        if record is not None:
            print(f"kept in {record.folder / 'passport.json'}")
    if not passport["passed"]:
        sys.exit(1)


def audit_source(data: str, task: str | None, recipe: str | None, settings: list[str], json: bool) -> int:
    """The audit of a data set, for each task that it is for; the exit code."""
    from json import dumps

    from fairtrial.data.audit import audit_data
    from fairtrial.report.text import audit_lines

    levels = []
    for number, chosen in enumerate(recipes_for(data, task, recipe, settings, course="default")):
        found = audit_data(chosen, 0, on_progress=(lambda what: None) if json else tell_progress)
        levels.append(found["level"])
        if json:
            print(dumps(found), flush=True)
            continue
        tell_progress("")
        print("\n" * bool(number) + "\n".join(audit_lines(found)), flush=True)
    return int("red" in levels)


def audit_record(record: Record) -> list[Finding]:
    """Audit a record's network and keep the passport in it."""
    from fairtrial.plugins import require_plugins

    with record.hold():  # refused as busy where it is being written, before any work is done
        record.result  # noqa: B018  (refuses a record that is not finished)
        require_plugins(record)
        from fairtrial.audit.run import audit_record
        from fairtrial.finding import as_passport

        findings = audit_record(record)
        record.write_json("passport.json", as_passport(record.folder.name, findings))
        return findings


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

    from fairtrial.data.cleaning import CleanOptions, clean_data
    from fairtrial.recipe import one_of

    one_of("--drop", drop, ("train", "test"))
    options = CleanOptions(drop=drop, near=near, across=across, duplicates=duplicates, conflicts=conflicts)
    told = clean_data(data, out, options, on_progress=(lambda what: None) if json else tell_progress)
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
