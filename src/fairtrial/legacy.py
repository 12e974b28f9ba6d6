"""Stored files of version 0.2 (format 2), brought to today's shape: the only place that knows it. Numbers and sentences
stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass

from fairtrial.results.values import Question, ReasonCode, UnlearnedKind, Verdict, VerdictKind
from fairtrial.stored import DataAudits, DataCounts, PlanSummary, StoredPlan, TrialInfo
from fairtrial.typed import WrongValue, structure

Plain = dict[str, object]
COUNTS = tuple(DataCounts.__dataclass_fields__)
SUMMARY = tuple(PlanSummary.__dataclass_fields__)


def upgrade(kind: type, plain: Plain) -> Plain:
    """A document of version 0.2 as one of this type is written today."""
    if kind == DataAudits:
        return {task: without(audit, "format") for task, audit in plain.items()}
    if not is_dataclass(kind):
        return plain
    plain = without_nulls(plain)
    if kind is TrialInfo:
        counts = {name: plain.pop(name) for name in COUNTS if name in plain}
        machine = plain.get("environment")
        if isinstance(machine, dict):  # torch.compile could be asked for
            plain["environment"] = {name: value for name, value in machine.items() if name != "compiled"}
        return {"asked": plain.get("recipe"), **plain, "counts": counts}
    return upgrade_plan(plain) if kind is StoredPlan else plain


def upgrade_plan(plain: Plain) -> Plain:
    """What described the plan stood beside what a later plan needs."""
    calibration = per_key(
        plain.get("calibration") or {}, lambda named: per_key(named, lambda own: without(own, "ledger"))
    )
    summary = {name: plain[name] for name in SUMMARY if name in plain}
    own: Plain = {name: plain[name] for name in ("tasks", "variants", "seeds", "trials") if name in plain}
    tasks, variants, looks = (listed(plain.get(name)) for name in ("tasks", "variants", "looks"))
    # a verdict was remembered by its number of seeds
    own["looks"] = [
        {"baseline": "", "seeds": {task: dict.fromkeys(variants, seeds) for task in tasks}} for seeds in looks
    ]
    return {**own, "calibration": calibration, **({"summary": summary} if summary else {})}


def listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def per_key(fields: object, change: Callable[[object], object]) -> object:
    return {key: change(value) for key, value in fields.items()} if isinstance(fields, dict) else fields


def without(fields: object, name: str) -> object:
    return {key: value for key, value in fields.items() if key != name} if isinstance(fields, dict) else fields


def without_nulls(plain: Plain) -> Plain:
    """What was not known was null; today it is left out."""
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in plain.items()
        if value is not None
    }


# verdict.json

LANGUAGE = ("perplexity", "bits per byte")
KINDS = {
    "better": VerdictKind.BETTER,
    "worse": VerdictKind.WORSE,
    "same": VerdictKind.EQUIVALENT,
    "undetected": VerdictKind.UNDECIDED,
    "too_few_seeds": VerdictKind.UNDECIDED,
    "not_comparable": VerdictKind.NOT_COMPARABLE,
    "beats": VerdictKind.BETTER,
    "loses": VerdictKind.WORSE,
    **dict.fromkeys(("above", "below", "equal"), VerdictKind.UNDECIDED),
}
CHECKPOINT = "checkpoint_"
UNLEARNED = {
    "answer one class only": UnlearnedKind.ONE_CLASS,
    "are no better than the largest class": UnlearnedKind.LARGEST_CLASS,
    "are no better than word frequencies": UnlearnedKind.WORD_FREQUENCIES,
}
SAME_IN_COMPARISON = (
    *("variant", "seeds", "items", "paired", "groups", "p", "p_adjusted", "q", "family", "more_items", "by_seed"),
    *("effect_size", "relative_error_change", "variance_shares"),
)
SCORE = ("by_seed", "seeds", "items", "bits_per_byte", "unknown_share", "perplexity_without_unknown")
COST = ("parameters", "flops_per_step", "seconds_per_step", "peak_memory_mb", "seconds_ratio")


def verdict_of_0_2(plain: Mapping[str, object]) -> Verdict:
    """The plain values of the old file are renamed and moved; then they are checked as those of a new one are."""
    old = _object(plain, "")
    if "sentences" not in old:
        raise WrongValue("sentences", "is missing")
    tasks = {name: _task(entry, name, old.get("baseline", "")) for name, entry in _named(old, "tasks").items()}
    new = {"name": "", "baseline": "", "tasks": tasks} | _taken(old, "name", "baseline", "until_clear")
    new["sentences"] = [_sentence(text, list(tasks)) for text in structure(list[str], old["sentences"], "sentences")]
    if look := _inside(old, "look"):
        new["look"] = _taken(look, "seeds", "alpha", "next")
    if results := _inside(old, "results"):
        rows = [row for task in tasks.values() for row in _objects(task, "comparisons")]
        checkpoints = any(row["question"] == Question.CHECKPOINTS.value for row in rows)
        question = Question.CHECKPOINTS if checkpoints else Question.NEW_RUNS
        new["results"] = {"files": {}, "rows": 0, "question": question.value} | _taken(results, "files", "rows")
    return structure(Verdict, new)


def _object(value: object, at: str) -> Plain:
    """An object of the file; null means absent, as does a number that is not finite."""
    if not isinstance(value, Mapping):
        raise WrongValue(at, "must be an object")
    absent = (None, math.inf, -math.inf)
    return {name: own for name, own in value.items() if own not in absent and own == own}


def _inside(old: Plain, name: str) -> Plain:
    return _object(old.get(name, {}), name)


def _named(old: Plain, name: str = "") -> dict[str, Plain]:
    return {key: _object(value, key) for key, value in (_inside(old, name) if name else old).items()}


def _objects(old: Plain, name: str) -> list[Plain]:
    return [_object(each, name) for each in structure(list[object], old.get(name, []), name)]


def _taken(old: Plain, *same: str, **renamed: str) -> Plain:
    """What is there, under its old name or a new one (new="old")."""
    names = dict(zip(same, same, strict=True)) | renamed
    return {new: old[name] for new, name in names.items() if name in old}


def _sentence(text: str, tasks: list[str]) -> Plain:
    """Where there were several tasks, a sentence began with its own."""
    for name in tasks:
        if text.startswith(f"[{name}] "):
            return {"text": text.removeprefix(f"[{name}] "), "task": name}
    return {"text": text, "task": tasks[0] if len(tasks) == 1 else None}


def _metric(old: Plain) -> Plain:
    name = structure(str, old.get("metric", "accuracy"), "metric")
    unit = "nats per token" if name == "perplexity" else name if name in LANGUAGE else "points"
    higher = name not in (*LANGUAGE, "log loss")
    return {"name": name, "unit": unit, "higher_is_better": higher} | _taken(old, "unit", "higher_is_better")


def _task(old: Plain, name: str, baseline: object) -> Plain:
    metric, learning, margin = _metric(old), _inside(old, "learning"), old.get("least_difference", 0.0)
    scores = _scores(_named(old, "scores"))

    def rows(key: str, margin: object = 0.0, inside: Plain = old) -> list[Plain]:
        return [_comparison(row, metric, margin) for row in _objects(inside, key)]

    new: Plain = {
        "baseline": baseline,
        "metric": metric,
        "margin": margin,
        "seeds": [],
        "sets": {
            test: {"items": 0} | _taken(each, "items", "exact", "near", "clean", "context", subset="basis")
            for test, each in _named(old, "sets").items()
        },
        "scores": scores,
        "comparisons": rows("comparisons", margin),
        "exploratory": rows("exploratory"),
        "baseline_scores": _scores(_named(old, "baselines")),
        "baseline_comparisons": rows("against_baselines"),
        "vocabularies_differ": bool(old.get("metric_why")),
        "unlearned": _unlearned(_named(learning, "not_learned"), scores),
        "training": learning.get("training", {}),
        "test_reuse": _each(_named(old, "peeks"), lambda use: {"reads": 0} | use),
        "cost": {variant: _taken(each, *COST) for variant, each in _named(old, "cost").items()},
        "audits": {
            variant: {"level": "unaudited"} | _taken(each, "level", "failed", "accepted")
            for variant, each in _named(old, "passports").items()
        },
        "failures": [
            {"variant": "", "seed": 0, "error": ""} | _taken(each, "variant", "seed", "error")
            for each in _objects(old, "failures")
        ],
    } | _taken(old, "seeds", "labels")
    if data := _inside(old, "contamination"):
        new["data_findings"] = [
            {"id": "", "name": ""}
            | _taken(each, "id", "name", "where", "meaning", measured="shown")
            | {"level": str(each["verdict"]).lower()}
            for each in _objects(data, "findings")
            if each.get("verdict") in ("RED", "AMBER")
        ]
    if search := _inside(old, "search"):
        unknown: Plain = {"tries": 0, "best": {}, "validation": 0.0, "scores": []}
        choices = {
            key: unknown | _taken(each, "best", "tries", "validation")
            for key, each in _named(search, "variants").items()
        }
        counts: Plain = {"tries": 0, "trials": 0, "seconds": 0.0}
        new["search"] = counts | _taken(search, "tries", "trials", "seconds") | {"variants": choices}
    if best_of := _inside(old, "best_of"):
        counts = {"variants": 0, "test_set": "", "expected_bias": 0.0}
        new["best_of"] = counts | _taken(best_of, "variants", "expected_bias", test_set="set")
    return new


def _each(old: dict[str, Plain], change: Callable[[Plain], Plain]) -> dict[str, dict[str, Plain]]:
    return {variant: {test: change(use) for test, use in _named(by_set).items()} for variant, by_set in old.items()}


def _comparison(old: Plain, metric: Plain, margin: object) -> Plain:
    own = _metric(old)
    word = structure(str, old.get("verdict", "undetected"), "verdict")
    kind = word.removeprefix(CHECKPOINT)
    if kind not in KINDS:
        raise WrongValue("verdict", f"is not known: {word!r}")
    reasons = [(ReasonCode.EARLIER_VERSION, text) for text in structure(list[str], old.get("why", []), "why")]
    if kind == "too_few_seeds":
        reasons = [(ReasonCode.TOO_FEW_SEEDS, "a verdict needs 5 seeds")]
    question = Question.CHECKPOINTS if word.startswith(CHECKPOINT) else Question.NEW_RUNS
    new: Plain = {
        "variant": "",
        "baseline": old.get("against", old.get("baseline", "")),
        "test_set": old.get("set", ""),
        "subset": old.get("basis", "all"),
        "metric": own if "metric" in old and own["name"] != metric["name"] else metric,
        "seeds": 0,
        "items": 0,
        "question": question.value,
        "verdict": KINDS[kind].value,
        "reasons": [{"code": code.value, "text": text} for code, text in reasons],
        "difference": _taken(old, "low", "high", estimate="difference"),
        "margin": old.get("least_difference", margin),
    }
    new |= _taken(old, *SAME_IN_COMPARISON, p_equivalent="p_same", effective_items="effective")
    new |= _taken(old, components="shares")
    if (size := old.get("smallest_detectable")) is not None:
        new["detectable"] = [size, size]
    if "level" in old:
        new["alpha"] = structure(float, old["level"], "level") * max(1, structure(int, old.get("family", 1), "family"))
    if more := structure(list[int | None], old.get("more_seeds_range", []), "more_seeds_range"):
        new["more_seeds"] = dict(zip(("low", "high"), more, strict=True))
    if "ours" in old and "theirs" in old:
        new["scores"] = [old["ours"], old["theirs"]]
    if seeds := _inside(old, "share_of_seeds_better"):
        new["share_of_seeds_better"] = _taken(seeds, "low", "high", estimate="share")
    if ends := _inside(old, "on_these_items"):
        new["on_these_items"] = _taken(old, estimate="difference") | _taken(ends, "low", "high")
    return new


def _scores(old: dict[str, Plain]) -> dict[str, dict[str, Plain]]:
    def score(value: object) -> Plain:
        own = _object(value, "scores")
        mean = _taken(own, "low", "high", estimate="mean")
        return {"by_seed": [], "seeds": [], "items": 0, "mean": mean} | _taken(own, *SCORE)

    return _each(old, lambda by_subset: {subset: score(value) for subset, value in by_subset.items()})


def _unlearned(old: dict[str, Plain], scores: dict[str, dict[str, Plain]]) -> list[Plain]:
    found: list[Plain] = []
    for variant, by_set in old.items():
        for test, hows in _named(by_set).items():
            for how, given in hows.items():
                if how not in UNLEARNED:
                    raise WrongValue(f"not_learned.{how}", "is not known")
                seeds = structure(list[int], given, how)
                known = _inside(_object(scores.get(variant, {}).get(test, {}), test), "all").get("seeds", seeds)
                row = {"variant": variant, "test_set": test, "kind": UNLEARNED[how].value, "seeds": seeds}
                found.append(row | {"of": len(structure(list[int], known, "seeds"))})
    return found
