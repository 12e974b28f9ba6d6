"""A class is graded: each submission by itself, copies are found, and a broken one stops nobody."""

from __future__ import annotations

import csv
import json
import math
import random
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load, save

import fairtrial as ft
from fairtrial.disk import sha256_of
from sealed import reseal
from tiny import make_tiny

ITEMS, SEEDS = 300, 5


def write(path: Path, runs: list[list[int]]) -> None:
    rows = [f"{seed},q{item},{value}" for seed, run in enumerate(runs) for item, value in enumerate(run)]
    path.write_text("\n".join(["seed,item,value", *rows]) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four honest students, one who copies, one who copies and changes 2% of the answers, and some who err."""
    chance = random.Random(0)
    ease = [chance.gauss(0.8, 1.3) for _ in range(ITEMS)]

    def runs(skill: float) -> list[list[int]]:
        return [[int(chance.random() < 1 / (1 + math.exp(-each - skill))) for each in ease] for _ in range(SEEDS)]

    home = tmp_path / "submissions"
    home.mkdir()
    write(tmp_path / "base.csv", runs(0))
    honest = {name: runs(skill) for name, skill in {"ada": 1.0, "bob": 0.0, "cleo": -1.0, "dora": 0.3}.items()}
    for name, own in honest.items():
        write(home / f"{name}.csv", own)
    shutil.copy(home / "ada.csv", home / "copycat.csv")
    write(home / "near.csv", [[value ^ (chance.random() < 0.02) for value in run] for run in honest["bob"]])
    (home / "=1+1.csv").write_text("seed,item,value\n0,q0,maybe\n")
    (home / "empty.csv").write_text("")
    (home / "binary.csv").write_bytes(b"\0\xff\xfe")
    (home / "nothing").mkdir()
    (home / "essay.pdf").write_bytes(b"%PDF")
    (home / "by-file").mkdir()
    for seed, run in enumerate(runs(0.9)):
        text = "\n".join(["item,value", *(f"q{item},{value}" for item, value in enumerate(run))])
        (home / "by-file" / f"run-{seed}.csv").write_text(text)
    return home


def test_a_class_is_graded_and_broken_submissions_stop_nobody(folder: Path) -> None:
    points = {"better": 10, "equivalent": 7, "undecided": 7, "worse": 4}
    graded = ft.grade(folder, folder.parent / "base.csv", points=points, quiet=True)
    found = {each.name: each for each in graded.grades}
    verdicts = {name: each.comparisons[0].verdict.value for name, each in found.items() if each.comparisons}
    assert (verdicts["ada"], verdicts["cleo"], verdicts["by-file"]) == ("better", "worse", "better")
    alone = ft.verdict(
        {
            name: read_runs(folder.parent / f"{path}.csv")
            for name, path in (("base", "base"), ("ada", "submissions/ada"))
        }
    )
    assert found["ada"].comparisons[0].p_adjusted == pytest.approx(alone.comparisons[0].p)  # not for the class
    assert {name for name, each in found.items() if each.problem} == {"=1+1", "empty", "binary", "nothing"}
    assert "maybe" in found["=1+1"].problem
    assert "essay.pdf" in graded.notes[0]
    assert {name: each.copies for name, each in found.items() if each.copies} == {
        "ada": ("copycat: outcomes identical",),
        "copycat": ("ada: outcomes identical",),
        "bob": ("near: outcomes nearly identical",),
        "near": ("bob: outcomes nearly identical",),
    }
    out = folder.parent / "submissions-grades"
    rows = {row["submission"]: row for row in csv.DictReader((out / "grades.csv").read_text().splitlines())}
    assert float(rows["ada"]["points"]) == 10
    assert "'=1+1" in rows  # no formula
    assert "copycat" not in (out / "feedback" / "ada.md").read_text()  # feedback is about nobody else
    told = json.loads((out / "gradescope" / "cleo" / "results.json").read_text())
    assert told["score"] == 4 == sum(each["score"] for each in told["tests"])
    assert "cleo" in (out / "grades.html").read_text()


def read_runs(path: Path) -> list[list[float]]:
    rows = list(csv.DictReader(path.read_text().splitlines()))
    return [[float(row["value"]) for row in rows if row["seed"] == str(seed)] for seed in range(SEEDS)]


def test_scores_of_runs_are_graded_and_equal_ones_found(tmp_path: Path) -> None:
    chance, home = random.Random(1), tmp_path / "class"
    home.mkdir()
    for name in ["base", *(f"student-{number}" for number in range(20))]:
        scores = [f"{seed},{0.8 + chance.gauss(0, 0.01):.3f}" for seed in range(SEEDS)]
        (home / f"{name}.csv").write_text("\n".join(["seed,accuracy", *scores]) + "\n")
    shutil.copy(home / "student-3.csv", home / "copy.csv")
    graded = ft.grade(home, "base.csv", out=tmp_path / "out", quiet=True)  # which lies among them
    assert len(graded.grades) == 21
    assert {each.name: each.copies for each in graded.grades if each.copies} == {
        "copy": ("student-3: scores identical",),
        "student-3": ("copy: scores identical",),
    }
    with pytest.raises(ft.BadInput, match="holds no grades"):
        ft.grade(home, "base.csv", out=home, quiet=True)
    with pytest.raises(ft.BadInput, match="points must be numbers"):
        ft.grade(home, "base.csv", points={"good": 1}, quiet=True)


def test_records_are_graded_verified_and_compared(course_folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "submissions"

    def train(name: str, part: str, seed: int) -> Path:
        recipe = make_tiny("classify", course_folder, "training.duration=24 steps").with_(parts=[part])
        return ft.train(recipe, seed=seed, out=tmp_path / name / f"seed{seed}", quiet=True).folder

    for seed in range(2):
        train("base", "learned", seed)
        train("submissions/ada", "rope", seed)
        train("submissions/bob", "alibi", seed)
    shutil.copytree(home / "ada", home / "same")
    shutil.copytree(home / "bob", home / "noisy")
    for record in (home / "noisy").iterdir():
        tensors = load((record / "model.safetensors").read_bytes())
        noise = {name: (each * 1.001).astype(each.dtype) for name, each in tensors.items()}
        (record / "model.safetensors").write_bytes(save(noise))
        reseal(record, result={"model_sha256": sha256_of(record / "model.safetensors")})
        (record / "baseline.json").unlink(missing_ok=True)
    shutil.copytree(home / "ada" / "seed0", home / "twice" / "one")
    shutil.copytree(home / "ada" / "seed0", home / "twice" / "two")
    graded = ft.grade(home, tmp_path / "base", verify=6, quiet=True)
    found = {each.name: each for each in graded.grades}
    assert "seed 0 was trained 2 times" in found["twice"].problem
    assert [found[name].state for name in ("ada", "bob", "same", "noisy")] == ["proven", "proven", "proven", "false"]
    assert [found[name].points(graded.scheme) for name in ("ada", "noisy")] == [1, 0]
    assert found["ada"].copies == ("same: outcomes, curves and weights identical",)
    (noisy,) = found["noisy"].copies
    assert noisy.startswith("bob: ")
    assert "weights nearly identical" in noisy
