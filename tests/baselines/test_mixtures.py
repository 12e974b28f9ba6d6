"""Mixtures of records: one weight alone is the record or the baseline itself; no test set has a part in the choice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtrial.baselines.ensemble import mix_records, open_mixture, read_more
from fairtrial.baselines.run import baseline_outcomes
from fairtrial.record import Record
from fairtrial.training.tasks import LanguageTask
from fairtrial.trial import load, run_trial

COUNTING = {"lm": "Kneser-Ney", "classify": "naive Bayes"}
BASELINE = {"lm": "Kneser-Ney trigram", "classify": "naive Bayes"}
WHAT = {"lm": "nll", "classify": "log_p"}


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_one_weight_alone_is_the_record_or_the_baseline(task: str, finished_records: dict[str, Path]) -> None:
    record = Record.open(finished_records[task])
    mixture = open_mixture(record).mixture
    names, kept = list(mixture.models), record.outcomes()
    counted = baseline_outcomes(record.recipe, record.trial["seed"])[BASELINE[task]]
    for name in ("validation", *record.trial["test_sets"]):
        place, what = f"{name}/{WHAT[task]}", WHAT[task]
        only = np.eye(len(names))
        by_record = mixture.outcomes(name, only[names.index("transformer")])
        by_counting = mixture.outcomes(name, only[names.index(COUNTING[task])])
        assert by_record[what] == pytest.approx(kept[place], rel=1e-5)
        assert by_counting[what] == pytest.approx(counted[place], rel=1e-9)
        assert np.abs(by_record[what] - by_counting[what]).max() > 1e-3  # a control: they are two models
        for other in set(by_record) - {what}:
            assert np.array_equal(by_record[other], kept[f"{name}/{other}"])


def test_a_language_mixture_gives_all_next_tokens_one_together(finished_records: dict[str, Path]) -> None:
    """Every entry of the vocabulary in turn as the last token of one context."""
    record = Record.open(finished_records["lm"])
    mixture, run = open_mixture(record).mixture, load(record)
    assert isinstance(run.task, LanguageTask)
    tokens = run.task.sets["validation"]
    size, context = run.tokenizer.size, tokens.sequences[0][:6]
    weights = np.full(len(mixture.models), 1 / len(mixture.models))
    found = []
    for entry in range(size):
        asked = type(tokens)((np.append(context, entry),), (np.zeros(7, int),), 1, np.ones(1), tokens.unknown)
        found.append(sum(w * model(asked)[-1] for w, model in zip(weights, mixture.models.values(), strict=True)))
    assert sum(found) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("task", ["lm", "classify"])
def test_the_mixture_is_no_worse_than_its_models_where_it_was_chosen(
    task: str, finished_records: dict[str, Path]
) -> None:
    opened = [Record.open(finished_records[task])]
    mixture = open_mixture(opened[0]).mixture
    weights = np.array(list(mix_records(opened, tests=False)["weights"].values()))

    def loss(taken: np.ndarray) -> float:
        sign = 1 if task == "lm" else -1
        return sign * float(mixture.outcomes("validation", taken)[WHAT[task]].sum())

    alone = [
        loss(only) for name, only in zip(mixture.models, np.eye(len(weights)), strict=True) if "unseen" not in name
    ]
    assert loss(weights) <= min(alone) + 1e-4
    assert max(alone) > min(alone) + 0.1


def test_weights_are_chosen_on_validation_alone(tiny_recipe: Callable[..., Any], tmp_path: Path) -> None:
    """Other test files, the same weights; other validation, other weights."""
    run_trial(tiny_recipe("lm", "data.validation=0.2"), 0, tmp_path / "chosen")
    run_trial(tiny_recipe("lm", "data.validation=0"), 0, tmp_path / "whole")
    chosen, whole = Record.open(tmp_path / "chosen"), Record.open(tmp_path / "whole")
    unread = mix_records([chosen], tests=False)
    assert unread["tests"] == {}
    read = mix_records([whole], [chosen])
    assert read["weights"] == unread["weights"]
    assert set(read["tests"]) == set(whole.trial["test_sets"])
    assert set(read["tests"]["obama"]) == {"mixture", "transformer", "Kneser-Ney"}
    run_trial(tiny_recipe("lm", "data.validation=0.2"), 5, tmp_path / "other")
    assert mix_records([Record.open(tmp_path / "other")], tests=False)["weights"] != unread["weights"]


def test_the_command_says_weights_and_scores(finished_records: dict[str, Path], fairtrial: Callable[..., Any]) -> None:
    said = fairtrial("ensemble", finished_records["classify"])
    assert said.code == 0
    assert "logistic regression" in said.out
    assert "new seed" in said.out
    as_json = json.loads(fairtrial("mix", finished_records["classify"], "--json").out)
    assert as_json["metric"] == "accuracy"
    assert len(as_json["weights"]) == 3


def test_more_text_is_counted_without_what_is_scored(
    finished_records: dict[str, Path], tmp_path: Path, fairtrial: Callable[..., Any]
) -> None:
    scored = load(Record.open(finished_records["lm"])).splits.tests["obama"]
    copied = next(each.text for each in scored if len(each.text.split()) >= 8)
    extra = tmp_path / "extra.txt"
    extra.write_text(
        "\n\n".join(["We will build new schools in this country.", copied, "God bless you all tonight."] * 8)
    )
    found = json.loads(fairtrial("ensemble", finished_records["lm"], "--more", extra, "--json").out)
    assert found["more"][0]["dropped"] > 0
    assert f"Kneser-Ney with {extra}" in found["weights"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("{whole}",), "no validation set"),
        (("{lm}", "{lm}"), "same seed"),
        (("{lm}", "{whole}"), "different recipes"),
        (("{lm}", "{elsewhere}"), "different data"),
        (("{whole}", "--chosen-on", "{classify}"), "another task"),
        (("{unfinished}",), "not finished"),
    ],
)
def test_mistakes_are_told(
    words: tuple[str, ...],
    sentence: str,
    finished_records: dict[str, Path],
    tiny_recipe: Callable[..., Any],
    tmp_path: Path,
    fairtrial: Callable[..., Any],
) -> None:
    run_trial(tiny_recipe("lm", "data.validation=0"), 3, tmp_path / "whole")
    shutil.copytree(finished_records["lm"], tmp_path / "elsewhere")
    elsewhere = Record.open(tmp_path / "elsewhere")
    elsewhere.write_json("trial.json", elsewhere.trial | {"data": {"other.txt": "0" * 64}, "seed": 99})
    places = {name: str(path) for name, path in finished_records.items()}
    places |= {name: str(tmp_path / name) for name in ("whole", "elsewhere")}
    said = fairtrial("ensemble", *(word.format(**places) for word in words))
    assert said.code == 2
    assert sentence in said.err


def test_sentences_inside_paragraphs_of_further_text_are_found(finished_records: dict[str, Path]) -> None:
    scored = ["We shall not rest until every child has a school."]
    source = finished_records["lm"].parent / "further.txt"
    source.write_text(f"It was late. {scored[0]} And so they went home.\n\nNobody else came.\n")
    found = read_more(str(source), "lm", "word", scored)
    assert found.dropped == 1
    assert [each.text for each in found.documents] == ["It was late.", "And so they went home.", "Nobody else came."]
