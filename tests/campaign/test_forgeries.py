"""Forged records and studies, made at random from the stored format with checksums that fit: none is ever proven, and
none brings a traceback. Honest ones are never called false, also where another processor finished them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import fairtrial as ft
from campaign import SEED, Tally, sized
from fairtrial.errors import BadInput, Interrupted
from fairtrial.record import RESULT
from fairtrial.results.audit import Checked
from fairtrial.stored import write_document
from fairtrial.trial import run_trial
from fairtrial.typed import WrongValue
from fairtrial.verification import FREE
from sealed import plain_of, reseal
from tiny import make_tiny

pytest_plugins = ("workspaces",)
Plain = dict[str, Any]
Place = tuple[Any, Any, str]  # holder, key, name of the field


def places(value: Any, name: str = "") -> Iterator[Place]:
    """Every number, text and flag in a stored value, but in fields that are free."""
    for key, own in value.items() if isinstance(value, dict) else enumerate(value):
        field = key if isinstance(key, str) else name
        if field in FREE:
            continue
        if isinstance(own, dict | list):
            yield from places(own, field)
        else:
            yield value, key, field


def another(value: Any, rng: random.Random) -> Any:
    """A value of the same kind that says something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([1, 2, 7, 100])
    if isinstance(value, float):
        return value * rng.choice([1.001, 0.9, 1.5]) + rng.uniform(0.1, 1)
    return f"{value} by 40.0 points" if isinstance(value, str) else 0.5


def forge_value(plain: Plain, rng: random.Random) -> str:
    holder, key, field = rng.choice(list(places(plain)))
    before, holder[key] = holder[key], another(holder[key], rng)
    return f"{field}: {before!r} becomes {holder[key]!r}"


def forge_trial(folder: Path, rng: random.Random) -> str:
    facts = plain_of(folder / "trial.json")
    del facts["recipe"]  # the fingerprint of recipe.toml, which is made again
    told = forge_value(facts, rng)
    reseal(folder, trial=facts)
    return f"trial.json, {told}"


def forge_result(folder: Path, rng: random.Random) -> str:
    result = plain_of(folder / RESULT)
    told = forge_value(result, rng)
    reseal(folder, result=result)
    return f"result.json, {told}"


def forge_log(folder: Path, rng: random.Random) -> str:
    path = folder / "events.jsonl"
    lines = path.read_text().splitlines()
    at = rng.randrange(len(lines))
    event = json.loads(lines[at])
    told = forge_value(event, rng)
    lines[at] = json.dumps(event)
    path.write_text("\n".join(lines) + "\n")
    reseal(folder)
    return f"line {at} of the log, {told}"


def forge_arrays(folder: Path, rng: random.Random) -> str:
    path = folder / rng.choice(["outcomes.safetensors", "model.safetensors"])
    arrays = load_file(path)
    name = rng.choice(sorted(name for name, array in arrays.items() if array.size))
    flat = arrays[name].reshape(-1)
    at = rng.randrange(flat.size)
    flat[at] = not flat[at] if flat.dtype == bool else flat[at] + (1 if flat.dtype.kind in "iu" else 1e-3)
    save_file(arrays, path)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    reseal(folder, result={"model_sha256": digest})
    return f"{path.name}, {name}[{at}]"


def forge_seed(folder: Path, rng: random.Random) -> str:
    """Also with an environment that may excuse it."""
    seed = plain_of(folder / RESULT)["seed"] + rng.choice([1, 9])
    machine = plain_of(folder / "trial.json")["environment"]
    excuse = rng.choice([{}, {"torch": "1.0"}, {"cpu": ""}, {"cpu": "NEON"}])
    reseal(folder, trial={"seed": seed, "environment": machine | excuse}, result={"seed": seed})
    return f"seed {seed}, {excuse}"


