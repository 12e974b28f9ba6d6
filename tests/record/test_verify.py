"""A record is proven by training it again, and one that is not what it says is found out, whatever checksums say."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file, save_file

import fairtrial as ft
from fairtrial.results.audit import Checked
from fairtrial.results.study import read_verdict, to_json
from fairtrial.stored import write_document
from sealed import plain_of, reseal

Call = Callable[..., Any]


def states(checked: Checked) -> dict[str, str]:
    return {claim.name: claim.state for claim in checked.claims}


def check(folder: Path, **options: Any) -> Checked:
    (found,) = ft.verify(folder, **options).records
    return found


@pytest.fixture
def copy(finished_records: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_records["classify"], tmp_path / "record"))


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_an_honest_record_is_proven_and_not_touched(
    task: str, finished_records: dict[str, Path], fairtrial: Call
) -> None:
    folder = finished_records[task]
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    found = check(folder)
    assert states(found) == {"files": "consistent"} | dict.fromkeys(("data", "training", "weights", "scores"), "proven")
    assert found.state == "proven"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    part = check(folder, steps=3)
    assert states(part) | {"weights": "", "files": ""} == states(found) | {"weights": "", "files": ""}
    assert (states(part)["weights"], part.state) == ("not repeated", "consistent")
    assert "the first 3 of 8 steps" in part.claims[2].detail
    assert check(folder, steps=0).state == "consistent"
    said = fairtrial("verify", folder)
    assert said.code == 0
    assert "proven" in said.out


def test_a_length_that_was_chosen_from_the_text_is_chosen_again(tiny_recipe: Call, tmp_path: Path) -> None:
    run = ft.train(tiny_recipe("classify", "shape.length=0"), out=tmp_path / "record", quiet=True)
    assert any("chosen from the training text" in note for note in run.record.trial.notes)
    assert check(run.folder).state == "proven"


def test_an_edited_result_with_new_checksums_is_false(copy: Path, fairtrial: Call) -> None:
    result = plain_of(copy / "result.json")
    result["tests"]["test"]["accuracy"] = 0.97
    reseal(copy, result=result)
    found = check(copy)
    assert states(found)["files"] == "consistent", "whoever edits can make checksums, too"
    assert (states(found)["weights"], states(found)["scores"], found.state) == ("proven", "false", "false")
    assert "tests.test.accuracy is 0.97 there" in found.claims[-1].detail
    assert check(copy, steps=0).state == "false", "the stored weights are enough"
    said = fairtrial("verify", copy, "--json")
    assert (said.code, json.loads(said.out)[0]["state"]) == (1, "false")


def test_outcomes_that_were_edited_with_their_scores_are_false(copy: Path) -> None:
    path = copy / "outcomes.safetensors"
    arrays = load_file(path)
    arrays["test/guess"] = arrays["test/guess"][::-1].copy()
    save_file(arrays, path)
    reseal(copy)
    found = check(copy, steps=1)
    assert states(found)["scores"] == "false"


def test_another_seed_than_it_claims_is_false(copy: Path) -> None:
    seed = json.loads((copy / "trial.json").read_text())["seed"] + 5
    reseal(copy, trial={"seed": seed}, result={"seed": seed})
    found = check(copy, steps=2)
    assert found.state == "false"
    wrong = next(claim for claim in found.claims if claim.state == "false")
    assert wrong.name in ("data", "training"), "another split, or other losses, follow from that seed"


def test_a_training_with_another_seed_is_false_where_the_data_are_the_same(tiny_recipe: Call, tmp_path: Path) -> None:
    """The course's own split has no validation set, so that a seed decides weights and batches alone."""
    from fairtrial.trial import run_trial

    recipe = tiny_recipe("classify", "data.validation=0", "training.keep=last", "tokens.fit=course")
    run_trial(recipe, 1, tmp_path / "record")
    assert check(tmp_path / "record").state == "proven"
    reseal(tmp_path / "record", trial={"seed": 2}, result={"seed": 2})
    found = check(tmp_path / "record")
    assert (states(found)["data"], states(found)["training"]) == ("proven", "false")
    assert "step 1 differs: loss is" in found.claims[2].detail or "step 0" in found.claims[2].detail


def test_edited_weights_with_new_checksums_are_false(copy: Path) -> None:
    path = copy / "model.safetensors"
    tensors = load_file(path)
    name = max(tensors, key=lambda each: tensors[each].size)
    tensors[name] = tensors[name] * 1.0000001
    save_file(tensors, path)
    told = plain_of(copy / "result.json")
    reseal(copy, result=told | {"model_sha256": hashlib.sha256(path.read_bytes()).hexdigest()})
    found = check(copy)
    assert (states(found)["training"], states(found)["weights"]) == ("proven", "false")
    assert name in next(claim.detail for claim in found.claims if claim.name == "weights")


