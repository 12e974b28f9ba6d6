"""`fairtrial audit`, `parts` and `fairtrial data audit`, `baseline`, `clean`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from json import dumps
from pathlib import Path
from threading import Timer
from typing import Annotated

from typer import Option

from fairtrial import api
from fairtrial.cli.declare import COLUMNS, Call, command
from fairtrial.cli.judge import Json
from fairtrial.errors import BadInput, HelperDied
from fairtrial.typed import unstructure

PATIENCE_SECONDS = 15.0  # beyond twice its time limit, for an audit to end by itself


@command("audit", api.audit, "Judge", "audit alibi", arguments=["target"])
def audit(call: Call, data: Annotated[str | None, Option("--data", hidden=True)] = None, json: Json = False) -> None:
    """Exits with 1 if a check fails. To audit a data set, see `fairtrial data audit`."""
    if data is not None:
        raise BadInput("this audits a network, not data", f"to audit a data set: fairtrial data audit --data {data}")
    target, model, scorer = (call.given.get(name) for name in ("target", "model", "scorer"))
    if sum(each is not None for each in (target, model, scorer)) != 1:
        hint = "fairtrial audit rope, audit RECORD, audit --model FILE.py:build, or audit --scorer FILE.py:score"
        named = any(each is not None for each in (target, model, scorer))
        raise BadInput("one thing is audited at a time" if named else "nothing to audit was named", hint)
    if model is None and ("task" in call.given or call.fields):
        raise BadInput("--task and --set apply to --model only")
    from fairtrial.finding import Passport

    with ending_hung(call.given["time_limit"]):
        audited = call(quiet=json)
    name = target or audited.what
    if json:
        print(dumps(unstructure(Passport.of(name, audited.findings))))
    else:
        print(f"leak audit of {audited}")
        if target is not None and os.path.isdir(target):
            print(f"written to {Path(target) / 'passport.json'}")
    sys.exit(int(not audited.passed))


@contextmanager
def ending_hung(time_limit: str) -> Iterator[None]:
    """An audit ends in its time, unless the network hangs in code of another language, which Python cannot interrupt:
    then this process ends, and those that it started end with it."""
    from fairtrial.formatting import format_time, read_time

    limit = read_time(time_limit)
    seconds = 2 * limit + PATIENCE_SECONDS  # a busy machine is no finding about the network

    def end() -> None:
        message = f"the audit did not end in twice its {format_time(limit)}"
        why = "the network hangs where Python cannot interrupt it, or this machine is very busy"
        hint = "nothing is known about the network; with a larger --time-limit it may end"
        os.write(2, f"\nfairtrial: {message}: {why}\n  {hint}\n".encode())
        os._exit(HelperDied.exit_code)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@command("data audit", api.audit_data, "Data", "data audit --data reviews.tsv", fields=COLUMNS)
def audit_data(call: Call, json: Json = False) -> None:
    """Exits with 1 if a check is red."""
    audited = call(quiet=json)
    print("\n".join(map(dumps, audited.to_json()["data"].values())) if json else audited)
    sys.exit(int(audited.level == "red"))


@command(
    "data baseline", api.baseline, "Data", "data baseline --data reviews.tsv", fields=COLUMNS, deprecated=["baseline"]
)
def baseline(call: Call, json: Json = False) -> None:
    scored = call(quiet=json)
    print("\n".join(map(dumps, scored.to_json()["tasks"].values())) if json else scored)


@command(
    "data clean",
    api.clean,
    "Data",
    "data clean --data reviews/ --out reviews-clean",
    fields=COLUMNS,
    deprecated=["clean"],
)
def clean(call: Call, json: Json = False) -> None:
    result = call(quiet=json)
    if json:
        print(dumps(unstructure(result)))
        return
    for note in result.notes:
        print(f"note: {note}")
    for name, file in result.files.items():
        why = ", ".join(f"{count:,} {reason}" for reason, count in file.dropped.items()) or "nothing dropped"
        gone = "" if file.kept or not file.documents else ", so it is left out"
        print(f"{name}: {file.kept:,} of {file.documents:,} documents kept ({why}){gone}")
    print(f"cleaned copy: {result.out}  (see: fairtrial data audit --data {result.out})")


@command("parts", api.catalogue, "Look inside", "parts alibi --figure alibi.svg", arguments=["name"])
def parts(
    call: Call,
    figure: Annotated[Path | None, Option(help="Plot what the part does (.png, .svg, .pdf).", metavar="FILE")] = None,
    heads: Annotated[int, Option(help="Heads in the plot.", min=1, max=16)] = 4,
    length: Annotated[int, Option(help="Positions in the plot.", min=1, max=100)] = 18,
    encoder: Annotated[bool, Option("--encoder", help="Plot it in an encoder (bidirectional), as all pools.")] = False,
    json: Json = False,
) -> None:
    if figure is not None and "name" not in call.given:
        raise BadInput("nothing to plot", "name a part: fairtrial parts alibi --figure alibi.svg")
    listed = call()
    print(dumps([asdict(entry) for entry in listed.entries]) if json else listed)
    if figure is not None:
        from fairtrial.report.plots import write_drawing

        write_drawing(figure, lambda: listed.plot(heads=heads, length=length, encoder=encoder))
        if not json:
            print(f"figure: {figure}")
