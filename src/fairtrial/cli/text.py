"""`fairtrial predict`, `surprisal` and `generate`: what a trained model makes of a text."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from json import dumps
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairtrial import api
from fairtrial.cli.options import (
    Json,
    TextFile,
    Texts,
    With,
    check_bytes,
    drawing,
    notice,
    read_texts,
)

if TYPE_CHECKING:
    from fairtrial.analysis.predictions import Attribution, Prediction
    from fairtrial.analysis.surprisal import TextSurprisal, Totals

MAX_SHOWN = 20  # texts that are shown in full; of more, one line each
Names = Annotated[
    str | None, Option(help="Names to show instead of the labels, in their order: 'Obama,W. Bush,H. W. Bush'.")
]


def split_names(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",")]


def predict(
    record: Annotated[Path, Argument(help="The record of a trained classifier.")],
    texts: Texts = None, file: TextFile = None, names: Names = None,
    words: Annotated[bool, Option("--words", help="Attribution to words: gradient x input, leave-one-out.")] = False,
    plugins: With = None, json: Json = False,
) -> None:  # fmt: skip
    """Print the probability of each class for each sentence."""
    given = read_texts(texts, file)
    run = api.load(record, "classify", plugins=plugins or [])
    called = split_names(names) or (run.labels if json else None)  # machines compare answers with labels
    found = run.predict(given, names=called, words=words)
    attributions: Sequence[Attribution | None] = found.attributions or [None] * len(given)
    for text in () if json else found.notices:
        notice(text)
    for prediction, attribution in zip(found.predictions, attributions, strict=True):
        guess = found.labels[prediction.guess]
        if json:
            print_prediction_json(prediction, found.labels, attribution)
        elif len(given) > MAX_SHOWN and not words:
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


def surprisal(
    record: Annotated[Path, Argument(help="The record of a trained language model.")],
    texts: Texts = None,
    file: TextFile = None,
    samples: Annotated[bool, Option("--samples", help="Three built-in sentences: normal, weird and long.")] = False,
    table: Annotated[
        bool | None, Option("--table/--no-table", help="One row per token.", show_default="with a single sentence")
    ] = None,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per sentence, and one for the set.")] = False,
) -> None:
    """Print the surprisal of each token of a sentence, and the perplexity of sentences."""
    given = read_texts(texts, file) if texts or file is not None or not samples else []
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.analysis.surprisal import SAMPLES

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


def generate(
    record: Annotated[Path, Argument(help="The record of a trained language model.")],
    prompt: Annotated[str, Argument(help="The beginning of the text, in quotes.")] = "",
    tokens: Annotated[int, Option(help="Maximum number of new tokens.", min=1)] = 60,
    temperature: Annotated[float, Option(help="0: greedy; 1: the model's own probabilities.")] = 1.0,
    top_k: Annotated[int | None, Option(help="Sample from the k most probable tokens.", show_default="all")] = None,
    top_p: Annotated[float, Option(help="Sample from the fewest tokens with this total probability.")] = 1.0,
    penalty: Annotated[float, Option("--repetition-penalty", help="Above 1: fewer repetitions; 1.2 is usual.")] = 1.0,
    stop: Annotated[
        str | None,
        Option(help="Also stop after this word; a model of separate sentences stops at its stop mark.", metavar="WORD"),
    ] = None,
    context: Annotated[
        int | None,
        Option(help="Context window, in tokens.", min=1, show_default="unlimited, or the length where positions end"),
    ] = None,
    samples: Annotated[int, Option(help="Number of texts.", min=1)] = 1,
    seed: Annotated[int, Option(help="Random seed: the same seed gives the same text.", min=0)] = 0,
    plugins: With = None,
    json: Annotated[bool, Option("--json", help="One JSON line per text, when it is done.")] = False,
) -> None:
    """Continue a text with a language model."""
    check_bytes(prompt, "the prompt")
    run = api.load(record, "lm", plugins=plugins or [])
    from fairtrial.report.text import plain

    def print_piece(text: str) -> None:
        print("\n".join(plain(line) for line in text.split("\n")), end="", flush=True)

    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "repetition_penalty": penalty}
    generator = run.generator(prompt, tokens=tokens, stop=stop, context=context, **sampling)
    for text in () if json else generator.notices:
        notice(text)
    for number in range(samples):
        if json:
            row = asdict(generator.sample(seed, number)) | sampling | {"notices": generator.notices}
            print(dumps(row), flush=True)
        else:
            generator.sample(seed, number, print_piece)
            print(flush=True)
