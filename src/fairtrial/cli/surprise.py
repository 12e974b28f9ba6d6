"""`fairtrial surprise`: how surprised a language model is by each word."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.texts import TextFile, Texts, bar, gather, notice
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.look.surprise import Surprise, Totals

MOST_SHOWN = 20  # texts that are shown word by word; of more, a line each

SAMPLES = {
    "normal": "Thank you all for being here tonight, and God bless the United States of America.",
    "weird": "Yesterday the quiet ladder sang blue arithmetic to the river",
    "long": (
        "When the old bridge was closed in the spring, the people of the town, who had crossed it every day to reach"
        " their work, their schools and their church, and who had never asked who built it or what it would cost to"
        " keep it standing, found that they had to walk an hour along the river to the next one, and it was on that"
        " long walk, with neighbors they had not spoken to in years, that they first began to talk about what they"
        " owed to those who had come before them and to those who would follow."
    ),
}  # fmt: skip


def surprise(
    record: Annotated[Path, typer.Argument(help="The record of a trained language model.")],
    texts: Texts = None,
    file: TextFile = None,
    samples: Annotated[
        bool, typer.Option("--samples", help="Three sentences that come along: a normal, a weird and a long one.")
    ] = False,
    table: Annotated[
        bool | None,
        typer.Option("--table/--no-table", help="A row for each token.", show_default="with a single sentence"),
    ] = None,
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each sentence, and one for the set.")] = False,
) -> None:
    """Show how surprised a language model is by each word of a sentence, and the perplexity of sentences."""
    from fairtrial.record import Record

    named: list[tuple[str, str]] = list(SAMPLES.items()) if samples else []
    if texts or file is not None or not samples:
        named += [("", text) for text in gather(texts, file)]
    opened = Record.open(record)
    from fairtrial.kept import kept_language_model
    from fairtrial.look import surprise as look
    from fairtrial.look.prose import notice_of, read_prose
    from fairtrial.strangers import load_files
    from fairtrial.trial import use_machine

    load_files(strangers or [])
    with use_machine(1):
        kept, network = kept_language_model(opened)
        tokenizer, length = kept.tokenizer, kept.recipe.shape.length
        share = kept.recipe.scoring.full_context
        prose = read_prose(tokenizer, [text for _, text in named])
        windows = look.count_windows(prose, marks=tokenizer.start is not None, length=length, full_context=share)
        with bar("reading", windows) as tell:
            found = look.surprise(network, tokenizer, prose, length=length, full_context=share, tell=tell)
    notices = [notice_of(tokenizer, [word for each in prose for word in each.unknown])]
    longest = max(len(each.ids) for each in prose)
    if longest > length:
        notices.append(f"the model reads {length} tokens at once: a longer text is read in sliding windows")
    totals = look.Totals.of(found)
    if json:
        print_json(named, found, totals, [text for text in notices if text], look.first_token_note(tokenizer))
        return
    for text in notices:
        notice(text)
    shown = len(found) <= MOST_SHOWN
    for (name, _), each in zip(named, found, strict=True):
        print_text(name, each, table if table is not None else len(found) == 1, shown)
    if len(found) > 1:
        print_totals(totals)
    print(f"Perplexity is exp(nats per token); {look.first_token_note(tokenizer)}.")


def print_text(name: str, found: Surprise, table: bool, shown: bool) -> None:
    from fairtrial.report.record_text import plain
    from fairtrial.report.shaded_text import legend, plain_shaded, shaded

    told = "nothing to count" if found.perplexity is None else f"perplexity {found.perplexity:,.1f}"
    head = f"{name + ': ' if name else ''}{told}, {found.counted} tokens counted, {found.nats:.2f} nats"
    if not shown and not table:
        print(f"{told:<24} {found.counted:>5} tokens  {name or plain(found.text)[:70]}")
        return
    print(head)
    pieces = [(plain(token.written or f" {token.word}"), token.nats) for token in found.tokens]
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False)
        console.print(shaded(pieces))
        console.print(legend())
    else:
        print(plain_shaded(pieces))
    if table:
        print()
        for line in table_lines(found):
            print(line)
    print()


def table_lines(found: Surprise) -> list[str]:
    from fairtrial.report.record_text import plain

    wide = max(5, *(len(plain(token.word)) for token in found.tokens))
    lines = [f"{'token':<{wide}}  {'nats':>7}  {'probability':>11}  {'rank':>6}  best guess"]
    for token in found.tokens:
        word = plain(token.word) + " " * (wide - len(plain(token.word)))
        if token.nats is None or token.guess is None or token.guess_share is None:
            lines.append(f"{word}  {'-':>7}  {'-':>11}  {'-':>6}  nothing before it")
            continue
        from math import exp

        written = f"  (unknown: {plain(token.written.strip())})" if token.unknown else ""
        guess = f"{plain(token.guess)} {token.guess_share:.1%}"
        lines.append(f"{word}  {token.nats:>7.3f}  {percent(exp(-token.nats)):>11}  {token.rank:>6,}  {guess}{written}")
    return lines


def percent(share: float) -> str:
    return f"{share:.3%}" if share >= 0.00001 else "< 0.001%"


def print_totals(totals: Totals) -> None:
    def told(value: float | None) -> str:
        return "-" if value is None else f"{value:,.1f}"

    print(f"{totals.sentences} sentences, {totals.tokens:,} tokens counted")
    print(f"  token-weighted perplexity          {told(totals.token_weighted):>12}  exp(all nats / all tokens)")
    print(f"  mean of the sentences' perplexities {told(totals.mean_of_sentences):>11}  each sentence weighs the same")


def print_json(
    named: list[tuple[str, str]], found: list[Surprise], totals: Totals, notices: list[str], counting: str
) -> None:
    import json
    from dataclasses import asdict

    for (name, _), each in zip(named, found, strict=True):
        row: dict[str, Any] = {"name": name} if name else {}
        row |= {"text": each.text, "perplexity": each.perplexity, "nats": each.nats, "counted": each.counted}
        print(json.dumps(row | {"tokens": [asdict(token) for token in each.tokens]}))
    print(json.dumps({"set": asdict(totals), "notices": notices, "counting": counting}))
