"""Study folders to draw: real records of tiny trials, simulated outcomes judged by the real judge."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fairtrial.results.study import write_verdict
from fairtrial.results.values import AuditLevel, AuditSummary, Cost, Failure, TaskSearch, TestReuse, VariantSearch
from fairtrial.statistics.outcomes import SetOutcomes, TaskOutcomes
from fairtrial.statistics.verdict import judge_study
from fairtrial.stored import write_document
from sealed import reseal

SENTENCE = "we will not forget the brave men who stood on guard that night"
PLAIN_FILES = ("recipe.toml", "trial.json", "result.json", "clock.jsonl")
GAINS = {"learned": 0.0, "rope": 0.5, "alibi": -9.0, "fade": 12.0}  # points on clean items


def write_study(folder: Path, records: dict[str, Path], *, seeds: int = 8, gains: dict[str, float] = GAINS) -> Path:
    """A whole study of two tasks. The variant `fade`, where it is among `gains`, fails its passport."""
    folder.mkdir(parents=True)
    variants = list(gains)
    tasks = {"classify": classify_outcomes(gains, seeds), "lm": lm_outcomes(gains, seeds)}
    verdict = judge_study("Is rotary better?", tasks)
    write_verdict(folder / "verdict.json", verdict)
    (folder / "study.toml").write_text('name = "Is rotary better?"\nseeds = 8\n[variants.rope]\nparts = ["rope"]\n')
    for task in tasks:
        for variant in variants:
            for seed in range(seeds):
                trial = folder / "trials" / task / variant / f"seed-{seed}"
                trial.mkdir(parents=True)
                for name in PLAIN_FILES:
                    shutil.copy(records[task] / name, trial / name)
                (trial / "events.jsonl").write_text(events(task, gains[variant], seed))
                reseal(trial, trial={"seed": seed}, result={"seed": seed})
        if "fade" in variants:
            place = folder / "passports" / task / "fade.json"
            place.parent.mkdir(parents=True)
            write_document(place, {"what": "fade", "code": "", "passed": False, "findings": [leak(task)]})
    write_document(folder / "plan.json", {"records": {}})
    return folder


def classify_outcomes(gains: dict[str, float], seeds: int, items: int = 750) -> TaskOutcomes:
    rng = np.random.default_rng(5)
    status = np.where(np.arange(items) < 551, 1, np.where(np.arange(items) < 553, 2, 0))
    label = rng.integers(0, 3, items)
    easy = rng.normal(0, 1, items)
    variants = {}
    for name, gain in gains.items():
        chance = np.where(status > 0, 2.2, 0.05 + gain / 35) + 0.8 * easy + rng.normal(0, 0.08, (seeds, 1))
        variants[name] = {"test": answers(label, chance + rng.normal(0, 0.9, (seeds, items)) > 0, rng)}
    bayes = {"test": answers(label, (np.where(status > 0, 2.6, 0.45) + easy > 0)[None], rng)}
    majority = {"test": answers(label, (label == 0)[None], rng)}
    failed = tuple(Failure(name, 3, "Diverged: loss is nan at step 41") for name in list(gains)[-1:])
    tried = VariantSearch(4, {"training.learning_rate": 0.001}, 71.2, (71.2,))
    peek = TestReuse(reads=16, watched=True, picked_on_test=87.6, honest=84.7)
    return TaskOutcomes(
        task="classify", baseline=next(iter(gains)), least_difference=1.0, variants=variants,
        baselines={"naive bayes": bayes, "majority": majority}, labels=("a", "b", "c"), status={"test": status},
        audits=audits(gains), cost=cost(gains), failures=failed,
        test_reuse={name: {"test": peek} for name in gains},
        search=TaskSearch(4 * len(gains), 4 * len(gains), 0.0, dict.fromkeys(gains, tried)),
    )  # fmt: skip


def answers(label: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> SetOutcomes:
    rows = right.shape[0]
    guess = np.where(right, label, (label + rng.integers(1, 3, right.shape)) % 3)
    log_p = np.where(right, -0.2, -2.0) + rng.normal(0, 0.05, right.shape)
    arrays = {"guess": guess, "label": np.tile(label, (rows, 1)), "log_p": np.minimum(log_p, -1e-3)}
    return SetOutcomes(tuple(range(rows)), arrays)


def lm_outcomes(gains: dict[str, float], seeds: int, documents: int = 250) -> TaskOutcomes:
    rng = np.random.default_rng(6)
    variants: dict[str, dict[str, SetOutcomes]] = {name: {} for name in gains}
    baselines: dict[str, dict[str, SetOutcomes]] = {"kneser-ney trigram": {}}
    for place, level in (("obama", math.log(375)), ("wbush", math.log(492)), ("hbush", math.log(407))):
        tokens = rng.integers(5, 40, documents)
        hard = rng.normal(0, 0.3, documents)
        for name, gain in gains.items():
            each = level - gain / 300 + hard + rng.normal(0, 0.01, (seeds, 1)) + rng.normal(0, 0.05, (seeds, documents))
            variants[name][place] = texts(each, tokens)
        baselines["kneser-ney trigram"][place] = texts((level - 0.3 + hard)[None], tokens)
    return TaskOutcomes(
        task="lm", baseline=next(iter(gains)), least_difference=0.01, variants=variants, baselines=baselines,
        audits=audits(gains), cost=cost(gains), status={"obama": np.arange(documents) < 2},
    )  # fmt: skip


def texts(nats: np.ndarray, tokens: np.ndarray) -> SetOutcomes:
    counts = np.tile(tokens, (nats.shape[0], 1))
    arrays = {"nll": nats * counts, "tokens": counts, "bytes": counts * 5, "unknown": counts * 0}
    return SetOutcomes(tuple(range(nats.shape[0])), arrays)


def audits(gains: dict[str, float]) -> dict[str, AuditSummary]:
    red = AuditSummary(AuditLevel.RED, ("M3 no future",))
    return {name: red if name == "fade" else AuditSummary(AuditLevel.PASS) for name in gains}


def leak(task: str) -> dict[str, Any]:
    meaning = "a later word changed an earlier word's prediction"
    return {"id": "M3", "name": "no future", "task": task, "level": "red", "value": 8.0, "limit": "1e-05",
            "verdict": "FAIL", "meaning": meaning}  # fmt: skip


def cost(gains: dict[str, float]) -> dict[str, Cost]:
    return {
        name: Cost(576467 - 2048 * at, 1.24e9, 0.0121 + 0.001 * at, 412.4, 1 + 0.08 * at)
        for at, name in enumerate(gains)
    }


def events(task: str, gain: float, seed: int, steps: int = 400) -> str:
    rng = np.random.default_rng(100 + seed)
    lines = []
    for step in range(steps + 1):
        left = math.exp(-step / 90)
        if step % 40 == 0:
            score = {"accuracy": 0.33 + (0.16 + gain / 100) * (1 - left) + rng.normal(0, 0.01)}
            if task == "lm":
                score = {"window_perplexity": math.exp(5.9 - gain / 100 + 2.5 * left + rng.normal(0, 0.02))}
            lines.append({"event": "score", "step": step, "split": "validation", **score})
        if step:
            loss = 0.2 + 1.1 * left + abs(rng.normal(0, 0.05))
            lines.append({"event": "step", "step": step, "loss": loss, "learning_rate": 0.001})
    return "".join(json.dumps(line) + "\n" for line in lines)


def ledger() -> list[dict[str, Any]]:
    return [
        {"component": "word vectors", "formula": "5755 x 64", "count": 368320, "bias_free": 368320},
        {"component": "attention", "formula": "4 x 4 x (64 x 64 + 64)", "count": 66560, "bias_free": 65536},
    ]
