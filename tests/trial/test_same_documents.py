"""All that read data see the same documents and tokens: trial, resume, load, a study's planning and calibration,
baselines, audits of data, `params`. For every reader and tokenizer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtrial.baselines.run import baseline_outcomes
from fairtrial.data.audit import audit_data
from fairtrial.data.tokenizer import fit
from fairtrial.engines import Job
from fairtrial.errors import Interrupted
from fairtrial.prepare import Prepared, prepare, prepare_like
from fairtrial.recipe import Recipe, built_in_recipe, with_settings, write_recipe
from fairtrial.record import Record
from fairtrial.study.jobs import calibrate_job
from fairtrial.study.plan import eval_sets_of
from fairtrial.trial import load, resume_trial, run_trial

TINY = ("shape.layers=1", "shape.width=16", "shape.hidden=16", "shape.classifier_hidden=8")
NOVEL = "\n\n".join(
    f"It was late in town {page % 7}. He slept in room {page % 11}, and dreamt of ships. Nobody knew why he left."
    for page in range(90)
)


def write_source(kind: str, folder: Path) -> Path:
    """A small source in one of the formats, with text of our own."""
    folder.mkdir(exist_ok=True)
    rows = [(row % 2, f"{('Good', 'Bad')[row % 2]} things happen on day {row} of the year.") for row in range(80)]
    if kind == "text":
        (folder / "novel.txt").write_text(NOVEL)
        return folder / "novel.txt"
    if kind == "lines":
        (folder / "novel.tokens").write_text("\n".join(f"it was day {row % 9} , and rain fell ." for row in range(90)))
        return folder / "novel.tokens"
    if kind == "ids":
        np.array([(n * n + n // 7) % 23 for n in range(9000)], np.uint16).tofile(folder / "train.bin")
        return folder
    if kind == "csv":
        (folder / "rows.csv").write_text("label,text\n" + "\n".join(f"{label},{text}" for label, text in rows))
        return folder / "rows.csv"
    if kind == "jsonl":
        lines = (json.dumps({"label": str(label), "text": text}) for label, text in rows)
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        return folder / "rows.jsonl"
    for row, (label, text) in enumerate(rows):  # a folder of text files per class
        place = folder / "classes" / str(label)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row}.txt").write_text(text)
    return folder / "classes"


# task, source, settings; "record": from the vocabulary or the weights of a language model with word tokens
CASES = {
    "course, classify, words": ("classify", "course", ()),
    "course, lm, words": ("lm", "course", ()),
    "csv, byte pairs": ("classify", "csv", ("tokens.kind=bpe", "tokens.size=300")),
    "jsonl, characters": ("classify", "jsonl", ("tokens.kind=character",)),
    "folder, lower case": ("classify", "folder", ("tokens.lowercase=true",)),
    "novel, words": ("lm", "text", ()),
    "novel, characters": ("lm", "text", ("tokens.kind=character",)),
    "novel, byte pairs": ("lm", "text", ("tokens.kind=bpe", "tokens.size=300")),
    "lines, whitespace": ("lm", "lines", ()),
    "token ids": ("lm", "ids", ("tokens.size=23",)),
    "novel, a record's vocabulary": ("lm", "text", ("tokens.fit={record}",)),
    "sotu, mlm": ("mlm", "sotu", ("data.train_share=0.05", "tokens.kind=whitespace")),
}


@pytest.fixture
def recipe(request: pytest.FixtureRequest, tmp_path: Path, course_folder: Path) -> Recipe:
    task, kind, settings = CASES[request.param]
    named = {"course": course_folder, "sotu": "sotu"}
    source = named[kind] if kind in named else write_source(kind, tmp_path / "source")

    def make(*more: str) -> Recipe:
        lasts = ("training.duration=1 epochs", "training.batch=64", "shape.length=12", "scoring.full_context=0.5")
        return with_settings(built_in_recipe("default", task), [f"data.source={source}", *TINY, *lasts, *more])

    if any("{record}" in setting for setting in settings):
        run_trial(make("training.duration=2 steps"), 5, tmp_path / "first")
    return make(*(setting.format(record=tmp_path / "first") for setting in settings))


def same_data(one: Prepared, other: Prepared) -> bool:
    return one.splits == other.splits and one.tokenizer.to_json() == other.tokenizer.to_json()


@pytest.mark.parametrize("recipe", CASES, indirect=True)
def test_all_see_the_same_documents_and_tokens(recipe: Recipe, tmp_path: Path, fairtrial: Callable[..., Any]) -> None:
    seed, folder = 3, tmp_path / "run"
    prepared = prepare(recipe, seed)
    with pytest.raises(Interrupted):
        run_trial(recipe, seed, folder, stop=lambda: True)
    trial = Record.open(folder).trial
    assert trial.counts.documents == {
        name: len(documents)
        for name, documents in (
            ("train", prepared.splits.train), ("validation", prepared.splits.validation), *prepared.splits.tests.items()
        )
    }  # fmt: skip
    assert same_data(prepare_like(Record.open(folder)), prepared)  # what a resumed trial is prepared from
    result = resume_trial(folder).result
    run = load(folder)
    assert same_data(run.prepared, prepared)

    tests = {name: len(documents) for name, documents in prepared.splits.tests.items()}
    if recipe.task != "mlm":  # a study judges classifiers and language models
        job = Job(("a", "b", "c"), "calibrate", write_recipe(recipe), seed)
        facts = calibrate_job(job, lambda *_: None, lambda: False)
        assert (facts.steps, facts.parameters) == (result.steps, result.parameters)
    assert eval_sets_of({"one": recipe}, 0).items == tests
    audit = audit_data(recipe, seed)
    assert {name: copied.items for name, copied in audit.sets.items()} == tests
    assert audit.documents["train"] == trial.counts.documents["train"]

    outcomes = Record.open(folder).outcomes()
    for arrays in baseline_outcomes(recipe, seed).values():
        for name, array in arrays.items():
            if name.rpartition("/")[2] in ("tokens", "bytes", "unknown", "label"):
                assert np.array_equal(array, outcomes[name]), name

    (tmp_path / "recipe.toml").write_text(write_recipe(recipe))
    shown = fairtrial("inspect", "params", tmp_path / "recipe.toml", "--seed", seed, "--json")
    assert shown.code == 0, shown.err
    assert f"{result.parameters}" in shown.out


def test_the_comparison_of_data_can_fail(tmp_path: Path) -> None:
    source = write_source("text", tmp_path / "source")
    recipe = with_settings(built_in_recipe("default", "lm"), [f"data.source={source}", *TINY])
    other = with_settings(recipe, ["tokens.kind=bpe", "tokens.size=300"])
    assert not same_data(prepare(recipe, 0), prepare(other, 0))
    assert not same_data(prepare(recipe, 0), prepare(recipe, 1))


def test_a_vocabulary_is_fitted_on_training_text_alone(tmp_path: Path) -> None:
    source = write_source("jsonl", tmp_path / "source")
    recipe = with_settings(built_in_recipe("default", "classify"), [f"data.source={source}", "tokens.min_count=1"])
    prepared = prepare(recipe, 0)
    known = prepared.tokenizer.inner.get_vocab()  # every text has a number of its own
    for documents, fitted in (
        (prepared.splits.train, True), (prepared.splits.validation, False), (prepared.splits.tests["test"], False),
    ):  # fmt: skip
        numbers = [word for document in documents for word in document.text.split() if word.isdigit()]
        assert len(numbers) == len(documents) > 5
        assert [word in known for word in numbers] == [fitted] * len(numbers)
    prepared = prepare(with_settings(recipe, ["tokens.kind=bpe", "tokens.size=300"]), 0)  # fitted in another way
    alone, more = (
        fit(prepared.recipe.tokens, [d.text for d in part]) for part in (prepared.splits.train, prepared.known)
    )
    assert prepared.tokenizer.inner.get_vocab() == alone.inner.get_vocab() != more.inner.get_vocab()
