"""`fairtrial audit`: the passport of a part, a recipe or a trained record; with `--data`, the audit of a data set."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtrial.cli.baseline import Settings, Task, recipes_for, tell_progress
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.passport.finding import Finding
    from fairtrial.record import Record


def audit(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A part ('rope'), a recipe file (TOML), or the folder of a record.",
            metavar="PART|RECIPE.toml|RECORD",
            show_default=False,
        ),
    ] = None,
    strangers: With = None,
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
        if what is not None or strangers:
            raise BadInput("--data audits a data set: no part, recipe or record beside it")
        sys.exit(audit_source(data, task, recipe, settings or [], json))
    if what is None:
        hint = "fairtrial audit rope, fairtrial audit RECORD, or fairtrial audit --data FOLDER"
        raise BadInput("nothing to audit is named", hint)
    if task or recipe or settings:
        raise BadInput("--task, --recipe and --set are for --data")
    from fairtrial.strangers import load_files, load_installed

    load_files(strangers or [])
    record = None
    if os.path.isdir(what):
        from fairtrial.record import Record

        record = Record.open(Path(what))
        findings = audit_record(record)
    else:
        from fairtrial.passport.run import audit_plans
        from fairtrial.passport.subject import plan_of_recipe, plans_of_part

        if what.endswith(".toml") or os.path.isfile(what):
            from fairtrial.recipe_file import load_recipe

            loaded = load_recipe(Path(what))
            load_installed(choice.name for choice in loaded.parts)
            findings = audit_plans([plan_of_recipe(loaded)])
        else:
            load_installed([what])
            findings = audit_plans(plans_of_part(what))
    from fairtrial.passport.finding import as_passport

    passport = as_passport(what, findings)
    if json:
        from json import dumps

        print(dumps(passport))
    else:
        from fairtrial.passport.text import table_lines

        print(f"passport of {what}\n")
        for line in table_lines(findings):
            print(line)
        if record is not None:
            print(f"kept in {record.folder / 'passport.json'}")
    if not passport["passed"]:
        sys.exit(1)


def audit_source(data: str, task: str | None, recipe: str | None, settings: list[str], json: bool) -> int:
    """The audit of a data set, for each task that it is for; the exit code."""
    from json import dumps

    from fairtrial.report.data_text import audit_lines
    from fairtrial.text.contamination import audit_data

    levels = []
    for number, chosen in enumerate(recipes_for(data, task, recipe, settings, course="default")):
        found = audit_data(chosen, 0, tell=(lambda what: None) if json else tell_progress)
        levels.append(found["level"])
        if json:
            print(dumps(found), flush=True)
            continue
        tell_progress("")
        print("\n" * bool(number) + "\n".join(audit_lines(found)), flush=True)
    return int("red" in levels)


def audit_record(record: Record) -> list[Finding]:
    """Audit a record's network and keep the passport in it."""
    from fairtrial.strangers import load_installed, met, recorded_in, refuse_changed, refuse_missing

    with record.hold():  # refused as busy where it is being written, before any work is done
        record.result  # noqa: B018  (refuses a record that is not finished)
        load_installed(choice.name for choice in record.recipe.parts)
        recorded = recorded_in(record.trial)
        refuse_changed(recorded, met(), record.folder)
        refuse_missing(recorded, met(), record.folder)
        from fairtrial.passport.finding import as_passport
        from fairtrial.passport.run import audit_record

        findings = audit_record(record)
        record.write_json("passport.json", as_passport(record.folder.name, findings))
        return findings
