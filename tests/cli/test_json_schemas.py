"""`--json` prints what the JSON Schemas in docs/schemas say, for every command that has it."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairtrial as ft
from fairtrial.cli.main import COMMANDS

jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema: pip install -e '.[dev]'")
Call = Callable[..., Any]
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
LEDGER = ["--candidate", "muon", "--seed", "0", "--score", "3.2", "--incumbent-score", "3.3"]
BOTH = ["--scores", "50=3.1", "--scores", "51=3.12", "--first-scores", "50=3.3", "--first-scores", "51=3.31"]
# command -> what is given to it; several: one after another, in the same folder
FAST: dict[str, list[str]] = {
    "verdict": ["runs.csv", "items.csv", "runs.csv --out page.html", "runs.csv --threshold 3.4"],
    "power": ["", "--detect 2", "--spread 0.7"],
    "audit": ["none"],
    "grade": ["submissions --baseline submissions/a.csv --out graded"],
    "gate new": ["fresh.jsonl --metric loss"],
    "gate add": [" ".join(["ideas.jsonl", *LEDGER])],
    "gate show": ["ideas.jsonl", "new.jsonl", "kept.jsonl"],
    "gate confirm": [" ".join(["kept.jsonl", *BOTH])],
    "gate final": [" ".join(["final.jsonl", *BOTH])],
    "gate self-test": ["kept.jsonl"],
    "show": ["{classify}", "{lm}", "{unfinished}", "{records}"],
    "inspect params": ["{lm}", "course --task classify --vocabulary 50 --classes 3"],
    "inspect length": ["{lm} --times 1"],
    "inspect errors": ["{classify}"],
    "inspect predict": ["{classify} Hello"],
    "inspect surprisal": ["{lm} Hello"],
    "inspect generate": ["{lm} We --tokens 3"],
    "parts": ["", "rope"],
    "puzzle": ["average 0 1", "select 0 --count 30 --width 1"],
    "data audit": ["--data {course}"],
    "data baseline": ["--data {course}"],
    "data clean": ["--data {course} --out cleaned"],
}
SMALL = "--set shape.layers=1 shape.width=16 shape.hidden=16 shape.length=12 training.batch=8 --steps 4"
STUDY = f"--data {{course}} --task classify --variants learned rope --seeds 2 {SMALL} --engine here --out study"
SLOW = {
    "train": [f"{task} --data {{course}} {SMALL} --out {task}" for task in ("classify", "lm")],
    "verify": ["{classify}", "{lm} --steps 0", "broken"],
    "study": [STUDY, "study"],
    "doctor": [""],
    "gate run": ["own.jsonl --candidate rope --jobs 1"],
}
# the same events as another command
ALIKE = {"finetune": "train", "demo": "study"}


def schema(command: str) -> Any:
    return json.loads((SCHEMAS / f"{command.replace(' ', '-')}.json").read_text())


def check(command: str, text: str) -> int:
    """Every line, or the whole, is what the schema says; and JSON, which knows no NaN."""
    known = schema(command)
    validator = jsonschema.Draft202012Validator(known)
    pieces = text.splitlines() if known["title"].startswith("each line") else [text]
    for piece in pieces:
        validator.validate(json.loads(piece, parse_constant=lambda name: pytest.fail(f"{command}: {name}")))
    return len(pieces)


def test_every_command_that_prints_json_has_a_schema_and_is_tried_here() -> None:
    printing = {each.path for each in COMMANDS if "json" in inspect.signature(each.function).parameters}
    assert printing == {*FAST, *SLOW, *ALIKE}
    assert {path.stem for path in SCHEMAS.glob("*.json")} == {name.replace(" ", "-") for name in printing}
    for one, other in ALIKE.items():
        assert {**schema(one), "title": ""} == {**schema(other), "title": ""}
    for name in printing:
        jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.fixture
def places(
    tmp_path: Path, finished_records: dict[str, Path], course_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{seed},{3.3 - 0.1 * at + seed / 99}" for at, name in enumerate(("a", "b")) for seed in range(5)]
    Path("runs.csv").write_text("\n".join(["variant,seed,val_loss", *rows]))
    Path("submissions").mkdir()
    for name in ("a", "b", "broken"):
        runs = [f"{seed},{0.8 + seed / 99 + (name == 'b') / 10}" for seed in range(5)] * (name != "broken")
        Path(f"submissions/{name}.csv").write_text("\n".join(["seed,accuracy", *runs]))
    items = [f"{name},{seed},{item},{item % 2}" for name in "ab" for seed in range(5) for item in range(12)]
    Path("items.csv").write_text("\n".join(["variant,seed,item,value", *items]))
    ft.gate_new("new.jsonl", "val_loss")
    ft.gate_new("ideas.jsonl", "val_loss", incumbent="base")
    for name in ("kept", "final"):
        ft.gate_new(f"{name}.jsonl", "val_loss", incumbent="base")
        ours, theirs = {seed: 3.1 + seed / 900 for seed in range(6)}, {seed: 3.3 - seed / 999 for seed in range(6)}
        ft.gate_add(f"{name}.jsonl", "muon", scores=ours, incumbent_scores=theirs)
        for seed in range(20, 23):
            ft.gate_add(f"{name}.jsonl", "muon", seed=seed, score=3.1 + seed / 900)
    return {**finished_records, "records": finished_records["lm"].parent, "course": course_folder}


@pytest.mark.usefixtures("audits_here")
@pytest.mark.parametrize("command", FAST)
def test_what_a_command_prints_is_what_its_schema_says(command: str, fairtrial: Call, places: dict[str, Path]) -> None:
    for words in FAST[command]:
        said = fairtrial(*command.split(), *words.format(**places).split(), "--json")
        assert said.code in (0, 1, 10, 11), said.err
        assert check(command, said.out), words


@pytest.mark.second
@pytest.mark.usefixtures("audits_here")
@pytest.mark.parametrize("command", SLOW)
def test_what_a_training_command_prints_is_what_its_schema_says(
    command: str, fairtrial: Call, places: dict[str, Path]
) -> None:
    shutil.copytree(places["classify"], "broken")
    Path("broken/model.safetensors").write_bytes(b"no")
    small = ft.Recipe.load("classify").with_(layers=1, width=16, hidden=16, steps=3, batch=8)
    Path("tiny.toml").write_text(small.to_toml())
    if command == "gate run":
        ft.gate_new("own.jsonl", task="classify", data=places["course"], recipe="tiny.toml", incumbent="learned",
                    most_pairs=2)  # fmt: skip
    for words in SLOW[command]:
        said = fairtrial(*command.split(), *words.format(**places).split(), "--json")
        assert said.code in (0, 1, 10), said.err
        assert check(command, said.out), words


def test_a_schema_refuses_what_is_missing_unknown_or_of_another_type(places: dict[str, Path]) -> None:
    """The control: the checks above can fail."""
    validator = jsonschema.Draft202012Validator(schema("gate show"))
    plain = json.loads(json.dumps(ft.gate("kept.jsonl").to_json()))
    assert validator.is_valid(plain)
    assert not validator.is_valid({name: value for name, value in plain.items() if name != "answer"})
    assert not validator.is_valid({**plain, "other": 1})
    assert not validator.is_valid({**plain, "answer": "perhaps"})
    assert not validator.is_valid({**plain, "spent": "1"})
