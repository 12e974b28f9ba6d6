"""`fairtrial predict`: what a classifier says of a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairtrial.cli.texts import TextFile, Texts, bar, gather, notice
from fairtrial.cli.train import With

if TYPE_CHECKING:
    import numpy as np

    from fairtrial.look.predict import Prediction

MOST_SHOWN = 20  # texts whose classes are shown one by one; of more, a line each

Names = Annotated[
    str | None,
    typer.Option("--names", help="Names to show instead of the labels, in their order: 'Obama,W. Bush,H. Bush'."),
]


def predict(
    record: Annotated[Path, typer.Argument(help="The record of a trained classifier.")],
    texts: Texts = None,
    file: TextFile = None,
    names: Names = None,
    words: Annotated[
        bool, typer.Option("--words", help="Show how each word speaks for the answer: gradient x input, leave-one-out.")
    ] = False,
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each text.")] = False,
) -> None:
    """Show the probability of each class for a sentence, or for each sentence of a file."""
    from fairtrial.record import Record

    given = gather(texts, file)
    opened = Record.open(record)
    from fairtrial.kept import kept_classifier
    from fairtrial.look.predict import predict as ask
    from fairtrial.look.prose import notice_of, read_prose
    from fairtrial.look.telling import gradient_times_input, leave_one_out
    from fairtrial.strangers import load_files
    from fairtrial.trial import use_machine

    load_files(strangers or [])
    told: list[dict[str, np.ndarray]] = []
    with use_machine(1):
        kept, network = kept_classifier(opened)
        tokenizer, length = kept.tokenizer, kept.recipe.shape.length
        labels = shown_names(kept.labels, names)
        prose = read_prose(tokenizer, given)
        with bar("reading", len(prose)) as tell:
            found = ask(network, tokenizer, prose, length=length, tell=tell)
        if words:
            rows, answers = [each.ids for each in found], [each.guess for each in found]
            nothing = tokenizer.unknown if tokenizer.unknown is not None else tokenizer.pad
            slopes = gradient_times_input(network, rows, answers, tokenizer.pad)
            with bar("leaving one out", len(rows)) as tell:
                falls = leave_one_out(network, rows, answers, tokenizer.pad, nothing, tell)
            told = [
                {"gradient_times_input": slope, "leave_one_out": fall}
                for slope, fall in zip(slopes, falls, strict=True)
            ]
    spoken = [tokenizer.words(each.ids) for each in found] if words else []
    if json:
        print_json(found, labels, spoken, told)
        return
    notice(notice_of(tokenizer, [word for each in prose for word in each.unknown]))
    cut = [number for number, each in enumerate(found, 1) if each.cut]
    if cut:
        which = "the text" if len(found) == 1 else f"text {', '.join(map(str, cut[:8]))}{', ...' * (len(cut) > 8)}"
        notice(f"the model reads {length} tokens: of {which} only the beginning was read")
    for number, each in enumerate(found):
        if len(found) > MOST_SHOWN and not words:
            print_line(each, labels)
        else:
            print_text(each, labels, len(found) > 1)
        if words:
            print_words(spoken[number], told[number], labels[each.guess])


def shown_names(labels: tuple[str, ...], names: str | None) -> tuple[str, ...]:
    from fairtrial.errors import BadInput

    if names is None:
        return labels
    found = tuple(name.strip() for name in names.split(","))
    if len(found) != len(labels) or not all(found):
        raise BadInput(
            f"--names gives {len(found)} names for {len(labels)} labels", f"name them in order: {', '.join(labels)}"
        )
    if len(set(found)) < len(found):
        raise BadInput(f"--names gives a name twice: {names}", "two classes cannot be told apart by one name")
    return found


def print_line(found: Prediction, labels: tuple[str, ...]) -> None:
    from fairtrial.report.record_text import plain

    print(f"{plain(labels[found.guess])}  {found.shares[found.guess]:6.1%}  {plain(found.text)[:80]}")


def print_text(found: Prediction, labels: tuple[str, ...], titled: bool) -> None:
    from fairtrial.report.record_text import plain

    if titled:
        print(plain(found.text))
    wide = max(len(label) for label in labels)
    for number in sorted(range(len(labels)), key=lambda number: -found.shares[number]):
        share = found.shares[number]
        print(f"  {plain(labels[number]):<{wide}}  {share:6.1%}  {'█' * round(30 * share)}".rstrip())


def print_words(words: list[str], told: dict[str, np.ndarray], answer: str) -> None:
    from fairtrial.report.record_text import plain

    wide = max(4, *(len(plain(word)) for word in words))
    print(f"  how each word speaks for {plain(answer)!r} (log-odds, nats):")
    print(f"  {'word':<{wide}}  {'gradient x input':>16}  {'leave-one-out':>13}")
    for word, slope, fall in zip(words, told["gradient_times_input"], told["leave_one_out"], strict=True):
        print(f"  {plain(word):<{wide}}  {slope:>+16.3f}  {fall:>+13.3f}")


def print_json(
    found: list[Prediction], labels: tuple[str, ...], words: list[list[str]], told: list[dict[str, np.ndarray]]
) -> None:
    import json

    for number, each in enumerate(found):
        row = {
            "text": each.text,
            "guess": labels[each.guess],
            "probabilities": dict(zip(labels, each.shares, strict=True)),
            "unknown": list(each.unknown),
            "cut": each.cut,
        }
        if words:
            row |= {"words": words[number], **{way: values.tolist() for way, values in told[number].items()}}
        print(json.dumps(row))
