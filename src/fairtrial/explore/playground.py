"""The playground's answers: a text as one network, or all seeds of a variant, reads it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict

import numpy as np

from fairtrial.errors import BadInput
from fairtrial.explore.library import Library, Model
from fairtrial.explore.requests import JobHandle, Plain, RequestParams
from fairtrial.inspection import AttentionMaps, ablate_heads, head_off
from fairtrial.record import sibling

NEXT = 24  # most probable next tokens
MOST_WEIGHTS = 1 << 22  # attention weights of one answer
MOST_SEEDS = 20
MEASURED: dict[tuple[str, str], list[Plain]] = {}  # effects of heads, by folder and test set


def models(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """All that can be asked: records, and the variants of studies with their seeds."""
    found: list[Plain] = []
    for name, folder, kind in library.walk():
        if kind == "record" and (folder / "result.json").is_file():
            found.append({"path": name, "kind": "record", "group": "records"})
        elif kind == "study":
            lead = "" if name == "." else f"{name}/"
            for variant in sorted((folder / "trials").glob("*/*")):
                path = f"{lead}trials/{variant.parts[-2]}/{variant.name}"
                done = sorted(
                    variant.glob("seed-*/result.json"), key=lambda each: (len(each.parts[-2]), each.parts[-2])
                )
                if len(done) > 1:
                    found.append({"path": path, "kind": "variant", "group": name, "seeds": len(done)})
                found += [{"path": f"{path}/{each.parts[-2]}", "kind": "record", "group": name} for each in done]
    return {"models": found}


def read(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """A text, as a record's network reads it; of a variant, as all its seeds do: means and spread."""
    name, text, off = params.text("model", most=1000), params.text("text"), params.pairs("off")
    untrained = params.flag("untrained")
    folder = library.place(name)
    names = [name] if (folder / "trial.json").is_file() else library.variant(name)[:MOST_SEEDS]
    answers = []
    for each in names:
        handle.check()
        answers.append(
            one_answer(library.models.get(library, each, untrained), text, off, NEXT if names == [name] else None)
        )
    single = names == [name]
    told = answers[0] | {"maps": packed_maps(answers[0]["maps"])} if single else over_seeds(answers)
    return told | {"folder": str(folder), "untrained": untrained, "seeds": [each.rpartition("-")[2] for each in names]}


@contextmanager
def heads_off(model: Model, off: Sequence[tuple[int, int]]) -> Iterator[None]:
    shape = model.run.recipe.shape
    with ExitStack() as stack:
        for layer, head in dict.fromkeys(off):
            if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
                raise BadInput(f"there is no layer {layer}, head {head}")
            stack.enter_context(head_off(model.run.network, layer, head))
        yield


def one_answer(model: Model, text: str, off: Sequence[tuple[int, int]], most: int | None) -> Plain:
    """Maps and answer of one network; `before`: the answer with all heads, where some are off; `most`: next tokens."""
    run = model.run
    with model.lock:
        with heads_off(model, off):
            maps = run.attention(text)
            if maps.weights.size > MOST_WEIGHTS:
                raise BadInput("the maps of this text are too large", "give a shorter text")
            answer, notices = answer_of(model, text, most)
        before = answer_of(model, text, most)[0] if off else None
    if maps.cut:
        notices = [*notices, maps.cut]
    failed = [f"check failed: {each.name} ({each.meaning})" for each in maps.checks if not each.passed]
    return {
        "task": run.recipe.task,
        "maps": maps,
        "answer": answer,
        "before": before,
        "notices": list(dict.fromkeys([*notices, *failed])),
    }


def answer_of(model: Model, text: str, most: int | None) -> tuple[Plain, list[str]]:
    run = model.run
    given: Plain
    if run.recipe.task == "lm":
        found = run.surprisal(text, quiet=True)
        tokens = [asdict(token) for token in found.texts[0].tokens]
        likely = [{"word": word, "probability": chance} for word, chance in run.next_tokens(text, most)]
        given = {"tokens": tokens, "perplexity": found.texts[0].perplexity, "counting": found.counting, "next": likely}
        return given, list(found.notices)
    if run.recipe.task == "classify":
        predicted = run.predict(text, words=True, quiet=True)
        words = predicted.attributions[0]
        given = {
            "labels": list(predicted.labels),
            "shares": list(predicted.predictions[0].shares),
            "guess": predicted.guesses[0],
            "words": list(words.words),
            "leave_one_out": words.leave_one_out.tolist(),
            "gradient": words.gradient_times_input.tolist(),
        }
        return given, list(predicted.notices)
    return {}, ["a masked language model answers no text: its maps are shown"]


def packed_maps(maps: AttentionMaps, weights: np.ndarray | None = None, spread: np.ndarray | None = None) -> Plain:
    """Weights as 16-bit shares of one: a thirtieth of what JSON would take."""
    shown = maps.weights if weights is None else weights
    layers, heads = shown.shape[:2]
    return {
        "words": list(maps.words),
        "layers": layers,
        "heads": heads,
        "prefix": maps.prefix,
        "causal": maps.causal,
        "weights": shares(shown),
        "spread": None if spread is None else shares(spread),
        "open": base64.b64encode(maps.open.astype(np.uint8).tobytes()).decode(),
    }


def shares(weights: np.ndarray) -> str:
    return base64.b64encode(np.rint(np.clip(weights, 0, 1) * 65535).astype("<u2").tobytes()).decode()


