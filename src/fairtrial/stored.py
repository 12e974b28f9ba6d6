"""Stored files: the shape of each, and the one way in and out, so that no caller meets a value it did not expect.

A document is a JSON object that ends with a checksum of all else in it (format 2); earlier ones (format 1) have none
and are checked by shape alone. Shapes are written by hand and not as types of a schema library: pydantic takes long to
import, and msgspec does not name the key of a table in which it found a wrong value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.disk import load_json, parse_json, write_text
from fairtrial.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

Plain = dict[str, Any]
Clean = Callable[[Plain], Plain]

FORMAT = 2
CHECKSUM = "checksum"


def number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < 2**63)


def count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def positive(value: Any) -> bool:
    return count(value) and value > 0


# A shape is a type, a test of one value, [shape] of a list, or {name: shape} of an object, where `name!` must be there
# and `str` stands for every other name. None counts as missing. What no shape names may be anything.
SCORE = {
    **dict.fromkeys(
        "accuracy macro_f1 nll perplexity bits_per_byte unknown_share unknown_nll perplexity_without_unknown loss"
        " window_perplexity window_nll masked_accuracy masked_nll masked_perplexity learning_rate".split(),
        number,
    ),
    **dict.fromkeys(("items", "tokens", "documents"), count),
    "interval": [number],
    "confusion": [[count]],
}
TRIAL = {
    "seed!": count, "recipe!": str, "data!": {str: str}, "code!": str, "labels!": [str], "test_sets!": [str],
    "asked": str, "class_names": [str], "environment!": {"threads!": positive, str: object},
    "tokenizer!": {"unknown_trained": bool, "kind": str, "size": count, "lowercase": bool, str: object},
    "cite!": str, "notes!": [str], "documents!": {str: count}, "vocabulary!": count, "cut_to_length": {str: count},
    "plugins": {str: str}, "strangers": {str: str}, "sha256": {str: str}, "changed": [str],
    "encoder": {"sha256!": str, "fresh!": [str]},
}  # fmt: skip
RESULT = {
    "seed!": count, "parameters!": count, "steps!": count, "steps_per_epoch": positive, "kept_step!": count,
    "kept!": str, "chosen_by": str, "training_end": str, "best_step": count, "stopped": str, "part_notes": [str],
    "not_deterministic": [str], "test_watched!": bool,
    "test_reads!": {str: count}, "train": SCORE, "validation": SCORE, "tests!": {str: SCORE},
    "picked_on_test!": {str: {"step!": count, str: number}}, "model_sha256!": str, "sha256": {str: str},
}  # fmt: skip
BY_SUBSET = {str: {str: SCORE}}  # test set, all | clean | contaminated
BASELINE = {"name!": str, "skipped": str, "outcomes!": str, "trial": BY_SUBSET, "baseline": BY_SUBSET}
EVENT = {"event!": str, "step!": count, "loss": number, "learning_rate": number}
SCORE_EVENT = {**EVENT, **SCORE, "split!": str}
CLOCK = {"step!": count, "time!": number, "what": str, "step_seconds": number, "peak_memory_mb": number}
PROGRESS = {
    **dict.fromkeys(("step!", "best_step", "stale!", "events_size!"), count), "stopped": str, "events_sha256": str,
    "best_merit": [number],
}  # fmt: skip
FAILURE = {"task!": str, "variant!": str, "seed!": count, "error!": str}
FAILED_TRY = {"folder!": str, "error!": str}

AUDIT_TEXTS = ("id", "name", "where", "shown", "limit", "verdict", "meaning", "level", "task")
AUDIT_ROW = dict.fromkeys(AUDIT_TEXTS, str) | {"value": number, "examples": [str]}
AUDIT_ROW |= dict.fromkeys(("id!", "name!", "verdict!", "meaning!"), str)
PASSPORT = {"findings!": [AUDIT_ROW], "mark": str, "passed": bool}

AUDITED_SET = {**dict.fromkeys(("items!", "exact", "near", "clean", "identical"), count), "share": number}
DATA_AUDIT = {
    "mark": str, "level!": str, "findings!": [AUDIT_ROW], "notes!": [str],
    "sets!": {str: {**AUDITED_SET, "status!": [count]}},
}  # fmt: skip
CONTAMINATION = {"format": count, str: DATA_AUDIT}
BASELINES = {"mark!": str, "baselines!": [str], "sha256": str}
LEDGER_ROW = {"component!": str, "formula!": str, "count!": count, "bias_free": count}
LEDGER = {"format": count, str: {str: [LEDGER_ROW]}}
SPEED = {
    **dict.fromkeys(("set_up_seconds!", "step_seconds!", "score_seconds!"), number), "steps!": positive, "mark!": str,
    "steps_per_epoch": positive, "parameters": count, "flops_per_step": number, "ledger": [LEDGER_ROW],
    "final_seconds": number, "as": str,
}  # fmt: skip
PLAN = {
    "looks": [positive], "asked": {str: str}, "decision": str,
    "calibration": {str: {str: SPEED}}, "seeds": [count], "trials": [str],
    "matched": {str: {str: {"before!": number, "settings": {str: object}, "from": count, "mark": str}}},
}  # fmt: skip
CHOICE = {"tries": count, "best!": {str: object}, "validation": number}
SEARCH = {"seeds!": [count], "tries!": [{str: object}], "tasks!": {str: {"variants!": {str: CHOICE}}}}
MAPS = {
    "sentence": str, "words": [str],
    "words_of": {str: {str: [str]}},  # task, variant: a part may put a prefix before a sentence
    "variants": {str: {str: [[[[number]]]]}},
}  # fmt: skip

ESTIMATE = {"mean": number, "low": number, "high": number, "by_seed": [number]}
SCORES = {str: {str: {str: ESTIMATE}}}  # variant, test set, all | clean | contaminated
COMPARISON = {
    **dict.fromkeys("variant against baseline set basis metric verdict sentence".split(), str),
    **dict.fromkeys(
        "seeds items difference low high ratio ratio_low ratio_high p p_adjusted q smallest_detectable".split(), number
    ),
    "share_of_seeds_better": {"share": number, "low": number, "high": number},
    "variance_shares": {str: number}, "on_these_items": {"low": number, "high": number},
}  # fmt: skip
TRAINING = {"end": str, "best_step": count, "steps": count}
COST = dict.fromkeys(("parameters", "flops_per_step", "seconds_per_step", "seconds_ratio", "peak_memory_mb"), number)
JUDGED = {
    "metric": str, "metric_why": str, "unit": str, "least_difference": number, "seeds": [number],
    "sets": {str: {
        **dict.fromkeys(("items", "exact", "near", "clean", "context"), number), "basis": str, "basis_why": str,
    }},
    "scores": SCORES, "baselines": SCORES,
    "comparisons": [COMPARISON], "exploratory": [COMPARISON], "against_baselines": [COMPARISON],
    "peeks": {str: {str: {"reads": number, "watched": bool, "picked_on_test": number, "honest": number}}},
    "learning": {"training": {str: {str: TRAINING}}},
    "cost": {str: COST},
    "passports": {str: {"level": str, "failed": [str], "accepted": bool}},
    "contamination": {"level": str, "findings": [dict.fromkeys(AUDIT_TEXTS, str)], "notes": [str]},
    "failures": [{"variant": str, "error": str}],
    "match": {"budget": str, "spent": number, "variants": {str: {
        **dict.fromkeys(("before", "after", "from"), number), "twin": str, "field": str,
    }}},
    "untuned": {"comparisons": [COMPARISON], "scores": SCORES},
    "search": {
        **dict.fromkeys(("tries", "trials", "seconds"), number),
        "variants": {str: {"tries": number, "best": {str: object}, "validation": number}},
    },
    "best_of": {"variants": number, "expected_bias": number, "sentence": str},
}  # fmt: skip
VERDICT = {
    "name": str, "baseline": str, "sentences!": [str], "tasks!": {str: JUDGED},
    "look": {"seeds": number, "alpha": number, "next": number},
}  # fmt: skip


def write_document(path: Path, value: Mapping[str, Any]) -> None:
    """As JSON, with its checksum."""
    plain = json.loads(json.dumps({**value, "format": FORMAT}))
    plain.pop(CHECKSUM, None)
    write_text(path, json.dumps(plain | {CHECKSUM: digest(plain)}, indent=1, ensure_ascii=False) + "\n")


def digest(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_document(
    path: Path,
    shape: Mapping[Any, Any],
    hint: str = "",
    *,
    clean: Clean = lambda value: value,
    edited: bool = False,
    least: int = 1,
) -> Plain:
    """A document without its checksum; a damaged one is refused. `clean` is applied before its shape is checked;
    `edited`: its checksum may differ; `least`: the format that it has at least, known from what it belongs to."""
    found = load_json(path, hint)
    version, kept = found.get("format", 1), found.get(CHECKSUM)
    found = {key: value for key, value in found.items() if key != CHECKSUM}
    if not count(version) or version > FORMAT:
        raise BadInput(f"{path} has format {version!r}, this fairtrial reads up to {FORMAT}", "update fairtrial")
    if version < least:
        raise BadInput(f"{path} is damaged or was edited: it has lost its checksum", hint)
    try:
        if version == FORMAT and kept != digest(found) and not edited:
            raise BadInput(f"{path} is damaged or was edited: its checksum differs", hint)
        found = clean(found)
        wrong = first_wrong(found, shape, "")
    except RecursionError as error:
        raise BadInput(f"{path} is damaged: {error}", hint) from error
    if wrong:
        raise BadInput(f"{path} is damaged at {wrong}", hint)
    return found


def first_wrong(value: Any, shape: Any, path: str) -> str:
    """The path of the first value that is missing or does not fit its shape; empty if there is none."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return path or "its top"
        lead = f"{path}." if path else ""
        fields = {name.rstrip("!"): kind for name, kind in shape.items() if name is not str}
        needed = [name[:-1] for name in shape if name is not str and name[-1] == "!"]
        if lost := [name for name in needed if value.get(name) is None]:
            return f"{lead}{lost[0]}, which is missing"
        inside = [(inner, fields.get(name, shape.get(str, object)), f"{lead}{name}") for name, inner in value.items()]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return path
        inside = [(inner, shape[0], f"{path}[{at}]") for at, inner in enumerate(value)]
    else:
        fits = isinstance(value, shape) if isinstance(shape, type) else shape(value)
        return "" if fits else path
    return next(filter(None, (first_wrong(*each) for each in inside if each[0] is not None)), "")


def read_rows(path: Path, shape_of: Callable[[dict[str, Any]], Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """The lines of a log, each an object of the shape that it asks for; a torn last line is dropped."""
    try:
        whole = path.read_bytes().split(b"\n")[:-1]  # what follows the last line end is torn or empty
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", path=path) from error
    rows = []
    for at, line in enumerate(whole, 1):
        try:
            row = parse_json(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise BadInput(f"damaged line: {error}", path=path, line=at) from error
        if not isinstance(row, dict):
            raise BadInput("damaged line: not a JSON object", path=path, line=at)
        if wrong := first_wrong(row, shape_of(row), ""):
            raise BadInput(f"damaged line, at {wrong}", path=path, line=at)
        rows.append(row)
    return rows


def read_arrays(path: Path, hint: str = "") -> dict[str, np.ndarray]:
    """A safetensors file; the length of its header is checked before anything is set aside for it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        content = path.read_bytes()
        if int.from_bytes(content[:8], "little") + 8 > len(content):
            raise BadInput("is damaged: its header is longer than the file", hint, path=path)
        return load(content)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", hint, path=path) from error
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"is damaged: {error}", hint, path=path) from error