def test_an_edited_curve_and_a_broken_checksum_are_false(copy: Path, finished_records: dict[str, Path]) -> None:
    log = copy / "events.jsonl"
    lines = log.read_text().splitlines()
    at = max(number for number, line in enumerate(lines) if '"event": "step"' in line)
    event = json.loads(lines[at])
    lines[at] = json.dumps(event | {"loss": event["loss"] * 0.9})
    log.write_text("\n".join(lines) + "\n")
    assert states(check(copy)) == {"files": "false"}
    reseal(copy)
    assert states(check(copy))["training"] == "false"


def test_other_code_makes_a_difference_a_doubt_unless_its_outcomes_are_the_same(copy: Path) -> None:
    reseal(copy, trial={"code": "0" * 16})
    assert check(copy).state == "proven", "the bits are the same all the same"
    result = plain_of(copy / "result.json")
    result["tests"]["test"]["accuracy"] = 0.97
    reseal(copy, result=result)
    assert states(check(copy, steps=1))["scores"] == "false", "the outcomes say otherwise"
    seed = json.loads((copy / "trial.json").read_text())["seed"] + 5
    reseal(copy, trial={"seed": seed}, result={"seed": seed})
    assert check(copy, steps=1).state == "not proven", "other code may split or train in another way"


def test_other_data_and_parts_from_a_file_are_not_guessed_at(copy: Path, fairtrial: Call, tmp_path: Path) -> None:
    from course_text import write_course

    other = write_course(tmp_path / "other")
    (other / "test_CLS.tsv").write_text((other / "train_CLS.tsv").read_text())
    found = check(copy, data=other)
    assert (states(found)["data"], found.state) == ("not proven", "not proven")
    assert "test_CLS.tsv" in found.claims[1].detail
    canary = tmp_path / "ran"
    (copy / "parts").mkdir()
    (copy / "parts" / "evil.py").write_text(f"open({str(canary)!r}, 'w')\n")
    reseal(copy, trial={"plugins": {"evil.py": "0" * 64}})
    found = check(copy)
    assert found.state == "not proven"
    assert "needs code from evil.py" in found.claims[-1].detail
    assert not canary.exists(), "nothing in a record is run"


def test_notes_of_another_version_are_not_proven(copy: Path) -> None:
    machine = plain_of(copy / "trial.json")["environment"] | {"fairtrial": "0.1.9"}
    reseal(copy, trial={"environment": machine, "notes": ["better than all others"]})
    found = check(copy)
    assert (found.state, states(found)["training"]) == ("consistent", "proven")
    assert "its notes are of version 0.1.9" in found.reason


def test_many_submissions_give_one_table(finished_records: dict[str, Path], copy: Path, fairtrial: Call) -> None:
    result = plain_of(copy / "result.json")
    result["tests"]["test"]["accuracy"] = 1.0
    reseal(copy, result=result)
    said = fairtrial("verify", finished_records["classify"], copy, finished_records["unfinished"], "--steps", 1)
    assert said.code == 1
    rows = [line.split() for line in said.out.splitlines()]
    words = " ".join(word for line in rows for word in line)
    assert "3 records: 1 consistent, 1 false, 1 not proven." in words
    assert "the trial is not" in words  # finished: the table wraps what follows


@pytest.mark.usefixtures("audits_here")
def test_a_studys_verdict_and_trials_are_judged_again(tiny_recipe: Call, tmp_path: Path) -> None:
    from fairtrial.engines import InProcess
    from fairtrial.recipe import write_recipe
    from fairtrial.study.run import run_study
    from fairtrial.study.tables import study_from

    (tmp_path / "recipe.toml").write_text(write_recipe(tiny_recipe("classify")))
    variants = {"learned": {"parts": ["learned"]}, "rope": {"parts": ["rope"]}}
    study = study_from(
        {"recipe": str(tmp_path / "recipe.toml"), "tasks": ["classify"], "seeds": 2, "variants": variants}
    )
    folder = tmp_path / "study"
    run_study(study, folder, InProcess())
    found = check(folder, trials=1)
    assert states(found) == {"files": "consistent", "verdict": "consistent", "trials": "consistent"}
    assert found.state == "consistent"
    assert "baselines and audits not recomputed; 1 of 4 trials re-trained bit by bit" in found.reason
    whole = check(folder, trials=None)
    assert whole.state == "proven", whole.reason
    assert whole.reason == "verdict, baselines and audits recomputed; 4 of 4 trials re-trained bit by bit"
    told = to_json(read_verdict(folder / "verdict.json"))
    told["tasks"]["classify"]["comparisons"][0]["difference"]["estimate"] += 1.0  # type: ignore[index]
    write_document(folder / "verdict.json", told)
    found = check(folder, trials=0)
    assert (states(found)["verdict"], found.state) == ("false", "false")
    assert "comparisons[0].difference" in found.claims[1].detail
    write_document(folder / "plan.json", plain_of(folder / "plan.json") | {"seeds": [0]})
    assert "plan.json: seeds" in check(folder, trials=0).reason
    (folder / "verdict.json").unlink()
    assert check(folder, trials=0).state == "not proven", "it claims nothing yet"
