"""`fairtrial parts`: list the parts, show one, draw one, write the page about all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.look.catalogue import Entry


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
    strangers: With = None,
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

    from fairtrial.look.catalogue import catalogue, describe
    from fairtrial.strangers import load_all_installed, load_files, load_installed

    load_files(strangers or [])
    if page is not None:
        from fairtrial.look.parts_page import write_page

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
    from fairtrial.disk import write_bytes
    from fairtrial.look.draw import image, picture_lines
    from fairtrial.look.portray import portray

    pictures = portray(entry.name, heads=heads, length=length, causal=not (encoder or "pool" in entry.verbs))
    for picture in () if quiet else pictures:
        print()
        for line in picture_lines(picture):
            print(line)
    if out is not None:
        write_bytes(out, image(pictures, entry.name, kind))
        if not quiet:
            print(f"drawing: {out}")
