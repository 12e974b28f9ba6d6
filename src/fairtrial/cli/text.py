"""`fairtrial predict`: what a classifier says of a text.

`fairtrial surprise`: how surprised a language model is by each word.

`fairtrial generate`: text from a language model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.options import TextFile, Texts, bar, gather, notice, refuse_bytes
from fairtrial.cli.train import With

if TYPE_CHECKING:
    import numpy as np

    from fairtrial.analysis.generation import Sampling
    from fairtrial.analysis.predictions import Prediction
    from fairtrial.analysis.surprisal import Surprise, Totals
    from fairtrial.data.tokenizer import Tokenizer


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
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each text.")] = False,
) -> None:
    """Show the probability of each class for a sentence, or for each sentence of a file."""
    from fairtrial.record import Record

    given = gather(texts, file)
    opened = Record.open(record)
    from fairtrial.analysis.predictions import gradient_times_input, leave_one_out
    from fairtrial.analysis.predictions import predict as ask
    from fairtrial.analysis.text import notice_of, read_prose
    from fairtrial.environment import use_threads
    from fairtrial.plugins import load_files
    from fairtrial.trial import load

    load_files(plugins or [])
    told: list[dict[str, np.ndarray]] = []
    with use_threads(1):
        run = load(opened, "classify")
        network: Any = run.network
        tokenizer, length = run.tokenizer, run.recipe.shape.length
        labels = shown_names(run.labels, names)
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
        print_predictions_json(found, labels, spoken, told)
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
            print_predictions(each, labels, len(found) > 1)
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
    from fairtrial.report.text import plain

    print(f"{plain(labels[found.guess])}  {found.shares[found.guess]:6.1%}  {plain(found.text)[:80]}")


def print_predictions(found: Prediction, labels: tuple[str, ...], titled: bool) -> None:
    from fairtrial.report.text import plain

    if titled:
        print(plain(found.text))
    wide = max(len(label) for label in labels)
    for number in sorted(range(len(labels)), key=lambda number: -found.shares[number]):
        share = found.shares[number]
        print(f"  {plain(labels[number]):<{wide}}  {share:6.1%}  {'█' * round(30 * share)}".rstrip())


def print_words(words: list[str], told: dict[str, np.ndarray], answer: str) -> None:
    from fairtrial.report.text import plain

    wide = max(4, *(len(plain(word)) for word in words))
    print(f"  how each word speaks for {plain(answer)!r} (log-odds, nats):")
    print(f"  {'word':<{wide}}  {'gradient x input':>16}  {'leave-one-out':>13}")
    for word, slope, fall in zip(words, told["gradient_times_input"], told["leave_one_out"], strict=True):
        print(f"  {plain(word):<{wide}}  {slope:>+16.3f}  {fall:>+13.3f}")


def print_predictions_json(
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
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each sentence, and one for the set.")] = False,
) -> None:
    """Show how surprised a language model is by each word of a sentence, and the perplexity of sentences."""
    from fairtrial.record import Record

    named: list[tuple[str, str]] = list(SAMPLES.items()) if samples else []
    if texts or file is not None or not samples:
        named += [("", text) for text in gather(texts, file)]
    opened = Record.open(record)
    from fairtrial.analysis import surprisal as look
    from fairtrial.analysis.text import notice_of, read_prose
    from fairtrial.environment import use_threads
    from fairtrial.plugins import load_files
    from fairtrial.trial import load

    load_files(plugins or [])
    with use_threads(1):
        run = load(opened, "lm")
        network: Any = run.network
        tokenizer, length = run.tokenizer, run.recipe.shape.length
        share = run.recipe.scoring.full_context
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
        print_surprise_json(named, found, totals, [text for text in notices if text], look.first_token_note(tokenizer))
        return
    for text in notices:
        notice(text)
    shown = len(found) <= MOST_SHOWN
    for (name, _), each in zip(named, found, strict=True):
        print_surprise(name, each, table if table is not None else len(found) == 1, shown)
    if len(found) > 1:
        print_totals(totals)
    print(f"Perplexity is exp(nats per token); {look.first_token_note(tokenizer)}.")


def print_surprise(name: str, found: Surprise, table: bool, shown: bool) -> None:
    from fairtrial.report.text import legend, plain, plain_shaded, shaded

    told = "nothing to count" if found.perplexity is None else f"perplexity {found.perplexity:,.1f}"
    head = f"{name + ': ' if name else ''}{told}, {found.counted} tokens counted, {found.nll:.2f} nats"
    if not shown and not table:
        print(f"{told:<24} {found.counted:>5} tokens  {name or plain(found.text)[:70]}")
        return
    print(head)
    pieces = [(plain(token.written or f" {token.word}"), token.nll) for token in found.tokens]
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
    from fairtrial.report.text import plain

    wide = max(5, *(len(plain(token.word)) for token in found.tokens))
    lines = [f"{'token':<{wide}}  {'nats':>7}  {'probability':>11}  {'rank':>6}  best guess"]
    for token in found.tokens:
        word = plain(token.word) + " " * (wide - len(plain(token.word)))
        if token.nll is None or token.guess is None or token.guess_share is None:
            lines.append(f"{word}  {'-':>7}  {'-':>11}  {'-':>6}  nothing before it")
            continue
        from math import exp

        written = f"  (unknown: {plain(token.written.strip())})" if token.unknown else ""
        guess = f"{plain(token.guess)} {token.guess_share:.1%}"
        lines.append(f"{word}  {token.nll:>7.3f}  {percent(exp(-token.nll)):>11}  {token.rank:>6,}  {guess}{written}")
    return lines


def percent(share: float) -> str:
    return f"{share:.3%}" if share >= 0.00001 else "< 0.001%"


def print_totals(totals: Totals) -> None:
    def told(value: float | None) -> str:
        return "-" if value is None else f"{value:,.1f}"

    print(f"{totals.sentences} sentences, {totals.tokens:,} tokens counted")
    print(f"  token-weighted perplexity          {told(totals.token_weighted):>12}  exp(all nats / all tokens)")
    print(f"  mean of the sentences' perplexities {told(totals.mean_of_sentences):>11}  each sentence weighs the same")


def print_surprise_json(
    named: list[tuple[str, str]], found: list[Surprise], totals: Totals, notices: list[str], counting: str
) -> None:
    import json
    from dataclasses import asdict

    for (name, _), each in zip(named, found, strict=True):
        row: dict[str, Any] = {"name": name} if name else {}
        row |= {"text": each.text, "perplexity": each.perplexity, "nll": each.nll, "counted": each.counted}
        print(json.dumps(row | {"tokens": [asdict(token) for token in each.tokens]}))
    print(json.dumps({"set": asdict(totals), "notices": notices, "counting": counting}))


def generate(
    record: Annotated[Path, typer.Argument(help="The record of a trained language model.")],
    prompt: Annotated[str, typer.Argument(help="How the text begins, in quotes.")] = "",
    tokens: Annotated[int, typer.Option(help="The most tokens to add.", min=1)] = 60,
    temperature: Annotated[float, typer.Option(help="0: always the likeliest token; 1: the model's own shares.")] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="Draw from so many likeliest tokens only.", show_default="all")
    ] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="Draw from the fewest tokens with this share.")] = 1.0,
    penalty: Annotated[
        float, typer.Option("--repetition-penalty", help="Above 1: what was said is less likely; 1.2 is usual.")
    ] = 1.0,
    stop: Annotated[
        str | None,
        typer.Option(help="Stop after this word, too; a model of sentences stops at its stop mark.", metavar="WORD"),
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(
            help="Tokens that the model sees at most.", min=1, show_default="all, or its length if its parts end there"
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many texts.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Random seed: the same seed gives the same text.", min=0)] = 0,
    plugins: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each text, when it is done.")] = False,
) -> None:
    """Let a language model go on with a text."""
    from fairtrial.analysis.generation import Sampling
    from fairtrial.record import Record

    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=penalty)
    opened = Record.open(record)
    from fairtrial.analysis.generation import find_way
    from fairtrial.analysis.generation import generate as draw_tokens
    from fairtrial.analysis.text import notice_of, read_prose
    from fairtrial.environment import use_threads
    from fairtrial.errors import BadInput
    from fairtrial.plugins import load_files
    from fairtrial.trial import load

    refuse_bytes(prompt, "the prompt")
    load_files(plugins or [])
    with use_threads(1):
        run = load(opened, "lm")
        network: Any = run.network
        tokenizer = run.tokenizer
        start = () if tokenizer.start is None else (tokenizer.start,)
        if not prompt.strip() and not start:
            raise BadInput("there is nothing to begin with", 'give a prompt: "My fellow Americans"')
        prose = read_prose(tokenizer, [prompt]) if prompt.strip() else []
        ids = (*start, *(prose[0].ids if prose else ()))
        stops = stop_tokens(tokenizer, stop)
        way = find_way(network, ids, tokens, context)
        notices = [text for text in (notice_of(tokenizer, prose[0].unknown if prose else ()), *way.notices) if text]
        for text in () if json else notices:
            notice(text)
        for number in range(samples):
            drawn = draw_tokens(
                network,
                ids,
                tokens=tokens,
                sampling=sampling,
                seed=seed,
                way=way,
                sample=number,
                stops=stops,
                never=silent(tokenizer),
            )
            text, found = speak(tokenizer, prompt, ids, drawn, quiet=json)
            if json:
                print_generated_json(
                    prompt, text, tokenizer, found, sampling, seed, number, notices, found[-1] in stops
                )


def stop_tokens(tokenizer: Tokenizer, word: str | None) -> set[int]:
    from fairtrial.errors import BadInput

    found = set() if tokenizer.stop is None else {tokenizer.stop}
    if word is not None:
        ids = tokenizer.encode([word])[0]
        if len(ids) != 1 or ids[0] == tokenizer.unknown:
            raise BadInput(f"--stop {word!r} is not one token of this model", "take a single word that it knows")
        found.add(ids[0])
    return found


def silent(tokenizer: Tokenizer) -> set[int]:
    """Tokens that no text can show: padding, marks, the unknown."""
    found = (tokenizer.pad, tokenizer.start, tokenizer.unknown, tokenizer.mask)
    return {each for each in found if each is not None}


def speak(tokenizer: Tokenizer, prompt: str, ids: tuple[int, ...], drawn: Any, *, quiet: bool) -> tuple[str, list[int]]:
    """The whole text, printed as it comes unless `quiet`; and the new tokens."""
    from fairtrial.analysis.generation import Speaker
    from fairtrial.report.text import plain

    speaker, found, whole = Speaker(tokenizer, ids), [], prompt

    def add(text: str) -> None:
        nonlocal whole
        whole += text
        if not quiet:
            print("\n".join(plain(line) for line in text.split("\n")), end="", flush=True)

    if not quiet:
        print(prompt, end="", flush=True)
    for token in drawn:
        found.append(token)
        if token != tokenizer.stop:
            add(speaker.say(token))
    add(speaker.rest())
    if not quiet:
        print(flush=True)
    return whole, found


def print_generated_json(
    prompt: str,
    text: str,
    tokenizer: Tokenizer,
    found: list[int],
    sampling: Sampling,
    seed: int,
    sample: int,
    notices: list[str],
    stopped: bool,
) -> None:
    import json
    from dataclasses import asdict

    row = {
        "prompt": prompt,
        "text": text,
        "tokens": tokenizer.words(found),
        "stopped": stopped,
        "seed": seed,
        "sample": sample,
        **asdict(sampling),
        "notices": notices,
    }
    print(json.dumps(row), flush=True)
