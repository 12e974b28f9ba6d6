"""`fairtrial inspect predict`, `surprisal` and `generate`: what a trained model makes of a text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from json import dumps
from math import exp
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from fairtrial import api
from fairtrial.cli.declare import Call, command
from fairtrial.cli.inside import RecordFolder
from fairtrial.cli.judge import Json
from fairtrial.cli.options import TextFile, With, check_utf8, drawing, notice, read_texts
from fairtrial.run import Run

if TYPE_CHECKING:
    from fairtrial.inspection.predictions import Attribution, Prediction
    from fairtrial.inspection.surprisal import TextSurprisal, Totals

MAX_SHOWN = 20  # texts that are shown in full; of more, one line each


@command(
    "inspect predict",
    Run.predict,
    "Look inside",
    'inspect predict runs/my-run "That is in America\'s interest." --words',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["predict"],
)
def predict(call: Call, record: RecordFolder, file: TextFile = None, plugins: With = None, json: Json = False) -> None:
    given = read_texts(call.given.pop("texts", None), file)
    run = api.load(record, "classify", plugins=plugins or [])
    names = call.given.pop("names", None) or (run.labels if json else None)  # machines compare answers with labels
    found = call(run, given, names=names)
    attributions: Sequence[Attribution | None] = found.attributions or [None] * len(given)
    for text in () if json else found.notices:
        notice(text)
    for prediction, attribution in zip(found.predictions, attributions, strict=True):
        guess = found.labels[prediction.guess]
        if json:
            print_prediction_json(prediction, found.labels, attribution)
        elif len(given) > MAX_SHOWN and attribution is None:
            print_plain(f"{guess}  {share_text(prediction.shares[prediction.guess])}  {prediction.text[:80]}")
        else:
            print_plain(*([prediction.text] if len(given) > 1 else []), *prediction_lines(prediction, found.labels))
            if attribution is not None:
                print_plain(*attribution_lines(attribution, guess))


def print_plain(*lines: str) -> None:
    """Without control characters: a user's text must not command the terminal."""
    from fairtrial.report.render import plain

    print("\n".join(map(plain, lines)))


def prediction_lines(found: Prediction, labels: tuple[str, ...]) -> list[str]:
    width = max(len(label) for label in labels)
    shares = sorted(zip(labels, found.shares, strict=True), key=lambda pair: -pair[1])
    return [f"  {label:<{width}}  {share_text(share)}  {'█' * round(30 * share)}".rstrip() for label, share in shares]


def share_text(share: float) -> str:
    """` 12.3%`; what is not certain is not called 100% or 0%."""
    text = ">99.9%" if 0.9995 <= share < 1 else "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
    return f"{text:>6}"


def attribution_lines(found: Attribution, label: str) -> Iterator[str]:
    width = max(4, *(len(word) for word in found.words))
    yield f"  how much each word supports {label!r} (log-odds, nats):"
    yield f"  {'word':<{width}}  {'gradient x input':>16}  {'leave-one-out':>13}"
    for word, gradient, fall in zip(found.words, found.gradient_times_input, found.leave_one_out, strict=True):
        yield f"  {word:<{width}}  {gradient:>+16.3f}  {fall:>+13.3f}"


def print_prediction_json(found: Prediction, labels: tuple[str, ...], attribution: Attribution | None) -> None:
    row: dict[str, Any] = {"text": found.text, "guess": labels[found.guess]}
    row |= {"probabilities": dict(zip(labels, found.shares, strict=True)), "unknown": found.unknown, "cut": found.cut}
    if attribution is not None:
        values = ("gradient_times_input", "leave_one_out")
        row |= {"words": attribution.words} | {name: getattr(attribution, name).tolist() for name in values}
    print(dumps(row))


