"""What the views ask: records and studies; a text as one network reads it; every part with its options, drawn; a query
for keys as they are dragged."""

from __future__ import annotations

import base64
from dataclasses import asdict

import numpy as np

from fairtrial import catalogue
from fairtrial.errors import BadInput, FairtrialError
from fairtrial.explore.library import Library, Model
from fairtrial.explore.server import Plain, RequestParams
from fairtrial.inspection import AttentionMaps, plot_part
from fairtrial.puzzles import average, select
from fairtrial.recipe import parse_value

NEXT = 24  # most probable next tokens
MOST_WEIGHTS = 1 << 22  # attention weights of one answer
MOST_KEYS = 40


def library(library: Library, params: RequestParams) -> Plain:
    """All records and studies."""
    return {"folder": str(library.root), "rows": library.rows()}


def models(library: Library, params: RequestParams) -> Plain:
    """All that can be asked: records, also those of studies."""
    found: list[Plain] = []
    for name, folder, kind in library.walk():
        inside = [folder] if kind == "record" else sorted((folder / "trials").glob("*/*/seed-*"))
        for each in inside:
            if (each / "result.json").is_file():
                path = each.relative_to(library.root).as_posix()
                found.append({"path": path, "group": "records" if kind == "record" else name})
    return {"models": found}


def read(library: Library, params: RequestParams) -> Plain:
    """A text, as a record's network reads it."""
    name, text = params.text("model", most=1000), params.text("text")
    untrained = params.flag("untrained")
    answer = one_answer(library.model(name, untrained), text)
    return answer | {"folder": str(library.place(name)), "untrained": untrained}


def one_answer(model: Model, text: str) -> Plain:
    """Maps and answer of one network."""
    run = model.run
    with model.lock:
        maps = run.attention(text)
        if maps.weights.size > MOST_WEIGHTS:
            raise BadInput("the maps of this text are too large", "give a shorter text")
        answer, notices = answer_of(model, text)
    notices = [*notices, *([maps.cut] if maps.cut else [])]
    return {
        "task": run.recipe.task,
        "maps": packed_maps(maps),
        "answer": answer,
        "notices": list(dict.fromkeys(notices)),
    }


def answer_of(model: Model, text: str) -> tuple[Plain, list[str]]:
    run = model.run
    given: Plain
    if run.recipe.task == "lm":
        found = run.surprisal(text)
        tokens = [asdict(token) for token in found.texts[0].tokens]
        likely = [{"word": word, "probability": chance} for word, chance in run.next_tokens(text, NEXT)]
        given = {"tokens": tokens, "perplexity": found.texts[0].perplexity, "counting": found.counting, "next": likely}
        return given, list(found.notices)
    if run.recipe.task == "classify":
        predicted = run.predict(text)
        given = {
            "labels": list(predicted.labels),
            "shares": list(predicted.predictions[0].shares),
            "guess": predicted.guesses[0],
        }
        cut = predicted.predictions[0].cut  # its last notice, which the maps tell more exactly
        return given, list(predicted.notices[:-1] if cut else predicted.notices)
    return {}, ["a masked language model makes no prediction for a text; its attention maps are shown"]


def packed_maps(maps: AttentionMaps) -> Plain:
    """Weights as 16-bit shares of one: a thirtieth of what JSON would take."""
    layers, heads = maps.weights.shape[:2]
    weights = np.rint(np.clip(maps.weights, 0, 1) * 65535).astype("<u2")
    return {
        "words": list(maps.words),
        "layers": layers,
        "heads": heads,
        "prefix": maps.prefix,
        "causal": maps.causal,
        "captions": [[maps.caption(layer, head) for head in range(heads)] for layer in range(layers)],
        "weights": base64.b64encode(weights.tobytes()).decode(),
        "open": base64.b64encode(maps.open.astype(np.uint8).tobytes()).decode(),
    }


def parts(library: Library, params: RequestParams) -> Plain:
    """Those that are registered: no request loads a package."""
    rows = catalogue().rows()
    for row in rows:
        row.pop("file")
    return {"parts": rows}


def draw(library: Library, params: RequestParams) -> Plain:
    """What a part does, measured on initial weights."""
    name = params.one_of("part", [each.name for each in catalogue().entries])
    heads, length = params.whole("heads", 1, 16, 4), params.whole("length", 2, 96, 24)
    options, causal = params.options("options"), params.flag("decoder", True)
    options = {name: parse_value(text) if isinstance(text, str) else text for name, text in options.items()}
    try:
        pictures = plot_part(name, heads=heads, length=length, causal=causal, **options)
    except (FairtrialError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{name} cannot be drawn with these options: {error}") from error
    return {"pictures": [asdict(picture) | {"range": picture.range} for picture in pictures]}


def solve(library: Library, params: RequestParams) -> Plain:
    """What attention should return, of these keys: the query, its weights and the certificate."""
    keys = params.rows("keys", None, MOST_KEYS)
    if not keys:
        raise BadInput("no keys were given")
    wanted = [place for place, share in enumerate(params.rows("shares", 1, MOST_KEYS)) if share[0] > 0]
    precision = params.number("precision", 0.5, 0.9999, 0.999)
    if not wanted:
        raise BadInput("no key was chosen", "choose one")
    if params.one_of("ask", ("select", "average"), "select") == "average":
        answer = average(keys, wanted, precision=precision)
    else:
        answer = select(keys, wanted[0], precision=precision)
    return {"answer": answer.to_json(), "sentences": list(answer.describe().sentences)}