def foreign_weights(folder: Path, rng: random.Random) -> str:
    """Of no training at all, with another digit in the log, as if another processor had computed it."""
    path = folder / "model.safetensors"
    source = np.random.default_rng(rng.randrange(1000))
    arrays = {name: source.normal(0, 0.05, each.shape).astype(each.dtype) for name, each in load_file(path).items()}
    save_file(arrays, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    machine = plain_of(folder / "trial.json")["environment"]
    reseal(folder, trial={"environment": machine | {"cpu": "NEON"}}, result={"model_sha256": digest})
    return "foreign weights"


RECORD_FORGERIES = [forge_trial, forge_result, forge_log, forge_arrays, forge_seed, foreign_weights]


def stored_forgery(forge: Callable[[Path, random.Random], str], whole: Path, copy: Path, rng: random.Random) -> str:
    """What was forged in a new copy; again where no such value can be stored."""
    while True:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        try:
            return forge(copy, rng)
        except WrongValue:
            continue


def verified(folder: Path, **options: Any) -> Checked:
    (found,) = ft.verify(folder, quiet=True, **options).records
    return found


def forge_records(whole: Path, count: int, workspace: Path, tally: Tally) -> None:
    for number in range(count):
        rng = random.Random(f"{SEED} record {number}")
        copy = workspace / "forged"
        told = stored_forgery(RECORD_FORGERIES[number % len(RECORD_FORGERIES)], whole, copy, rng)
        try:
            state = verified(copy).state
        except BadInput as error:  # what cannot be stored cannot be claimed
            state = f"refused: {error.what}"
        except Exception as error:
            tally.failed(told, f"{type(error).__name__}: {error}")
            continue
        if state in ("proven", "consistent"):
            tally.failed(f"{number}: {told}", f"it is {state}")
        else:
            tally.refused()


def forge_verdict(folder: Path, rng: random.Random) -> str:
    path = folder / "verdict.json"
    verdict = plain_of(path)
    told = forge_value(verdict, rng)
    write_document(path, verdict)
    return f"verdict.json, {told}"


def add_a_sentence(folder: Path, rng: random.Random) -> str:
    verdict = plain_of(folder / "verdict.json")
    at = rng.randrange(len(verdict["sentences"]) + 1)
    verdict["sentences"].insert(at, {"text": "rope is better than learned: +40.0 points.", "limit": False})
    write_document(folder / "verdict.json", verdict)
    return f"a sentence at {at}"


def rearrange(folder: Path, rng: random.Random) -> str:
    """Exchange, copy, remove or rename trials."""
    trials = sorted(folder.glob("trials/*/*/seed-*"))
    one, other = rng.sample(trials, 2)
    kind = rng.choice(["exchange", "copy", "remove", "rename", "copy as a new seed"])
    if kind == "exchange":
        one.rename(folder / "x")
        other.rename(one)
        (folder / "x").rename(other)
    elif kind == "copy":
        shutil.rmtree(other)
        shutil.copytree(one, other)
    elif kind == "remove":
        shutil.rmtree(one)
    elif kind == "rename":
        one.rename(one.with_name("seed-9"))
    else:
        seed = int(other.name.removeprefix("seed-"))
        shutil.rmtree(other)
        shutil.copytree(one, other)
        reseal(other, trial={"seed": seed}, result={"seed": seed})
    return f"{kind}: {one.relative_to(folder)}, {other.relative_to(folder)}"


STUDY_FORGERIES = [forge_verdict, forge_verdict, add_a_sentence, rearrange]


def forge_studies(whole: Path, count: int, workspace: Path, tally: Tally) -> None:
    """`verdict` refuses what was rearranged, and `verify` calls false all that is."""
    for number in range(count):
        rng = random.Random(f"{SEED} study {number}")
        copy = workspace / "study"
        forge = STUDY_FORGERIES[number % len(STUDY_FORGERIES)]
        told = stored_forgery(forge, whole, copy, rng)
        try:
            state = verified(copy, trials=0).state
        except BadInput as error:
            state = f"refused: {error.what}"
        except Exception as error:
            tally.failed(told, f"{type(error).__name__}: {error}")
            continue
        if state in ("proven", "consistent"):
            tally.failed(f"{number}: {told}", f"it is {state}")
            continue
        if forge is rearrange:
            try:
                ft.verdict(copy)
                tally.failed(f"{number}: {told}", "`verdict` takes it as it is")
                continue
            except BadInput:
                pass
        tally.refused()


def resume_elsewhere(folder: Path) -> None:
    """Finish a record on a processor without vector instructions."""
    code = (
        "import sys; from pathlib import Path; from fairtrial.trial import resume_trial; from fairtrial.errors import"
        " EnvironmentChanged\n"
        "try: resume_trial(Path(sys.argv[1])); sys.exit('it was not refused')\n"
        "except EnvironmentChanged: resume_trial(Path(sys.argv[1]), ignore_changes=True)"
    )
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, env=environment, timeout=300)


def finish_elsewhere(source: Path, workspace: Path, count: int, tally: Tally) -> None:
    for number in range(count):
        rng, folder = random.Random(f"{SEED} elsewhere {number}"), workspace / f"elsewhere-{number}"
        steps, task = iter(range(1000)), ["classify", "lm"][number % 2]
        stop_at = rng.randrange(1, 20)
        settings = ["training.duration=24 steps", f"training.learning_rate={rng.choice([0.001, 0.003, 0.01])}"]
        with pytest.raises(Interrupted):
            run_trial(make_tiny(task, source, *settings), number, folder, stop=lambda: next(steps) >= stop_at)  # noqa: B023
        resume_elsewhere(folder)
        found = verified(folder)
        if found.state != "consistent" and not (found.state == "proven" and "resumed" not in found.reason):
            tally.failed(f"{task}, seed {number}, stopped at {stop_at}", f"{found.state}: {found.reason}")
        elif "resumed with cpu" not in json.dumps(found.to_json()):
            tally.failed(f"{task}, seed {number}", "the record does not say where it was resumed")
        else:
            tally.survived()


def test_a_forged_record_is_never_proven_sample(finished_records: dict[str, Path], tmp_path: Path) -> None:
    tally = Tally("a sample of forged records")
    forge_records(finished_records["classify"], 8, tmp_path, tally)
    tally.close()


def test_a_forged_study_is_never_proven_sample(studies: Callable[[str], Path], tmp_path: Path) -> None:
    assert verified(studies("plain"), trials=0).state == "consistent"
    tally = Tally("a sample of forged studies")
    forge_studies(studies("plain"), 8, tmp_path, tally)
    tally.close()


@pytest.mark.second
def test_a_record_that_another_processor_finished_is_consistent(course: Path, tmp_path: Path) -> None:
    tally = Tally("a sample resumed elsewhere")
    finish_elsewhere(course, tmp_path, 1, tally)
    tally.close()


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classify", "lm"])
def test_forged_records(task: str, finished_records: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    tally = Tally(f"forged records: {task}")
    forge_records(finished_records[task], sized(200), tmp_path, tally)
    with capsys.disabled():
        tally.close()


@pytest.mark.slow
def test_forged_studies(studies: Callable[[str], Path], tmp_path: Path, capsys: Any) -> None:
    tally = Tally("forged and rearranged studies")
    forge_studies(studies("search"), sized(200), tmp_path, tally)
    with capsys.disabled():
        tally.close()


@pytest.mark.slow
def test_resumed_elsewhere(course: Path, tmp_path: Path, capsys: Any) -> None:
    tally = Tally("resumed under another CPU capability")
    finish_elsewhere(course, tmp_path, sized(20), tally)
    with capsys.disabled():
        tally.close()