@command(
    "inspect surprisal",
    Run.surprisal,
    "Look inside",
    'inspect surprisal runs/my-lm "Our children will pay the future."',
    arguments=["texts"],
    optional=["texts"],
    deprecated=["surprisal"],
)
def surprisal(
    call: Call,
    record: RecordFolder,
    file: TextFile = None,
    table: Annotated[
        bool | None, Option("--table/--no-table", help="One row per token.", show_default="with a single sentence")
    ] = None,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per sentence, and one for the set.")] = False,
) -> None:
    texts, samples = call.given.get("texts"), call.given["samples"]
    given = read_texts(texts, file) if texts or file is not None or not samples else []
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.inspection.surprisal import SAMPLES

    named = [*(SAMPLES.items() if samples else ()), *(("", text) for text in given)]
    found = run.surprisal([text for _, text in named])
    if json:
        for (name, _), text in zip(named, found.texts, strict=True):
            row: dict[str, Any] = {"name": name} if name else {}
            row |= {"text": text.text, "perplexity": text.perplexity, "nll": text.nll, "counted": text.counted}
            print(dumps(row | {"tokens": [asdict(token) for token in text.tokens]}))
        print(dumps({"set": asdict(found.totals), "notices": found.notices, "counting": found.counting}))
        return
    for line in found.notices:
        notice(line)
    with_table = table if table is not None else len(named) == 1
    for (name, _), text in zip(named, found.texts, strict=True):
        print_surprisal(name, text, with_table, short=len(named) > MAX_SHOWN and not with_table)
    if len(named) > 1:
        print_totals(found.totals)
    print(f"Perplexity is exp(nats per token); {found.counting}.")


def print_surprisal(name: str, found: TextSurprisal, table: bool, short: bool) -> None:
    from fairtrial.report.text import legend, plain, plain_shaded, shaded

    perplexity = "no token is counted" if found.perplexity is None else f"perplexity {found.perplexity:,.1f}"
    if short:
        print_plain(f"{perplexity:<24} {found.counted:>5} tokens  {name or found.text[:70]}")
        return
    print(f"{name + ': ' if name else ''}{perplexity}, {found.counted} tokens counted, {found.nll:.2f} nats")
    pieces = [(plain(token.written or f" {token.word}"), token.nll) for token in found.tokens]
    if sys.stdout.isatty():
        console = drawing()
        console.print(shaded(pieces))
        console.print(legend())
    else:
        print(plain_shaded(pieces))
    if table:
        print_plain("", *token_lines(found))
    print()


def token_lines(found: TextSurprisal) -> Iterator[str]:
    width = max(5, *(len(token.word) for token in found.tokens))
    yield f"{'token':<{width}}  {'nats':>7}  {'probability':>11}  {'rank':>6}  most probable"
    for token in found.tokens:
        word = f"{token.word:<{width}}"
        if token.nll is None or token.guess is None or token.guess_share is None:
            yield f"{word}  {'-':>7}  {'-':>11}  {'-':>6}  no context"
            continue
        probability = f"{exp(-token.nll):.3%}" if exp(-token.nll) >= 0.00001 else "< 0.001%"
        unknown = f"  (unknown: {token.written.strip()})" if token.unknown else ""
        guess = f"{token.guess} {token.guess_share:.1%}"
        yield f"{word}  {token.nll:>7.3f}  {probability:>11}  {token.rank:>6,}  {guess}{unknown}"


def print_totals(totals: Totals) -> None:
    values = (totals.token_weighted, totals.mean_of_sentences)
    weighted, mean = ("-" if value is None else f"{value:,.1f}" for value in values)
    print(f"{totals.sentences} sentences, {totals.tokens:,} tokens counted")
    print(f"  token-weighted perplexity          {weighted:>12}  exp(all nats / all tokens)")
    print(f"  mean of the sentences' perplexities {mean:>11}  every sentence has equal weight")


@command(
    "inspect generate",
    Run.generate,
    "Look inside",
    'inspect generate runs/my-lm "My fellow Americans" --temperature 0.8',
    arguments=["prompt"],
    deprecated=["generate"],
)
def generate(
    call: Call,
    record: RecordFolder,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per text, when it is done.")] = False,
) -> None:
    check_utf8(call.given["prompt"], "the prompt")
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.report.text import plain

    def print_piece(text: str) -> None:
        print("\n".join(plain(line) for line in text.split("\n")), end="", flush=True)

    samples, seed = call.given.pop("samples"), call.given.pop("seed")
    generator = run.generator(**call.given)
    sampling = {name: call.given.get(name) for name in ("temperature", "top_k", "top_p", "repetition_penalty")}
    for text in () if json else generator.notices:
        notice(text)
    for number in range(samples):
        if json:
            row = asdict(generator.sample(seed, number)) | sampling | {"notices": generator.notices}
            print(dumps(row), flush=True)
        else:
            generator.sample(seed, number, print_piece)
            print(flush=True)
