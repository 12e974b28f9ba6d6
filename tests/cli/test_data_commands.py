"""`fairtrial data baseline`, `fairtrial data audit --data` and `fairtrial data clean`, as a user calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.prepare import prepare
from fairtrial.recipe import choose_recipe
from sampling import cases

Call = Callable[..., Any]
COPY = "We will build bridges and schools for every child in this hopeful country."


@pytest.fixture
def copied(course_folder: Path) -> Path:
    """Course data of which one sentence stands in train and test."""
    for name in ("train_CLS.tsv", "test_CLS.tsv"):
        with (course_folder / name).open("a") as file:
            file.write(f"0\t{COPY}\n")
    return course_folder


def test_baselines_of_both_tasks_in_a_table(fairtrial: Call, copied: Path) -> None:
    said = fairtrial("data", "baseline", "--data", copied)
    assert said.code == 0
    assert said.err == ""
    for word in ("majority", "naive Bayes", "logistic regression", "Kneser-Ney trigram", "contaminated", "obama:",
                 "bits per byte", "Compare models with other vocabularies"):  # fmt: skip
        assert word in said.out
    same = prepare(choose_recipe("classify", data=str(copied)), 0)  # as `fairtrial train classify` prepares it
    assert f"recipe default, seed 0; fitted on {len(same.splits.train)} documents" in " ".join(said.out.split())


def test_baselines_as_json_follow_recipe_seed_and_settings(fairtrial: Call, copied: Path) -> None:
    said = fairtrial(
        "data", "baseline", "--data", copied, "--task", "classify", "--recipe", "default", "--seed", 3, "--json"
    )
    found = json.loads(said.out)
    assert (found["task"], found["recipe"], found["seed"]) == ("classify", "default", 3)
    assert found["documents"] == {"train": 82, "validation": 9}
    score = found["baselines"]["naive Bayes"]["test"]["all"]
    assert score["items"] == 31
    assert score["interval"][0] <= score["accuracy"] <= score["interval"][1]
    more = fairtrial(
        "data", "baseline", "--data", copied, "--task", "classify", "--set", "data.validation=0.5", "--json"
    )
    assert json.loads(more.out)["documents"]["train"] < 50


def test_an_audit_with_a_copy_is_red_and_a_cleaned_copy_is_not(fairtrial: Call, copied: Path, tmp_path: Path) -> None:
    said = fairtrial("data", "audit", "--data", copied, "--task", "classify")
    assert said.code == 1
    assert "test_CLS.tsv:31" in said.out
    assert "train_CLS.tsv:91" in said.out
    assert said.out.splitlines()[1].startswith("- RED: D1 duplicates of train")
    assert "fairtrial data clean --data" in said.out

    done = fairtrial("data", "clean", "--data", copied, "--out", tmp_path / "clean")
    assert done.code == 0
    assert "train_CLS.tsv: " in done.out
    again = fairtrial("data", "audit", "--data", tmp_path / "clean", "--json")
    assert again.code == 0
    tasks = [json.loads(line) for line in again.out.splitlines()]
    assert [each["task"] for each in tasks] == ["classify", "lm"]
    assert all(found["exact"] + found["near"] == 0 for each in tasks for found in each["sets"].values())


def test_a_recipe_that_fits_its_vocabulary_on_labels_is_red(fairtrial: Call, course_folder: Path) -> None:
    words = ("data", "audit", "--data", course_folder, "--task", "lm", "--json")
    found = {
        each["id"]: each["verdict"] for each in json.loads(fairtrial(*words, "--recipe", "course").out)["findings"]
    }
    assert found["D4l"] == "RED"
    honest = {each["id"]: each["verdict"] for each in json.loads(fairtrial(*words).out)["findings"]}
    assert honest["D4l"] == "PASS"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("audit", "nothing to audit was given"),
        ("audit rope --task lm", "apply to --model only"),
        ("data audit --data none", "no such file or folder"),
        ("data audit --data sotu --task clasify", "did you mean 'classify'?"),
        ("data audit --data sotu --recipe cuorse", "no built-in recipe is called 'cuorse'"),
        ("data baseline --data none", "no such file or folder"),
        ("data baseline --data sotu --task mlm", "task = 'mlm' is not known"),
        ("data baseline --data sotu --recipe none.toml", "no such recipe file"),
        ("data baseline --set data.validation=2", "not between 0 and 1"),
        ("data clean --data none --out x", "no such file or folder"),
        ("data clean --data sotu --out x", "embedded speeches are clean"),
        ("data clean --data sotu --out x --drop both", "drop = 'both' is not known; there is: train, test"),
    ],
)
def test_mistakes_are_told_in_a_line(
    words: str, told: str, fairtrial: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = fairtrial(*words.split())
    assert said.code == 2
    assert told in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_plain_text_has_language_model_baselines_only(fairtrial: Call, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("\n\n".join(f"Chapter {n} begins. It says {n} things." for n in range(60)))
    said = fairtrial("data", "baseline", "--data", tmp_path / "book.txt", "--json")
    assert [json.loads(line)["task"] for line in said.out.splitlines()] == ["lm"]
    refused = fairtrial("data", "baseline", "--data", tmp_path / "book.txt", "--task", "classify")
    assert refused.code == 2
    assert "plain text has no labels" in refused.err


@cases("command", ["train", "finetune", "study", "data baseline", "data audit", "data clean", "inspect params"])
def test_every_command_that_takes_data_takes_columns(fairtrial: Call, command: str) -> None:
    said = fairtrial(*command.split(), "--help")
    assert all(f"--{kind}-column" in said.out for kind in ("text", "label", "split", "group"))


def test_columns_are_chosen_on_the_command_line(fairtrial: Call, tmp_path: Path) -> None:
    rows = [f"{n},{'good' if n % 2 else 'bad'} film {n},{n % 2},{'test' if n % 5 == 0 else 'train'}" for n in range(40)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a,b,c,d", *rows]))
    named = ("--text-column", "b", "--label-column", "c", "--split-column", "d")
    said = fairtrial("data", "baseline", "--data", path, *named)
    assert "note: columns: text from 'b', label from 'c', split from 'd'; not used: a" in said.out, said.err
    assert "none of 8 test items" in said.out
    said = fairtrial("data", "audit", "--data", path, *named)
    assert "not used: a" in said.out
    said = fairtrial("data", "clean", "--data", path, "--out", tmp_path / "out", *named)
    assert "not used: a" in said.out, said.err
    said = fairtrial("study", "--data", path, *named, "--variants", "learned", "rope", "--dry-run", "--engine", "here")
    assert "notice: columns: text from 'b'" in said.out, said.err
