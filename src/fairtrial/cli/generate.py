"""`fairtrial generate`: text from a language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtrial.cli.texts import notice, refuse_bytes
from fairtrial.cli.train import With

if TYPE_CHECKING:
    from fairtrial.look.sampling import Sampling
    from fairtrial.text.tokenizer import Tokenizer


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
    seed: Annotated[int, typer.Option(help="Names the dice: the same seed gives the same text.", min=0)] = 0,
    strangers: With = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON line for each text, when it is done.")] = False,
) -> None:
    """Let a language model go on with a text."""
    from fairtrial.look.sampling import Sampling
    from fairtrial.record import Record

    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=penalty)
    opened = Record.open(record)
    from fairtrial.errors import BadInput
    from fairtrial.kept import kept_language_model
    from fairtrial.look.generate import find_way
    from fairtrial.look.generate import generate as draw_tokens
    from fairtrial.look.prose import notice_of, read_prose
    from fairtrial.strangers import load_files
    from fairtrial.trial import use_machine

    refuse_bytes(prompt, "the prompt")
    load_files(strangers or [])
    with use_machine(1):
        kept, network = kept_language_model(opened)
        tokenizer = kept.tokenizer
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
                print_json(prompt, text, tokenizer, found, sampling, seed, number, notices, found[-1] in stops)


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
    from fairtrial.look.generate import Speaker
    from fairtrial.report.record_text import plain

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


def print_json(
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