def over_seeds(answers: Sequence[Plain]) -> Plain:
    """Means over seeds, and how far seeds are apart (standard deviation)."""
    first, several = answers[0], len(answers) > 1
    notices = list(dict.fromkeys(note for each in answers for note in each["notices"]))
    told: Plain = {"task": first["task"], "of_seeds": len(answers)}
    shapes = {each["maps"].weights.shape for each in answers}
    if len(shapes) == 1:
        stack = np.stack([each["maps"].weights for each in answers])
        told["maps"] = packed_maps(first["maps"], stack.mean(0), stack.std(0, ddof=1) if several else None)
    else:
        notices.append("the seeds read this text as different tokens: their maps have no mean")
        told["maps"] = packed_maps(first["maps"])
    told["notices"] = notices
    for part in ("answer", "before"):
        found = [each[part] for each in answers]
        told[part] = mean_answer(first["task"], found) if all(found) else None
    return told


def mean_answer(task: str, answers: Sequence[Plain]) -> Plain:
    first = answers[0]
    if task == "classify":
        every = np.array([each["shares"] for each in answers])
        mean = first | {"shares": every.mean(0).tolist(), "by_seed": every.tolist()}
        mean["guess"] = first["labels"][int(every.mean(0).argmax())]
        if len({len(each["words"]) for each in answers}) == 1:
            # each seed explains its own answer: only those that give the common one are averaged
            agreeing = [each for each in answers if each["guess"] == mean["guess"]] or answers
            for name in ("leave_one_out", "gradient"):
                values = np.array([each[name] for each in agreeing])
                mean |= {name: values.mean(0).tolist(), f"{name}_spread": spread_of(values)}
        return mean
    lengths = {len(each["tokens"]) for each in answers}
    mean = first | {"perplexity": float(np.exp(np.mean(np.log([each["perplexity"] or 1.0 for each in answers]))))}
    mean["by_seed"] = [each["perplexity"] for each in answers]
    if len(lengths) == 1:
        every = np.array(
            [[np.nan if token["nll"] is None else token["nll"] for token in each["tokens"]] for each in answers]
        )
        spread = spread_of(every)
        mean["tokens"] = [
            token | {"nll": value if np.isfinite(value) else None, "spread": far, "rank": None}
            for token, value, far in zip(first["tokens"], every.mean(0).tolist(), spread, strict=True)
        ]
    chances = [{row["word"]: row["probability"] for row in each["next"]} for each in answers]
    likely = {word for table in chances for word in sorted(table, key=lambda word: -table[word])[:NEXT]}
    rows = [(word, np.array([table.get(word, 0.0) for table in chances])) for word in likely]
    rows.sort(key=lambda row: (-float(row[1].mean()), row[0]))
    mean["next"] = [
        {"word": word, "probability": float(each.mean()), "spread": float(each.std(ddof=1)) if len(each) > 1 else None}
        for word, each in rows[:NEXT]
    ]
    return mean


def spread_of(values: np.ndarray) -> list[float]:
    found: list[float] = values.std(0, ddof=1).tolist() if len(values) > 1 else [0.0] * values.shape[1]
    return found


def generate(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """A text, continued piece by piece."""
    model = library.models.get(library, params.text("model", most=1000), params.flag("untrained"))
    top_k = params.whole("top_k", 0, 100_000, 0)
    generator = model.run.generator(
        params.text("text", ""),
        tokens=params.whole("tokens", 1, 400, 60),
        temperature=params.number("temperature", 0, 10, 1.0),
        top_k=top_k or None,
        top_p=params.number("top_p", 0.001, 1, 1.0),
    )

    def on_text(piece: str) -> None:
        handle.check()
        handle.send({"piece": piece})

    with model.lock:
        found = generator.sample(params.whole("seed", 0, 2**31 - 1, 0), 0, on_text)
    return {"done": True, "text": found.text, "notices": list(generator.notices)}


def effects(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """What switching each head off does to the score of a test set, where it was measured: here, or by `look`."""
    name = params.text("model", most=1000)
    record = library.record(name)
    tests = list(record.trial.test_sets)
    here = [row for test in tests for row in MEASURED.get((str(record.folder), test), [])]
    return {"tests": tests, "effects": here or looked_at(library, name)}


def looked_at(library: Library, name: str) -> list[Plain]:
    """Of the look that stands beside a record."""
    path = sibling(library.place(name), "look") / "look.json"
    if path.is_symlink() or path.parent.is_symlink() or not path.is_file() or path.stat().st_size > 50_000_000:
        return []
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["switched_off"]
        known = ("layer", "head", "test", "measure", "whole", "without", "change", "interval", "clear")
        return [{key: row[key] for key in known} for row in rows]
    except (ValueError, KeyError, TypeError, OSError):
        return []


def measure(library: Library, params: RequestParams, handle: JobHandle) -> Plain:
    """Score a test set without each head in turn; progress comes as it goes."""
    name = params.text("model", most=1000)
    model = library.models.get(library, name)
    run = model.run
    library.need_data(run.recipe)
    test = params.one_of("test", list(run.record.trial.test_sets))

    def on_progress(what: str, done: int, total: int) -> None:
        handle.check()
        handle.send({"done": done, "total": total})

    heads = list(np.ndindex(run.recipe.shape.layers, run.recipe.shape.heads))
    own = library.models.load(library, name, untrained=False)  # of its own: a typist goes on meanwhile
    with own.lock:
        found = ablate_heads(own.run.task, test, [(int(one), int(two)) for one, two in heads], on_progress)
    rows = [asdict(each) | {"clear": each.clear} for each in found]
    MEASURED[os.fspath(run.folder), test] = rows
    return {"effects": rows}
